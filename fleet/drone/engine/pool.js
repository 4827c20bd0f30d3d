import { enlarge } from './enlarge.js'

/** @typedef {import('../transport/dialer.js').Connection} Connection */

/** States of a slot; 0: it is not wanted. */
/** Until `when`. */
const WAITING = 1
/** Since `when`. */
const OPENING = 2
const OPEN = 3

/** The slot was open before. */
const BEFORE = 1
/** Pings are answered. */
const PONG = 2

/** ms after which a connection that is still opening has failed. */
const OPEN_TIMEOUT = 20_000
/** ms that a ping may be late, as the SDKs have it. */
const PING_GRACE = 10_000
const SWEEP = 1000
/** ms: a loop that was held up for so long has not read what has come. */
const HELD_UP = 1000
/** s of opening that may be made up for at once. */
const BURST = 0.1

/**
 * @typedef {object} PoolHost
 * @property {(slot: number) => Connection} dial
 * @property {(slot: number, reason: string) => void} fail ends a connection that is too slow
 * @property {(slot: number) => void} shut ends an open connection because that is asked for; it comes back at once
 */

/**
 * The slots in which connections are held, 0 to `wanted` - 1: which are to be opened when. One tick looks after all of them; what is
 * kept of one is its connection and 20 bytes.
 *
 *      0 -> WAITING -> OPENING -> OPEN
 *              ^----------+---------+   lost: after a back-off; closed here: at once
 */
export class Pool {
  wanted = 0
  opening = 0
  open = 0
  concurrency = 1
  rate = 0
  churn = 0
  backoff = { min: 500, max: 20_000 }
  #host
  #waiting = 0
  /** @type {(Connection | null)[]} */
  #connections = []
  #state = new Uint8Array(0)
  #flags = new Uint8Array(0)
  /** Attempts that failed since it was open. */
  #level = new Uint8Array(0)
  #when = new Float64Array(0)
  /** Time of the last ping, and ms between them (0: there are none). */
  #pinged = new Float64Array(0)
  #interval = new Uint16Array(0)
  #cursor = 0
  /** Whether fill() stopped for a bound. */
  #more = false
  #tokens = 0
  #churned = 0
  #ticked = 0
  #swept = 0

  /** @param {PoolHost} host */
  constructor(host) {
    this.#host = host
  }

  /** Slots that there is room for. */
  get room() {
    return this.#state.length
  }

  /** @param {number} size */
  grow(size) {
    this.#state = enlarge(this.#state, size)
    this.#flags = enlarge(this.#flags, size)
    this.#level = enlarge(this.#level, size)
    this.#when = enlarge(this.#when, size)
    this.#pinged = enlarge(this.#pinged, size)
    this.#interval = enlarge(this.#interval, size)
  }

  /** @param {number} slot */
  at(slot) {
    return this.#connections[slot]
  }

  /** @param {number} slot */
  isOpen(slot) {
    return this.#state[slot] === OPEN
  }

  /** @param {number} slot @returns {number} ms, when its attempt began, or when it was opened */
  since(slot) {
    return this.#when[slot]
  }

  /** @param {number} wanted at most `room`; what is too much has to be let go of before */
  resize(wanted) {
    for (let slot = this.wanted; slot < wanted; slot++) {
      this.#connections[slot] = null
      this.#wait(slot, 0)
    }
    this.wanted = wanted
  }

