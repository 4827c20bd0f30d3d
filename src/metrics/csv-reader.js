// Reads gateways' CSV files (torn rows, columns of other versions, concatenated files) and other numeric tables.

import { createReadStream } from 'node:fs'

const INITIAL_ROWS = 4096

/**
 * @typedef {object} CsvTable
 * @property {Record<string, Float64Array>} columns NaN if unknown
 * @property {number} rows
 * @property {number} skipped torn lines
 * @property {{row: number, facts: Record<string, string>}[]} facts of gateways, with their first row
 * @property {boolean} header
 */

class Table {
  /** @type {Map<string, Float64Array>} */
  #columns = new Map()
  #capacity = INITIAL_ROWS
  rows = 0
  skipped = 0
  /** @type {CsvTable['facts']} */
  facts = []
  /** Of the last header. @type {string[] | null} */
  #names = null
  /** By cell index; null for text. @type {(Float64Array | null)[]} */
  #targets = []

  /** @param {string} line */
  addLine(line) {
    if (line === '' || line.startsWith('#')) return
    const cells = line.includes('"') ? splitQuoted(line) : line.split(',')
    if (this.#names === null || isHeader(cells, this.#names)) return this.#begin(cells)
    if (cells.length !== this.#names.length) this.skipped++
    else this.#addRow(cells)
  }

  /** @param {string[]} names */
  #begin(names) {
    if (this.#names === null && !isText(names)) throw new CsvError('no header line')
    this.#names = names
    for (const name of names) {
      if (name !== 'facts' && !this.#columns.has(name)) {
        this.#columns.set(name, new Float64Array(this.#capacity).fill(Number.NaN))
      }
    }
    this.#mapColumns()
  }

  #mapColumns() {
    this.#targets = /** @type {string[]} */ (this.#names).map(name => this.#columns.get(name) ?? null)
  }

  /** @param {string[]} cells */
  #addRow(cells) {
    if (this.rows === this.#capacity) this.#grow()
    for (let at = 0; at < cells.length; at++) {
      const cell = cells[at]
      if (cell === '') continue
      const target = this.#targets[at]
      if (target !== null) target[this.rows] = Number(cell)
      else this.facts.push({ row: this.rows, facts: Object.fromEntries(new URLSearchParams(cell)) })
    }
    this.rows++
  }

  #grow() {
    this.#capacity *= 2
    for (const [name, values] of this.#columns) {
      const wider = new Float64Array(this.#capacity).fill(Number.NaN)
      wider.set(values)
      this.#columns.set(name, wider)
    }
    this.#mapColumns()
  }

  /** @returns {CsvTable} */
  finish() {
    /** @type {CsvTable['columns']} */
    const columns = {}
    for (const [name, values] of this.#columns) columns[name] = values.subarray(0, this.rows)
    const { rows, skipped, facts } = this
    return { columns, rows, skipped, facts, header: this.#names !== null }
  }
}

/** Its message follows the file name. */
export class CsvError extends Error {}

/** @param {string[]} cells */
const isText = cells => cells.length > 1 && cells.every(cell => /^[A-Za-z_]/.test(cell))

/** @param {string[]} cells @param {string[]} names of the previous header */
const isHeader = (cells, names) => cells[0] === names[0] && isText(cells)

/** RFC 4180. @param {string} line */
function splitQuoted(line) {
  const cells = []
  const pattern = /(?:"((?:[^"]|"")*)"|([^,]*))(?:,|$)/y
  while (pattern.lastIndex < line.length) {
    const found = pattern.exec(line)
    if (found === null) return []
    cells.push(found[1] === undefined ? found[2] : found[1].replaceAll('""', '"'))
    if (pattern.lastIndex === line.length && line.endsWith(',')) cells.push('')
  }
  return cells
}

/**
 * @param {AsyncIterable<Buffer | string> | Iterable<Buffer | string>} chunks
 * @param {(bytes: number, rows: number) => void} [onProgress] totals after each chunk
 * @throws {CsvError}
 */
export async function parseCsv(chunks, onProgress = () => {}) {
  const table = new Table()
  const decoder = new TextDecoder()
  let rest = ''
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.length
    rest += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true })
    const lines = rest.split('\n')
    rest = /** @type {string} */ (lines.pop())
    for (const line of lines) table.addLine(line.endsWith('\r') ? line.slice(0, -1) : line)
    onProgress(bytes, table.rows)
  }
  // Without a line feed, the last number may be incomplete.
  if (rest !== '') table.skipped++
  return table.finish()
}

/** @param {string} file @param {(bytes: number, rows: number) => void} [onProgress] @throws {CsvError | Error} */
export const readCsv = (file, onProgress) =>
  parseCsv(createReadStream(file, { highWaterMark: 1024 * 1024 }), onProgress)
