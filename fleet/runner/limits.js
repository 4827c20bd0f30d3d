// Limits of the command line: `--max-p99 200ms`. A run that violates one exits with status 1.

import { bytes, count, milliseconds } from '../../src/base/format.js'
import { UsageError } from '../../src/cli/args.js'
import { losses } from './result.js'

/** @import { RunResult, StepResult } from './result.js' */

/** @typedef {RunResult['limits'][number]} Checked */
/** @typedef {{name: string, asked: string, value: number}} Limit of a flag; `value`: ms, bytes or a count */

const DURATION = { us: 1e-3, µs: 1e-3, ms: 1, s: 1000, m: 60_000 }
const SIZE = { b: 1, kb: 1024, mb: 1024 ** 2, k: 1024, m: 1024 ** 2, '': 1 }

/** @param {string} name @param {string} text @param {Record<string, number>} units @param {string} example */
function withUnit(name, text, units, example) {
  const [, number, unit] = /^(\d+(?:\.\d+)?)\s*([a-zµ]*)$/i.exec(text.trim()) ?? []
  const factor = units[unit?.toLowerCase()]
  if (number === undefined || factor === undefined)
    throw new UsageError(`--${name}: "${text}" is not like ${example}`)
  return Number(number) * factor
}

/** @param {string} name @param {string} text */
const duration = (name, text) => withUnit(name, text, DURATION, '200ms or 1.5s')
/** @param {string} name @param {string} text */
const size = (name, text) => withUnit(name, text, SIZE, '4KB')
/** @param {string} name @param {string} text */
const whole = (name, text) => {
  if (!/^\d[\d,_]*$/.test(text)) throw new UsageError(`--${name}: "${text}" is not a number`)
  return Number(text.replace(/[,_]/g, ''))
}

/** The measured value of a step; null: not measured, so the limit is violated. */
const KINDS = Object.freeze({
  'max-p99': { parse: duration, ours: (/** @type {StepResult} */ step) => of(step, 'p99') },
  'max-mean': { parse: duration, ours: (/** @type {StepResult} */ step) => of(step, 'mean') },
  'max-max': { parse: duration, ours: (/** @type {StepResult} */ step) => of(step, 'max') },
  'min-connections': { parse: whole, ours: (/** @type {StepResult} */ step) => step.connections.min },
  'max-bytes-per-connection': { parse: size, ours: null },
})

/** @param {StepResult} step @param {'p99' | 'mean' | 'max'} figure @returns {number | null} */
const of = ({ latency }, figure) => (latency.count > 0 ? latency[figure] : null)

/** Flags of these limits. @type {Record<string, import('../../src/cli/args.js').Flag>} */
export const LIMIT_FLAGS = Object.freeze({
  ...Object.fromEntries(Object.keys(KINDS).map(name => [name, { type: /** @type {const} */ ('string') }])),
  'no-loss': { type: /** @type {const} */ ('boolean') },
})

/** @param {Record<string, any>} flags @returns {Limit[]} */
export function parseLimits(flags) {
  /** @type {Limit[]} */
  const limits = []
  for (const [name, { parse }] of Object.entries(KINDS)) {
    const text = flags[name]
    if (text !== undefined) limits.push({ name, asked: text, value: parse(name, text) })
  }
  if (flags['no-loss']) limits.push({ name: 'no-loss', asked: '', value: 0 })
  return limits
}

/** @param {Limit} limit @param {number} value */
const inWords = ({ name }, value) =>
  name === 'min-connections' ? count(value) : name.includes('bytes') ? bytes(value) : milliseconds(value)

/** @param {Limit[]} limits @param {Pick<RunResult, 'steps' | 'accounting' | 'gateway'>} result @returns {Checked[]} */
export function checkLimits(limits, { steps, accounting, gateway }) {
  return limits.flatMap(limit => {
    const flag = `--${limit.name}`
    if (limit.name === 'no-loss') {
      const found = losses(accounting, steps)
      const nothing = steps.some(step => step.publishRate > 0 && step.accounting.expected === 0)
      const ours = nothing
        ? 'messages were published, but no subscriber expected any'
        : found.map(({ name, count: times }) => `${count(times)} ${name}`).join(', ') || 'nothing lost'
      return [{ limit: flag, asked: '', step: '', ours, broken: found.length > 0 || nothing }]
    }
    if (limit.name === 'max-bytes-per-connection') {
      const value = gateway?.connection.user ?? null
      const ours = value === null ? 'not measured (requires 1,000 connections)' : bytes(value)
      const broken = value === null || value > limit.value
      return [{ limit: flag, asked: limit.asked, step: '', ours, broken }]
    }
    const kind = KINDS[/** @type {keyof typeof KINDS} */ (limit.name)]
    const measured = steps.map(step => ({ step, value: kind.ours?.(step) ?? null }))
    // Idle steps have no latency; a run of only idle steps violates a latency limit.
    const some = measured.some(({ value }) => value !== null)
    return measured
      .filter(({ value }) => value !== null || !some)
      .map(({ step, value }) => {
        const holds =
          value !== null && (limit.name.startsWith('min-') ? value >= limit.value : value <= limit.value)
        const ours = value === null ? 'not measured: no message was received' : inWords(limit, value)
        return { limit: flag, asked: limit.asked, step: step.name, ours, broken: !holds }
      })
  })
}

/** @param {readonly string[]} names of figures that must be 0 @param {StepResult[]} steps @returns {Checked[]} */
export const checkZeros = (names, steps) =>
  steps.flatMap(({ name: step, figures }) =>
    names
      .filter(name => name in figures)
      .map(limit => ({ limit, asked: '0', step, ours: count(figures[limit]), broken: figures[limit] !== 0 })),
  )

/** @param {Checked} checked @returns {string} a line */
export const limitText = ({ limit, asked, step, ours }) =>
  `${limit}${asked === '' ? '' : ` ${asked}`}${step === '' ? '' : ` (${step})`}: ${ours}`