  /** @param {number} slot @param {number} when */
  #wait(slot, when) {
    this.#state[slot] = WAITING
    this.#when[slot] = when
    this.#waiting++
  }

  /**
   * @param {number} slot
   * @param {number} now
   * @returns {boolean} whether it was open before
   */
  opened(slot, now) {
    const before = this.#flags[slot] & BEFORE
    this.#state[slot] = OPEN
    this.#flags[slot] |= BEFORE
    this.#level[slot] = 0
    this.#when[slot] = now
    this.opening--
    this.open++
    if (this.#more) this.#fill(now)
    return before > 0
  }

  /**
   * What the server said about pings.
   * @param {number} slot
   * @param {number} seconds between them; 0: there are none
   * @param {boolean} pong whether they are to be answered
   * @param {number} now
   */
  pings(slot, seconds, pong, now) {
    this.#interval[slot] = Math.min(65_535, seconds)
    this.#flags[slot] = (this.#flags[slot] & ~PONG) | (pong ? PONG : 0)
    this.#pinged[slot] = now
  }

  /** @param {number} slot @param {number} now @returns {boolean} whether the ping is to be answered */
  pinged(slot, now) {
    this.#pinged[slot] = now
    return (this.#flags[slot] & PONG) > 0
  }

  /**
   * The connection of a slot is no more.
   * @param {number} slot
   * @param {'lost' | 'again' | 'none'} then it is opened after a back-off, at once, or not
   * @param {number} now
   * @returns {Connection | null} the one that was there
   */
  leave(slot, then, now) {
    const connection = this.#connections[slot]
    const state = this.#state[slot]
    this.#connections[slot] = null
    if (state === OPEN) this.open--
    else if (state === OPENING) this.opening--
    else if (state === WAITING) this.#waiting--
    if (then === 'none') this.#state[slot] = this.#flags[slot] = this.#level[slot] = 0
    else this.#wait(slot, then === 'again' ? 0 : now + this.#delay(slot))
    return connection
  }

  /** @param {number} slot @returns {number} ms: min to min * 2^attempts, at most max, anywhere in between */
  #delay(slot) {
    const { min, max } = this.backoff
    const level = (this.#level[slot] = Math.min(30, this.#level[slot] + 1))
    const low = Math.min(min, max)
    return low + Math.random() * (Math.min(max, Math.max(50, min) * 2 ** level) - low)
  }

  /** @param {number} now ms */
  tick(now) {
    const passed = Math.min(HELD_UP, Math.max(0, now - this.#ticked))
    this.#tokens = Math.min(Math.max(1, this.rate * BURST), this.#tokens + (passed / 1000) * this.rate)
    if (this.churn > 0) this.#churn(passed)
    if (this.#waiting > 0) this.#fill(now)
    if (now - this.#swept > SWEEP) {
      if (now - this.#ticked < HELD_UP) this.#sweep(now)
      this.#swept = now
    }
    this.#ticked = now
  }

  /** @param {number} passed ms */
  #churn(passed) {
    this.#churned = Math.min(this.open, this.#churned + (passed / 1000) * this.churn)
    for (; this.#churned >= 1 && this.open > 0; this.#churned--) {
      let slot = Math.floor(Math.random() * this.wanted)
      while (this.#state[slot] !== OPEN) slot = (slot + 1) % this.wanted
      this.#host.shut(slot)
    }
  }

  /** Opens what is due, as long as the bounds let it. @param {number} now */
  #fill(now) {
    this.#more = false
    for (let looked = 0; looked < this.wanted && this.#waiting > 0; looked++) {
      const slot = this.#cursor < this.wanted ? this.#cursor : 0
      if (this.#state[slot] === WAITING && this.#when[slot] <= now) {
        if (this.opening >= this.concurrency || (this.rate > 0 && this.#tokens < 1)) {
          this.#more = true
          return
        }
        if (this.rate > 0) this.#tokens--
        this.#waiting--
        this.#state[slot] = OPENING
        this.#when[slot] = now
        this.#interval[slot] = 0
        this.opening++
        this.#connections[slot] = this.#host.dial(slot)
      }
      this.#cursor = slot + 1
    }
  }

  /** @param {number} now */
  #sweep(now) {
    for (let slot = 0; slot < this.wanted; slot++) {
      if (this.#state[slot] === OPENING && now - this.#when[slot] > OPEN_TIMEOUT)
        this.#host.fail(slot, 'not open after 20 s')
      const interval = this.#interval[slot] * 1000
      if (this.#state[slot] === OPEN && interval > 0 && now - this.#pinged[slot] > interval + PING_GRACE)
        this.#host.fail(slot, 'no ping')
    }
  }

  /**
   * @param {number} share
   * @returns {number[]} that share of the open slots, drawn at random (Knuth's algorithm S)
   */
  draw(share) {
    const drawn = []
    let needed = Math.round(Math.min(1, Math.max(0, share)) * this.open)
    let left = this.open
    for (let slot = 0; slot < this.wanted && needed > 0; slot++) {
      if (this.#state[slot] !== OPEN) continue
      if (Math.random() * left-- < needed) {
        drawn.push(slot)
        needed--
      }
    }
    return drawn
  }
}
