import { bar, sparkline } from '../chart.js'
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
import { beside, pad } from '../terminal/line.js'
import { rule, scrolled } from './parts.js'

/**
 * @typedef {import('./panel.js').Line} Line
 * @typedef {import('./panel.js').Span} Span
 * @typedef {import('../state.js').State} State
 * @typedef {import('../../src/stats/schema.js').WorkerSample} WorkerSample
 */

/** Columns of a block, and between two of them. */
const BLOCK = { least: 25, most: 40, gap: 2 }

/** @type {Line} */
const BACK = [
  ['esc', 'key'],
  [' back', 'label'],
]
/** @type {Line} */
const MORE = [['page down', 'key'], [' more  ', 'label'], ...BACK]

/**
 * Everything about one worker.
 * @type {import('./panel.js').Panel}
 */
export const detail = {
  name: 'detail',
  visible: state => state.view === 'detail' && shown(state).snapshot !== null,
  rows: () => ({ least: 8, most: Number.POSITIVE_INFINITY }),
  turn: 3,

  draw(state, width, rows) {
    const { snapshot, history } = shown(state)
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
    const ticks = history.map(moment => moment?.ticks[view.index] ?? null)
    const blocks = blocksOf(sample, state, each, ticks)
    const stacks = stacked(blocks, used, rows - 1)
    const lines = beside(stacks, new Array(used).fill(each), BLOCK.gap).map(
      line => /** @type {Line} */ ([[' ', ''], ...line]),
    )
    const right = lines.length < rows ? BACK : MORE
    return [rule(title, width, right), ...scrolled(lines, rows - 1, state.scroll)]
  },
}

/**
 * @param {Line[][]} blocks the most important ones first
 * @param {number} columns
 * @param {number} rows that are seen at once
 * @returns {Line[][]} a stack for each column: each block on the first one that has room for it, or else on the lowest
 */
function stacked(blocks, columns, rows) {
  /** @type {Line[][]} */
  const stacks = Array.from({ length: columns }, () => [])
  for (const block of blocks) {
    if (block.length < 2) continue
    let stack = stacks.find(({ length }) => length + block.length + Number(length > 0) <= rows)
    stack ??= stacks.toSorted((a, b) => a.length - b.length)[0]
    if (stack.length > 0) stack.push([])
    stack.push(...block)
  }
  return stacks
}

/**
 * @param {WorkerSample} sample
 * @param {State} state
 * @param {number} width of a block
 * @param {(number | null)[]} ticks
 * @returns {Line[][]} of each the first line is the title
 */
function blocksOf(sample, state, width, ticks) {
  const { look } = state
  const row = (/** @type {string} */ name, /** @type {string | Span} */ value) => figure(name, value, width)
  const { counts, interval, memory, loop, cpu, gc, files, outbox } = sample
  const tick = (/** @type {string} */ name, /** @type {number} */ value, /** @type {any} */ limit) =>
    row(
      `ticks ${name}`,
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
      [[sparkline(logarithms(ticks), width, look.unicode, { min: 0, max: 3 }), 'series4']],
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

/** @param {(number | null)[]} values ms */
const logarithms = values =>
  values.map(value => (value === null || Number.isNaN(value) ? null : Math.log10(Math.max(1, value))))
