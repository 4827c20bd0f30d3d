// Sends the drones their shares of the settings, and runs ramps.

import { setTimeout as sleep } from 'node:timers/promises'
import { listIds } from './launch.js'
import { beginsPublishing, contradiction, settingsOf } from './shares.js'

/** @import { FleetSettings, Settings } from '../schema.js' */
/** @import { Drone } from './drones.js' */

export class SettingsSender {
  #list
  #onEvent
  /** Ends the current ramp. @type {AbortController | null} */
  #ramp = null

  /** @param {import('./drones.js').DroneList} list @param {import('./drones.js').OnEvent} onEvent */
  constructor(list, onEvent) {
    this.#list = list
    this.#onEvent = onEvent
  }

  resume() {
    const { ramp } = this.#list.state
    if (ramp !== null) this.#runRamp(ramp)
  }

  /** @param {Drone[]} drones */
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
      const { refusals, unanswered } = await this.#send([drone])
      for (const text of [...refusals, ...unanswered]) this.#onEvent('warn', text)
    })
  }

  /** Sends all drones the current settings. @returns {Promise<string[]>} refusals, a line each */
  async #sendAll() {
    const { state } = this.#list
    state.revision++
    const { n } = state.settings
    const max = Math.max(n, state.ramp?.to ?? 0)
    state.base = max === 0 ? 0 : Math.max(state.base, max)
    await this.#list.save()
    const { refusals, unanswered } = await this.#send(this.#list.members)
    for (const text of unanswered) this.#onEvent('warn', text)
    return refusals
  }

  /** After a change of the drones: reassigns numbers and shares. */
  async rebalance() {
    this.#list.state.base = 0
    for (const text of await this.#sendAll()) this.#onEvent('warn', text)
    this.shortfall(this.#list.state.settings.n)
  }

  /** @param {FleetSettings} after @throws {Error} one line: a drone refuses. Restores the previous settings */
  async #change(after) {
    const { state } = this.#list
    const before = { settings: state.settings, base: state.base, publishFrom: state.publishFrom }
    // By this machine's clock: subscriptions before this time precede the first message.
    if (beginsPublishing(state.settings, after)) state.publishFrom = Date.now()
    state.settings = after
    const refusals = await this.#sendAll()
    if (refusals.length === 0) return
    Object.assign(state, before)
    await this.#sendAll()
    throw new Error(refusals.join('; '))
  }

  /** @param {Partial<FleetSettings>} partial @returns {Promise<string[]>} warnings, a line each */
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

  /** @param {number} n connections @returns {string[]} one line if they exceed the drones' capacity */
  shortfall(n) {
    const { members } = this.#list
    const capacity = members.reduce((sum, { state }) => sum + state.capacity, 0)
    if (n <= capacity || members.length === 0) return []
    const line = `${n} connections exceed the capacity of the drones, ${capacity}, by ${n - capacity}`
    this.#onEvent('warn', line)
    return [line]
  }

  /** @param {number} to connections @param {number} seconds */
  ramp(to, seconds) {
    return this.#list.inTurn(async () => {
      const { settings } = this.#list.state
      const fault = contradiction({ ...settings, n: to })
      if (fault !== '') throw new Error(fault)
      this.endRamp('replaced by another ramp')
      const began = Date.now()
      const done = this.#runRamp({ from: settings.n, to, began, ends: began + seconds * 1000 })
      return { done, warnings: this.shortfall(to) }
    })
  }

  /** @param {RampState} line */
  #runRamp(line) {
    const { state } = this.#list
    const ramp = new AbortController()
    this.#ramp = ramp
    state.ramp = line
    const done = runRamp(line, ramp.signal, n =>
      this.#list.inTurn(async () => {
        if (this.#ramp === ramp) await this.#change({ ...state.settings, n })
      }),
    )
    const over = () => {
      if (this.#ramp !== ramp) return
      this.#ramp = null
      state.ramp = null
      void this.#list.save()
    }
    done.then(over, error => {
      if (this.#ramp === ramp) this.#onEvent('error', `ramp failed: ${error.message}`)
      over()
    })
    return done
  }

  /** @param {string} why */
  endRamp(why) {
    const ramp = this.#ramp
    this.#ramp = null
    this.#list.state.ramp = null
    ramp?.abort(new Error(`ramp ended: ${why}`))
  }

  /** Leaves the ramp to the next controller. */
  async close() {
    const { ramp } = this.#list.state
    this.endRamp('the controller exited')
    this.#list.state.ramp = ramp
    await this.#list.inTurn(async () => {})
  }
}

/** @typedef {{from: number, to: number, began: number, ends: number}} RampState */

const STEP = 1000

/** @param {RampState} ramp @param {number} now @returns {number} connections */
export function rampedAt({ from, to, began, ends }, now) {
  if (now >= ends) return to
  const done = Math.max(0, (now - began) / (ends - began))
  return Math.round(from + (to - from) * done)
}

/**
 * @param {RampState} ramp @param {AbortSignal} signal ends it @param {(n: number) => Promise<void>} step sets n
 * @throws {Error} of a step, or the signal's reason
 */
export async function runRamp(ramp, signal, step) {
  for (let now = 0; now < ramp.ends; ) {
    now = Date.now()
    await step(rampedAt(ramp, now))
    signal.throwIfAborted()
    const wait = Math.min(STEP - ((Date.now() - ramp.began) % STEP), ramp.ends - Date.now())
    if (now < ramp.ends) await sleep(Math.max(0, wait), undefined, { signal }).catch(() => {})
    signal.throwIfAborted()
  }
}

const ANSWER_TIMEOUT = 10_000
const NO_ANSWER = `no response within ${ANSWER_TIMEOUT / 1000} s`

/**
 * Publishing drones come last: the others need `publishFrom` first.
 * @param {Drone[]} drones @param {(drone: Drone) => {revision: number, settings: Settings | undefined}} messageOf
 * @returns {Promise<{refusals: string[], unanswered: string[]}>} a line each
 */
async function sendSettings(drones, messageOf) {
  /** Refusal -> ids. @type {Map<string, string[]>} */
  const refusals = new Map()
  /** @type {string[]} */
  const unanswered = []
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
      if (answer === NO_ANSWER) unanswered.push(id)
      else if (answer !== '') refusals.set(answer, [...(refusals.get(answer) ?? []), id])
    })
  }
  /** @param {string[]} ids */
  const inOrder = ids => drones.map(({ id }) => id).filter(id => ids.includes(id))
  return {
    refusals: [...refusals].map(
      ([text, ids]) => `${listIds(inOrder(ids))} ${ids.length > 1 ? 'refuse' : 'refuses'}: ${text}`,
    ),
    unanswered:
      unanswered.length > 0
        ? [`${listIds(unanswered)} did not respond within ${ANSWER_TIMEOUT / 1000} s`]
        : [],
  }
}

/**
 * '': accepted, or its link is lost and onHello() sends again.
 * @param {Drone} drone @param {{type: string, [field: string]: any}} message
 */
async function answerOf(drone, message) {
  const { link } = drone
  return await drone.request(message, { timeout: ANSWER_TIMEOUT }).then(
    () => '',
    error => (link?.reason === '' ? error.message : ''),
  )
}
