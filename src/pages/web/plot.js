import { linearRange, logarithmicRange, timeAxis, valueAxis } from './axes.js'
import { isKnown, maximum, movingAverage } from './derive.js'
import { make } from './dom.js'
import { Legend } from './legend.js'
import uPlot from './uplot.js'

/** @import { ChartDefinition, SeriesDefinition } from './definitions.js' */
/** @import { Values } from './derive.js' */

const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
/** Lengths of strokes and gaps in page pixels; a canvas has its own. */
const DOTS = [0.1, 5]
const DASHES = [5, 3.5]
/** Window of the moving average, s, and its minimum values. */
const SMOOTH_S = 30
const SMOOTH_VALUES = 7

/** @typedef {{left: number, right: number}} AxisMaxima the highest values on the two axes */

/**
 * @typedef {object} Line
 * @property {Values} values one per time
 * @property {Values} [least] of each bucket of rows
 * @property {Values} [most]
 */

/**
 * @typedef {object} PlotData
 * @property {number[]} x s, ascending
 * @property {Line[]} lines one per series
 */

/** Unknown values become null for uPlot. @param {Values | undefined} values @returns {(number | null)[]} */
const withNulls = values => Array.from(values ?? [], value => (isKnown(value) ? value : null))

/** One chart: a heading, a legend, a canvas. */
export class Plot {
  #definition
  #color
  #options
  #legend
  #place
  /** @type {uPlot | null} created with the first data, which decides the series */
  #plot = null
  /** @type {PlotData} */
  #data = { x: [], lines: [] }
  /** @type {number[][]} uPlot's series of each of ours, the one under the cursor first */
  #members = []

