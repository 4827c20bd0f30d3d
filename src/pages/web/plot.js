import { clock, elapsed as elapsedTime, formatValue } from '../../base/format.js'
import { linearRange, logarithmicRange, timeAxis, valueAxis } from './axes.js'
import { isKnown, maximum, movingAverage } from './derive.js'
import { make } from './dom.js'
import uPlot from './uplot.js'

/** @import { Unit } from '../../base/format.js' */
/** @import { ChartDefinition, SeriesDefinition } from './definitions.js' */
/** @import { Values } from './derive.js' */

const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
/** Lengths of strokes and gaps in CSS pixels, not canvas pixels. */
const DOTS = [0.1, 5]
const DASHES = [5, 3.5]
/** Window of the moving average, s, and minimum of values. */
const SMOOTH_S = 30
const SMOOTH_VALUES = 7

/**
 * @typedef {{left: number, right: number}} AxisMaxima the highest values on the two axes
 *
 * @typedef {object} Line
 * @property {Values} values one per time
 * @property {Values} [min] of each bucket of rows
 * @property {Values} [max]
 *
 * @typedef {object} PlotData
 * @property {number[]} x s, ascending
 * @property {Line[]} lines one per series
 */

/** Unknown values become null for uPlot. @param {Values | undefined} values @returns {(number | null)[]} */
const withNulls = values => Array.from(values ?? [], value => (isKnown(value) ? value : null))

/** Labels of the lines with their values, under the cursor or at rest. A click hides a line. */
class Legend {
  element = make('div', 'chart-legend')
  /** Time or kind of the values; placed by the caller. */
  time = make('span', 'chart-time')
  /** @type {{value: HTMLElement, unit: Unit}[]} */
  #items

  /** @param {ChartDefinition} definition @param {(item: number, shown: boolean) => void} onToggle */
  constructor({ series, unit, right, stacked }, onToggle) {
    this.#items = series.map((one, index) => {
      const button = make('button', 'chart-key')
      button.setAttribute('type', 'button')
      button.setAttribute('aria-pressed', 'true')
      button.style.setProperty('--key', `var(--chart-${one.color})`)
      const value = make('b', 'chart-value')
      const look = stacked && !one.right ? 'area' : (one.stroke ?? 'line')
      button.append(make('i', `chart-mark ${look}`), make('span', 'chart-label', one.label), value)
      button.addEventListener('click', () => {
        const shown = button.getAttribute('aria-pressed') !== 'true'
        button.setAttribute('aria-pressed', String(shown))
        onToggle(index, shown)
      })
      this.element.append(button)
      return { value, unit: one.right && right ? right : unit }
    })
  }

  /**
   * @param {(number | null | undefined)[]} values
   * @param {string} time of the values, or their kind, such as `highest`
   */
  show(values, time) {
    for (const [index, { value, unit }] of this.#items.entries())
      value.textContent = formatValue(values[index], unit)
    this.time.textContent = time
  }
}

/** One chart: a heading, a legend, a canvas. */
export class Plot {
  #definition
  #options
  #legend
  #place
  /** @type {uPlot | null} created with the first data, which sets the series */
  #plot = null
  /** @type {PlotData} */
  #data = { x: [], lines: [] }
  /** @type {number[][]} uPlot series per definition, the one under the cursor first */
  #members = []

