/**
 * A table as a page shows it; nothing in it is markup.
 *
 * @typedef {object} Table
 * @property {string} title
 * @property {string} note
 * @property {string[]} columns heads of the columns behind the first
 * @property {boolean} [marked] columns are runs: their colours stand beside their names
 * @property {boolean} [words] cells are text that may be long, not figures
 * @property {boolean} [names] labels are names, which do not go over several lines
 * @property {{title: string, rows: {label: string, hint?: string, cells: string[]}[]}[]} groups
 */

/** @param {unknown} text */
export const escapeHtml = text =>
  String(text).replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)

/** @param {number} run @returns {string} a spot of its colour */
export const mark = run => `<i class="run-mark run-${(run % 6) + 1}"></i>`

/**
 * @param {Table} table
 * @returns {string}
 */
export function renderTable({
  title,
  note,
  columns,
  marked = false,
  words = false,
  names: named = false,
  groups,
}) {
  // Names stand above each group: a long table is read in parts, and printed in columns.
  const names = columns.map((name, at) => `<th scope="col">${marked ? mark(at) : ''}${escapeHtml(name)}</th>`)
  const bodies = groups.map(({ title, rows }) => {
    const blank = columns.length === 0 ? '<td></td>' : names.join('')
    const lines = rows.map(
      ({ label, hint, cells }) =>
        `<tr><th scope="row">${escapeHtml(label)}${hint ? ` <small>${escapeHtml(hint)}</small>` : ''}</th>${cells
          .map(cell => `<td>${escapeHtml(cell)}</td>`)
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
