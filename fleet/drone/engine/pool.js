/** @import { Connection } from '../transport/dialer.js' */

/** States of a slot; 0: not wanted. */
const WAITING = 1
const OPENING = 2
const OPEN = 3

/** Timeout of opening a connection, ms. */
const OPEN_TIMEOUT = 20_000
/** Maximum delay of a ping, ms, as in the SDKs. */
const PING_GRACE = 10_000
const SWEEP = 1000
/** Event-loop delay above which pings may be unread, ms. */
const HELD_UP = 1000
/** Size of the token bucket, in seconds of `rate`. */
const BURST = 0.1

/**
 * @typedef {{dial: (slot: number) => Connection, fail: (slot: number, reason: string) => void, shut: (slot: number) =>
 *   void}} PoolHost `fail`: after a timeout; `shut`: for churn, without back-off
 */

/**
 * Connection slots 0 to `wanted` - 1, and when each opens. One tick serves all slots; a slot is its connection and four
 * numbers.
 *
 *      0 -> WAITING -> OPENING -> OPEN
 *              ^----------+---------+   lost: after a back-off; closed here: immediately
 */
export class Pool {
  wanted = 0
  opening = 0
  open = 0
  concurrency = 1
  rate = 0
  churn = 0
  backoff = { min: 500, max: 20_000 }
  /** Ping interval in s (0: none), and whether the server expects pongs; from the last connect reply. */
  ping = 0
  pong = false
  #host
  #waiting = 0
  /** @type {(Connection | null)[]} */
  #connections = []
  /** @type {number[]} */
  #state = []
  /** 1: has been open. @type {number[]} */
  #before = []
  /** Failed attempts since it was open. @type {number[]} */
  #level = []
  /** Deadline in ms: WAITING may open, OPENING must be open, OPEN must have received a ping. @type {number[]} */
  #until = []
  #cursor = 0
  #more = false
  #tokens = 0
  #churned = 0
  #ticked = 0
  #swept = 0

  /** @param {PoolHost} host */
  constructor(host) {
    this.#host = host
  }

  /** @param {number} slot */
  at(slot) {
    return this.#connections[slot]
  }

  /** @param {number} slot */
  isOpen(slot) {
    return this.#state[slot] === OPEN
  }

  /** @param {number} slot that is opening @returns {number} start of opening, ms */
  began(slot) {
    return this.#until[slot] - OPEN_TIMEOUT
  }

  /** @param {number} wanted surplus connections must have been closed before */
  resize(wanted) {
    for (let slot = this.wanted; slot < wanted; slot++) {
      this.#connections[slot] = null
      this.#before[slot] = this.#level[slot] = 0
      this.#wait(slot, 0)
    }
    this.wanted = wanted
  }

  /** Forgets all connections without closing them. @returns {number} number of open ones */
  abandon() {
    const { open } = this
    for (let slot = 0; slot < this.wanted; slot++) this.leave(slot, 'none', 0)
    this.wanted = 0
    return open
  }

  /** Whether ticks only sweep until a connection is lost or the settings change. */
  get isIdle() {
    return (this.#waiting === 0 || this.concurrency === 0) && this.opening === 0 && this.churn === 0
  }

  /** @param {number} slot @param {number} until */
  #wait(slot, until) {
    this.#state[slot] = WAITING
    this.#until[slot] = until
    this.#waiting++
  }

