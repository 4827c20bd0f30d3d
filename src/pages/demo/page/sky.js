import { byId } from '../../web/dom.js'
import { readPerson } from './room.js'

/** @import { Person, Self } from './room.js' */

const CHANNEL = 'pointers:sky'
const INTERVAL_MS = 50
/** Arrow keys; width and height of the sky are 1. @type {Record<string, [number, number]>} */
const STEPS = { ArrowLeft: [-0.025, 0], ArrowRight: [0.025, 0], ArrowUp: [0, -0.025], ArrowDown: [0, 0.025] }
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

const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)')

/** @param {number} value */
const clamp = value => Math.min(1, Math.max(0, value))
/** @param {number} value */
const rounded = value => Math.round(value * 1e4) / 1e4

/** Deterministic number from 0 to 1 for `n`, for the stars. @param {number} n */
const fixed = n => {
  const x = Math.sin(n * 127.1) * 43758.5453
  return x - Math.floor(x)
}

/** Draws comets while they move. */
class Sky {
  #canvas = /** @type {HTMLCanvasElement} */ (byId('sky-canvas'))
  #context = /** @type {CanvasRenderingContext2D} */ (this.#canvas.getContext('2d'))
  /** @type {Map<string, Comet>} '': this tab */
  #comets = new Map()
  #frame = 0
  #width = 0
  #height = 0