  /**
   * @param {ChartDefinition} definition @param {object} options
   * @param {(name: string) => string} options.color of a custom property `--chart-NAME`
   * @param {string} options.sync charts with the same key share their cursor
   * @param {boolean} options.elapsed x is time since the start, not of the day
   * @param {boolean} options.live without a cursor the legend shows the last values, not the maxima
   * @param {number} options.origin unix ms of x = 0
   * @param {number} [options.span] s of the x axis, if longer than the data
   * @param {AxisMaxima | null} [options.most] ends of the axes; null: from the data
   */
  constructor(definition, options) {
    this.#definition = definition
    this.#color = options.color
    this.#options = options
    const { id, title, note, series, unit, right, stacked, wide, plain } = definition
    this.element = make('figure', `chart${wide ? ' wide' : ''}${plain ? ' plain' : ''}`)
    this.element.dataset.chart = id
    const caption = make('figcaption', 'chart-head')
    this.#legend = new Legend(
      series.map(one => ({
        label: one.label,
        color: one.color,
        look: stacked && !one.right ? 'area' : (one.stroke ?? 'line'),
        unit: one.right && right ? right : unit,
      })),
      (item, shown) => this.#toggle(item, shown),
    )
    caption.append(make('h3', 'chart-title', title), make('p', 'chart-note', note), this.#legend.time)
    this.#place = make('div', 'chart-plot')
    this.element.append(...(plain ? [] : [caption, this.#legend.element]), this.#place)
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

  /** Fills its place. */
  resize() {
    const { clientWidth: width, clientHeight: height } = this.#place
    if (width > 0 && (this.#plot?.width !== width || this.#plot?.height !== height)) {
      this.#plot?.setSize({ width, height })
    }
  }

  /** Draws again, in the colours that are in force. */
  redraw() {
    this.#plot?.redraw(false)
  }

  destroy() {
    this.#plot?.destroy()
    this.element.remove()
  }

  /** @param {number} item @param {boolean} show */
  #toggle(item, show) {
    const plot = this.#plot
    if (plot === null) return
    plot.batch(() => {
      for (const member of this.#members[item]) plot.setSeries(member, { show })
    })
  }

  /**
   * Our series as uPlot's: stacked areas, averages with a band, or moving averages over faint lines.
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
      const stroke = () => this.#color(definition.color)
      const base = { ...strokeOf(definition), scale: definition.right ? 'right' : 'left', stroke }
      if (definition.area) Object.assign(base, { fill: () => this.#color(`${definition.color}-area`) })
      if (stacks[index]) {
        const fill = () => this.#color(`${definition.color}-area`)
        const member = add(stacks[index], { ...base, width: 1.25, fill })
        const below = definitions.findIndex((other, at) => at > index && !other.right)
        if (below > 0) bands.push({ series: [member, member + below - index], fill })
        return [member]
      }
      const { most, least } = line
      const values = withNulls(definition.peaks && most ? most : line.values)
      if (smooth) {
        const faint = () => this.#color(`${definition.color}-faint`)
        const raw = add(values, { ...base, stroke: faint, width: 1 })
        // The mean of the highest values of buckets would not be that of a second.
        const smoothed = movingAverage(withNulls(line.values), this.#smoothWidth(x))
        return [raw, add(smoothed, { ...base, width: 2, class: 'no-point' })]
      }
      if (most && least && !definition.peaks && !definition.stroke && !definition.right) {
        const none = { ...base, stroke: 'transparent', width: 0, class: 'no-point' }
        const member = add(values, base)
        const [upper, lower] = [add(withNulls(most), none), add(withNulls(least), none)]
        bands.push({ series: [upper, lower], fill: () => this.#color(`${definition.color}-band`) })
        return [member, upper, lower]
      }
      return [add(values, base)]
    })
    return { columns, series, members, bands }
  }

  /** @param {number[]} x */
  #smoothWidth(x) {
    const step = x.length > 1 ? (x[x.length - 1] - x[0]) / (x.length - 1) : 1
    // The average of a whole short run would be meaningless.
    const most = Math.max(3, Math.round(x.length / 10))
    return Math.min(most, Math.max(SMOOTH_VALUES, Math.round(SMOOTH_S / step)))
  }

  /**
   * @param {Line[]} lines
   * @returns {((number | null)[] | null)[]} each with all below it; null for those on the other axis
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
      // An unknown value is not a hole in everything above it, unless all are unknown.
      below = below.map((sum, row) => (some[row] ? (sum ?? 0) + (values[row] ?? 0) : null))
      piles[index] = below
    }
    return piles
  }

  /** @param {any[]} series @param {any[]} bands @returns {any} */
  #uplotOptions(series, bands) {
    const { unit, right, logarithmic, plain, least = 0 } = this.#definition
    const { elapsed, sync, most } = this.#options
    const color = this.#color
    const style = { color, font: FONT }
    const range =
      (/** @type {'left' | 'right'} */ side) =>
      (/** @type {any} */ _, /** @type {number} */ _least, /** @type {number} */ highest) => {
        const end = most?.[side] ?? Math.max(highest ?? 0, side === 'left' ? least : 0)
        if (logarithmic && side === 'left') return logarithmicRange(end)
        return linearRange(end, side === 'left' ? unit : (right ?? unit))
      }
    return {
      width: this.#place.clientWidth || 600,
      height: this.#place.clientHeight || 220,
      series,
      bands,
      legend: { show: false },
      // Half of the last time's label.
      padding: plain ? [8, 8, 1, 0] : [10, right ? 0 : 24, 0, 0],
      scales: {
        x: { time: !elapsed, range: this.#timeRange() },
        left: { range: range('left'), ...(logarithmic && { distr: 3 }) },
        ...(right && { right: { range: range('right') } }),
      },
      axes: plain
        ? [{ show: false }, { scale: 'left', show: false }]
        : [
            timeAxis({ ...style, elapsed }),
            valueAxis({ ...style, unit, right: false, logarithmic: logarithmic === true }),
            ...(right ? [valueAxis({ ...style, unit: right, right: true, logarithmic: false })] : []),
          ],
      cursor: {
        show: !plain,
        y: false,
        sync: { key: sync, scales: ['x', null], setSeries: false },
        points: { size: 7, width: 1.5, fill: () => color('ground') },
        drag: { x: true, y: false },
      },
      hooks: { setCursor: [(/** @type {uPlot} */ plot) => this.#updateLegend(plot.cursor.idx ?? null)] },
    }
  }

  /** The whole axis for the whole data, else the part shown. Live data ends at the right. */
  #timeRange() {
    const { span = 0, live } = this.#options
    return (/** @type {uPlot} */ plot, /** @type {number} */ from, /** @type {number} */ to) => {
      const x = plot.data[0]
      const whole = x.length === 0 || (from === x[0] && to === x[x.length - 1])
      if (!whole) return [from, to]
      const least = Math.max(span, 1)
      return live && span > 0
        ? [Math.min(from ?? 0, (to ?? 0) - least), to ?? 0]
        : [from ?? 0, Math.max(to ?? 1, (from ?? 0) + least)]
    }
  }

  /** @param {number | null} row under the cursor */
  #updateLegend(row) {
    const { x, lines } = this.#data
    const { live, origin, elapsed } = this.#options
    if (row !== null && row < x.length) {
      const seconds = elapsed ? x[row] : x[row] - x[0]
      const time = elapsed ? origin + x[row] * 1000 : x[row] * 1000
      const values = lines.map(({ values, most }, index) =>
        this.#definition.series[index].peaks && most ? most[row] : values[row],
      )
      this.#legend.show(values, '', { elapsed: seconds, time })
    } else if (live) {
      this.#legend.show(
        lines.map(({ values }) => values[values.length - 1]),
        '',
        null,
      )
    } else {
      this.#legend.show(
        lines.map(({ values, most }) => finiteOrNull(maximum(most ?? values))),
        'highest',
        null,
      )
    }
  }
}

/** @param {number} value */
const finiteOrNull = value => (Number.isFinite(value) ? value : null)

/** @param {SeriesDefinition} definition */
function strokeOf({ stroke }) {
  const points = { show: false }
  const dash = (/** @type {number[]} */ lengths) => lengths.map(length => length * uPlot.pxRatio)
  if (stroke === 'dots') return { points, width: 2.25, dash: dash(DOTS), cap: 'round' }
  if (stroke === 'dashes') return { points, width: 1.5, dash: dash(DASHES) }
  return { points, width: 1.75 }
}
