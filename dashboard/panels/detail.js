import { bar } from '../chart.js'
import { WORKER_CHARTS } from '../charts.js'
import {
  busy,
  bytes,
  count,
  duration,
  health,
  healthy,
  ms,
  people,
  percent,
  perSecond,
  size,
  whole,
} from '../format.js'
import { shown } from '../picture.js'
import { workerAt } from '../points.js'
import { beside, pad } from '../terminal/line.js'
import { rule, scrolled } from './parts.js'
import { chartBlock, joined, widthOfEach } from './plot.js'

/**
 * @typedef {import('./panel.js').Line} Line
 * @typedef {import('./panel.js').Span} Span
 * @typedef {import('../state.js').State} State
 * @typedef {import('../../src/stats/schema.js').WorkerSample} WorkerSample
 */

/** Columns of a block, and between two of them. */
const BLOCK = { least: 25, most: 40, gap: 2 }
/** Of a chart with its title, rows. */
const CHART = { least: 5, most: 20 }
/** Two charts stand beside each other; all of them in a terminal of these columns, unless these rows are there for charts. */
const ALL_BESIDE = { columns: 190, rows: 30 }
/** Rows that figures below the charts have at least. */
const LEAST_FIGURES = 8

/** @type {Line} */
const BACK = [
  ['esc', 'key'],
  [' back', 'label'],
]
/** @type {Line} */
const MORE = [['page down', 'key'], [' more  ', 'label'], ...BACK]

/**
 * Everything about one worker: its last minutes, and the figures of this second.
 * @type {import('./panel.js').Panel}
 */
export const detail = {
  name: 'detail',
  visible: state => state.view === 'detail' && shown(state).snapshot !== null,
  rows: () => ({ least: 8, most: Number.POSITIVE_INFINITY }),
  turn: 3,

  draw(state, width, rows) {
    const { snapshot } = shown(state)
    const view = snapshot?.workers.find(({ index }) => index === state.selected)
    if (view === undefined) return [[[' this worker is not there any more', 'label']]]
    const { sample } = view
    const about = sample === null ? '' : `  pid ${sample.pid}  up ${duration(sample.uptime)}`
    const died = view.deaths === 0 ? '' : `  died ${whole(view.deaths)}×`
    const title = `worker ${view.index}  ${view.state}${about}${died}`
    if (sample === null)
      return [rule(title, width, BACK), [[` nothing is known of it: it is ${view.state}`, 'warn']]]
    const columns = Math.max(1, Math.floor((width - 1 + BLOCK.gap) / (BLOCK.least + BLOCK.gap)))
    const used = Math.min(columns, 5)
    const each = Math.min(BLOCK.most, Math.floor((width - 1 + BLOCK.gap) / used) - BLOCK.gap)
    const blocks = blocksOf(sample, state, each)
    const stacks = stacked(blocks, used)
    const needed = Math.max(...stacks.map(({ length }) => length))
    const charts = chartLines(state, view.index, width, rows - 1, needed)
    const room = rows - 1 - charts.length
    const lines = beside(stacks, new Array(used).fill(each), BLOCK.gap).map(
      line => /** @type {Line} */ ([[' ', ''], ...line]),
    )
    const right = lines.length <= room ? BACK : MORE
    return [rule(title, width, right), ...charts, ...scrolled(lines, room, state.scroll)]
  },
}

/**
 * @param {State} state
 * @param {number} index of the worker
 * @param {number} width
 * @param {number} rows for charts and figures
 * @param {number} needed rows of all figures
 * @returns {Line[]} charts get what figures leave, but never less than they need; where not all fit, `c` goes through them
 */
function chartLines(state, index, width, rows, needed) {
  const count = WORKER_CHARTS.length
  const wide = width >= ALL_BESIDE.columns && rows - needed < ALL_BESIDE.rows ? count : 2
  const high = wide === count || rows < 2 * CHART.least + LEAST_FIGURES ? 1 : count / wide
  const all = Math.min(high * CHART.most, Math.max(high * CHART.least, rows - needed))
  const first = wide * high === count ? 0 : state.chart
  return Array.from({ length: high }, (_, row) => {
    const height = Math.floor((all * (row + 1)) / high) - Math.floor((all * row) / high)
    return joined(
      Array.from({ length: wide }, (_, column) => {
        const which = (first + row * wide + column) % count
        const plot = {
          definition: WORKER_CHARTS[which],
          id: `worker ${index} ${which}`,
          pick: (/** @type {import('../points.js').Moment} */ moment) => workerAt(moment, index),
        }
        return chartBlock(plot, { look: state.look, picture: shown(state) }, widthOfEach(width, wide), height)
      }),
    )
  }).flat()
}

/**
 * @param {Line[][]} blocks the most important ones first
 * @param {number} columns
 * @returns {Line[][]} a stack for each column: each block on the lowest
 */
function stacked(blocks, columns) {
  /** @type {Line[][]} */
  const stacks = Array.from({ length: columns }, () => [])
  for (const block of blocks) {
    if (block.length < 2) continue
    const [stack] = stacks.toSorted((a, b) => a.length - b.length)
    if (stack.length > 0) stack.push([])
    stack.push(...block)
  }
  return stacks
}

/**
 * @param {WorkerSample} sample
 * @param {State} state
 * @param {number} width of a block
 * @returns {Line[][]} of each the first line is the title
 */
