// What a page may say around its charts, for reports of more than a gateway's CSV. Nothing in it is markup.

import { escapeHtml, mark, renderTable } from './table.js'

/** @typedef {import('./table.js').Table} Table */

/**
 * @typedef {{kind: 'verdict', state: 'good' | 'bad' | 'open', title: string, lines: string[]}} Verdict
 * @typedef {{kind: 'headlines', items: {label: string, value: string, note: string}[]}} Headlines
 * @typedef {{kind: 'list', title: string, items: string[]}} List
 * @typedef {{kind: 'table', table: Table}} TableSection
 * @typedef {{kind: 'histograms', title: string, note: string, ticks: string[], plots: Histogram[]}} Histograms `ticks`: evenly over the
 *   axis, all plots have the same
 * @typedef {Verdict | Headlines | List | TableSection | Histograms} Section
 *
 * @typedef {object} Histogram
 * @property {string} label
 * @property {string} note
 * @property {number} [run] whose colour it has, from 0
 * @property {{share: number, hint: string}[]} bars from left to right, all of one width; `share` of the highest, 0 to 1
 */

/** Units of a plot: it is stretched to its place. */
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
    // One of a million is to be seen, too.
    const height = Math.max(1.2, share * HEIGHT).toFixed(2)
    return `<rect x="${at * BAR + GAP / 2}" y="${(HEIGHT - Number(height)).toFixed(2)}" width="${BAR - GAP}" height="${height}"><title>${escapeHtml(hint)}</title></rect>`
  })
  return `<figure class="histogram"><figcaption>${run === undefined ? '' : mark(run)}<b>${escapeHtml(label)}</b> <span>${escapeHtml(note)}</span></figcaption>
<svg viewBox="0 0 ${bars.length * BAR} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${escapeHtml(`${label}: ${note}`)}">${rects.join('')}</svg>
<div class="histogram-axis">${ticks.map(tick => `<span>${escapeHtml(tick)}</span>`).join('')}</div></figure>`
}

/** @param {Histograms} histograms */
const renderHistograms = ({ title, note, ticks, plots }) =>
  `<section><h2>${escapeHtml(title)}</h2><p class="note">${escapeHtml(note)}</p>
<div class="histograms">${plots.map(plot => renderHistogram(plot, ticks)).join('\n')}</div></section>`

/**
 * @param {Section} section
 * @returns {string} HTML
 */
export function renderSection(section) {
  switch (section.kind) {
    case 'verdict':
      return renderVerdict(section)
    case 'headlines':
      return renderHeadlines(section)
    case 'list':
      return renderList(section)
    case 'table':
      return renderTable(section.table)
    case 'histograms':
      return renderHistograms(section)
  }
}