  /**
   * @param {ChartDefinition} definition
   * @param {object} options
   * @param {(name: string) => string} options.color of a custom property `--chart-NAME`
   * @param {boolean} options.live x is the time of day, and without a cursor the legend shows the last values; else x
   *   is elapsed time, and the legend shows the maxima
   * @param {number} options.origin unix ms of x = 0, unless live
   * @param {number} options.span minimum length of the x axis, s
   * @param {AxisMaxima | null} options.max ends of the axes; null: from the data
   */
  constructor(definition, options) {
    this.#definition = definition
    this.#options = options
    const { id, title, note, wide, plain } = definition
    this.element = make('figure', `chart${wide ? ' wide' : ''}${plain ? ' plain' : ''}`)
    this.element.dataset.chart = id
    this.#legend = new Legend(definition, (item, show) =>
      this.#plot?.batch(() => {
        for (const member of this.#members[item]) this.#plot?.setSeries(member, { show })
      }),
    )
    const head = [make('h3', 'chart-title', title), make('p', 'chart-note', note), this.#legend.time]
    this.#place = make('div', 'chart-plot')
    if (!plain) this.element.append(make('figcaption', 'chart-head', ...head), this.#legend.element)
    this.element.append(this.#place)
  }

  /** @param {PlotData} data */
  setData(data) {
    this.#data = data
    const { columns, series, members, bands } = this.#toUplot(data)
    if (this.#plot === null) {
      this.#members = members
      this.#plot = new uPlot(this.#uplotOptions(series, bands), columns, this.#place)
    } else {
      this.#plot.setData(columns)
    }
    this.#updateLegend(null)
  }

  /** Fits its parent. */
  resize() {
    const { clientWidth: width, clientHeight: height } = this.#place
    if (width > 0 && (this.#plot?.width !== width || this.#plot?.height !== height)) {
      this.#plot?.setSize({ width, height })
    }
  }

  /** Redraws in the current colours. */
  redraw() {
    this.#plot?.redraw(false)
  }

  /**
   * Converts series to uPlot's: stacked areas, averages with a band, or moving averages over faint lines.
   * @param {PlotData} data
   */
  #toUplot({ x, lines }) {
    const { series: definitions, stacked, smooth } = this.#definition
    /** @type {any} */
    const columns = [x]
    /** @type {any[]} */
    const series = [{}]
    /** @type {any[]} */
    const bands = []
    const add = (/** @type {(number | null)[]} */ values, /** @type {any} */ options) => {
      columns.push(values)
      series.push(options)
      return series.length - 1
    }
    const stacks = stacked ? this.#stack(lines) : []
    const members = definitions.map((definition, index) => {
      const line = lines[index]
      const color = (/** @type {string} */ kind) => () => this.#options.color(`${definition.color}${kind}`)
      const base = { ...strokeOf(definition), scale: definition.right ? 'right' : 'left', stroke: color('') }
      if (definition.area) Object.assign(base, { fill: color('-area') })
      if (stacks[index]) {
        const fill = color('-area')
        const member = add(stacks[index], { ...base, width: 1.25, fill })
        const below = definitions.findIndex((other, at) => at > index && !other.right)
        if (below > 0) bands.push({ series: [member, member + below - index], fill })
        return [member]
      }
      const { max, min } = line
      const values = withNulls(definition.peaks && max ? max : line.values)
      if (smooth) {
        const raw = add(values, { ...base, stroke: color('-faint'), width: 1 })
        // Averages, as the mean of bucket maxima is not that of seconds.
        const smoothed = movingAverage(withNulls(line.values), smoothWidth(x))
        return [raw, add(smoothed, { ...base, width: 2, class: 'no-point' })]
      }
      if (max && min && !definition.peaks && !definition.stroke && !definition.right) {
        const none = { ...base, stroke: 'transparent', width: 0, class: 'no-point' }
        const member = add(values, base)
        const [upper, lower] = [add(withNulls(max), none), add(withNulls(min), none)]
        bands.push({ series: [upper, lower], fill: color('-band') })
        return [member, upper, lower]
      }
      return [add(values, base)]
    })
    return { columns, series, members, bands }
  }

  /**
   * @param {Line[]} lines
   * @returns {((number | null)[] | null)[]} cumulative values; null for series on the other axis
   */
  #stack(lines) {
    const { series } = this.#definition
    /** @type {((number | null)[] | null)[]} */
    const piles = series.map(() => null)
    /** @type {(number | null)[]} */
    let below = this.#data.x.map(() => 0)
    const some = this.#data.x.map((_, row) =>
      lines.some(({ values }, index) => !series[index].right && isKnown(values[row])),
    )
    for (let index = series.length - 1; index >= 0; index--) {
      if (series[index].right) continue
      const values = withNulls(lines[index].values)
      // Unknown values leave no gap in the areas above, unless all are unknown.
      below = below.map((sum, row) => (some[row] ? (sum ?? 0) + (values[row] ?? 0) : null))
      piles[index] = below
    }
    return piles
  }

  /** @param {any[]} series @param {any[]} bands @returns {any} */
  #uplotOptions(series, bands) {
    const { unit, right, logarithmic = false, plain, minTop = 0 } = this.#definition
    const { live, max, color } = this.#options
    const style = { color, font: FONT }
    const range =
      (/** @type {'left' | 'right'} */ side) =>
      (/** @type {any} */ _, /** @type {number} */ _least, /** @type {number} */ highest) => {
        const end = max?.[side] ?? Math.max(highest ?? 0, side === 'left' ? minTop : 0)
        if (logarithmic && side === 'left') return logarithmicRange(end)
        return linearRange(end, side === 'left' ? unit : (right ?? unit))
      }
    return {
      width: this.#place.clientWidth || 600,
      height: this.#place.clientHeight || 220,
      series,
      bands,
      legend: { show: false },
      // Half of the last time label.
      padding: plain ? [8, 8, 1, 0] : [10, right ? 0 : 24, 0, 0],
      scales: {
        x: { time: live, range: this.#timeRange() },
        left: { range: range('left'), ...(logarithmic && { distr: 3 }) },
        ...(right && { right: { range: range('right') } }),
      },
      axes: plain
        ? [{ show: false }, { scale: 'left', show: false }]
        : [
            timeAxis({ ...style, elapsed: !live }),
            valueAxis({ ...style, unit, right: false, logarithmic }),
            ...(right ? [valueAxis({ ...style, unit: right, right: true, logarithmic: false })] : []),
          ],
      cursor: {
        show: !plain,
        y: false,
        sync: { key: 'charts', scales: ['x', null], setSeries: false },
        points: { size: 7, width: 1.5, fill: () => color('ground') },
        drag: { x: true, y: false },
      },
      hooks: { setCursor: [(/** @type {uPlot} */ plot) => this.#updateLegend(plot.cursor.idx ?? null)] },
    }
  }

  /** The full axis for all data, else the zoomed part. Live data ends at the right. */
  #timeRange() {
    const { span, live } = this.#options
    return (/** @type {uPlot} */ plot, /** @type {number} */ from, /** @type {number} */ to) => {
      const x = plot.data[0]
      const whole = x.length === 0 || (from === x[0] && to === x[x.length - 1])
      if (!whole) return [from, to]
      const min = Math.max(span, 1)
      return live && span > 0
        ? [Math.min(from ?? 0, (to ?? 0) - min), to ?? 0]
        : [from ?? 0, Math.max(to ?? 1, (from ?? 0) + min)]
    }
  }

  /** @param {number | null} row under the cursor */
  #updateLegend(row) {
    const { x, lines } = this.#data
    const { live, origin } = this.#options
    if (row !== null && row < x.length) {
      const seconds = live ? x[row] - x[0] : x[row]
      const time = live ? x[row] * 1000 : origin + x[row] * 1000
      const values = lines.map(({ values, max }, index) =>
        this.#definition.series[index].peaks && max ? max[row] : values[row],
      )
      this.#legend.show(values, `${elapsedTime(seconds)} · ${clock(time)}`)
    } else if (live) {
      const last = lines.map(({ values }) => values[values.length - 1])
      this.#legend.show(last, '')
    } else {
      const highest = lines.map(({ values, max }) => maximum(max ?? values))
      this.#legend.show(
        highest.map(value => (Number.isFinite(value) ? value : null)),
        'highest',
      )
    }
  }
}

/** @param {number[]} x @returns {number} window of the average, values */
function smoothWidth(x) {
  const step = x.length > 1 ? (x[x.length - 1] - x[0]) / (x.length - 1) : 1
  // An average over a whole short run is meaningless.
  const max = Math.max(3, Math.round(x.length / 10))
  return Math.min(max, Math.max(SMOOTH_VALUES, Math.round(SMOOTH_S / step)))
}

/** @param {SeriesDefinition} definition */
function strokeOf({ stroke }) {
  const points = { show: false }
  const dash = (/** @type {number[]} */ lengths) => lengths.map(length => length * uPlot.pxRatio)
  if (stroke === 'dots') return { points, width: 2.25, dash: dash(DOTS), cap: 'round' }
  if (stroke === 'dashes') return { points, width: 1.5, dash: dash(DASHES) }
  return { points, width: 1.75 }
}
