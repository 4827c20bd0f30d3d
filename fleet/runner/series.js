// Several runs of a scenario, of one server or of several in turn: all have the same noise of the machine.

import { join } from 'node:path'
import { replaceFile } from '../files.js'
import { isControl } from '../targets/index.js'
import { figuresOf, markdownTable, medians, ratios, table } from './figures.js'
import { makePage } from './page.js'
import { runScenario } from './run.js'

/** @import { Column } from './figures.js' */
/** @import { RunResult } from './result.js' */
/** @import { RunOptions } from './run.js' */

/** @typedef {{server: string, run: number, out: string, result: RunResult, failure: string}} SeriesRun */

/** @param {string} server @returns {string} for the name of a folder */
const slug = server => server.replace(/[^\w.-]+/g, '-').slice(0, 40)

/**
 * The first server is compared with the others.
 * @param {RunOptions} options `out`: each run has a folder below it @param {string[]} servers
 * @param {number} runs of each @param {(run: SeriesRun) => void} onRun after each
 * @throws {import('./target.js').RunError} no measurement of a gateway, or interrupted
 */
export async function runSeries(options, servers, runs, onRun) {
  const { out, signal, log = () => {}, progress = () => {} } = options
  /** @type {SeriesRun[]} */
  const done = []
  const single = options.single ?? servers.some(isControl)
  for (let run = 1; run <= runs; run++)
    for (const server of servers) {
      if (signal?.aborted) break
      const name = `${server} ${run}/${runs}`
      const folder = join(out, `${slug(server)}-${run}`)
      const show = (/** @type {string} */ text) => progress(`${name}: ${text}`)
      try {
        const made = await runScenario({ ...options, server, single, out: folder, progress: show })
        done.push({ server, run, out: folder, ...made })
        onRun(/** @type {SeriesRun} */ (done.at(-1)))
      } catch (error) {
        // A failed control only loses its column.
        if (!isControl(server) || signal?.aborted) throw error
        log(`${name}: ${error.message}`)
      }
    }
  return done
}

/**
 * @typedef {{step: string, runs: number, medians: Column[], ratios: Column[]}} Comparison of one step: medians of each
 *   server, ratios of the first server to each of the others
 */

/** @param {SeriesRun[]} runs @returns {Comparison[]} */
export function compare(runs) {
  const servers = [...new Set(runs.map(({ server }) => server))]
  const steps = [...new Set(runs.flatMap(({ result }) => result.steps.map(({ name }) => name)))]
  return steps.map(step => {
    const columns = servers.flatMap(name => {
      const figures = runs
        .filter(({ server }) => server === name)
        .flatMap(({ result }) => result.steps.filter(each => each.name === step))
        .map(figuresOf)
      return figures.length === 0 ? [] : [{ name, result: medians(figures), runs: figures.length }]
    })
    const [first, ...others] = columns
    return {
      step,
      runs: first.runs,
      medians: columns.map(({ name, result }) => ({ name, result })),
      ratios: others.map(({ name, result }) => ({
        name: `ratio to ${name}`,
        result: ratios(first.result, result),
      })),
    }
  })
}

/** @param {string} scenario @param {Comparison} comparison @returns {[title: string, columns: Comparison['medians']]} */
const tableOf = (scenario, { step, runs, medians, ratios }) => [
  `${scenario}, ${step}${runs > 1 ? `, medians of ${runs}` : ''}`,
  [...medians, ...ratios],
]

/** @param {string} scenario @param {Comparison[]} comparisons @returns {string} for the terminal */
export const comparisonText = (scenario, comparisons) =>
  comparisons.map(each => table(...tableOf(scenario, each))).join('\n')

/**
 * Writes one report of all runs, and their medians as Markdown.
 * @param {string} out folder @param {string} scenario @param {SeriesRun[]} runs @param {Comparison[]} comparisons
 */
export async function writeSeries(out, scenario, runs, comparisons) {
  const pages = runs.map(({ server, run, out: folder, result }) => ({
    result,
    csv: result.gateway === null ? null : join(folder, 'gateway.csv'),
    label: `${server} ${run}`,
  }))
  await replaceFile(join(out, 'report.html'), await makePage(pages))
  const text = comparisons.map(each => markdownTable(...tableOf(scenario, each))).join('\n')
  await replaceFile(join(out, 'table.md'), text)
}
