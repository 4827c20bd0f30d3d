// Measurements of `npm run bench`, in a tiny size.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { testdir } from '../kit/folders.js'
import { linesOf, script, skip } from './runs.js'

export const NO_FAULT = { failed: 0, closed: 0, missing: 0, order_faults: 0, damaged: 0, publish_errors: 0 }

/**
 * @param {any} t @param {string} name @param {string[]} flags
 * @returns {Promise<{code: number, stderr: string, steps: Record<string, any>[], out: string}>} `steps`: figures of each
 *   step of each run
 */
export async function measure(t, name, ...flags) {
  const out = testdir(t)
  const args = [script, name, '--runs', '1', '--seconds', '2', '--json', '--out', out, ...flags]
  const { code = 0, stdout, stderr } = await promisify(execFile)(process.execPath, args).catch(error => error)
  return { code, stderr, out, steps: linesOf(stdout).filter(({ run }) => run !== undefined) }
}

/**
 * What each step of each variant must have; names of figures that are above 0 in a step of each variant.
 * @typedef {[name: string, flags: string[], skip: string | false, expected: Record<string, any>[], positive: string[]]} Row
 */

/** @param {any} t @param {Row[]} rows */
export function testFigures(t, rows) {
  for (const [name, flags, without, expected, positive] of rows) {
    const label = name === 'tls' ? `tls (${flags.at(-1)})` : name
    t.test(`${label}: figures of each variant`, { skip: skip || without, buffered: true }, async t => {
      const { code, stderr, steps } = await measure(t, name, ...flags)
      t.equal(code, 0, stderr)
      t.ok(steps.length > 0 && steps.length % expected.length === 0, `${steps.length} steps`)
      for (const [at, figures] of steps.entries()) {
        t.match(figures, expected[at % expected.length], `${figures.server}, ${figures.step}`)
      }
      for (const server of new Set(steps.map(figures => figures.server)))
        for (const figure of positive)
          t.ok(
            steps.some(figures => figures.server === server && figures[figure] > 0),
            `${server}: ${figure}`,
          )
    })
  }
}
