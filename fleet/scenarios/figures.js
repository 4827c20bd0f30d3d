// Figures of a RunResult for comparison with published ones, as text. '': unknown.

import { bytes, count, formatValue, milliseconds, percent, UNKNOWN } from '../../src/base/format.js'

/** @import { RunResult, StepResult } from '../runner/result.js' */

/** @param {(value: number) => string} format @param {number | null | undefined} value */
const known = (format, value) =>
  value === null || value === undefined || !Number.isFinite(value) ? '' : format(value)

/** @param {RunResult} result @returns {StepResult | undefined} the last step with the most connections */
const largest = ({ steps }) =>
  steps.reduce(
    (/** @type {StepResult | undefined} */ best, step) =>
      best === undefined || step.connections.open >= best.connections.open ? step : best,
    undefined,
  )

/** @param {number} value */
const perSecond = value => `${count(value)}/s`

/** @param {StepResult | undefined} step @returns {StepResult['latency'] | null} null: no messages */
const latencyIn = step => (step !== undefined && step.latency.count > 0 ? step.latency : null)

/** @typedef {(result: RunResult) => string} Figure */

/** @param {(result: RunResult) => StepResult | undefined} pick the step @returns {Record<string, Figure>} */
const figuresOf = pick => ({
  connections: result => known(count, pick(result)?.connections.open),
  received: result => known(perSecond, pick(result)?.received),
  pings: result => known(perSecond, pick(result)?.pings),
  mean: result => known(milliseconds, latencyIn(pick(result))?.mean),
  p99: result => known(milliseconds, latencyIn(pick(result))?.p99),
  meanAndMax(result) {
    const latency = latencyIn(pick(result))
    return latency === null ? '' : `${milliseconds(latency.mean)} mean, ${milliseconds(latency.max)} max`
  },
  latency(result) {
    const latency = latencyIn(pick(result))
    if (latency === null) return ''
    const { mean, deviation, max } = latency
    return `${milliseconds(mean)} mean, ${known(milliseconds, deviation) || UNKNOWN} standard deviation, ${milliseconds(max)} max`
  },
  ticks(result) {
    const ticks = pick(result)?.gateway?.ticks
    if (!ticks) return ''
    return `${formatValue(ticks.average, 'ms')} average, ${formatValue(ticks.max, 'ms')} max`
  },
  /** Of the gateway, in cores. */
  cpu: result => known(share => `${(share / 100).toFixed(2)} cores`, pick(result)?.gateway?.cpu),
})

export const { connections, received, pings, ticks, cpu, latency, p99 } = figuresOf(largest)

/** The same of a step. @param {string} name */
export const of = name => figuresOf(({ steps }) => steps.find(step => step.name === name))

/** @param {RunResult} result connections opened in the busiest second */
export const opening = ({ steps }) => known(perSecond, Math.max(...steps.map(({ ramp }) => ramp.peak)))

/** @param {RunResult} result user-space memory and kernel memory of a connection */
export function connectionMemory({ gateway }) {
  if (!gateway?.connection) return ''
  const { heap, native, user, kernel } = gateway.connection
  const parts = [
    known(value => `${bytes(value)} user space`, user),
    known(value => `${bytes(value)} JS heap`, heap),
    known(value => `${bytes(value)} native`, native),
    known(value => `${bytes(value)} kernel`, kernel),
  ]
  return parts.filter(Boolean).join(', ')
}

/** @param {RunResult} result */
export const kernelMemory = ({ gateway }) => known(bytes, gateway?.connection?.kernel)

/** @param {RunResult} result */
export const userMemory = ({ gateway }) => known(bytes, gateway?.connection?.user)

/** @param {RunResult} result maximum latency: range over all steps */
export function maxRange({ steps }) {
  const values = steps.filter(({ latency }) => latency.count > 0).map(({ latency }) => latency.max)
  return values.length === 0
    ? ''
    : `${milliseconds(Math.min(...values))} to ${milliseconds(Math.max(...values))}`
}

/** @param {RunResult} result share of all cores of the machine: range over all steps */
export function cpuRange({ steps, machine }) {
  const values = steps.map(({ gateway }) => gateway?.machineCpu ?? Number.NaN).filter(Number.isFinite)
  if (values.length === 0) return ''
  const share = (/** @type {number} */ value) => percent(value / machine.cores)
  return `${share(Math.min(...values))} to ${share(Math.max(...values))}, including drones`
}
