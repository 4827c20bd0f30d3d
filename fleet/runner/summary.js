// A run in a few words, during and after it.

import { count, elapsed, milliseconds } from '../../src/base/format.js'
import { Distribution } from '../statistics/distribution.js'
import { areCalm, forgottenIn, losses } from './result.js'

/** @typedef {import('./result.js').RunResult} RunResult */
/** @typedef {import('./result.js').StepResult} StepResult */

/** Texts of losses. @type {Record<string, (times: string) => string>} */
const LOSSES = {
  lost: times => `${times} lost`,
  unknown: times => `${times} subscriptions of which it cannot be said`,
  duplicates: times => `${times} came twice`,
  disordered: times => `${times} out of order`,
  damaged: times => `${times} damaged`,
  unrecovered: times => `${times} subscriptions not recovered`,
  refused: times => `${times} subscriptions refused`,
  ended: times => `${times} connections ended by themselves`,
  missed: times => `${times} passed while their connection was away, and were not recovered`,
}

/**
 * @param {import('./result.js').Accounting} accounting @param {Pick<StepResult, 'disturbances' | 'recover'>[]} steps
 * @returns {string} '': no losses
 */
const lossText = (accounting, steps) =>
  losses(accounting, steps)
    .map(({ name, count: times }) => LOSSES[name](count(times)))
    .join(', ')

/** @param {number} value a second */
const rate = value => `${count(value < 100 ? Number(value.toPrecision(3)) : Math.round(value))}/s`

/** @param {StepResult} step @returns {string} a line */
export function stepText(step) {
  const { name, connections, received, pings, latency, accounting, partial } = step
  const parts = [`${count(connections.open)} open`]
  if (latency.count > 0)
    parts.push(
      `${rate(received)} received`,
      `mean ${milliseconds(latency.mean)}`,
      `p99 ${milliseconds(latency.p99)}`,
      `max ${milliseconds(latency.max)}`,
    )
  if (pings > 0) parts.push(`${rate(pings)} pings`)
  parts.push(lossText(accounting, [step]) || 'nothing lost')
  return `${name}: ${parts.join(', ')}${partial ? ' (not to its end)' : ''}`
}

/** @param {RunResult} result @returns {{state: 'good' | 'bad' | 'open', title: string, lines: string[]}} */
export function verdictOf({ partial, steps, accounting, limits, notes }) {
  const broken = limits.filter(limit => limit.broken)
  const lost = lossText(accounting, steps)
  const { expected, received, missed, pings, ended, reconnects, published, unpublished } = accounting
  const lines = []
  if (expected > 0) {
    const away =
      missed > 0 && !steps.every(({ recover }) => recover)
        ? `; ${count(missed)} passed while their connection was away, where nothing is promised`
        : ''
    lines.push(
      lost === ''
        ? `${count(expected)} messages were due to subscribers, and ${missed > 0 ? `${count(expected - missed)} of them` : 'each'} came once and in order${away}.`
        : `${count(expected)} messages were due to subscribers: ${lost}${away}.`,
    )
  }
  if (expected === 0 && received > 0)
    lines.push(`${count(received)} messages came${lost === '' ? '' : `: ${lost}`}.`)
  if (expected === 0 && received === 0 && pings > 0)
    lines.push(
      `${count(pings)} pings came, ${ended === 0 ? 'and no connection ended' : `and ${count(ended)} connections ended`}.`,
    )
  if (unpublished > 0)
    lines.push(
      `${count(unpublished)} of ${count(published + unpublished)} messages that were to be published were not confirmed: refused, or more than could be published in that time.`,
    )
  if (!areCalm(steps))
    lines.push(
      `What happened on the way ended connections; they were opened again, ${count(reconnects)} times together.`,
    )
  if (forgottenIn(steps) > 0)
    lines.push(
      `A killed gateway has no history: ${count(accounting.unrecovered)} subscriptions were told so (recovered: false), and ${count(missed)} messages passed meanwhile. They were declared, and do not count as lost.`,
    )
  for (const { limit, asked, step, ours } of broken)
    lines.push(
      `${limit}${asked === '' ? '' : ` ${asked}`} is broken${step === '' ? '' : ` at ${step}`}: ${ours}.`,
    )
  const kept = limits.length - broken.length
  if (kept > 0 && broken.length === 0) lines.push(`All limits hold (${kept}).`)
  lines.push(...notes)
  const clean = lost === '' && broken.length === 0
  const title = partial
    ? 'Not to its end'
    : broken.length > 0
      ? 'A limit is broken'
      : lost === ''
        ? 'Nothing was lost'
        : 'Not everything arrived'
  return { state: partial ? 'open' : clean ? 'good' : 'bad', title, lines }
}

/** @param {RunResult} result @returns {string[]} */
export function factsOf({ started, ended, scale, machine, versions, provider, target, ownGateway, plan }) {
  const date = new Date(started).toISOString().slice(0, 16).replace('T', ' ')
  const { cores, memory, cpu, system } = machine
  return [
    `${date} UTC, ${elapsed((ended - started) / 1000)}`,
    `scale ${scale}`,
    ownGateway ? `${plan?.workers} ${plan?.workers === 1 ? 'worker' : 'workers'}` : `target ${target}`,
    `drones: ${provider}`,
    `Halley ${versions.halley}, Node.js ${versions.node.replace(/^v/, '')}`,
    `${cores} ${cores === 1 ? 'core' : 'cores'}, ${Math.round(memory / 2 ** 30)} GB${cpu === '' ? '' : `, ${cpu}`}`,
    system,
  ]
}

/** @typedef {import('../schema.js').FleetSnapshot} FleetSnapshot */

/** @param {number} value */
const whole = value => count(Math.round(value))

/** @param {string} what `opening`, `measuring 12/60 s` @param {FleetSnapshot} snapshot @returns {string} one line */
export function progressText(what, { gauges, counters, rates, latencyNow, settings }) {
  const parts = [what, `${whole(gauges.open)} of ${whole(gauges.wanted)} connections`]
  if (gauges.opening > 0) parts.push(`${whole(rates.opened)}/s opened`)
  if (rates.received > 0 || settings.publish_rate > 0) {
    parts.push(`${whole(rates.received)}/s received`)
    if (latencyNow.count > 0) parts.push(`p99 ${milliseconds(Distribution.from(latencyNow).percentile(99))}`)
    parts.push(`${whole(counters.lost)} lost`)
  }
  if (counters.failed > 0) parts.push(`${whole(counters.failed)} failed`)
  if (counters.ended > 0) parts.push(`${whole(counters.ended)} ended`)
  return parts.join(' · ')
}
