import { bytes, clock, ms, quantity, share, whole } from '../src/base/format.js'
import { LIMITS } from '../src/metrics/limits.js'
import { charts } from './charts.js'
import { healthMark } from './health.js'
import { detail } from './panels/detail.js'
import { header, status, waiting } from './panels/header.js'
import { maps, polls } from './panels/maps.js'
import { queues } from './panels/queues.js'
import { workers } from './panels/workers.js'
import { isStale } from './state.js'
import { eventListOf, footerOf, helpOf, newestEvents, withQuestion } from './view/panels.js'
import { named, rule } from './view/parts.js'
import { screenOf } from './view/screen.js'
import { shown } from './view/state.js'

/** @import { Snapshot } from '../src/metrics/schema.js' */
/** @import { Dialog, Panel, State } from './state.js' */
/** @import { Line } from './terminal/line.js' */
/** @import { Key, Question } from './view/panels.js' */

/** Keys of this view only. @type {readonly Key[]} */
const HELP_KEYS = [
  ['l', 'show or hide the log'],
  ['g', 'request a garbage collection'],
  ['r', 'restart a worker, or all of them'],
]

/** @type {readonly [name: string, limit: keyof typeof LIMITS, format: (value: number) => string][]} */
const HEALTH = [
  ['delay avg', 'tickAvg', value => `${ms(value)} ms`],
  ['delay p90', 'tickP90', value => `${ms(value)} ms`],
  ['delay max', 'tickMax', value => `${ms(value)} ms`],
  ['loop', 'loop', share],
  ['worker cpu', 'cpu', share],
  ['gc a second', 'gc', value => `${ms(value)} ms`],
  ['machine cpu', 'machine', share],
  ['steal', 'steal', share],
  ['memory, files', 'full', share],
  ['outbox', 'outbox', bytes],
]

/** @type {readonly [name: string, text: string][]} */
const WORDS = [
  ['delay', 'event-loop delay: how long events wait'],
  ['loop', 'share of time the event loop is busy'],
  ['gc', 'ms of pauses per second'],
  ['outbox', 'bytes waiting for slow clients'],
  ['native', 'other memory of the processes'],
  ['kernel', 'sockets of clients, their queues'],
  ['others', 'other programs'],
  ['capacity', 'from measured bytes a client'],
]

/** Keys, words and limits. @type {Panel} */
const help = helpOf({
  first: state => generated(state.key),
  keys: ({ owner }) => [
    ...HELP_KEYS,
    ['q ctrl-c', owner ? 'quit, or stop the gateway' : 'quit; the gateway keeps running'],
  ],
  limits: state => [...limits(state.look.colors), []],
  words: WORDS,
})

/** The dashboard hides the key printed at startup. @param {string} key @returns {Line[]} */
function generated(key) {
  if (key === '') return []
  return [[[' key for the API and the admin page', 'label']], [[` ${key}`, 'accent']], []]
}

/** @param {boolean} colors @returns {Line[]} */
function limits(colors) {
  const [warn, bad] = colors ? ['from', 'from'] : [`${healthMark('warn')} from`, `${healthMark('bad')} from`]
  return [
    [
      ['health'.padEnd(14), 'header'],
      [warn.padEnd(9), 'warn'],
      [bad, 'bad'],
    ],
    ...HEALTH.map(
      ([name, limit, format]) =>
        /** @type {Line} */ ([
          [name.padEnd(14), 'label'],
          [format(LIMITS[limit][0]).padEnd(9), 'value'],
          [format(LIMITS[limit][1]), 'value'],
        ]),
    ),
  ]
}

const MAX_EVENT_ROWS = 6
const HIGH_TERMINAL = 40

/** The newest events, or briefly the reply to a key. @type {Panel} */
const eventLine = {
  name: 'event line',
  visible: state => shown(state).snapshot !== null && state.view !== 'events',
  rows: ({ size, view, log }) => ({
    min: 1,
    max: size.rows >= HIGH_TERMINAL && view === 'main' && !log.on ? MAX_EVENT_ROWS + 1 : 1,
  }),
  priority: 4,

  draw(state, width, rows) {
    const { events } = shown(state)
    return rows > 1
      ? [rule('events', width), ...newestEvents(events, state, rows - 1)]
      : newestEvents(events, state, 1)
  },
}

const eventList = eventListOf((/** @type {State} */ state) =>
  shown(state).snapshot === null ? null : shown(state).events,
)

const LEVELS = /** @type {Record<number, [name: string, style: string]>} */ ({
  10: ['TRACE', 'label'],
  20: ['DEBUG', 'label'],
  30: ['INFO ', 'good'],
  40: ['WARN ', 'warn'],
  50: ['ERROR', 'bad'],
  60: ['FATAL', 'bad'],
})
const HIDDEN_FIELDS = new Set(['level', 'time', 'msg', 'hostname'])

/** The gateway's log, if enabled. @type {Panel} */
const log = {
  name: 'log',
  visible: ({ log, view }) => log.on && view !== 'help',
  rows: ({ size }) => ({ min: 4, max: Math.max(4, Math.floor(size.rows / 4)) }),
  priority: 5,

  draw({ log }, width, rows) {
    const lines = log.lines.slice(1 - rows).map(logLine)
    if (lines.length === 0) lines.push([[' no log lines yet', 'label']])
    return [
      rule('log', width, [
        ['l', 'key'],
        [' off', 'label'],
      ]),
      ...lines,
    ]
  },
}

