// Charts with uPlot for reports, the admin page and the demo. definitions.js is the table of charts, derive.js computes
// columns missing in the CSV, plot.js draws one chart (axes.js).

import { CHARTS } from './definitions.js'
import { derive, isKnown, maximum } from './derive.js'
import { make } from './dom.js'
import { Plot } from './plot.js'

/** @import { ChartDefinition } from './definitions.js' */
/** @import { Columns, Values } from './derive.js' */
/** @import { Line, AxisMaxima, PlotData } from './plot.js' */

/**
 * @typedef {object} ChartOptions
 * @property {'auto' | 'light' | 'dark'} [theme]
 * @property {boolean} [live] time of day on the axis, and last values in the legends
 * @property {readonly ChartDefinition[]} [charts]
 * @property {Record<string, AxisMaxima>} [max] upper ends of the axes by chart id (rangesOf)
 * @property {number} [span] length of the time axis, if longer than the data, s
 *
 * @typedef {object} Charts
 * @property {(columns: Columns) => void} setData
 * @property {(theme: 'auto' | 'light' | 'dark') => void} setTheme
 * @property {() => void} resize after a layout change without a window resize
 */

const DARK = '(prefers-color-scheme: dark)'
/** Opacity of the variants of a colour in %, unless the page defines `--chart-NAME-VARIANT`. */
const OPACITY = Object.freeze({ area: 60, band: 15, faint: 30 })

/**
 * Adds a `<figure class="chart" data-chart="ID">` per chart to an element, in definition order.
 * @param {HTMLElement} root gets the class `charts`; charts.css has the colours
 * @param {Columns} columns of the CSV; with `NAME:min` and `NAME:max` if rows are buckets
 * @param {ChartOptions} [options]
 * @returns {Charts}
 */
export function makeCharts(root, columns, options = {}) {
  const { charts = CHARTS } = options
  return mount(root, charts, columns.time?.[0] ?? 0, options, plots => {
    const setData = (/** @type {Columns} */ next) => {
      const all = derive(next)
      const x = times(all, options.live === true)
      for (const [index, { series }] of charts.entries()) {
        plots[index].setData({ x, lines: series.map(({ column }) => lineOf(all, column, x.length)) })
      }
    }
    setData(columns)
    return setData
  })
}

/**
 * Charts with one line per run, aligned at the run start.
 * @param {HTMLElement} root
 * @param {{label: string, columns: Columns}[]} runs at most six have distinct colours
 * @param {ChartOptions & {charts: readonly ChartDefinition[]}} options only the first series of each chart is used
 * @returns {Charts} its setData does nothing
 */
export function makeOverlay(root, runs, options) {
  const parts = runs.map(({ columns }) => derive(columns))
  const definitions = options.charts.map(chart => ({
    ...chart,
    series: runs.map(({ label }, index) => ({
      label,
      column: chart.series[0].column,
      color: `run-${(index % 6) + 1}`,
    })),
  }))
  const axes = parts.map(columns => times(columns, false))
  const x = [...new Set(axes.flat())].sort((a, b) => a - b)
  return mount(root, definitions, 0, options, plots => {
    for (const [index, { series }] of definitions.entries()) {
      const lines = parts.map((columns, run) => ({
        values: interpolate(lineOf(columns, series[run].column, axes[run].length).values, axes[run], x),
      }))
      plots[index].setData({ x, lines })
    }
    return () => {}
  })
}

/**
 * Upper ends of the axes for all runs, to make charts comparable.
 * @param {Columns[]} runs
 * @param {readonly ChartDefinition[]} [charts]
 * @returns {Record<string, AxisMaxima>} by chart id
 */
