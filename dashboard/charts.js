import { bytes, count, ms, people, percent, whole } from './format.js'

/**
 * @typedef {import('./points.js').Point} Point
 * @typedef {import('./points.js').WorkerPoint} WorkerPoint
 */

/**
 * @template P
 * @typedef {object} ChartDefinition
 * @property {string} title
 * @property {string} [short] title where there is little room
 * @property {'linear' | 'log'} scale
 * @property {boolean} stacked
 * @property {(value: number) => string} format of the axis
 * @property {boolean} [binary] whether the axis goes by powers of 1024
 * @property {readonly {label: string, style: string, value: (point: P) => number | null}[]} series
 * @property {(value: number | null) => string} figure the newest value of a series, in words
 * @property {string} [unknown] instead of the figures, while none is known
 */

/** @type {Pick<ChartDefinition<any>, 'title' | 'short' | 'scale' | 'stacked' | 'format' | 'figure'>} */
const DELAY = {
  title: 'event-loop delay, ms',
  short: 'delay, ms',
  scale: 'log',
  stacked: false,
  format: value => (value < 1 ? value.toString() : count(value)),
  figure: ms,
}

/** @type {Pick<ChartDefinition<any>, 'title' | 'short' | 'scale' | 'stacked' | 'format' | 'figure'>} */
const MESSAGES = {
  title: 'messages a second',
  short: 'messages/s',
  scale: 'linear',
  stacked: false,
  format: count,
  figure: count,
}

/** What is drawn over the last minutes, in the order in which `c` goes through them. @type {readonly ChartDefinition<Point>[]} */
export const CHARTS = [
  {
    title: 'connections',
    scale: 'linear',
    stacked: false,
    format: count,
    series: [{ label: 'clients', style: 'series1', value: ({ connections }) => connections }],
    figure: people,
  },
  {
    ...MESSAGES,
    series: [
      { label: 'out', style: 'series2', value: ({ out }) => out },
      { label: 'in', style: 'series1', value: point => point.in },
    ],
  },
  {
    ...DELAY,
    series: [
      { label: 'max', style: 'series4', value: ({ max }) => max },
      { label: 'p90', style: 'series1', value: ({ p90 }) => p90 },
    ],
  },
  {
    title: 'memory',
    scale: 'linear',
    stacked: true,
    format: bytes,
    binary: true,
    series: [
      { label: 'heap', style: 'series1', value: ({ heap }) => heap },
      { label: 'native', style: 'series2', value: ({ native }) => native },
      { label: 'kernel', style: 'series3', value: ({ kernel }) => kernel },
    ],
    figure: bytes,
  },
  {
    title: 'bytes a connection',
    scale: 'linear',
    stacked: true,
    format: bytes,
    binary: true,
    series: [
      { label: 'user space', style: 'series1', value: ({ each }) => each },
      { label: 'kernel', style: 'series3', value: ({ eachKernel }) => eachKernel },
    ],
    figure: whole,
    unknown: 'from 1,000 on',
  },
  {
    title: 'CPU, of one core',
    scale: 'linear',
    stacked: false,
    format: percent,
    series: [{ label: 'all processes', style: 'series1', value: ({ cpu }) => cpu }],
    figure: percent,
  },
]

/** Those of one worker. @type {readonly ChartDefinition<WorkerPoint>[]} */
export const WORKER_CHARTS = [
  {
    ...DELAY,
    series: [
      { label: 'max', style: 'series4', value: ({ max }) => max },
      { label: 'p90', style: 'series1', value: ({ p90 }) => p90 },
    ],
  },
  {
    title: 'heap',
    scale: 'linear',
    stacked: false,
    format: bytes,
    binary: true,
    series: [
      { label: 'total', style: 'series2', value: ({ total }) => total },
      { label: 'used', style: 'series1', value: ({ used }) => used },
    ],
    figure: bytes,
  },
  {
    title: 'connections',
    scale: 'linear',
    stacked: false,
    format: count,
    series: [{ label: 'clients', style: 'series1', value: ({ clients }) => clients }],
    figure: people,
  },
  {
    ...MESSAGES,
    series: [
      { label: 'out', style: 'series2', value: ({ out }) => out },
      { label: 'in', style: 'series1', value: point => point.in },
    ],
  },
]
