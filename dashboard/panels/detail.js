import { bytes, duration, ms, quantity, share, short, shortBytes, whole } from '../../src/base/format.js'
import { metricAt } from '../../src/metrics/table.js'
import { bar } from '../chart.js'
import { historyOf, WORKER_CHARTS } from '../charts.js'
import { figureAt, health, healthSpan, perSecond, totalCpu } from '../health.js'
import { workerAt } from '../picture.js'
import { pad } from '../terminal/line.js'
import { chartBlock, chartGrid } from '../view/charts.js'
import { BACK, blockColumns, blockTitle, detailPage, figure, packBlocks, rule } from '../view/parts.js'
import { shown } from '../view/state.js'

/** @import { WorkerSample } from '../../src/metrics/schema.js' */
/** @import { Moment } from '../picture.js' */
/** @import { Panel, State } from '../state.js' */
/** @import { Line, Span } from '../terminal/line.js' */

const CHART = { min: 5, max: 20 }
/** Minimum columns for all charts side by side; with this many free rows, two side by side. */
const ALL_BESIDE = { columns: 190, rows: 30 }
const LEAST_FIGURES = 8

/** One worker: its last minutes, and its current figures. @type {Panel} */
export const detail = {
  name: 'detail',
  visible: state => state.view === 'detail' && shown(state).snapshot !== null,
  rows: () => ({ min: 8, max: Number.POSITIVE_INFINITY }),
  priority: 3,

  draw(state, width, rows) {
    const { snapshot } = shown(state)
    const view = snapshot?.workers.find(({ index }) => index === state.selected)
    if (view === undefined) return [[[' this worker no longer exists', 'label']]]
    const { sample } = view
    const about = sample === null ? '' : `  pid ${sample.pid}  up ${duration(sample.uptime)}`
    const died = view.deaths === 0 ? '' : `  died ${whole(view.deaths)}×`
    const refuses = sample?.overload ? '  overloaded: refusing new connections' : ''
    const title = `worker ${view.index}  ${view.state}${about}${died}${refuses}`
    if (sample === null)
      return [rule(title, width, BACK), [[` no figures: the worker is ${view.state}`, 'warn']]]
    const columns = blockColumns(width)
    const lines = packBlocks(blocksOf(sample, state, columns.width), columns)
    const charts = chartLines(state, view.index, width, rows - 1, lines.length)
    return detailPage(title, charts, lines, state, width, rows)
  },
}

/**
 * Charts get the rows left by the figures, but at least their minimum.
 * @param {State} state @param {number} index @param {number} width @param {number} rows for charts and figures
 * @param {number} needed rows of all figures
 */
function chartLines(state, index, width, rows, needed) {
  const count = WORKER_CHARTS.length
  const wide = width >= ALL_BESIDE.columns && rows - needed < ALL_BESIDE.rows ? count : 2
  const high = wide === count || rows < 2 * CHART.min + LEAST_FIGURES ? 1 : count / wide
  const all = Math.min(high * CHART.max, Math.max(high * CHART.min, rows - needed))
  const first = wide * high === count ? 0 : state.chart
  const history = historyOf(shown(state))
  return chartGrid({ wide, high, count: wide * high, width, rows: all }, (at, width, height) => {
    const which = (first + at) % count
    const plot = {
      definition: WORKER_CHARTS[which],
      id: `worker ${index} ${which}`,
      pick: (/** @type {Moment} */ moment) => workerAt(moment, index),
    }
    return chartBlock(plot, history, state.look, width, height)
  })
}

/** By unit of the metric. @type {Record<string, (value: number) => string>} */
const FORMATS = { ms: value => `${ms(value)} ms`, bytes, share, count: quantity }

