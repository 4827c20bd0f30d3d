import { color, fitCanvas, onThemeChange, wantsMotion } from './dom.js'

const WINDOW_MS = 60_000
/** Samples further apart are not joined: some are missing between them. */
const GAP_MS = 2_500
const SLIDE_MS = 450

/**
 * @typedef {object} Point
 * @property {number} time ms
 * @property {number} value
 * @property {number} [second] of the thinner line
 * @property {boolean} recovered
 */

/** The last minute of one figure: a line over an area, recovered samples on a tinted band. */
export class Chart {
  /** @type {Point[]} */
  #points = []
  #canvas
  #ceiling
  #label
  #shown = 0
  #from = 0
  #startedAt = 0
  #frame = 0

  /**
   * @param {HTMLCanvasElement} canvas @param {object} options
   * @param {(peak: number) => number} options.ceiling value at the top of the chart
   * @param {(value: number) => string} options.label text of the newest value
   */
  constructor(canvas, { ceiling, label }) {
    this.#canvas = canvas
    this.#ceiling = ceiling
    this.#label = label
    new ResizeObserver(() => this.#draw()).observe(canvas)
    onThemeChange(() => this.#draw())
  }

  /** @param {Point} point may be older than the last */
  add(point) {
    const points = this.#points
    let at = points.length
    while (at > 0 && points[at - 1].time > point.time) at--
    if (points[at - 1]?.time === point.time) return
    points.splice(at, 0, point)
    const newest = points[points.length - 1].time
    while (points.length > 0 && points[0].time < newest - WINDOW_MS - 2 * GAP_MS) points.shift()
    this.#canvas.setAttribute('aria-label', this.#label(points[points.length - 1].value))
    this.#slide()
  }

  #slide() {
    const still = this.#shown === 0 || !wantsMotion() || document.hidden
    this.#from = this.#shown
    this.#startedAt = performance.now()
    if (still) {
      this.#shown = this.#points[this.#points.length - 1].time
      return this.#draw()
    }
    if (this.#frame === 0) this.#frame = requestAnimationFrame(now => this.#step(now))
  }

  /** @param {number} now */
  #step(now) {
    const newest = this.#points[this.#points.length - 1].time
    const share = Math.min(1, Math.max(0, (now - this.#startedAt) / SLIDE_MS))
    this.#shown = this.#from + (newest - this.#from) * (1 - (1 - share) ** 3)
    this.#frame = share < 1 ? requestAnimationFrame(next => this.#step(next)) : 0
    this.#draw()
  }

  #draw() {
    const { context, width, height } = fitCanvas(this.#canvas)
    const points = this.#points
    if (points.length === 0 || width === 0) return
    const peak = Math.max(...points.map(({ value, second }) => Math.max(value, second ?? 0)))
    const top = this.#ceiling(peak)
    const left = this.#shown - WINDOW_MS
    const x = (/** @type {number} */ time) => ((time - left) / WINDOW_MS) * (width - 10)
    const y = (/** @type {number} */ value) => height - 2 - (Math.min(value, top) / top) * (height - 12)

    const accent = color('--accent')
    this.#grid(context, width, height)
    for (const run of this.#runs(({ recovered }) => recovered)) {
      context.fillStyle = color('--amber-wash')
      const from = x(run[0].time - 500)
      context.fillRect(from, 0, x(run[run.length - 1].time + 500) - from, height)
    }
    const shade = context.createLinearGradient(0, 0, 0, height)
    shade.addColorStop(0, `color-mix(in srgb, ${accent} 34%, transparent)`)
    shade.addColorStop(1, `color-mix(in srgb, ${accent} 3%, transparent)`)
    context.lineJoin = 'round'
    context.lineCap = 'round'
    for (const run of this.#runs(() => true)) {
      context.beginPath()
      for (const { time, value } of run) context.lineTo(x(time), y(value))
      context.strokeStyle = accent
      context.lineWidth = 1.75
      context.stroke()
      context.lineTo(x(run[run.length - 1].time), height)
      context.lineTo(x(run[0].time), height)
      context.fillStyle = shade
      context.fill()
      if (run[0].second === undefined) continue
      context.beginPath()
      for (const { time, second } of run) context.lineTo(x(time), y(second ?? 0))
      context.strokeStyle = color('--soft')
      context.lineWidth = 1
      context.stroke()
    }
    const last = points[points.length - 1]
    context.beginPath()
    context.arc(x(last.time), y(last.value), 3, 0, 2 * Math.PI)
    context.fillStyle = last.recovered ? color('--amber') : accent
    context.fill()
  }

  /** @param {CanvasRenderingContext2D} context @param {number} width @param {number} height */
  #grid(context, width, height) {
    context.fillStyle = color('--line')
    for (const share of [0.5, 1]) {
      context.fillRect(0, Math.round(height - 2 - share * (height - 12)), width, 1)
    }
  }

  /**
   * Neighbouring points that belong, without gaps in time.
   * @param {(point: Point) => boolean} belongs @returns {Point[][]}
   */
  #runs(belongs) {
    /** @type {Point[][]} */
    const runs = []
    /** @type {Point | null} */
    let before = null
    for (const point of this.#points) {
      if (!belongs(point)) {
        before = null
        continue
      }
      if (before && point.time - before.time <= GAP_MS) runs[runs.length - 1].push(point)
      else runs.push([point])
      before = point
    }
    return runs
  }
}

/** The next round number above the peak, at least `floor`. @param {number} floor @returns {(peak: number) => number} */
export const roundCeiling = floor => peak => {
  const need = Math.max(peak, floor)
  const power = 10 ** Math.floor(Math.log10(need))
  return ([1, 2, 5, 10].find(step => step * power >= need) ?? 10) * power
}
