// The panels of `halley fleet status`, from the top of the screen to the bottom.

import { bar } from '../../dashboard/chart.js'
import { healthSpan } from '../../dashboard/health.js'
import { clip, lineWidth, pad, sideBySide } from '../../dashboard/terminal/line.js'
import {
  eventListOf,
  footerOf,
  helpOf,
  newestEvents,
  statusOf,
  waitingOf,
  withQuestion,
} from '../../dashboard/view/panels.js'
import { BACK, fitItems, justified, named, rule, scrolled } from '../../dashboard/view/parts.js'
import { screenOf } from '../../dashboard/view/screen.js'
import { shown } from '../../dashboard/view/state.js'
import { clock, duration, quantity, share, short, shortBytes, whole } from '../../src/base/format.js'
import { charts } from './charts.js'
import { ACCOUNTS, detail, drones, statistics } from './drones.js'
import { isStale } from './state.js'

/** @import { Line } from '../../dashboard/terminal/line.js' */
/** @import { Key, Question } from '../../dashboard/view/panels.js' */
/** @import { FleetSnapshot } from '../schema.js' */
/** @import { Moment } from './charts.js' */
/** @import { Panel, State } from './state.js' */

const BAR = { min: 12, max: 60 }
/** Seconds of the rate used to estimate the remaining time. */
const RATE = 10

/** The run, its progress, and its rates. @type {Panel} */
const header = {
  name: 'header',
  visible: state => shown(state).snapshot !== null,
  rows: () => ({ min: 3, max: 3 }),
  priority: 2,

  draw(state, width) {
    const { history, ...picture } = shown(state)
    const snapshot = /** @type {FleetSnapshot} */ (picture.snapshot)
    return [
      titleLine(snapshot, width),
      progressLine(snapshot, openedRate(history, RATE), width, state.look),
      ratesLine(snapshot, width),
    ]
  },
}

