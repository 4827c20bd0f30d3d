import { ms, quantity, share, short, shortBytes, tick, whole } from '../src/base/format.js'
import { metricAt } from '../src/metrics/table.js'
import { SPAN } from './picture.js'
import { chartBlock, chartsOf } from './view/charts.js'
import { shown } from './view/state.js'

/** @import { Point, WorkerPoint } from './picture.js' */
/** @import { Panel, Picture } from './state.js' */
/** @import { ChartDefinition, History } from './view/charts.js' */

/**
 * @template P
 * @param {string} path of the metric @param {string} style @param {(point: P) => number | null} value
 */
const series = (path, style, value) => ({ label: metricAt(path).label, style, value })

/** @type {ChartDefinition<Pick<Point, 'max' | 'p90'>>} */
const DELAY = {
  title: 'event-loop delay, ms',
  short: 'delay, ms',
  scale: 'log',
  format: tick,
  figure: ms,
  series: [
    series('totals.loop.ticks.max', 'series4', ({ max }) => max),
    series('totals.loop.ticks.p90', 'series1', ({ p90 }) => p90),
  ],
}

/** @type {ChartDefinition<Pick<Point, 'in' | 'out'>>} */
const MESSAGES = {
  title: 'messages a second',
  short: 'messages/s',
  scale: 'linear',
  format: short,
  figure: short,
  series: [
    series('totals.counts.out.messages', 'series2', ({ out }) => out),
    series('totals.counts.in.messages', 'series1', point => point.in),
  ],
}

/** @type {ChartDefinition<Pick<Point, 'clients'>>} */
const CONNECTIONS = {
  title: 'connections',
  scale: 'linear',
  format: short,
  figure: quantity,
  series: [series('totals.connections.connected', 'series1', ({ clients }) => clients)],
}

const BYTES = /** @type {const} */ ({ scale: 'linear', format: shortBytes, binary: true, figure: shortBytes })

/** In the order of the key `c`. @type {readonly ChartDefinition<Point>[]} */
export const CHARTS = [
  CONNECTIONS,
  MESSAGES,
  DELAY,
  {
    ...BYTES,
    title: 'memory',
    stacked: true,
    series: [
      { label: 'heap', style: 'series1', value: ({ heap }) => heap },
      series('totals.memory.native', 'series2', ({ native }) => native),
      series('totals.memory.kernel', 'series3', ({ kernel }) => kernel),
    ],
  },
  {
    ...BYTES,
    title: 'bytes a connection',
    stacked: true,
    series: [
      series('capacity.bytes_per_connection', 'series1', ({ bytesPerConnection }) => bytesPerConnection),
      series('capacity.kernel_per_connection', 'series3', ({ kernelPerConnection }) => kernelPerConnection),
    ],
    figure: whole,
    // With fewer connections the average is meaningless.
    unknown: 'from 1,000 connections',
  },
  {
    title: 'CPU, of one core',
    scale: 'linear',
    format: share,
    series: [{ label: 'all processes', style: 'series1', value: ({ cpu }) => cpu }],
    figure: share,
  },
]

/** Of one worker. @type {readonly ChartDefinition<WorkerPoint>[]} */
export const WORKER_CHARTS = [
  DELAY,
  {
    ...BYTES,
    title: 'heap',
    series: [
      series('totals.memory.heap_total', 'series2', ({ total }) => total),
      series('totals.memory.heap_used', 'series1', ({ used }) => used),
    ],
  },
  CONNECTIONS,
  MESSAGES,
]

/** @type {Panel} */
export const charts = chartsOf({
  count: CHARTS.length,
  across: 3,
  highest: 24,
  rows: rows => ({ min: rows < 20 ? 5 : 6 }),
  draw: (state, which, width, height, more) =>
    chartBlock(
      { definition: CHARTS[which], id: `${which}`, pick: (/** @type {Point} */ point) => point },
      historyOf(shown(state)),
      state.look,
      width,
      height,
      more,
    ),
})

/** @param {Picture} picture @returns {History<Point>} */
export const historyOf = ({ history, charted }) => ({
  ...charted,
  newest: history.at(-1) ?? null,
  span: SPAN,
})