/** @param {WorkerSample} sample @param {State} state @param {number} width @returns {Line[][]} */
function blocksOf(sample, { look }, width) {
  const { counts, interval, memory, cpu, gc, files } = sample
  const { 0: left, ...closes } = counts.closes
  const row = (/** @type {string} */ name, /** @type {string | Span} */ value) => figure(name, value, width)
  /** @param {string} text @param {number} value @param {Parameters<typeof health>[1]} limit */
  const marked = (text, value, limit) => healthSpan(text, health(value, limit), look.colors)
  /** @param {string} path of a metric @param {Parameters<typeof health>[1] | null} [limit] @param {string} [prefix] */
  const metric = (path, limit = null, prefix = '') => {
    const { label, unit = 'count' } = metricAt(`workers[].sample.${path}`)
    const value = figureAt(sample, path)
    const text = FORMATS[unit](value)
    return row(`${prefix}${label}`, limit === null ? text : marked(text, value, limit))
  }
  const rate = (/** @type {number} */ value) => `${short(perSecond(value, interval))}/s`
  const rateOf = (/** @type {string} */ path) =>
    row(metricAt(`workers[].sample.${path}`).label, rate(figureAt(sample, path)))
  const pair = (/** @type {(value: number) => string} */ format, /** @type {number[]} */ [into, out]) =>
    `${format(perSecond(into, interval))} ${format(perSecond(out, interval)).padStart(6)}`
  const named = (/** @type {string} */ name, /** @type {Record<string, number>} */ figures) => [
    blockTitle(name),
    ...Object.entries(figures)
      .sort(([, a], [, b]) => b - a)
      .map(([what, value]) => row(what, rate(value))),
  ]
  return [
    [
      blockTitle('event loop'),
      metric('loop.utilization', 'loop'),
      metric('loop.ticks.avg', 'tickAvg', 'delay '),
      metric('loop.ticks.p50', null, 'delay '),
      metric('loop.ticks.p90', 'tickP90', 'delay '),
      metric('loop.ticks.p99', null, 'delay '),
      metric('loop.ticks.max', 'tickMax', 'delay '),
    ],
    [
      blockTitle('process'),
      row('cpu', marked(share(totalCpu(cpu)), totalCpu(cpu), 'cpu')),
      row('user, system', `${share(cpu.user)} ${share(cpu.system)}`),
      metric('memory.rss'),
      metric('memory.external'),
      metric('memory.array_buffers'),
      row(metricAt('primary.files.open').label, `${short(files.open)}/${short(files.limit)}`),
      metric('outbox.bytes'),
      metric('outbox.largest', 'outbox'),
    ],
    [
      blockTitle('heap'),
      metric('memory.heap_used'),
      metric('memory.heap_total'),
      metric('memory.heap_limit'),
      ...spaces(memory.spaces, width, look.unicode),
    ],
    [
      blockTitle('garbage collection'),
      ...Object.entries(gc).map(([kind, { count: times, pause }]) =>
        row(kind, `${rate(times)} ${`${ms(perSecond(pause, interval))} ms`.padStart(8)}`),
      ),
    ],
    [
      blockTitle('clients'),
      metric('connections.connected'),
      metric('connections.open'),
      rateOf('counts.accepts'),
      ...Object.entries(sample.connections.by)
        .flatMap(([transport, codecs]) =>
          Object.entries(codecs).map(([codec, value]) => ({ name: `${transport} ${codec}`, value })),
        )
        .sort((a, b) => b.value - a.value)
        .map(({ name, value }) => row(name, quantity(value))),
      metric('subscriptions'),
      metric('channels'),
    ],
    [
      blockTitle('messages, in and out'),
      ...Object.entries(counts.transports).map(([transport, flow]) =>
        row(transport, pair(short, [flow.in.messages, flow.out.messages])),
      ),
      row('bytes', pair(shortBytes, [counts.in.bytes, counts.out.bytes])),
      rateOf('counts.publishes'),
      rateOf('counts.deliveries'),
    ],
    named('close codes', left === undefined ? closes : { ...closes, 'HTTP, by client': left }),
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

/** @param {WorkerSample['memory']['spaces']} spaces @param {number} width @param {boolean} unicode @returns {Line[]} */
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

/** @param {WorkerSample} sample @param {(name: string, value: string | Span) => Line} row */
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
      if (inflight > 0) lines.push(row('  in flight', whole(inflight)))
      for (const [kind, times] of Object.entries(failures))
        lines.push(row(`  failed: ${kind}`, [`${short(perSecond(times, interval))}/s`, 'warn']))
      return lines
    }),
  ]
}

/** @param {string} prefix @param {Record<string, number>} figures */
const prefixed = (prefix, figures) =>
  Object.fromEntries(Object.entries(figures).map(([name, value]) => [`${prefix}${name}`, value]))
