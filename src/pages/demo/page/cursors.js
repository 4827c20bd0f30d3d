import { byId } from './dom.js'
import { readPerson } from './people.js'
import { Sky } from './sky.js'

const CHANNEL = 'pointers:sky'
const INTERVAL_MS = 50
const STEP = 0.025

/** @param {number} value */
const clamp = value => Math.min(1, Math.max(0, value))
/** @param {number} value */
const rounded = value => Math.round(value * 1e4) / 1e4

/** All pointers on one sky. No history: only the newest position counts. */
export class Cursors {
  #stage = byId('sky')
  #sky = new Sky()
  #self
  #connection
  #channel
  #x = 0.5
  #y = 0.5
  #flare = false
  #timer = 0
  #sentAt = 0

  /** @param {import('./connection.js').Connection} connection @param {import('./people.js').Self} self */
  constructor(connection, self) {
    this.#connection = connection
    this.#self = self
    this.#channel = connection.channel(CHANNEL)
    this.#channel.on('publication', ({ data, info }) => this.#receive(data, info?.client))
    this.#channel.on('subscribing', () => this.#sky.clear())
    this.#listen()
  }

  /** @param {string} client */
  remove(client) {
    this.#sky.remove(client)
  }

  #listen() {
    const stage = this.#stage
    stage.addEventListener('pointermove', event => {
      const { left, top, width, height } = stage.getBoundingClientRect()
      this.#move((event.clientX - left) / width, (event.clientY - top) / height)
    })
    stage.addEventListener('pointerdown', event => {
      if (!(event.target instanceof HTMLAnchorElement)) this.#burst()
    })
    stage.addEventListener('keydown', event => {
      const { key } = event
      if (event.target !== stage) return
      if (key === 'ArrowLeft') this.#move(this.#x - STEP, this.#y)
      else if (key === 'ArrowRight') this.#move(this.#x + STEP, this.#y)
      else if (key === 'ArrowUp') this.#move(this.#x, this.#y - STEP)
      else if (key === 'ArrowDown') this.#move(this.#x, this.#y + STEP)
      else if (key === 'Enter' || key === ' ') this.#burst()
      else return
      event.preventDefault()
    })
  }

  /** @param {number} x 0-1 @param {number} y 0-1 */
  #move(x, y) {
    this.#x = clamp(x)
    this.#y = clamp(y)
    this.#sky.move('', this.#self, this.#x, this.#y)
    this.#send()
  }

  #burst() {
    this.#flare = true
    this.#sky.move('', this.#self, this.#x, this.#y)
    this.#sky.flare('')
    this.#send()
  }

  /** At most every INTERVAL_MS, the last place always. */
  #send() {
    if (this.#timer !== 0) return
    this.#timer = window.setTimeout(
      () => {
        this.#timer = 0
        this.#sentAt = performance.now()
        if (this.#connection.state !== 'connected' || this.#channel.state !== 'subscribed') return
        const { name, hue } = this.#self
        const message = { x: rounded(this.#x), y: rounded(this.#y), name, hue }
        const flare = this.#flare
        this.#flare = false
        this.#channel.publish(flare ? { ...message, flare } : message).catch(() => {})
      },
      Math.max(0, this.#sentAt + INTERVAL_MS - performance.now()),
    )
  }

  /** @param {any} data @param {string | undefined} from undefined: the server API */
  #receive(data, from = 'server') {
    if (from === this.#ownId || !Number.isFinite(data?.x) || !Number.isFinite(data.y)) return
    this.#sky.move(from, readPerson(data), clamp(data.x), clamp(data.y))
    if (data.flare) this.#sky.flare(from)
  }

  #ownId = ''

  /** @param {string} id of this connection */
  connected(id) {
    this.#ownId = id
  }
}