  constructor() {
    new ResizeObserver(() => this.#wake()).observe(this.#canvas)
  }

  /** @param {string} id @param {Person} person @param {number} x 0-1 @param {number} y 0-1 @param {boolean} flares */
  move(id, { name, hue }, x, y, flares) {
    byId('sky-hint').hidden ||= this.#comets.size > 1
    const comet = this.#comets.get(id) ?? { person: { name, hue }, tail: [], flares: [] }
    this.#comets.set(id, comet)
    comet.person = { name, hue }
    comet.tail.push({ x, y, at: performance.now() })
    if (comet.tail.length > MAX_POINTS) comet.tail.shift()
    if (flares) comet.flares.push(performance.now())
    this.#wake()
  }

  /** @param {string} id */
  remove(id) {
    if (this.#comets.delete(id)) this.#wake()
  }

  /** All but this tab's. */
  clear() {
    for (const id of [...this.#comets.keys()]) if (id !== '') this.remove(id)
  }

  #wake() {
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#draw())
  }

  #draw() {
    this.#frame = 0
    const now = performance.now()
    this.#stars()
    for (const [id, comet] of this.#comets) {
      while (comet.tail.length > 1 && now - comet.tail[0].at > TAIL_MS) comet.tail.shift()
      comet.flares = comet.flares.filter(at => now - at < FLARE_MS)
      if (comet.tail.length > 1 || comet.flares.length > 0) this.#wake()
      this.#comet(comet, id === '', now)
    }
  }

  /** Clears the canvas, as sharp as the screen. */
  #stars() {
    const [canvas, context, ratio] = [this.#canvas, this.#context, devicePixelRatio || 1]
    this.#width = canvas.clientWidth
    this.#height = canvas.clientHeight
    canvas.width = Math.round(this.#width * ratio)
    canvas.height = Math.round(this.#height * ratio)
    context.setTransform(ratio, 0, 0, ratio, 0, 0)
    context.fillStyle = '#fff'
    for (let n = 1; n <= STARS; n++) {
      context.globalAlpha = 0.12 + 0.55 * fixed(n + 0.7) ** 3
      const [x, y] = [fixed(n) * this.#width, fixed(n + 0.3) * this.#height]
      this.#circle(x, y, 0.4 + fixed(n + 0.5) ** 4 * 1.1)
      context.fill()
    }
    context.globalAlpha = 1
  }

  /** @param {number} x @param {number} y @param {number} radius */
  #circle(x, y, radius) {
    this.#context.beginPath()
    this.#context.arc(x, y, radius, 0, 2 * Math.PI)
  }

  /** @param {Comet} comet @param {boolean} own @param {number} now */
  #comet({ person, tail, flares }, own, now) {
    const [context, width, height] = [this.#context, this.#width, this.#height]
    const hue = `${person.hue} 90%`
    for (let n = 1; !reducedMotion.matches && n < tail.length; n++) {
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
      this.#circle(x, y, 8 + 62 * (1 - (1 - share) ** 3))
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

    const name = own ? `${person.name} (you)` : person.name
    context.font = '600 12px system-ui, sans-serif'
    const before = x + 24 + context.measureText(name).width > width
    context.textAlign = before ? 'right' : 'left'
    context.textBaseline = 'middle'
    context.fillStyle = `hsl(${hue} 86%)`
    context.fillText(name, before ? x - 14 : x + 14, Math.max(10, y + 12))
  }
}

/** All pointers on one sky: a map with an entry per client, removed with the client. */
export class Cursors {
  #sky = new Sky()
  #self
  #connection
  #channel
  #ownId = ''
  #place = { x: 0.5, y: 0.5 }
  #flares = false
  #timer = 0
  #sentAt = 0

  /** @param {import('./connection.js').Connection} connection @param {Self} self */
  constructor(connection, self) {
    this.#connection = connection
    this.#self = self
    this.#channel = connection.channel(CHANNEL, {}, 'newMapSubscription')
    this.#channel.on('subscribing', () => this.#sky.clear())
    this.#channel.on('sync', ({ entries }) => {
      for (const entry of entries) this.#receive(entry)
      // The new connection has no entry yet.
      if (this.#sentAt > 0) this.#move(this.#place.x, this.#place.y)
    })
    this.#channel.on('update', change => this.#receive(change))
    connection.on('connected', ({ client: id }) => {
      this.#ownId = id
    })
    const stage = byId('sky')
    stage.addEventListener('pointermove', event => {
      const { left, top, width, height } = stage.getBoundingClientRect()
      this.#move((event.clientX - left) / width, (event.clientY - top) / height)
    })
    stage.addEventListener('pointerdown', event => {
      if (!(event.target instanceof HTMLAnchorElement)) this.#move(this.#place.x, this.#place.y, true)
    })
    stage.addEventListener('keydown', event => {
      const flares = event.key === 'Enter' || event.key === ' '
      const [x, y] = STEPS[event.key] ?? [0, 0]
      if (event.target !== stage || !(flares || event.key in STEPS)) return
      this.#move(this.#place.x + x, this.#place.y + y, flares)
      event.preventDefault()
    })
  }

  /** @param {number} x 0-1 @param {number} y 0-1 @param {boolean} [flares] */
  #move(x, y, flares = false) {
    this.#place = { x: rounded(clamp(x)), y: rounded(clamp(y)) }
    this.#flares ||= flares
    this.#sky.move('', this.#self, this.#place.x, this.#place.y, flares)
    // At most every INTERVAL_MS, always the last position.
    this.#timer ||= window.setTimeout(
      () => this.#send(),
      Math.max(0, this.#sentAt + INTERVAL_MS - performance.now()),
    )
  }

  #send() {
    this.#timer = 0
    this.#sentAt = performance.now()
    if (this.#connection.state !== 'connected' || this.#channel.state !== 'subscribed') return
    const { name, hue } = this.#self
    const message = { ...this.#place, name, hue, ...(this.#flares && { flare: true }) }
    this.#flares = false
    // The gateway sets the key.
    this.#channel.publish(message, '').catch(() => {})
  }

  /** @param {import('centrifuge').MapUpdateContext} change */
  #receive({ key, data, removed }) {
    if (removed) return this.#sky.remove(key)
    if (key === this.#ownId || !Number.isFinite(data?.x) || !Number.isFinite(data.y)) return
    this.#sky.move(key, readPerson(data), clamp(data.x), clamp(data.y), Boolean(data.flare))
  }
}
