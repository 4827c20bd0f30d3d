// Tables of docs/stats.md, docs/csv.md and docs/metrics.md, from src/metrics/table.js.

import { CSV_COLUMNS } from '../src/metrics/csv-columns.js'
import { families, GROUPS } from '../src/metrics/prometheus/families.js'
import { EVENTS, SECTIONS } from '../src/metrics/table.js'

const code = (/** @type {string} */ text) => `\`${text}\``

/** @param {string[]} head @param {string[][]} rows */
const tableOf = (head, rows) =>
  [head, head.map(() => '---'), ...rows].map(cells => `| ${cells.join(' | ')} |\n`).join('')

/** Replaces the first table of the section. @param {string} page @param {string} title @param {string} table */
function withTable(page, title, table) {
  const at = page.indexOf(`\n## ${title}\n`)
  const begin = page.indexOf('\n| ', at) + 1
  if (at < 0 || begin === 0) throw new Error(`no table in the section "${title}"`)
  const [old] = /^(?:\|.*\n)+/.exec(page.slice(begin)) ?? ['']
  return page.slice(0, begin) + table + page.slice(begin + old.length)
}

/** @param {string} page docs/stats.md */
export function statsPage(page) {
  /** Rows of totals merged over workers. @type {string[][]} */
  const merged = []
  let made = page
  for (const { title, rows } of SECTIONS) {
    const all = Object.entries(rows)
    for (const [path, { merge, unit, help }] of all)
      if (merge !== undefined && title !== 'A snapshot') merged.push([code(path), unit ?? '', merge, help])
    const cells =
      title === 'Totals'
        ? [...all.map(([path, { unit, help }]) => [code(path), unit ?? '', '', help]), ...merged]
        : all.map(([path, { unit, help }]) => [code(path), unit ?? '', help])
    const head = title === 'Totals' ? ['field', 'unit', 'merged', 'meaning'] : ['field', 'unit', 'meaning']
    made = withTable(made, title, tableOf(head, cells))
  }
  const events = Object.entries(EVENTS).map(([kind, meaning]) => [code(kind), meaning])
  return withTable(made, 'Events', tableOf(['kind', 'meaning'], events))
}

/** @param {string} page docs/csv.md */
export const csvPage = page =>
  withTable(
    page,
    'Columns',
    tableOf(
      ['name', 'meaning'],
      CSV_COLUMNS.map(({ name, doc }) => [code(name), doc]),
    ),
  )

/** @param {string} page docs/metrics.md */
export function metricsPage(page) {
  let made = page
  for (const [group, title] of Object.entries(GROUPS)) {
    const rows = families
      .filter(family => family.group === group)
      .map(({ name, type, labels, help }) => [code(name), type, labels.map(code).join(', '), help])
    made = withTable(made, title, tableOf(['metric', 'type', 'labels', 'meaning'], rows))
  }
  return made
}
