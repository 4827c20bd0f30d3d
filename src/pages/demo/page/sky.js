import { byId, canvasById, fitCanvas, wantsMotion } from './dom.js'

/** @import { Person } from './people.js' */

const TAIL_MS = 1100
const FLARE_MS = 900
const STARS = 130
const MAX_POINTS = 120

/**
 * @typedef {object} Comet
 * @property {Person} person
 * @property {{x: number, y: number, at: number}[]} tail newest last, at least one
 * @property {number[]} flares start times
 */

/** A constant number between 0 and 1 for each `n`: the stars of one sky. */
const fixed = (/** @type {number} */ n) => {
  const x = Math.sin(n * 127.1) * 43758.5453
  return x - Math.floor(x)
}

/** Draws comets while they move. */
export class Sky {
  #canvas = canvasById('sky-canvas')
  /** @type {Map<string, Comet>} '' is one's own */
  #comets = new Map()
  #frame = 0

  constructor() {
    new ResizeObserver(() => this.#wake()).observe(this.#canvas)
  }

  /** @param {string} id @param {Person} person @param {number} x 0-1 @param {number} y 0-1 */
  move(id, person, x, y) {
    byId('sky-hint').hidden ||= this.#comets.size > 1
    let comet = this.#comets.get(id)
    if (!comet) this.#comets.set(id, (comet = { person, tail: [], flares: [] }))
    comet.person = { name: person.name, hue: person.hue }
    comet.tail.push({ x, y, at: performance.now() })
    if (comet.tail.length > MAX_POINTS) comet.tail.shift()
    this.#wake()
  }

  /** @param {string} id */
  flare(id) {
    this.#comets.get(id)?.flares.push(performance.now())
    this.#wake()
  }

  /** @param {string} id */
  remove(id) {
    if (this.#comets.delete(id)) this.#wake()
  }

  /** All but the own one. */
  clear() {
    for (const id of [...this.#comets.keys()]) if (id !== '') this.remove(id)
  }

  #wake() {
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#draw())
  }

  #draw() {
    this.#frame = 0
    const now = performance.now()
    const { context, width, height } = fitCanvas(this.#canvas)
    this.#stars(context, width, height)
    let moving = false
    for (const [id, comet] of this.#comets) {
      while (comet.tail.length > 1 && now - comet.tail[0].at > TAIL_MS) comet.tail.shift()
      comet.flares = comet.flares.filter(at => now - at < FLARE_MS)
      moving ||= comet.tail.length > 1 || comet.flares.length > 0
      this.#comet(context, width, height, comet, id === '', now)
    }
    if (moving) this.#wake()
  }

  /** @param {CanvasRenderingContext2D} context @param {number} width @param {number} height */
  #stars(context, width, height) {
    context.fillStyle = '#fff'
    for (let n = 1; n <= STARS; n++) {
      context.globalAlpha = 0.12 + 0.55 * fixed(n + 0.7) ** 3
      context.beginPath()
      context.arc(fixed(n) * width, fixed(n + 0.3) * height, 0.4 + fixed(n + 0.5) ** 4 * 1.1, 0, 2 * Math.PI)
      context.fill()
    }
    context.globalAlpha = 1
  }

  /**
   * @param {CanvasRenderingContext2D} context @param {number} width @param {number} height @param {Comet} comet
   * @param {boolean} own @param {number} now
   */
  #comet(context, width, height, { person, tail, flares }, own, now) {
    const hue = `${person.hue} 90%`
    context.lineCap = 'butt'
    for (let n = 1; wantsMotion() && n < tail.length; n++) {
      const strength = Math.max(0, 1 - (now - tail[n].at) / TAIL_MS)
      context.beginPath()
      context.moveTo(tail[n - 1].x * width, tail[n - 1].y * height)
      context.lineTo(tail[n].x * width, tail[n].y * height)
      context.strokeStyle = `hsl(${hue} ${68 + 14 * strength}% / ${strength * 0.85})`
      context.lineWidth = 0.5 + 6.5 * strength
      context.stroke()
    }
    const head = tail[tail.length - 1]
    const [x, y] = [head.x * width, head.y * height]
    for (const at of flares) {
      const share = (now - at) / FLARE_MS
      context.beginPath()
      context.arc(x, y, 8 + 62 * (1 - (1 - share) ** 3), 0, 2 * Math.PI)
      context.strokeStyle = `hsl(${hue} 80% / ${(1 - share) * 0.8})`
      context.lineWidth = 2.5 * (1 - share)
      context.stroke()
    }
    const glow = context.createRadialGradient(x, y, 0, x, y, 20)
    glow.addColorStop(0, `hsl(${hue} 96%)`)
    glow.addColorStop(0.18, `hsl(${hue} 84% / .95)`)
    glow.addColorStop(0.45, `hsl(${hue} 65% / .32)`)
    glow.addColorStop(1, `hsl(${hue} 60% / 0)`)
    context.fillStyle = glow
    context.fillRect(x - 20, y - 20, 40, 40)
    this.#name(context, own ? `${person.name} (you)` : person.name, x, y, width, hue)
  }

  /**
   * @param {CanvasRenderingContext2D} context @param {string} text @param {number} x @param {number} y
   * @param {number} width @param {string} hue
   */
  #name(context, text, x, y, width, hue) {
    context.font = '600 12px system-ui, sans-serif'
    const before = x + 24 + context.measureText(text).width > width
    context.textAlign = before ? 'right' : 'left'
    context.textBaseline = 'middle'
    context.fillStyle = `hsl(${hue} 86%)`
    context.fillText(text, before ? x - 14 : x + 14, Math.max(10, y + 12))
  }
}
