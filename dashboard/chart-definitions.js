import { ms, quantity, share, short, shortBytes, tick, whole } from '../src/base/format.js'

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
  format: tick,
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
  format: short,
  figure: short,
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
    format: short,
    series: [{ label: 'clients', style: 'series1', value: ({ connections }) => connections }],
    figure: quantity,
  },
  MESSAGES,
  DELAY,
  {
    title: 'memory',
    scale: 'linear',
    stacked: true,
    format: shortBytes,
    binary: true,
    series: [
      { label: 'heap', style: 'series1', value: ({ heap }) => heap },
      { label: 'native', style: 'series2', value: ({ native }) => native },
      { label: 'kernel', style: 'series3', value: ({ kernel }) => kernel },
    ],
    figure: shortBytes,
  },
  {
    title: 'bytes a connection',
    scale: 'linear',
    stacked: true,
    format: shortBytes,
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
    format: share,
    series: [{ label: 'all processes', style: 'series1', value: ({ cpu }) => cpu }],
    figure: share,
  },
]

/** Charts of one worker. @type {readonly ChartDefinition<WorkerPoint>[]} */
export const WORKER_CHARTS = [
  DELAY,
  {
    title: 'heap',
    scale: 'linear',
    format: shortBytes,
    binary: true,
    series: [
      { label: 'total', style: 'series2', value: ({ total }) => total },
      { label: 'used', style: 'series1', value: ({ used }) => used },
    ],
    figure: shortBytes,
  },
  {
    title: 'connections',
    scale: 'linear',
    format: short,
    series: [{ label: 'clients', style: 'series1', value: ({ clients }) => clients }],
    figure: quantity,
  },
  MESSAGES,
]
