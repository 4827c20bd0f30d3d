// SettingsSender to the drones: settings, shared out among them, and ramps.

import { listIds } from './launch.js'
import { beginsPublishing, contradiction, settingsOf } from './shares.js'

/** @typedef {import('../schema.js').FleetSettings} FleetSettings */
/** @typedef {import('./drone.js').Drone} Drone */

export class SettingsSender {
  #list
  #onEvent
  /** @type {Ramp | null} */
  #ramp = null

  /** @param {import('./drone-list.js').DroneList} list @param {import('./drone-list.js').OnEvent} onEvent */
  constructor(list, onEvent) {
    this.#list = list
    this.#onEvent = onEvent
  }

  /** Continues a ramp of a previous controller. */
  resume() {
    const { ramp } = this.#list.state
    if (ramp !== null) this.#runRamp(ramp)
  }

  /** @param {Drone[]} drones @returns {Promise<SendResult>} */
  #send(drones) {
    const { members, state } = this.#list
    const capacities = members.map(drone => drone.state.capacity)
    const shares = settingsOf(state.settings, capacities, state)
    const wanted = new Map(members.map((drone, i) => [drone.id, shares[i]]))
    const { revision } = state
    return sendSettings(drones, drone => ({ revision, settings: wanted.get(drone.id) }))
  }

  /** @param {Drone} drone */
  onHello(drone) {
    return this.#list.inTurn(async () => {
      const { refusals, silent } = await this.#send([drone])
      for (const text of [...refusals, ...silent]) this.#onEvent('warn', text)
    })
  }

  /** Sends all drones the current settings. @returns {Promise<string[]>} refusals, a line each */
  async #sendAll() {
    const { state } = this.#list
    state.revision++
    const { n } = state.settings
    const most = Math.max(n, state.ramp?.to ?? 0)
    state.base = most === 0 ? 0 : Math.max(state.base, most)
    await this.#list.save()
    const { refusals, silent } = await this.#send(this.#list.members)
    for (const text of silent) this.#onEvent('warn', text)
    return refusals
  }

  /** After a change of the drones: lays out the numbers and shares again. */
  async rebalance() {
    this.#list.state.base = 0
    for (const text of await this.#sendAll()) this.#onEvent('warn', text)
    this.shortfall(this.#list.state.settings.n)
  }

  /** @param {FleetSettings} after @throws {Error} one line: a drone refuses. The previous settings stay then */
  async #change(after) {
    const { state } = this.#list
    const before = { settings: state.settings, base: state.base, publishFrom: state.publishFrom }
    // By this machine's clock: a subscription made before this time was made before the first message.
    if (beginsPublishing(state.settings, after)) state.publishFrom = Date.now()
    state.settings = after
    const refusals = await this.#sendAll()
    if (refusals.length === 0) return
    Object.assign(state, before)
    await this.#sendAll()
    throw new Error(refusals.join('; '))
  }

  /**
   * @param {Partial<FleetSettings>} partial @returns {Promise<string[]>} warnings, a line each @throws {Error} one
   *   line
   */
  set(partial) {
    return this.#list.inTurn(async () => {
      const after = { ...this.#list.state.settings, ...partial }
      const fault = contradiction(after)
      if (fault !== '') throw new Error(fault)
      if (partial.n !== undefined) this.endRamp('n was set')
      await this.#change(after)
      return this.shortfall(after.n)
    })
  }

  /** @param {number} n connections @returns {string[]} one line if the drones cannot hold so many */
  shortfall(n) {
    const { members } = this.#list
    const capacity = members.reduce((sum, { state }) => sum + state.capacity, 0)
    if (n <= capacity || members.length === 0) return []
    const line = `${n} connections are more than the drones can hold: ${capacity}, ${n - capacity} too few`
    this.#onEvent('warn', line)
    return [line]
  }

  /**
   * @param {number} to connections @param {number} seconds
   * @returns {Promise<{done: Promise<void>, warnings: string[]}>} under way; `done`: after the last step
   * @throws {Error} one line
   */
  ramp(to, seconds) {
    return this.#list.inTurn(async () => {
      const { settings } = this.#list.state
      const fault = contradiction({ ...settings, n: to })
      if (fault !== '') throw new Error(fault)
      this.endRamp('another one was begun')
      const began = Date.now()
      const ramp = this.#runRamp({ from: settings.n, to, began, ends: began + seconds * 1000 })
      return { done: ramp.done, warnings: this.shortfall(to) }
    })
  }

  /** @param {RampState} line */
  #runRamp(line) {
    const { state } = this.#list
    const ramp = new Ramp(line, n =>
      this.#list.inTurn(async () => {
        if (this.#ramp === ramp) await this.#change({ ...state.settings, n })
      }),
    )
    this.#ramp = ramp
    state.ramp = line
    const over = () => {
      if (this.#ramp !== ramp) return
      this.#ramp = null
      state.ramp = null
      void this.#list.save()
    }
    ramp.done.then(over, error => {
      if (this.#ramp === ramp) this.#onEvent('error', `the ramp ends: ${error.message}`)
      over()
    })
    void ramp.run()
    return ramp
  }

  /** @param {string} why */
  endRamp(why) {
    const ramp = this.#ramp
    this.#ramp = null
    this.#list.state.ramp = null
    ramp?.end(new Error(`ramp ended: ${why}`))
  }

  /** Ends without the ramp, which another controller continues. */
  async close() {
    const { ramp } = this.#list.state
    this.endRamp('the controller has gone')
    this.#list.state.ramp = ramp
    await this.#list.inTurn(async () => {})
  }
}