/** Mean connections opened per second; 0: unknown. @param {Moment[]} moments @param {number} seconds */
export function openedRate(moments, seconds) {
  const last = moments.slice(-seconds).filter(moment => moment !== null)
  return last.reduce((sum, { opened }) => sum + opened, 0) / Math.max(1, last.length)
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
 * @param {FleetSnapshot} snapshot @param {number} rate connections opened per second @param {number} width
 * @param {State['look']} look @returns {Line}
 */
function progressLine({ gauges, settings, ramp, scenario, rates, time }, rate, width, look) {
  const goal = ramp?.to ?? settings.n
  const full = goal > 0 ? gauges.open / goal : 0
  const size = Math.max(BAR.min, Math.min(BAR.max, Math.floor((width - 60) / 2)))
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

/** Why the figures are old. @type {Panel} */
const status = statusOf(isStale, (state, time) => [staleReason(state, time), 'bad'])

/** @param {State} state with old figures @param {string} time of the figures */
function staleReason({ lost, receivedAt, now }, time) {
  if (lost === null)
    return `no data for ${duration(now - receivedAt)}: controller stuck or stopped; figures of ${time}`
  // The text of NoFleetError.
  if (/^no fleet in/.test(lost.reason))
    return `the fleet was stopped ${duration(now - lost.since)} ago; figures of ${time}`
  // The start of the text already says it.
  const reason = lost.reason === '' || /^the controller exited/.test(lost.reason) ? '' : ` (${lost.reason})`
  return `controller gone for ${duration(now - lost.since)}, retrying; figures of ${time}${reason}`
}

/** The page before the first figures. @type {Panel} */
const waiting = waitingOf('halley fleet', ({ lost, now, receivedAt }) => {
  const waited = duration(now - receivedAt)
  if (lost === null)
    return [`waiting for the first figures${now - receivedAt > 2000 ? ` (${waited})` : ''}`, 'label']
  return [
    `no controller for ${duration(now - lost.since)}${lost.reason === '' ? '' : `: ${lost.reason}`}`,
    'warn',
  ]
})

const NAME = ' checked '

/** Whether every message arrived exactly once: all counters, on several lines if needed. @type {Panel} */
const accounting = {
  name: 'accounting',
  visible: state => shown(state).snapshot !== null,
  rows: state => {
    const lines = accountLines(state, state.size.columns).length
    return { min: lines, max: lines }
  },
  priority: 3,
  draw: (state, width) => accountLines(state, width),
}

/** @param {State} state @param {number} width @returns {Line[]} */
function accountLines(state, width) {
  const { counters } = /** @type {FleetSnapshot} */ (shown(state).snapshot)
  const items = [
    /** @type {Line} */ ([[quantity(counters.received), 'value']]),
    ...ACCOUNTS.map(([name, health]) => accountItem(name, counters[name], health, state.look)),
  ]
  /** @type {Line[]} */
  const lines = [[[NAME, 'header']]]
  for (const item of items) {
    let line = lines[lines.length - 1]
    if (line.length > 1 && lineWidth(line) + 2 + lineWidth(item) > width) {
      line = [[' '.repeat(NAME.length), '']]
      lines.push(line)
    }
    if (line.length > 1) line.push(['  ', ''])
    line.push(...item)
  }
  return lines
}

/** @param {string} name @param {number} value @param {'warn' | 'bad'} health @param {State['look']} look */
function accountItem(name, value, health, { colors }) {
  const [text, style] = healthSpan(quantity(value), value > 0 ? health : 'good', colors)
  const [label, figure] = value > 0 ? [style, style] : ['label', 'good']
  return named(name, [text.trimEnd(), figure], label)
}

const MOST = 7
/** Terminal rows from which several lines are shown. */
const HIGH = 40
/** Terminal columns from which faults are next to the events. */
const WIDE = 100
const KIND = 40

/** @type {Line} */
const NO_FAULTS = [[' no faults', 'good']]

/** @param {State} state @returns {[kind: string, times: number][]} the most frequent first */
const faultsOf = state => Object.entries(shown(state).snapshot?.faults ?? {}).sort(([, a], [, b]) => b - a)

/** The faults; on a high terminal they are next to the events. @type {Panel} */
const faultLine = {
  name: 'fault line',
  visible: state => state.view === 'main' && !isHigh(state) && faultsOf(state).length > 0,
  rows: () => ({ min: 1, max: 1 }),
  priority: 7,
  draw(state, width) {
    const items = faultsOf(state).map(([kind, times]) => named(kind, [quantity(times), 'warn']))
    return [[[' faults ', 'header'], ...fitItems(items, width - 9)]]
  },
}

/** @param {State} state */
const isHigh = ({ size }) => size.rows >= HIGH && size.columns >= WIDE

/** The newest events, or briefly the response to a key. @type {Panel} */
const eventLine = {
  name: 'event line',
  visible: state => shown(state).snapshot !== null && state.view !== 'events',
  rows: state => {
    if (!isHigh(state) || state.view !== 'main') return { min: 1, max: 1 }
    const lines = Math.max(2, shown(state).snapshot?.events.length ?? 0, faultsOf(state).length)
    return { min: 1, max: Math.min(MOST, lines + 1) }
  },
  priority: 4,

  draw(state, width, rows) {
    const room = Math.max(1, rows - 1)
    const lines = newestEvents(shown(state).snapshot?.events ?? [], state, room)
    if (rows === 1) return lines
    const left = Math.floor(width * 0.62)
    const right = width - left - 2
    const faults = faultRows(state, right).slice(0, room)
    return sideBySide(
      [
        [rule('events', left), ...lines.map(line => clip(line, left, '…'))],
        [rule('faults', right), ...(faults.length > 0 ? faults : [NO_FAULTS])],
      ],
      [left, right],
      2,
    )
  },
}

const eventList = eventListOf((/** @type {State} */ state) => shown(state).snapshot?.events ?? null)

/** All kinds of faults. @type {Panel} */
const faultList = {
  name: 'faults',
  visible: state => shown(state).snapshot !== null && state.view === 'faults',
  rows: () => ({ min: 3, max: Number.POSITIVE_INFINITY }),
  priority: 5,

  draw(state, width, rows) {
    const lines = faultRows(state, width)
    return [
      rule('faults of all drones', width, BACK),
      ...(lines.length > 0 ? scrolled(lines, rows - 1, state.scroll) : [NO_FAULTS]),
    ]
  },
}

/** @param {State} state @param {number} width @returns {Line[]} a bar per kind */
function faultRows(state, width) {
  const faults = faultsOf(state)
  const all = faults.reduce((sum, [, times]) => sum + times, 0)
  const kind = Math.max(10, Math.min(KIND, width - 28))
  const size = Math.max(6, Math.min(40, width - kind - 17))
  return faults.map(([name, times]) => [
    [' ', ''],
    ...pad([[name, 'value']], kind, 'left', '…'),
    [quantity(times).padStart(9), 'warn'],
    [` ${share(times / all).padStart(4)} `, 'label'],
    ...bar(times / all, size, state.look.unicode, 'warn'),
  ])
}

/** @param {State} state @returns {Key[]} the most important first */
function keysOf(state) {
  const { view, frozen, sort, commands } = state
  const ifWritable = (/** @type {Key[]} */ ...keys) => (commands ? keys : [])
  const quit = /** @type {Key} */ (['q', 'quit, load continues'])
  const back = /** @type {Key} */ (['esc', 'back'])
  const pause = /** @type {Key} */ (['p', frozen === null ? 'pause' : 'resume'])
  switch (view) {
    case 'help':
    case 'events':
    case 'faults':
      return [quit, back, ['↑↓', 'scroll']]
    case 'detail':
      return [quit, back, ['↑↓', 'other drone'], ...ifWritable(['r', 'restart']), pause]
    case 'main':
      if (shown(state).snapshot === null)
        return [
          ['q', 'leave'],
          ['h', 'help'],
        ]
      return [
        quit,
        ['h', 'help'],
        ['↑↓', 'select'],
        ['enter', 'detail'],
        ['c', 'chart'],
        ['s', `by ${sort.column}${sort.down ? '▼' : '▲'}`],
        ...ifWritable(['n', 'number']),
        pause,
        ['e', 'events'],
        ['f', 'faults'],
        ['t', 'last 5 s'],
        ...ifWritable(['+-', 'more, fewer'], ['r', 'restart']),
      ]
  }
}

const footer = footerOf(keysOf)

/** @param {State} state @param {NonNullable<State['dialog']>} dialog @returns {Question} */
function questionOf(state, dialog) {
  const { snapshot } = shown(state)
  if (dialog.kind === 'restart') {
    const open = snapshot?.drones.find(({ id }) => id === dialog.id)?.sample?.gauges.open ?? 0
    const whose = open === 1 ? 'its connection is' : `its ${quantity(open)} connections are`
    return {
      title: `restart ${dialog.id}?`,
      text: [[open === 0 ? 'it has no connections' : `${whose} closed and reopened`, 'value']],
      keys: [
        ['y', 'restart'],
        ['n', 'cancel'],
      ],
    }
  }
  return {
    title: 'connections of all drones',
    text: [
      [`${whole(snapshot?.settings.n)} → `, 'label'],
      [dialog.text, 'value'],
      ['▏', 'accent'],
      [dialog.text === '' ? ' 20000, 20k, 1.5m' : '', 'label'],
    ],
    keys: [
      ['enter', 'set'],
      ['esc', 'cancel'],
    ],
  }
}

/** Keys of this view only. @type {readonly Key[]} */
const KEYS = [
  ['t', 'histogram: all, or the last 5 s'],
  ['f', 'all faults'],
  ['n', 'set the number of connections'],
  ['+ -', 'more, fewer connections'],
  ['r', 'restart the selected drone'],
  ['q ctrl-c', 'quit; the load continues'],
]

/** Explained in docs/fleet.md. @type {readonly [name: string, text: string][]} */
const WORDS = [
  ['lost', 'missing on unbroken connections'],
  ['missed', 'sent while a connection was down'],
  ['duplicates', 'received before'],
  ['disordered', 'received after a later one'],
  ['damaged', 'invalid payload'],
  ['unrecovered', 'recoveries that failed'],
  ['refused', 'subscriptions'],
  ['unpublished', 'not confirmed by the target'],
  ['failed', 'attempts to connect'],
  ['ended', 'closed by the target or the network'],
  ['each', 'memory of one connection'],
  ['clock', 'offset to the gateway, and its error'],
  ['publishing', 'until the target confirms'],
  ['own machine', 'publisher on the same machine'],
  ['95 %', 'confidence interval of the mean'],
]

/** Keys and words. @type {Panel} */
const help = helpOf({
  keys: () => KEYS,
  words: WORDS,
})

export const { render, page, layout } = screenOf({
  panels: [
    header,
    status,
    accounting,
    waiting,
    statistics,
    drones,
    charts,
    detail,
    help,
    eventList,
    faultList,
    faultLine,
    eventLine,
    footer,
  ],
  textPanels: [header, accounting, statistics, drones, faultLine, eventLine],
  undimmed: [status, waiting, help, footer],
  isStale,
  withDialog: (/** @type {Line[]} */ lines, /** @type {State} */ state) =>
    state.dialog === null ? lines : withQuestion(lines, state.size, questionOf(state, state.dialog)),
})
