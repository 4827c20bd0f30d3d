import { bytes, duration, ms, quantity, share, short, shortBytes, whole } from '../../src/base/format.js'
import { bar } from '../chart.js'
import { WORKER_CHARTS } from '../chart-definitions.js'
import { health, healthSpan, perSecond, totalCpu } from '../health.js'
import { workerAt } from '../picture.js'
import { pad } from '../terminal/line.js'
import { chartBlock, chartGrid } from '../view/charts.js'
import { BACK, blockColumns, blockTitle, detailPage, figure, packBlocks, rule } from '../view/parts.js'
import { shown } from '../view/state.js'
import { historyOf } from './charts.js'

/** @import { WorkerSample } from '../../src/metrics/schema.js' */
/** @import { Panel, State } from '../state.js' */
/** @import { Line, Span } from '../terminal/line.js' */

const CHART = { least: 5, most: 20 }
/** Two charts stand side by side; all of them on a terminal this wide, unless this many rows are free for charts. */
const ALL_BESIDE = { columns: 190, rows: 30 }
/** Minimum rows of the figures below the charts. */
const LEAST_FIGURES = 8

/** One worker: its last minutes, and its figures of this second. @type {Panel} */
export const detail = {
  name: 'detail',
  visible: state => state.view === 'detail' && shown(state).snapshot !== null,
  rows: () => ({ least: 8, most: Number.POSITIVE_INFINITY }),
  priority: 3,

  draw(state, width, rows) {
    const { snapshot } = shown(state)
    const view = snapshot?.workers.find(({ index }) => index === state.selected)
    if (view === undefined) return [[[' this worker is gone', 'label']]]
    const { sample } = view
    const about = sample === null ? '' : `  pid ${sample.pid}  up ${duration(sample.uptime)}`
    const died = view.deaths === 0 ? '' : `  died ${whole(view.deaths)}×`
    const refuses = sample?.overload ? '  overloaded: refuses new connections' : ''
    const title = `worker ${view.index}  ${view.state}${about}${died}${refuses}`
    if (sample === null) return [rule(title, width, BACK), [[` no figures: it is ${view.state}`, 'warn']]]
    const columns = blockColumns(width)
    const lines = packBlocks(blocksOf(sample, state, columns.width), columns)
    const charts = chartLines(state, view.index, width, rows - 1, lines.length)
    return detailPage(title, charts, lines, state, width, rows)
  },
}

/**
 * Charts get the rows that the figures leave, but at least their minimum. If not all fit, the key `c` switches.
 * @param {State} state @param {number} index @param {number} width @param {number} rows for charts and figures
 * @param {number} needed rows of all figures
 * @returns {Line[]}
 */
function chartLines(state, index, width, rows, needed) {
  const count = WORKER_CHARTS.length
  const wide = width >= ALL_BESIDE.columns && rows - needed < ALL_BESIDE.rows ? count : 2
  const high = wide === count || rows < 2 * CHART.least + LEAST_FIGURES ? 1 : count / wide
  const all = Math.min(high * CHART.most, Math.max(high * CHART.least, rows - needed))
  const first = wide * high === count ? 0 : state.chart
  const history = historyOf(shown(state))
  return chartGrid({ wide, high, count: wide * high, width, rows: all }, (at, width, height) => {
    const which = (first + at) % count
    const plot = {
      definition: WORKER_CHARTS[which],
      id: `worker ${index} ${which}`,
      pick: (/** @type {import('../picture.js').Moment} */ moment) => workerAt(moment, index),
    }
    return chartBlock(plot, history, state.look, width, height)
  })
}

/**
 * @param {WorkerSample} sample @param {State} state @param {number} width
 * @returns {Line[][]} the first line of each is the title
 */
