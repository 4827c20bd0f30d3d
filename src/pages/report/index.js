// Reports: CSV files of gateways to one HTML page that needs no other file. run.js sorts and downsamples the rows,
// summary.js computes peaks and steady state, figures.js and sections.js are the tables, page.js writes the HTML;
// page/ runs in the browser and draws with charts/. Used by `halley report` and by the reports of the fleet.
// May import charts/ and stats/csv-reader.js. Promises: all text is escaped; the page's content policy allows only its
// own scripts; a page is written as a whole or not at all.

import { open, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, extname } from 'node:path'
import { packageVersion } from '../../base/version.js'
import { CsvError, readCsv } from '../../metrics/csv-reader.js'
import { renderPage } from './page.js'
import { makeRun } from './run.js'

const NEEDED = ['time', 'connections']
/** Rows in a page: of all runs together, and limits per run. */
const POINTS = 4800
const LEAST_POINTS = 400
const MOST_POINTS = 1500

/** No report can be made of a file; the message is one line. */
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
 * @param {object} options @param {string[]} options.files one per run
 * @param {string[]} [options.labels] one per run; default: the files' names
 * @param {(text: string) => void} [options.onProgress]
 * @returns {Promise<import('./run.js').Run[]>} for renderPage()
 * @throws {ReportError}
 */
export async function readRuns({ files, labels = [], onProgress = () => {} }) {
  const points = Math.min(MOST_POINTS, Math.max(LEAST_POINTS, Math.floor(POINTS / files.length)))
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
 * Makes a report page of CSV files.
 * @param {object} options @param {string[]} options.files one per run
 * @param {string[]} [options.labels] one per run; default: the files' names
 * @param {string} [options.title]
 * @param {import('./sections.js').Table[]} [options.tables] after the table of figures
 * @param {(text: string) => void} [options.onProgress] @returns {Promise<string>} a whole HTML page
 * @throws {ReportError}
 */
async function makeReport({ files, labels = [], title, tables, onProgress = () => {} }) {
  const runs = await readRuns({ files, labels, onProgress })
  onProgress('writing the page')
  const whole = title ?? runs.map(({ label }) => label).join(', ')
  return renderPage({ title: whole, runs, tables, version: packageVersion() })
}

/**
 * Writes the report to a file, completely or not at all.
 * @param {Parameters<typeof makeReport>[0] & {out: string}} options
 * @returns {Promise<{bytes: number}>} size of the page
 * @throws {ReportError}
 */
export async function writeReport({ out, ...options }) {
  for (const file of options.files)
    if (await isSameFile(file, out)) throw new ReportError(`${out}: the page would overwrite the CSV file`)
  const page = await makeReport(options)
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

/** Bytes of a page that contain its generator. */
const HEAD_BYTES = 4096

/**
 * Whether a page may take the place of a file that was not named for it.
 * @param {string} file @returns {Promise<boolean>} it is missing, or a report
 */
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
