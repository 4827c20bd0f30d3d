// Sections of a report page besides charts, as data and as HTML. All text is escaped: data contains no markup.

/**
 * A table of a report page.
 * @typedef {object} Table
 * @property {string} title
 * @property {string} note
 * @property {string[]} columns headings after the first
 * @property {boolean} [marked] columns are runs, marked with colours
 * @property {boolean} [words] cells may be long text
 * @property {boolean} [names] labels are names, not wrapped
 * @property {{title: string, rows: {label: string, hint?: string, cells: string[]}[]}[]} groups
 */

/** @param {unknown} text */
export const escapeHtml = text =>
  String(text).replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)

/** Line colours of charts: `--chart-run-N` of charts.css, light theme. */
const RUN_COLORS = ['#0072b2', '#d55e00', '#008f6b', '#b4538f', '#5a4fcf', '#8a7400']

/** @param {number} run @returns {string} a square in its colour */
export const runMark = run =>
  `<svg class="run-mark"><rect width="100%" height="100%" fill="${RUN_COLORS[run % RUN_COLORS.length]}"/></svg>`

/** @param {Table} table @returns {string} */
export function renderTable({
  title,
  note,
  columns,
  marked = false,
  words = false,
  names: named = false,
  groups,
}) {
  // Repeat the column headings for each group: a long table is printed in several columns.
  const names = columns.map(
    (name, at) => `<th scope="col">${marked ? runMark(at) : ''}${escapeHtml(name)}</th>`,
  )
  // On narrow screens a cell is a separate line with the column heading.
  const label = (/** @type {string | undefined} */ column) =>
    column === undefined ? '' : ` data-column="${escapeHtml(column)}"`
  const bodies = groups.map(({ title, rows }) => {
    const blank = columns.length === 0 ? '<td></td>' : names.join('')
    const lines = rows.map(
      ({ label: name, hint, cells }) =>
        `<tr><th scope="row">${escapeHtml(name)}${hint ? ` <small>${escapeHtml(hint)}</small>` : ''}</th>${cells
          .map((cell, at) => `<td${label(columns[at])}>${escapeHtml(cell)}</td>`)
          .join('')}</tr>`,
    )
    return `<tbody><tr class="group"><th scope="rowgroup">${escapeHtml(title)}</th>${blank}</tr>
${lines.join('\n')}</tbody>`
  })
  const kinds = ['figures', columns.length === 0 && 'narrow', words && 'words', named && 'names'].filter(
    Boolean,
  )
  return `<section class="${kinds.join(' ')}">
<h2>${escapeHtml(title)}</h2>${note === '' ? '' : `<p class="note">${escapeHtml(note)}</p>`}
<div class="table"><table>${bodies.join('\n')}</table></div>
</section>`
}

/**
 * @typedef {{kind: 'verdict', state: 'good' | 'bad' | 'open', title: string, lines: string[]}} Verdict
 * @typedef {{kind: 'headlines', items: {label: string, value: string, note: string}[]}} Headlines
 * @typedef {{kind: 'list', title: string, items: string[]}} List
 * @typedef {{kind: 'table', table: Table}} TableSection
 * @typedef {{kind: 'histograms', title: string, note: string, ticks: string[], plots: Histogram[]}} Histograms
 *   `ticks`: evenly spaced, the same for all plots
 * @typedef {Verdict | Headlines | List | TableSection | Histograms} Section
 *
 * @typedef {object} Histogram
 * @property {string} label
 * @property {string} note
 * @property {number} [run] index of the run, for the colour
 * @property {{share: number, hint: string}[]} bars of equal width; `share` of the highest, 0 to 1
 */

/** Units of a plot, scaled to its element. */
const HEIGHT = 100
const BAR = 10
const GAP = 1

/** @param {{items: {label: string, value: string, note: string}[]}} headlines */
export const renderHeadlines = ({ items }) =>
  `<dl class="headlines">${items
    .map(
      ({ label, value, note }) =>
        `<div><dt>${escapeHtml(label)}</dt><dd><b>${escapeHtml(value)}</b><span>${escapeHtml(note)}</span></dd></div>`,
    )
    .join('')}</dl>`

/** @param {Verdict} verdict */
const renderVerdict = ({ state, title, lines }) =>
  `<section class="verdict ${state}"><h2>${escapeHtml(title)}</h2>${lines
    .map(line => `<p>${escapeHtml(line)}</p>`)
    .join('')}</section>`

/** @param {List} list */
const renderList = ({ title, items }) =>
  `<section class="list"><h2>${escapeHtml(title)}</h2><ul>${items
    .map(item => `<li>${escapeHtml(item)}</li>`)
    .join('')}</ul></section>`

/** @param {Histogram} plot @param {string[]} ticks */
function renderHistogram({ label, note, run, bars }, ticks) {
  const rects = bars.map(({ share, hint }, at) => {
    if (share === 0) return ''
    // Keep one in a million visible.
    const height = Math.max(1.2, share * HEIGHT).toFixed(2)
    return `<rect x="${at * BAR + GAP / 2}" y="${(HEIGHT - Number(height)).toFixed(2)}" width="${BAR - GAP}" height="${height}"><title>${escapeHtml(hint)}</title></rect>`
  })
  return `<figure class="histogram"><figcaption>${run === undefined ? '' : runMark(run)}<b>${escapeHtml(label)}</b> <span>${escapeHtml(note)}</span></figcaption>
<svg viewBox="0 0 ${bars.length * BAR} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${escapeHtml(`${label}: ${note}`)}">${rects.join('')}</svg>
<div class="histogram-axis">${ticks.map(tick => `<span>${escapeHtml(tick)}</span>`).join('')}</div></figure>`
}

/** @param {Histograms} histograms */
const renderHistograms = ({ title, note, ticks, plots }) =>
  `<section><h2>${escapeHtml(title)}</h2><p class="note">${escapeHtml(note)}</p>
<div class="histograms">${plots.map(plot => renderHistogram(plot, ticks)).join('\n')}</div></section>`

/** @type {{[K in Section['kind']]: (section: any) => string}} */
const RENDER = {
  verdict: renderVerdict,
  headlines: renderHeadlines,
  list: renderList,
  table: ({ table }) => renderTable(table),
  histograms: renderHistograms,
}

/** @param {Section} section @returns {string} HTML */
export const renderSection = section => RENDER[section.kind](section)
