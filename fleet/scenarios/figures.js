// Figures of a RunResult for comparison with published ones, as text. '': unknown.

import { bytes, count, formatValue, milliseconds, percent } from '../../src/charts/format.js'

/** @typedef {import('../runner/result.js').RunResult} RunResult */
/** @typedef {import('../runner/result.js').StepResult} StepResult */

/** @param {(value: number) => string} format @param {number | null | undefined} value */
const known = (format, value) =>
  value === null || value === undefined || !Number.isFinite(value) ? '' : format(value)

/** @param {RunResult} result @returns {StepResult | undefined} the last of those with the most connections */
const most = ({ steps }) =>
  steps.reduce(
    (/** @type {StepResult | undefined} */ best, step) =>
      best === undefined || step.connections.open >= best.connections.open ? step : best,
    undefined,
  )

/** @param {RunResult} result @param {string} name */
const stepOf = ({ steps }, name) => steps.find(step => step.name === name)

/** @param {RunResult} result */
export const connections = result => known(count, most(result)?.connections.open)

/** @param {RunResult} result connections opened in the busiest second */
export const opening = result =>
  known(value => `${count(value)}/s`, Math.max(...result.steps.map(({ ramp }) => ramp.peak)))

/** @param {RunResult} result */
export const received = result => known(value => `${count(value)}/s`, most(result)?.received)

/** @param {RunResult} result */
export const pings = result => known(value => `${count(value)}/s`, most(result)?.pings)

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

/** @param {StepResult | undefined} step */
function ticksText(step) {
  const found = step?.gateway?.ticks
  if (!found) return ''
  return `${formatValue(found.average, 'ms')} average, ${formatValue(found.max, 'ms')} longest`
}

/** @param {RunResult} result average and longest tick */
export const ticks = result => ticksText(most(result))

/** @param {RunResult} result share of a core, of the gateway */
export const cpu = result => {
  const share = most(result)?.gateway?.cpu
  return share === undefined || !Number.isFinite(share) ? '' : `${(share / 100).toFixed(2)} cores`
}

/** @param {RunResult} result */
export function latency(result) {
  const step = most(result)
  if (step === undefined || step.latency.count === 0) return ''
  const { mean, deviation, max } = step.latency
  return `${milliseconds(mean)} mean, ${known(milliseconds, deviation) || '–'} standard deviation, ${milliseconds(max)} max`
}

/** @param {RunResult} result */
export const p99 = result => {
  const step = most(result)
  return step === undefined || step.latency.count === 0 ? '' : milliseconds(step.latency.p99)
}

/** The same of a step. @param {string} name */
export const of = name => ({
  /** @param {RunResult} result */
  received: result => known(value => `${count(value)}/s`, stepOf(result, name)?.received),
  /** @param {RunResult} result */
  mean: result => {
    const found = stepOf(result, name)?.latency
    return found && found.count > 0 ? milliseconds(found.mean) : ''
  },
  /** @param {RunResult} result */
  meanAndMax: result => {
    const found = stepOf(result, name)?.latency
    return found && found.count > 0 ? `${milliseconds(found.mean)} mean, ${milliseconds(found.max)} max` : ''
  },
  /** @param {RunResult} result average and longest tick */
  ticks: result => ticksText(stepOf(result, name)),
  /** @param {RunResult} result */
  connections: result => known(count, stepOf(result, name)?.connections.open),
})

/** @param {RunResult} result longest latency of all steps: least and most */
export function maxRange({ steps }) {
  const values = steps.filter(({ latency }) => latency.count > 0).map(({ latency }) => latency.max)
  return values.length === 0
    ? ''
    : `${milliseconds(Math.min(...values))} to ${milliseconds(Math.max(...values))}`
}

/** @param {RunResult} result share of all cores of the machine: least and most of all steps */
export function cpuRange({ steps, machine }) {
  const values = steps.map(({ gateway }) => gateway?.machineCpu ?? Number.NaN).filter(Number.isFinite)
  if (values.length === 0) return ''
  const share = (/** @type {number} */ value) => percent(value / machine.cores)
  return `${share(Math.min(...values))} to ${share(Math.max(...values))}, drones included`
}
