// Short texts on a run, during and after it.

import { count, elapsed, milliseconds } from '../../src/base/format.js'
import { Distribution } from '../statistics/distribution.js'
import { areCalm, forgottenIn, losses } from './result.js'

/** @import { FleetSnapshot } from '../schema.js' */
/** @import { Accounting, RunResult, StepResult } from './result.js' */

/** Texts of losses. @type {Record<string, (times: string) => string>} */
const LOSSES = {
  lost: times => `${times} lost`,
  unknown: times => `${times} subscriptions whose loss cannot be determined`,
  duplicates: times => `${times} duplicates`,
  disordered: times => `${times} out of order`,
  damaged: times => `${times} damaged`,
  unrecovered: times => `${times} subscriptions not recovered`,
  refused: times => `${times} subscriptions refused`,
  ended: times => `${times} connections ended unexpectedly`,
  missed: times => `${times} missed while disconnected`,
}

/**
 * @param {Accounting} accounting @param {Pick<StepResult, 'disturbances' | 'recover'>[]} steps
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
  return `${name}: ${parts.join(', ')}${partial ? ' (incomplete)' : ''}`
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
        ? `; ${count(missed)} were missed while disconnected, without recovery`
        : ''
    lines.push(
      lost === ''
        ? `Subscribers expected ${count(expected)} messages and received ${missed > 0 ? `${count(expected - missed)} of them` : 'each'} once and in order${away}.`
        : `Subscribers expected ${count(expected)} messages: ${lost}${away}.`,
    )
  }
  if (expected === 0 && received > 0)
    lines.push(`${count(received)} messages received${lost === '' ? '' : `: ${lost}`}.`)
  if (expected === 0 && received === 0 && pings > 0)
    lines.push(
      `${count(pings)} pings received; ${ended === 0 ? 'no' : count(ended)} connections ended unexpectedly.`,
    )
  if (unpublished > 0)
    lines.push(
      `${count(unpublished)} of ${count(published + unpublished)} messages were not confirmed by the target: refused, or not published in time.`,
    )
  if (!areCalm(steps)) lines.push(`The disturbances ended connections: ${count(reconnects)} reconnects.`)
  if (forgottenIn(steps) > 0)
    lines.push(
      `A killed gateway loses its history: ${count(accounting.unrecovered)} subscriptions were not recovered (recovered: false), and missed ${count(missed)} messages. The gateway reported this, so they do not count as lost.`,
    )
  for (const { limit, asked, step, ours } of broken)
    lines.push(
      `${limit}${asked === '' ? '' : ` ${asked}`} is violated${step === '' ? '' : ` in step ${step}`}: ${ours}.`,
    )
  const kept = limits.length - broken.length
  if (kept > 0 && broken.length === 0) lines.push(`Limits met: ${kept}.`)
  lines.push(...notes)
  const clean = lost === '' && broken.length === 0
  const title = partial
    ? 'Incomplete'
    : broken.length > 0
      ? 'Limit violated'
      : lost === ''
        ? 'Nothing was lost'
        : 'Losses found'
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
