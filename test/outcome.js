// The result of a test file: counts, faults and skips from its TAP output, and a readable text.

import { inspect } from 'node:util'
import { Parser } from 'tap-parser'

/** Maximum printed characters of a failure, and of a file's other output. */
const PRINTED_OUTPUT = 10_000

/**
 * @typedef {object} Outcome
 * @property {string} file name of the run
 * @property {number} seconds
 * @property {number} pass
 * @property {number} fail
 * @property {number} skip
 * @property {string[]} faults what failed, in a line each
 * @property {string[]} skipped tests and their reasons
 * @property {string} report of a failing file, for people
 */

/** @param {string} file name of the run @returns {Outcome} */
export const newOutcome = file => ({
  ...{ file, seconds: 0, pass: 0, fail: 0, skip: 0 },
  ...{ faults: [], skipped: [], report: '' },
})

/** @param {Outcome} outcome @param {string} fault that no test of the file reports */
export function addFault(outcome, fault) {
  outcome.fail++
  outcome.faults.push(fault)
}

/**
 * Counts what a file reports.
 * @param {Outcome} outcome
 * @returns {Parser}
 */
export function counting(outcome) {
  /** @param {Parser} parser */
  const watch = parser => {
    parser.on('child', child => {
      watch(child)
      child.on('complete', ({ count, bailout }) => {
        if (count === 0 && !bailout) addFault(outcome, `${child.fullname}: no assertions`)
      })
    })
  }
  const parser = new Parser()
  watch(parser)
  parser.on('pass', () => outcome.pass++)
  parser.on('skip', ({ fullname, skip }) => {
    if (typeof skip !== 'string') return addFault(outcome, `${fullname}: skipped without a reason`)
    outcome.skip++
    outcome.skipped.push(`${fullname}: ${skip}`)
  })
  parser.on('fail', ({ fullname, diag }) => {
    addFault(outcome, fullname)
    outcome.report += `  not ok: ${fullname}\n${diagnosis(diag)}`
  })
  parser.on('complete', ({ ok, bailout, plan }) => {
    // The other reason is tap's, for a file without tests.
    if (plan.skipAll && plan.skipReason && plan.skipReason !== 'no tests found') {
      outcome.skip++
      outcome.skipped.push(`the whole file: ${plan.skipReason}`)
    }
    if (ok || outcome.fail > 0) return
    addFault(outcome, bailout ? `bail out: ${bailout}` : 'the output ends before its last test')
  })
  return parser
}

/**
 * @param {unknown} value whatever a test has thrown or compared: it may refer to itself, and its accessors may throw
 * @returns {string}
 */
function textOf(value) {
  if (typeof value === 'string') return value
  try {
    return JSON.stringify(value) ?? String(value)
  } catch {
    return inspect(value, { customInspect: false, depth: 5 })
  }
}

/**
 * @param {any} diag of a failure
 * @returns {string} indented lines
 */
function diagnosis(diag) {
  if (!diag) return ''
  const lines = Object.entries(diag).flatMap(([key, value]) => {
    const text = textOf(value).trimEnd()
    return text.includes('\n')
      ? [`${key}:`, ...text.split('\n').map(line => `  ${line}`)]
      : [`${key}: ${text}`]
  })
  return `${lines.map(line => `    ${line}\n`).join('')}`.slice(0, PRINTED_OUTPUT)
}

/** @param {string} what @param {string} text @returns {string} its end, for people */
export function tail(what, text) {
  const end = text.trimEnd().slice(-PRINTED_OUTPUT)
  return end === '' ? '' : `  ${what}:\n${end.replaceAll(/^/gm, '    ')}\n`
}
