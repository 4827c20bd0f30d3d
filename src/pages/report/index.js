// Reports: CSV files of gateways to one self-contained HTML page, for `halley report` and the fleet. run.js sorts and
// downsamples the rows, summary.js computes peaks and steady state, figures.js and sections.js are the tables, page.js
// writes the HTML; page/ runs in the browser.
// Guarantees: all text is escaped; the content policy allows only the page's scripts; a page is written atomically.

import { open, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, extname } from 'node:path'
import { packageVersion } from '../../base/version.js'
import { CsvError, readCsv } from '../../metrics/csv-reader.js'
import { renderPage } from './page.js'
import { makeRun } from './run.js'

const NEEDED = ['time', 'connections']
/** Total rows of a page, and limits per run. */
const POINTS = 4800
const MIN_POINTS = 400
const MAX_POINTS = 1500

/** A file cannot be reported; the message is one line. */
export class ReportError extends Error {}

/** @param {string} file */
const labelOf = file => basename(file, extname(file))

/**
 * @param {string} file @param {(share: number) => void} onProgress 0 to 1
 * @returns {Promise<import('../../metrics/csv-reader.js').CsvTable>} @throws {ReportError}
 */
async function readTable(file, onProgress) {
  let table
  try {
    const stats = await stat(file)
    if (stats.isDirectory()) throw new ReportError(`${file}: is a folder, not a CSV file`)
    table = await readCsv(file, bytes => onProgress(stats.size === 0 ? 1 : bytes / stats.size))
  } catch (error) {
    if (error instanceof ReportError) throw error
    if (error instanceof CsvError) throw new ReportError(`${file}: not a Halley CSV file: ${error.message}`)
    if (error.code === 'ENOENT') throw new ReportError(`${file}: no such file`)
    throw new ReportError(`${file}: cannot be read: ${error.code ?? error.message}`)
  }
  if (!table.header) throw new ReportError(`${file}: the file is empty`)
  const missing = NEEDED.filter(name => table.columns[name] === undefined)
  if (missing.length > 0)
    throw new ReportError(
      `${file}: not a Halley CSV file: ${missing.length === 1 ? 'column' : 'columns'} ${missing.join(', ')} missing`,
    )
  if (!table.columns.time.some(time => time > 0)) throw new ReportError(`${file}: no rows yet`)
  return table
}

/**
 * @param {object} options
 * @param {string[]} options.files one per run
 * @param {string[]} [options.labels] one per run; default: file names
 * @param {(text: string) => void} [options.onProgress]
 * @returns {Promise<import('./run.js').Run[]>} for renderPage()
 * @throws {ReportError}
 */
export async function readRuns({ files, labels = [], onProgress = () => {} }) {
  const points = Math.min(MAX_POINTS, Math.max(MIN_POINTS, Math.floor(POINTS / files.length)))
  const runs = []
  for (const [index, file] of files.entries()) {
    const { columns, facts } = await readTable(file, share =>
      onProgress(`${file}: ${Math.floor(share * 100)} % read`),
    )
    runs.push(makeRun({ label: labels[index] ?? labelOf(file), columns, facts, points }))
  }
  return runs
}

/**
 * Writes a report page of CSV files, atomically.
 * @param {object} options
 * @param {string[]} options.files one per run
 * @param {string} options.out
 * @param {string[]} [options.labels] one per run; default: file names
 * @param {string} [options.title]
 * @param {import('./sections.js').Table[]} [options.tables] after the table of figures
 * @param {(text: string) => void} [options.onProgress]
 * @returns {Promise<{bytes: number}>} size of the page
 * @throws {ReportError}
 */
export async function writeReport({ files, out, labels, title, tables, onProgress = () => {} }) {
  for (const file of files)
    if (await isSameFile(file, out)) throw new ReportError(`${out}: the report would overwrite the CSV file`)
  const runs = await readRuns({ files, labels, onProgress })
  onProgress('writing the page')
  const whole = title ?? runs.map(({ label }) => label).join(', ')
  const page = renderPage({ title: whole, runs, tables, version: packageVersion() })
  const part = `${out}.${process.pid}.part`
  try {
    await writeFile(part, page)
    await rename(part, out)
  } catch (error) {
    await rm(part, { force: true }).catch(() => {})
    throw new ReportError(`${out}: cannot be written: ${error.code ?? error.message}`)
  }
  return { bytes: Buffer.byteLength(page) }
}

/** Bytes to search for the page's generator. */
const HEAD_BYTES = 4096

/** Whether a page may replace a file not named by the user. @param {string} file @returns {Promise<boolean>} */
export async function mayReplace(file) {
  let handle
  try {
    handle = await open(file)
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
    return buffer.toString('latin1', 0, bytesRead).includes('<meta name="generator" content="Halley ')
  } catch (error) {
    return error.code === 'ENOENT'
  } finally {
    await handle?.close()
  }
}

/** @param {string} one @param {string} other @returns {Promise<boolean>} */
async function isSameFile(one, other) {
  const [a, b] = await Promise.all([one, other].map(file => stat(file).catch(() => null)))
  return a !== null && b !== null && a.dev === b.dev && a.ino === b.ino
}