/** @typedef {{from: number, to: number, began: number, ends: number}} RampState */

/** ms between two steps. */
const STEP = 1000

/** @param {RampState} ramp @param {number} now @returns {number} connections */
export function rampedAt({ from, to, began, ends }, now) {
  if (now >= ends) return to
  const done = Math.max(0, (now - began) / (ends - began))
  return Math.round(from + (to - from) * done)
}

/** A ramp under way. Ends with its last step, by `end`, or by a failed step. */
export class Ramp {
  #state
  #step
  /** @type {NodeJS.Timeout | null} */
  #timer = null
  /** @type {(() => void)} */
  #resolve = () => {}
  /** @type {((error: Error) => void)} */
  #reject = () => {}
  #over = false

  /** @param {RampState} state @param {(n: number) => Promise<void>} step applies a number of connections */
  constructor(state, step) {
    this.#state = state
    this.#step = step
    /** After the last step; rejects if ended before. @type {Promise<void>} */
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    // The fleet's events report it to callers that do not wait.
    this.done.catch(() => {})
  }

  async run() {
    while (!this.#over) {
      const now = Date.now()
      const last = now >= this.#state.ends
      try {
        await this.#step(rampedAt(this.#state, now))
      } catch (error) {
        return this.end(error)
      }
      if (this.#over) return
      if (last) {
        this.#over = true
        return this.#resolve()
      }
      const wait = Math.min(STEP - ((Date.now() - this.#state.began) % STEP), this.#state.ends - Date.now())
      await new Promise(resolve => {
        this.#timer = setTimeout(() => resolve(undefined), Math.max(0, wait))
      })
    }
  }

  /** @param {Error} why */
  end(why) {
    if (this.#over) return
    this.#over = true
    clearTimeout(this.#timer ?? undefined)
    this.#reject(why)
  }
}

/** ms for a drone to answer. */
const ANSWER_TIMEOUT = 10_000

/**
 * @typedef {object} SendResult
 * @property {string[]} refusals a line each
 * @property {string[]} silent connected drones without an answer, a line each
 */

/**
 * Publishing drones come last: by then the others know from when on nothing may be missing.
 * @param {Drone[]} drones
 * @param {(drone: Drone) => {revision: number, settings: import('../schema.js').Settings | undefined}} messageOf
 * @returns {Promise<SendResult>} when all connected drones have answered or timed out
 */
async function sendSettings(drones, messageOf) {
  /** Refusal -> ids. @type {Map<string, string[]>} */
  const refusals = new Map()
  /** @type {string[]} */
  const silent = []
  const recipients = drones
    .filter(drone => drone.up)
    .map(drone => ({ drone, ...messageOf(drone) }))
    .filter(({ settings }) => settings !== undefined)
  for (const publishes of [false, true]) {
    const wave = recipients.filter(({ settings }) => (settings?.publish !== null) === publishes)
    const answers = await Promise.all(
      wave.map(({ drone, revision, settings }) => answerOf(drone, { type: 'settings', revision, settings })),
    )
    answers.forEach((answer, i) => {
      const { id } = wave[i].drone
      if (answer === SILENT) silent.push(id)
      else if (answer !== '') refusals.set(answer, [...(refusals.get(answer) ?? []), id])
    })
  }
  return {
    refusals: [...refusals].map(
      ([text, ids]) => `${listIds(inOrder(ids, drones))} ${ids.length > 1 ? 'refuse' : 'refuses'}: ${text}`,
    ),
    silent: silent.length > 0 ? [`${listIds(silent)} did not answer within ${ANSWER_TIMEOUT / 1000} s`] : [],
  }
}

/** @param {string[]} ids @param {Drone[]} drones @returns {string[]} in the drones' order */
const inOrder = (ids, drones) => drones.map(({ id }) => id).filter(id => ids.includes(id))

const SILENT = Symbol('silent')

/**
 * @param {Drone} drone @param {{type: string, [field: string]: any}} message
 * @returns {Promise<string | typeof SILENT>} '': it agrees, or its link is lost and onHello() repeats the order
 */
async function answerOf(drone, message) {
  const { link } = drone
  if (link === null) return ''
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  const over = new Promise(resolve => {
    timer = setTimeout(() => resolve(SILENT), ANSWER_TIMEOUT)
  })
  const answer = drone.request(message).then(
    () => '',
    /** @param {Error} error */ error => (link.reason === '' ? error.message : ''),
  )
  const first = await Promise.race([answer, /** @type {Promise<typeof SILENT>} */ (over)])
  clearTimeout(timer)
  return first
}
