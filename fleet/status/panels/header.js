import { bar } from '../../../dashboard/chart.js'
import { lineWidth } from '../../../dashboard/terminal/line.js'
import { fitItems, justified, named } from '../../../dashboard/view/parts.js'
import { shown } from '../../../dashboard/view/state.js'
import { clock, duration, quantity, short, shortBytes, whole } from '../../../src/base/format.js'
import { openedRate } from '../picture.js'

/**
 * @typedef {import('../../../dashboard/terminal/line.js').Line} Line
 * @typedef {import('../state.js').State} State
 * @typedef {import('../../schema.js').FleetSnapshot} FleetSnapshot
 */

const BAR = { least: 12, most: 60 }
/** Seconds of the rate from which the remaining time is estimated. */
const RATE = 10

/** The run, its progress, and its rates. @type {import('../state.js').Panel} */
export const header = {
  name: 'header',
  visible: state => shown(state).snapshot !== null,
  rows: () => ({ least: 3, most: 3 }),
  priority: 2,

  draw(state, width) {
    const { snapshot, history } = shown(state)
    if (snapshot === null) return []
    return [
      titleLine(snapshot, width),
      progressLine(snapshot, openedRate(history, RATE), width, state.look),
      ratesLine(snapshot, width),
    ]
  },
}

/** @param {FleetSnapshot} snapshot @param {number} width @returns {Line} */
function titleLine({ run, provider, settings, drones, began, scenario, time }, width) {
  const since = began ?? time - Math.max(0, ...drones.map(({ sample }) => sample?.up ?? 0))
  const right = fitItems([named('up', duration(time - since)), [[clock(time), 'value']]], width)
  const { host } = settings
  const target =
    host.length === 0 ? 'no target' : `${host[0]}${host.length > 1 ? ` +${host.length - 1}` : ''}`
  const left = fitItems(
    [
      [[' halley fleet', 'title']],
      [[run, 'value']],
      [[provider, 'accent']],
      [[`→ ${target}`, 'value']],
      [[settings.transport, 'label']],
      ...(scenario ? [/** @type {Line} */ ([[`${scenario.name}: ${scenario.step}`, 'accent']])] : []),
    ],
    width - lineWidth(right) - 2,
  )
  return justified(left, [...right, [' ', '']], width)
}

/**
 * @param {FleetSnapshot} snapshot
 * @param {number} rate connections opened in a second
 * @param {number} width @param {State['look']} look
 * @returns {Line}
 */
function progressLine({ gauges, settings, ramp, scenario, rates, time }, rate, width, look) {
  const goal = ramp?.to ?? settings.n
  const full = goal > 0 ? gauges.open / goal : 0
  const size = Math.max(BAR.least, Math.min(BAR.most, Math.floor((width - 60) / 2)))
  const there = gauges.open >= goal && ramp === null
  const missing = goal - gauges.open
  /** @type {Line} */
  let eta = []
  if (ramp !== null) eta = named('ramp ends in', duration(ramp.ends - time))
  else if (missing > 0 && rate >= 1) eta = named('all open in', duration((missing / rate) * 1000))
  else if (missing < 0) eta = [['closing', 'warn']]
  const step = scenario ? [named('step ends in', duration(scenario.ends - time))] : []
  const items = /** @type {Line[]} */ ([
    [
      [whole(gauges.open), there ? 'good' : 'value'],
      [' of ', 'label'],
      [whole(goal), 'value'],
    ],
    eta,
    ...step,
    named('opening', quantity(gauges.opening)),
    named('failed/s', [short(rates.failed), rates.failed > 0 ? 'warn' : 'value']),
    named('ended/s', [short(rates.ended), rates.ended > 0 ? 'warn' : 'value']),
  ])
  return [
    [' open  ', 'header'],
    ...bar(full, size, look.unicode, there ? 'good' : 'series1'),
    ['  ', ''],
    ...fitItems(items, width - size - 9),
  ]
}

/** @param {FleetSnapshot} snapshot @param {number} width @returns {Line} */
function ratesLine({ rates, counters, drones, settings }, width) {
  const up = drones.filter(({ state }) => state === 'up').length
  const items = [
    named('received', `${short(rates.received)}/s`),
    named('published', `${short(rates.published)}/s`),
    named('opened', `${short(rates.opened)}/s`),
    named('in', `${shortBytes(rates.bytesIn)}/s`),
    named('out', `${shortBytes(rates.bytesOut)}/s`),
    settings.publish_rate > 0 ? named('publish rate', `${short(settings.publish_rate)}/s`) : [],
    named('drones', `${whole(up)}/${whole(drones.length)}`),
    named('total opened', quantity(counters.opened)),
    named('reconnects', quantity(counters.reconnects)),
    named('pings', short(counters.pings)),
  ]
  return [[' rates ', 'header'], ...fitItems(items, width - 8)]
}