/** @param {string} text one JSON line of the log @returns {Line} */
export function logLine(text) {
  let entry
  try {
    entry = JSON.parse(text)
  } catch {}
  if (typeof entry !== 'object' || entry === null) return [[` ${text}`, 'value']]
  const [name, style] = LEVELS[entry.level] ?? [String(entry.level ?? '').padEnd(5), 'label']
  const time = new Date(entry.time).getTime()
  const rest = Object.entries(entry)
    .filter(([field]) => !HIDDEN_FIELDS.has(field))
    .map(([field, value]) => `${field}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  return [
    [` ${Number.isNaN(time) ? '' : clock(time)} `, 'label'],
    [`${name} `, style],
    [String(entry.msg ?? ''), 'value'],
    [`  ${rest.join(' ')}`, 'label'],
  ]
}

/** The CSV file, if enabled. @type {Panel} */
const csv = {
  name: 'csv',
  visible: state => Boolean(shown(state).snapshot?.csv) && state.view === 'main',
  rows: () => ({ min: 1, max: 1 }),
  priority: 4,

  draw(state) {
    const { csv } = /** @type {Snapshot} */ (shown(state).snapshot)
    if (!csv) return []
    const { file, bytes: written, max_bytes: max, rotations, error } = csv
    /** @type {Line} */
    const line = [
      [' csv  ', 'header'],
      [file, 'value'],
    ]
    if (error !== null) return [[...line, [`  ${error}`, 'bad']]]
    line.push([`  ${bytes(written)}`, 'value'])
    if (max > 0) line.push([` of ${bytes(max)} (${share(written / max)})`, 'label'])
    return [[...line, ['  ', ''], ...named('rotations', whole(rotations))]]
  },
}

/** @param {State} state @returns {Key[]} the most important ones first */
function keysOf(state) {
  const { view, frozen, log, sort, owner } = state
  const quit = /** @type {Key} */ (['q', owner ? 'quit …' : 'quit'])
  const pause = /** @type {Key} */ (['p', frozen === null ? 'pause' : 'resume'])
  if (shown(state).snapshot === null && view === 'main') return [quit, ['h', 'help']]
  switch (view) {
    case 'help':
    case 'events':
      return [quit, ['esc', 'back'], ['↑↓', 'scroll']]
    case 'detail':
      return [quit, ['esc', 'back'], ['↑↓', 'next worker'], ['g', 'GC'], ['r', 'restart'], pause]
    case 'main':
      return [
        quit,
        ['h', 'help'],
        ['↑↓', 'select'],
        ['enter', 'detail'],
        ['s', `sort: ${sort.column}${sort.down ? '▼' : '▲'}`],
        ['c', 'chart'],
        pause,
        ['l', log.on ? 'log off' : 'log'],
        ['e', 'events'],
        ['g', 'GC'],
        ['r', 'restart'],
      ]
  }
}

const footer = footerOf(keysOf)

/** @param {Dialog} dialog @param {State} state @returns {Question} */
function questionOf(dialog, state) {
  if (dialog.kind === 'quit')
    return {
      title: 'quit',
      text: [['stop the gateway?', 'value']],
      keys: [
        ['s', 'stop'],
        ['l', 'leave it running, close the dashboard'],
        ['n', 'cancel'],
      ],
    }
  const { worker } = dialog
  if (dialog.kind === 'gc')
    return {
      title: 'garbage collection',
      text: [['blocks a worker for some milliseconds; which one?', 'value']],
      keys: [
        .../** @type {Key[]} */ (worker === null ? [] : [['w', `worker ${worker}`]]),
        ['a', 'all workers'],
        ['n', 'cancel'],
      ],
    }
  if (worker === null)
    return {
      title: 'restart all workers?',
      text: [['one after another; clients will reconnect', 'value']],
      keys: [
        ['a', 'restart all'],
        ['n', 'cancel'],
      ],
    }
  const view = shown(state).snapshot?.workers.find(({ index }) => index === worker)
  const clients = view?.sample?.connections.connected
  const whose =
    clients === undefined ? 'its clients' : clients === 1 ? 'its client' : `its ${quantity(clients)} clients`
  return {
    title: `restart worker ${worker}?`,
    text: [[clients === 0 ? 'it has no clients' : `${whose} will reconnect`, 'value']],
    keys: [
      ['y', 'restart'],
      ['a', 'restart all'],
      ['n', 'cancel'],
    ],
  }
}

export const { render, page, layout } = screenOf({
  panels: [
    header,
    status,
    waiting,
    workers,
    maps,
    polls,
    queues,
    charts,
    detail,
    help,
    eventList,
    log,
    eventLine,
    csv,
    footer,
  ],
  textPanels: [header, workers, maps, polls, queues, eventLine, csv],
  undimmed: [status, waiting, help, footer],
  isStale,
  withDialog: (/** @type {Line[]} */ lines, /** @type {State} */ state) =>
    state.dialog === null ? lines : withQuestion(lines, state.size, questionOf(state.dialog, state)),
})