function blocksOf(sample, state, width) {
  const { look } = state
  const row = (/** @type {string} */ name, /** @type {string | Span} */ value) => figure(name, value, width)
  const { counts, interval, memory, loop, cpu, gc, files, outbox } = sample
  const tick = (/** @type {string} */ name, /** @type {number} */ value, /** @type {any} */ limit) =>
    row(
      `delay ${name}`,
      limit === null ? `${ms(value)} ms` : healthSpan(`${ms(value)} ms`, health(value, limit), look.colors),
    )
  const rate = (/** @type {number} */ value) => `${short(perSecond(value, interval))}/s`
  const named = (/** @type {string} */ name, /** @type {Record<string, number>} */ figures) => [
    blockTitle(name),
    ...Object.entries(figures)
      .sort(([, a], [, b]) => b - a)
      .map(([what, value]) => row(what, rate(value))),
  ]
  return [
    [
      blockTitle('event loop'),
      row('busy', healthSpan(share(loop.utilization), health(loop.utilization, 'loop'), look.colors)),
      tick('avg', loop.ticks.avg, 'tickAvg'),
      tick('p50', loop.ticks.p50, null),
      tick('p90', loop.ticks.p90, 'tickP90'),
      tick('p99', loop.ticks.p99, null),
      tick('max', loop.ticks.max, 'tickMax'),
    ],
    [
      blockTitle('process'),
      row('cpu', healthSpan(share(totalCpu(cpu)), health(totalCpu(cpu), 'cpu'), look.colors)),
      row('user, system', `${share(cpu.user)} ${share(cpu.system)}`),
      row('rss', bytes(memory.rss)),
      row('external', bytes(memory.external)),
      row('array buffers', bytes(memory.array_buffers)),
      row('files', `${short(files.open)}/${short(files.limit)}`),
      row('outbox', bytes(outbox.bytes)),
      row('largest', healthSpan(bytes(outbox.largest), health(outbox.largest, 'outbox'), look.colors)),
    ],
    [
      blockTitle('heap'),
      row('used', bytes(memory.heap_used)),
      row('total', bytes(memory.heap_total)),
      row('limit', bytes(memory.heap_limit)),
      ...spaces(memory.spaces, width, look.unicode),
    ],
    [
      blockTitle('garbage collection'),
      ...Object.entries(gc).map(([kind, { count: times, pause }]) =>
        row(kind, `${rate(times)} ${`${ms(perSecond(pause, interval))} ms`.padStart(8)}`),
      ),
    ],
    clients(sample, row),
    [
      blockTitle('messages, in and out'),
      ...Object.entries(counts.transports).map(([transport, flow]) =>
        row(
          transport,
          `${short(perSecond(flow.in.messages, interval))} ${short(perSecond(flow.out.messages, interval)).padStart(6)}`,
        ),
      ),
      row(
        'bytes',
        `${shortBytes(perSecond(counts.in.bytes, interval))} ${shortBytes(perSecond(counts.out.bytes, interval)).padStart(6)}`,
      ),
      row('publications', rate(counts.publishes)),
      row('deliveries', rate(counts.deliveries)),
    ],
    named('close codes', renamed(counts.closes)),
    named('errors', counts.errors),
    named('refused', counts.refusals ?? {}),
    hooks(sample, row),
    named('commands', counts.commands),
    named('server API', { ...counts.api, ...prefixed('error ', counts.api_errors) }),
    named('unsubscribes', counts.unsubscribes),
    counts.recoveries.recovered + counts.recoveries.failed === 0
      ? []
      : named('recoveries', counts.recoveries),
  ]
}

/**
 * @param {WorkerSample['memory']['spaces']} spaces @param {number} width @param {boolean} unicode
 * @returns {Line[]} non-empty spaces, the largest first
 */
function spaces(spaces, width, unicode) {
  const room = width - 26
  return Object.entries(spaces)
    .filter(([, { total }]) => total > 0)
    .sort(([, a], [, b]) => b.total - a.total)
    .map(([name, { used, total }]) => {
      /** @type {Line} */
      const drawn = room >= 6 ? [...bar(used / total, room, unicode, 'series1'), [' ', '']] : []
      return [
        ...pad([[name.replaceAll('_', ' '), 'label']], 13, 'left', '…'),
        ...drawn,
        [
          `${shortBytes(used)}/${shortBytes(total)}`.padStart(width - 13 - (drawn.length > 0 ? room + 1 : 0)),
          'value',
        ],
      ]
    })
}

/** @param {WorkerSample} sample @param {(name: string, value: string) => Line} row @returns {Line[]} */
function clients({ connections, subscriptions, channels, counts, interval }, row) {
  const by = Object.entries(connections.by).flatMap(([transport, codecs]) =>
    Object.entries(codecs).map(([codec, value]) => ({ name: `${transport} ${codec}`, value })),
  )
  return [
    blockTitle('clients'),
    row('connected', quantity(connections.connected)),
    row('open', quantity(connections.open)),
    row('new', `${short(perSecond(counts.accepts, interval))}/s`),
    ...by.sort((a, b) => b.value - a.value).map(({ name, value }) => row(name, quantity(value))),
    row('subscriptions', quantity(subscriptions)),
    row('channels', quantity(channels)),
  ]
}

/**
 * Calls of hooks and event proxies: a second, average, under way, failed.
 * @param {WorkerSample} sample @param {(name: string, value: string | Span) => Line} row @returns {Line[]}
 */
function hooks({ hooks: states = {}, counts, interval }, row) {
  return [
    blockTitle('hooks and proxies'),
    ...Object.entries(states).flatMap(([name, { inflight, down }]) => {
      const { calls = 0, time = 0, failures = {} } = counts.hooks[name] ?? {}
      const average = calls === 0 ? '' : ` ${ms(time / calls)} ms`
      /** @type {Line[]} */
      const lines = [
        row(name, down > 0 ? ['down', 'bad'] : `${short(perSecond(calls, interval))}/s${average}`),
      ]
      if (inflight > 0) lines.push(row('  under way', whole(inflight)))
      for (const [kind, times] of Object.entries(failures))
        lines.push(row(`  failed: ${kind}`, [`${short(perSecond(times, interval))}/s`, 'warn']))
      return lines
    }),
  ]
}

/** @param {Record<string, number>} closes */
const renamed = ({ 0: left, ...closes }) => (left === undefined ? closes : { ...closes, 'HTTP, left': left })

/** @param {string} prefix @param {Record<string, number>} figures */
const prefixed = (prefix, figures) =>
  Object.fromEntries(Object.entries(figures).map(([name, value]) => [`${prefix}${name}`, value]))