export function rangesOf(runs, charts = CHARTS) {
  const all = runs.map(derive)
  /** @param {ChartDefinition} chart @param {Columns} columns @param {boolean} right */
  const highest = ({ series, stacked }, columns, right) => {
    const { length = 0 } = columns.time ?? []
    const lines = series
      .filter(one => (one.right === true) === right)
      .map(({ column }) => lineOf(columns, column, length))
    return stacked && !right
      ? maximum(Array.from({ length }, (_, row) => sumAt(lines, row)))
      : Math.max(...lines.map(({ values, max }) => maximum(max ?? values)))
  }
  return Object.fromEntries(
    charts.map(chart => {
      const side = (/** @type {boolean} */ right) =>
        Math.max(0, ...all.map(columns => highest(chart, columns, right)))
      return [chart.id, { left: side(false), right: side(true) }]
    }),
  )
}

/** @param {Line[]} lines @param {number} row */
const sumAt = (lines, row) => lines.reduce((sum, { values }) => sum + (values[row] || 0), 0)

/** @param {Columns} columns @param {boolean} live @returns {number[]} s: of the day, or since the first row */
function times({ time }, live) {
  const first = time?.[0] ?? 0
  return Array.from(time ?? [], value => ((value ?? 0) - (live ? 0 : first)) / 1000)
}

/** @param {Columns} columns @param {string} name @param {number} length */
function lineOf(columns, name, length) {
  return {
    values: columns[name] ?? new Array(length).fill(null),
    min: columns[`${name}:min`],
    max: columns[`${name}:max`],
  }
}

/**
 * Values at other times: interpolated linearly, null beyond the ends.
 * @param {Values} values at the times `from` @param {number[]} from @param {number[]} to includes all of `from`
 */
function interpolate(values, from, to) {
  let next = 0
  return to.map(time => {
    while (next < from.length && from[next] < time) next++
    if (next === from.length) return null
    const [a, b] = [values[next - 1], values[next]]
    if (from[next] === time) return isKnown(b) ? b : null
    if (next === 0 || !isKnown(a) || !isKnown(b)) return null
    return a + ((b - a) * (time - from[next - 1])) / (from[next] - from[next - 1])
  })
}

/**
 * @param {HTMLElement} root @param {readonly ChartDefinition[]} definitions @param {number} origin unix ms
 * @param {ChartOptions} options @param {(plots: Plot[]) => (columns: Columns) => void} start @returns {Charts}
 */
function mount(root, definitions, origin, options, start) {
  const { theme = 'auto', live = false, max = {}, span = 0 } = options
  const prefersDark = matchMedia(DARK)
  root.classList.add('charts')
  const applyTheme = (/** @type {'auto' | 'light' | 'dark'} */ theme) => {
    root.dataset.theme = theme
    root.style.colorScheme = theme === 'auto' ? '' : theme
  }
  applyTheme(theme)
  const probe = make('i')
  probe.hidden = true
  root.append(probe)
  /** @type {Map<string, string>} read at each stroke, changed rarely */
  const colors = new Map()
  const color = (/** @type {string} */ name) => {
    let value = colors.get(name)
    if (value === undefined) {
      const variant = /** @type {keyof typeof OPACITY} */ (name.slice(name.lastIndexOf('-') + 1))
      const base = `var(--chart-${name.slice(0, -variant.length - 1)}) ${OPACITY[variant]}%`
      const otherwise = variant in OPACITY ? `, color-mix(in srgb, ${base}, transparent)` : ''
      probe.style.color = `var(--chart-${name}${otherwise})`
      value = getComputedStyle(probe).color
      colors.set(name, value)
    }
    return value
  }
  const plots = definitions.map(
    definition => new Plot(definition, { color, live, origin, span, max: max[definition.id] ?? null }),
  )
  root.append(...plots.map(({ element }) => element))
  const setData = start(plots)
  const resize = () => {
    for (const plot of plots) plot.resize()
  }
  const repaint = () => {
    colors.clear()
    for (const plot of plots) plot.redraw()
  }
  const observer = new ResizeObserver(resize)
  for (const { element } of plots) observer.observe(element)
  prefersDark.addEventListener('change', repaint)
  return {
    setData,
    resize,
    setTheme(next) {
      applyTheme(next)
      repaint()
    },
  }
}