function blocksOf(sample, state, width) {
  const { look } = state
  const row = (/** @type {string} */ name, /** @type {string | Span} */ value) => figure(name, value, width)
  const { counts, interval, memory, loop, cpu, gc, files, outbox } = sample
  const tick = (/** @type {string} */ name, /** @type {number} */ value, /** @type {any} */ limit) =>
    row(
      `delay ${name}`,
      limit === null ? `${ms(value)} ms` : healthy(`${ms(value)} ms`, health(value, limit), look.colors),
    )
  const rate = (/** @type {number} */ value) => `${count(perSecond(value, interval))}/s`
  const named = (/** @type {string} */ name, /** @type {Record<string, number>} */ figures) => [
    title(name),
    ...Object.entries(figures)
      .sort(([, a], [, b]) => b - a)
      .map(([what, value]) => row(what, rate(value))),
  ]
  return [
    [
      title('event loop'),
      row('busy', healthy(percent(loop.utilization), health(loop.utilization, 'loop'), look.colors)),
      tick('avg', loop.ticks.avg, 'tickAvg'),
      tick('p50', loop.ticks.p50, null),
      tick('p90', loop.ticks.p90, 'tickP90'),
      tick('p99', loop.ticks.p99, null),
      tick('max', loop.ticks.max, 'tickMax'),
    ],
    [
      title('process'),
      row('cpu', healthy(percent(busy(cpu)), health(busy(cpu), 'cpu'), look.colors)),
      row('user, system', `${percent(cpu.user)} ${percent(cpu.system)}`),
      row('rss', size(memory.rss)),
      row('external', size(memory.external)),
      row('array buffers', size(memory.array_buffers)),
      row('files', `${count(files.open)}/${count(files.limit)}`),
      row('outbox', size(outbox.bytes)),
      row('largest', healthy(size(outbox.largest), health(outbox.largest, 'outbox'), look.colors)),
    ],
    [
      title('heap'),
      row('used', size(memory.heap_used)),
      row('total', size(memory.heap_total)),
      row('limit', size(memory.heap_limit)),
      ...spaces(memory.spaces, width, look.unicode),
    ],
    [
      title('garbage collection'),
      ...Object.entries(gc).map(([kind, { count: times, pause }]) =>
        row(kind, `${rate(times)} ${`${ms(perSecond(pause, interval))} ms`.padStart(8)}`),
      ),
    ],
    clients(sample, row),
    [
      title('messages, in and out'),
      ...Object.entries(counts.transports).map(([transport, flow]) =>
        row(
          transport,
          `${count(perSecond(flow.in.messages, interval))} ${count(perSecond(flow.out.messages, interval)).padStart(6)}`,
        ),
      ),
      row(
        'bytes',
        `${bytes(perSecond(counts.in.bytes, interval))} ${bytes(perSecond(counts.out.bytes, interval)).padStart(6)}`,
      ),
      row('publications', rate(counts.publishes)),
      row('deliveries', rate(counts.deliveries)),
    ],
    named('close codes', renamed(counts.closes)),
    named('errors', counts.errors),
    named('commands', counts.commands),
    named('server API', { ...counts.api, ...prefixed('error ', counts.api_errors) }),
    named('unsubscribes', counts.unsubscribes),
    counts.recoveries.recovered + counts.recoveries.failed === 0
      ? []
      : named('recoveries', counts.recoveries),
  ]
}

/**
 * @param {string} text
 * @returns {Line}
 */
const title = text => [[text, 'header']]

/**
 * @param {string} name
 * @param {string | Span} value at the right end
 * @param {number} width
 * @returns {Line}
 */
function figure(name, value, width) {
  const [text, style] = typeof value === 'string' ? [value, 'value'] : value
  return [
    ...pad([[name, 'label']], Math.max(0, width - text.length - 1), 'left', '…'),
    [' ', ''],
    [text, style],
  ]
}

/**
 * @param {WorkerSample['memory']['spaces']} spaces
 * @param {number} width
 * @param {boolean} unicode
 * @returns {Line[]} those that hold something, the largest first
 */
function spaces(spaces, width, unicode) {
  const room = width - 26
  return Object.entries(spaces)
    .filter(([, { total }]) => total > 0)
    .sort(([, a], [, b]) => b.total - a.total)
    .map(([name, { used, total }]) => {
      /** @type {Line} */
      const share = room >= 6 ? [...bar(used / total, room, unicode, 'series1'), [' ', '']] : []
      return [
        ...pad([[name.replaceAll('_', ' '), 'label']], 13, 'left', '…'),
        ...share,
        [`${bytes(used)}/${bytes(total)}`.padStart(width - 13 - (share.length > 0 ? room + 1 : 0)), 'value'],
      ]
    })
}

/**
 * @param {WorkerSample} sample
 * @param {(name: string, value: string) => Line} row
 * @returns {Line[]}
 */
function clients({ connections, subscriptions, channels, counts, interval }, row) {
  const by = Object.entries(connections.by).flatMap(([transport, codecs]) =>
    Object.entries(codecs).map(([codec, value]) => ({ name: `${transport} ${codec}`, value })),
  )
  return [
    title('clients'),
    row('connected', people(connections.connected)),
    row('open', people(connections.open)),
    row('new', `${count(perSecond(counts.accepts, interval))}/s`),
    ...by.sort((a, b) => b.value - a.value).map(({ name, value }) => row(name, people(value))),
    row('subscriptions', people(subscriptions)),
    row('channels', people(channels)),
  ]
}

/** @param {Record<string, number>} closes */
const renamed = ({ 0: left, ...closes }) => (left === undefined ? closes : { ...closes, 'HTTP, left': left })

/**
 * @param {string} prefix
 * @param {Record<string, number>} figures
 */
const prefixed = (prefix, figures) =>
  Object.fromEntries(Object.entries(figures).map(([name, value]) => [`${prefix}${name}`, value]))
