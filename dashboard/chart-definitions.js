import { bytes, count, ms, percent, quantity, whole } from './format.js'

/** @import { Point, WorkerPoint } from './picture.js' */

/**
 * @template P
 * @typedef {import('./view/charts.js').ChartDefinition<P>} ChartDefinition
 */

/** @type {ChartDefinition<Pick<Point, 'max' | 'p90'>>} */
const DELAY = {
  title: 'event-loop delay, ms',
  short: 'delay, ms',
  scale: 'log',
  format: value => (value < 1 ? value.toString() : count(value)),
  figure: ms,
  series: [
    { label: 'max', style: 'series4', value: ({ max }) => max },
    { label: 'p90', style: 'series1', value: ({ p90 }) => p90 },
  ],
}

/** @type {ChartDefinition<Pick<Point, 'in' | 'out'>>} */
const MESSAGES = {
  title: 'messages a second',
  short: 'messages/s',
  scale: 'linear',
  format: count,
  figure: count,
  series: [
    { label: 'out', style: 'series2', value: ({ out }) => out },
    { label: 'in', style: 'series1', value: point => point.in },
  ],
}

/** Charts of the last minutes, in the order of the key `c`. @type {readonly ChartDefinition<Point>[]} */
export const CHARTS = [
  {
    title: 'connections',
    scale: 'linear',
    format: count,
    series: [{ label: 'clients', style: 'series1', value: ({ connections }) => connections }],
    figure: quantity,
  },
  MESSAGES,
  DELAY,
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
      { label: 'user space', style: 'series1', value: ({ bytesPerConnection }) => bytesPerConnection },
      { label: 'kernel', style: 'series3', value: ({ kernelPerConnection }) => kernelPerConnection },
    ],
    figure: whole,
    // Fewer connections say nothing about the memory of one.
    unknown: 'from 1,000 on',
  },
  {
    title: 'CPU, of one core',
    scale: 'linear',
    format: percent,
    series: [{ label: 'all processes', style: 'series1', value: ({ cpu }) => cpu }],
    figure: percent,
  },
]

/** Charts of one worker. @type {readonly ChartDefinition<WorkerPoint>[]} */
export const WORKER_CHARTS = [
  DELAY,
  {
    title: 'heap',
    scale: 'linear',
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
    format: count,
    series: [{ label: 'clients', style: 'series1', value: ({ clients }) => clients }],
    figure: quantity,
  },
  MESSAGES,
]