  /** @param {number} slot @param {number} now @returns {number} 1: it was open before */
  opened(slot, now) {
    const before = this.#before[slot]
    this.#state[slot] = OPEN
    this.#before[slot] = 1
    this.#level[slot] = 0
    this.opening--
    this.open++
    this.pinged(slot, now)
    if (this.#more) this.#fill(now)
    return before
  }

  /** @param {number} slot @param {number} now */
  pinged(slot, now) {
    if (this.isOpen(slot)) this.#until[slot] = this.ping ? now + this.ping * 1000 + PING_GRACE : Infinity
  }

  /** Reopens with back-off (lost), immediately (again) or not (none). @param {number} slot @param {'lost' | 'again' | 'none'} then @param {number} now */
  leave(slot, then, now) {
    const connection = this.#connections[slot]
    const state = this.#state[slot]
    this.#connections[slot] = null
    if (state === OPEN) this.open--
    else if (state === OPENING) this.opening--
    else if (state === WAITING) this.#waiting--
    if (then === 'none') this.#state[slot] = 0
    else this.#wait(slot, then === 'again' ? 0 : now + this.#delay(slot))
    return connection
  }

  /** @param {number} slot @returns {number} ms: random from min to min * 2^attempts, at most max */
  #delay(slot) {
    const { min, max } = this.backoff
    const level = (this.#level[slot] = Math.min(30, this.#level[slot] + 1))
    const low = Math.min(min, max)
    return low + Math.random() * (Math.min(max, Math.max(50, min) * 2 ** level) - low)
  }

  /** @param {number} now ms */
  tick(now) {
    const passed = Math.min(HELD_UP, Math.max(0, now - this.#ticked))
    const { rate } = this
    const tokens = this.#tokens + (passed / 1000) * rate
    this.#tokens = rate > 0 ? Math.min(Math.max(1, rate * BURST), tokens) : Infinity
    this.#churned += (passed / 1000) * this.churn
    if (this.#churned >= 1) {
      for (const slot of this.draw(Math.floor(this.#churned))) this.#host.shut(slot)
      this.#churned %= 1
    }
    this.#fill(now)
    if (now - this.#swept > SWEEP) {
      if (now - this.#ticked < HELD_UP) this.#sweep(now)
      this.#swept = now
    }
    this.#ticked = now
  }

  /** Opens due connections within the limits. @param {number} now */
  #fill(now) {
    this.#more = false
    for (let looked = 0; looked < this.wanted && this.#waiting > 0; looked++) {
      const slot = this.#cursor < this.wanted ? this.#cursor : 0
      if (this.#state[slot] === WAITING && this.#until[slot] <= now) {
        this.#more = this.opening >= this.concurrency || this.#tokens < 1
        if (this.#more) return
        this.#tokens--
        this.#waiting--
        this.#state[slot] = OPENING
        this.#until[slot] = now + OPEN_TIMEOUT
        this.opening++
        this.#connections[slot] = this.#host.dial(slot)
      }
      this.#cursor = slot + 1
    }
  }

  /** @param {number} now */
  #sweep(now) {
    for (let slot = 0; slot < this.wanted; slot++)
      if (this.#state[slot] > WAITING && this.#until[slot] < now)
        this.#host.fail(slot, this.isOpen(slot) ? 'no ping' : 'not open after 20 s')
  }

  /** @param {number} needed @returns {number[]} `needed` or all open slots, drawn at random (Knuth's algorithm S) */
  draw(needed) {
    const drawn = []
    let left = this.open
    for (let slot = 0; slot < this.wanted; slot++)
      if (this.isOpen(slot) && Math.random() * left-- < needed - drawn.length) drawn.push(slot)
    return drawn
  }
}

/** Tick interval of a busy and of an idle pool, ms. */
const TICK = 20
const IDLE_TICK = 500

/** Calls tick() of a pool, less often while it is idle. */
export class PoolTimer {
  #pool
  #now
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  #isIdle = false

  /** @param {Pool} pool @param {() => number} now ms */
  constructor(pool, now) {
    this.#pool = pool
    this.#now = now
    this.#schedule()
  }

  #schedule() {
    this.#isIdle = this.#pool.isIdle
    this.#timer = setTimeout(() => this.#tick(), this.#isIdle ? IDLE_TICK : TICK)
  }

  #tick() {
    this.#pool.tick(this.#now())
    this.#schedule()
  }

  /** Call it after changing the pool: it may no longer be idle. */
  hasten() {
    if (!this.#isIdle || this.#pool.isIdle) return
    this.stop()
    this.#schedule()
  }

  stop() {
    clearTimeout(this.#timer)
  }
}

/** ms: below the sample timeout (500 ms) and the pong timeout. */
const PAUSE_MS = 200

/** Blocks the thread. @param {number} ms */
const sleepThread = ms => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

/**
 * Blocks the event loop after an iteration, so that the next one reads many pings together, at half the cost. Without
 * pauses, each of fifty idle processes on two cores wakes up a hundred times a second.
 */
export class ReadPause {
  #sleep
  #isDue = false

  /** @param {(ms: number) => void} [sleep] */
  constructor(sleep = sleepThread) {
    this.#sleep = sleep
  }

  request() {
    if (this.#isDue) return
    this.#isDue = true
    setImmediate(() => {
      this.#isDue = false
      this.#sleep(PAUSE_MS)
    })
  }
}
