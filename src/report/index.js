import { rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, extname } from 'node:path'
import { CsvError, readCsv } from '../stats/csv-reader.js'
import { packageVersion } from '../version.js'
import { renderPage } from './page.js'
import { makeRun } from './run.js'

/** Columns without which a file is none of ours. */
const NEEDED = ['time', 'connections']
/** A page has at most so many rows of all runs together, but this many of each. */
const POINTS = 4800
const LEAST_POINTS = 400
const MOST_POINTS = 1500

/** A file that no report can be made of; the message is one line. */
export class ReportError extends Error {}

/** @param {string} file */
const nameOf = file => basename(file, extname(file))

/**
 * @param {string} file
 * @param {(share: number) => void} onProgress 0 to 1
 * @returns {Promise<import('../stats/csv-reader.js').CsvTable>}
 * @throws {ReportError}
 */
async function readTable(file, onProgress) {
  let table
  try {
    const stats = await stat(file)
    if (stats.isDirectory()) throw new ReportError(`${file}: it is a folder`)
    table = await readCsv(file, bytes => onProgress(stats.size === 0 ? 1 : bytes / stats.size))
  } catch (error) {
    if (error instanceof ReportError) throw error
    if (error instanceof CsvError)
      throw new ReportError(`${file}: no CSV file of a gateway: ${error.message}`)
    if (error.code === 'ENOENT') throw new ReportError(`${file}: there is no such file`)
    throw new ReportError(`${file}: cannot be read: ${error.code ?? error.message}`)
  }
  if (!table.header) throw new ReportError(`${file}: the file is empty`)
  const missing = NEEDED.filter(name => table.columns[name] === undefined)
  if (missing.length > 0)
    throw new ReportError(`${file}: no CSV file of a gateway: there is no column ${missing.join(', ')}`)
  if (!table.columns.time.some(time => time > 0)) throw new ReportError(`${file}: there are no rows yet`)
  return table
}

/**
 * @param {object} options
 * @param {string[]} options.files a run each
 * @param {string[]} [options.labels] of the runs, in the same order; otherwise the files' names
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
    runs.push(makeRun({ label: labels[index] ?? nameOf(file), columns, facts, points }))
  }
  return runs
}

/**
 * Reads CSV files of gateways, and makes a page of them.
 *
 * @param {object} options
 * @param {string[]} options.files a run each
 * @param {string[]} [options.labels] of the runs, in the same order; otherwise the files' names
 * @param {string} [options.title]
 * @param {import('./table.js').Table[]} [options.tables] after the table of figures
 * @param {(text: string) => void} [options.onProgress] what is being done, for people
 * @returns {Promise<string>} a whole HTML page
 * @throws {ReportError}
 */
export async function makeReport({ files, labels = [], title, tables, onProgress = () => {} }) {
  const runs = await readRuns({ files, labels, onProgress })
  onProgress('writing the page')
  const whole = title ?? runs.map(({ label }) => label).join(', ')
  return renderPage({ title: whole, runs, tables, version: packageVersion() })
}

/**
 * The same, into a file: all of it, or nothing.
 * @param {Parameters<typeof makeReport>[0] & {out: string}} options
 * @returns {Promise<{bytes: number}>} of the page
 * @throws {ReportError}
 */
export async function runReport({ out, ...options }) {
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

/**
 * @param {string} one
 * @param {string} other
 * @returns {Promise<boolean>} whether there is one file behind both names
 */
async function isSameFile(one, other) {
  const [a, b] = await Promise.all([one, other].map(file => stat(file).catch(() => null)))
  return a !== null && b !== null && a.dev === b.dev && a.ino === b.ino
}
