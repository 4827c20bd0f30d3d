import { count, people } from '../../dashboard/format.js'
import { fine } from './format.js'

/**
 * @typedef {import('./history.js').Point} Point
 *
 * @typedef {object} ChartDefinition
 * @property {string} title
 * @property {'linear' | 'log'} scale
 * @property {(value: number) => string} format of the axis
 * @property {readonly {label: string, style: string, value: (point: Point) => number | null}[]} series none: it is the histogram
 * @property {(point: Point) => string} now the newest figures, in words
 */

/** What is drawn, in the order in which `c` goes through them. @type {readonly ChartDefinition[]} */
export const CHARTS = [
  {
    title: 'connections',
    scale: 'linear',
    format: count,
    series: [
      { label: 'wanted', style: 'series3', value: ({ wanted }) => wanted },
      { label: 'open', style: 'series1', value: ({ open }) => open },
    ],
    now: ({ open }) => people(open),
  },
  { title: 'latency', scale: 'log', format: fine, series: [], now: () => '' },
  {
    title: 'messages a second',
    scale: 'linear',
    format: count,
    series: [
      { label: 'published', style: 'series2', value: ({ published }) => published },
      { label: 'received', style: 'series1', value: ({ received }) => received },
    ],
    now: ({ received, published }) => `${count(received)}  ${count(published)}`,
  },
  {
    title: 'latency of 5 s, ms',
    scale: 'log',
    format: value => (value < 1 ? value.toString() : count(value)),
    series: [
      { label: 'max', style: 'series4', value: ({ max }) => max },
      { label: 'p99', style: 'series1', value: ({ p99 }) => p99 },
      { label: 'p50', style: 'series3', value: ({ p50 }) => p50 },
    ],
    now: ({ p99 }) => fine(p99),
  },
]
