import { bytes, count, ms, people, percent, whole } from './format.js'

/**
 * @typedef {import('./points.js').Point} Point
 *
 * @typedef {object} ChartDefinition
 * @property {string} title
 * @property {'linear' | 'log'} scale
 * @property {boolean} stacked
 * @property {(value: number) => string} format of the axis
 * @property {boolean} [binary] whether the axis goes by powers of 1024
 * @property {readonly {label: string, style: string, value: (point: Point) => number | null}[]} series
 * @property {(point: Point) => string} now the newest figures, in words
 */

/** What is drawn over the last minutes, in the order in which `c` goes through them. @type {readonly ChartDefinition[]} */
export const CHARTS = [
  {
    title: 'connections',
    scale: 'linear',
    stacked: false,
    format: count,
    series: [{ label: 'clients', style: 'series1', value: ({ connections }) => connections }],
    now: ({ connections }) => people(connections),
  },
  {
    title: 'messages a second',
    scale: 'linear',
    stacked: false,
    format: count,
    series: [
      { label: 'out', style: 'series2', value: ({ out }) => out },
      { label: 'in', style: 'series1', value: point => point.in },
    ],
    now: point => `in ${count(point.in)}  out ${count(point.out)}`,
  },
  {
    title: 'ticks, ms',
    scale: 'log',
    stacked: false,
    format: value => (value < 1 ? value.toString() : count(value)),
    series: [
      { label: 'max', style: 'series4', value: ({ max }) => max },
      { label: 'p90', style: 'series1', value: ({ p90 }) => p90 },
    ],
    now: ({ p90, max }) => `p90 ${ms(p90)}  max ${ms(max)}`,
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
    now: ({ heap, native, kernel }) => bytes(heap + native + (kernel ?? 0)),
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
    now: ({ each, eachKernel }) => (each === null ? 'from 1,000 on' : whole(each + (eachKernel ?? 0))),
  },
  {
    title: 'CPU, of one core',
    scale: 'linear',
    stacked: false,
    format: percent,
    series: [{ label: 'all processes', style: 'series1', value: ({ cpu }) => cpu }],
    now: ({ cpu }) => percent(cpu),
  },
]
