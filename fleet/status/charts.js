import { count, quantity } from '../../dashboard/format.js'
import { fine } from './format.js'

/** @typedef {import('../../dashboard/view/charts.js').ChartDefinition<import('./picture.js').Point>} ChartDefinition */

/** Charts in the order of the key `c`; null: the histogram of latencies. @type {readonly (ChartDefinition | null)[]} */
export const CHARTS = [
  {
    title: 'connections',
    scale: 'linear',
    format: count,
    series: [
      { label: 'wanted', style: 'series3', value: ({ wanted }) => wanted },
      { label: 'open', style: 'series1', value: ({ open }) => open },
    ],
    figure: quantity,
  },
  null,
  {
    title: 'messages a second',
    short: 'messages/s',
    scale: 'linear',
    format: count,
    series: [
      { label: 'published', style: 'series2', value: ({ published }) => published },
      { label: 'received', style: 'series1', value: ({ received }) => received },
    ],
    figure: count,
  },
  {
    title: 'latency of 5 s, ms',
    short: 'last 5 s, ms',
    scale: 'log',
    format: value => (value < 1 ? value.toString() : count(value)),
    series: [
      { label: 'max', style: 'series4', value: ({ max }) => max },
      { label: 'p99', style: 'series1', value: ({ p99 }) => p99 },
      { label: 'p50', style: 'series3', value: ({ p50 }) => p50 },
    ],
    figure: fine,
  },
]
