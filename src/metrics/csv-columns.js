// CSV columns of table.js, and calculated ones.

import { SECTIONS, stepsOf } from './table.js'

/** @import { Snapshot } from './schema.js' */
/** @import { Row } from './table.js' */

/** @typedef {number | string | null} Cell null: unknown */

/**
 * @typedef {object} CsvColumn
 * @property {string} name unit `_ms`, `_bytes`, `_pct`, `_s` (per second); none: a count
 * @property {string} doc
 * @property {(snapshot: Snapshot) => Cell} value
 */

/** @param {number} share of a core */
const percent = share => Math.round(share * 1000) / 10

/**
 * Sums (or takes the maximum of) all values at a path.
 * @param {any} value @param {string[]} steps @param {Row} row
 * @returns {number | null | undefined} null: unknown; undefined: absent
 */
function totalAt(value, [step, ...below], row) {
  if (step === undefined) return row.value ? row.value(value) : value
  if (value === null || value === undefined) return undefined
  if (step !== '[]' && !step.startsWith('<')) return totalAt(value[step], below, row)
  const parts = Object.values(value)
    .map(inner => totalAt(inner, below, row))
    .filter(part => part !== undefined)
  const known = parts.filter(part => part !== null)
  if (known.length === 0) return parts.length === 0 ? 0 : null
  return row.merge === 'max' ? Math.max(...known) : known.reduce((sum, part) => sum + part, 0)
}

/** @param {Row} row @param {string} path @returns {CsvColumn['value']} */
function cellOf(row, path) {
  const steps = stepsOf(path)
  return snapshot => {
    const value = totalAt(snapshot, steps, row)
    if (value === null || value === undefined) return null
    switch (row.unit) {
      case 'ms':
        return Math.round(value * 100) / 100
      case 'bytes':
        return Math.round(value)
      case 'share':
        return percent(value)
      case 'share of all cores':
        return percent(value * snapshot.machine.cores)
      default:
        return value
    }
  }
}

/** Form-encoded constant facts for the first row. @param {Snapshot} snapshot */
export function factsOf({ node, machine }) {
  return new URLSearchParams({
    version: node.version,
    name: node.name,
    engine: node.engine,
    driver: node.driver,
    node_version: node.node_version,
    workers: String(node.workers),
    started_at: String(node.started_at),
    cores: String(machine.cores),
    memory: String(machine.memory.total),
  }).toString()
}

/**
 * @param {number} place @param {string} name @param {string} doc @param {CsvColumn['value']} value
 * @returns {[place: number, column: CsvColumn]}
 */
const column = (place, name, doc, value) => [place, { name, doc, value }]

const calculated = [
  column(2, 'elapsed_ms', 'Time since the start of the gateway.', s => s.time - s.node.started_at),
  column(
    16,
    'messages_out_total',
    '`messages_out` since the start of the gateway.',
    s => s.counters.out.messages,
  ),
  column(51, 'cpu_pct', '`cpu_user_pct` + `cpu_system_pct`.', s =>
    percent(s.totals.cpu.user + s.totals.cpu.system),
  ),
  column(58, 'load_1m', 'Load average over a minute.', s => s.machine.load?.[0] ?? null),
  column(
    81,
    'facts',
    'Facts about gateway and machine, form-encoded; only in the first row that a gateway writes to a file.',
    () => null,
  ),
]

const ofTable = SECTIONS.flatMap(({ at, total, rows }) =>
  Object.entries(rows).flatMap(([path, row]) => {
    if (row.csv === undefined) return []
    const [place, name] = row.csv
    return [column(place, name, row.help, cellOf(row, `${row.at?.[0] ?? total ?? at[0]}.${path}`))]
  }),
)

/** In the order of the file. @type {readonly CsvColumn[]} */
export const CSV_COLUMNS = Object.freeze(
  [...ofTable, ...calculated].sort(([a], [b]) => a - b).map(([, column]) => column),
)

export const CSV_HEADER = `${CSV_COLUMNS.map(({ name }) => name).join(',')}\n`

/** @param {Snapshot} snapshot @param {boolean} first of this gateway in the file */
export function csvRow(snapshot, first) {
  // Numbers and one form-encoded text need no quotes.
  const cells = CSV_COLUMNS.map(({ name, value }) =>
    first && name === 'facts' ? factsOf(snapshot) : (value(snapshot) ?? ''),
  )
  return `${cells.join(',')}\n`
}
