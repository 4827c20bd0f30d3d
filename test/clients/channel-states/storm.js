// Clients that come and go while workers and nodes are killed, and the comparison of their own record with the events
// that the backend got.

import { RawClient } from '../../kit/raw-client.js'
import { pause } from '../../kit/wait.js'

/** @import { TestGateway } from '../../kit/gateway.js' */
/** @import { StateBackend } from './rig.js' */

/** What two clocks, or two processes of a busy machine, may differ, ms. */
const TOLERANCE = 250

/**
 * A subscription as its client knows it, unix ms: it may exist from `from` to `until`, and certainly exists from `sure`
 * to `leaving`.
 * @typedef {{channel: string, from: number, sure: number, leaving: number, until: number}} Stay
 */

export class Storm {
  /** @type {Stay[]} */
  stays = []
  /** @type {TestGateway[]} */
  nodes = []
  /** Time of the last kill: clients notice it later. */
  killedAt = 0
  stopping = false

  /** @param {any} t @param {string[]} channels */
  constructor(t, channels) {
    this.t = t
    this.channels = channels
  }

  /** A client that comes and goes until the storm ends. @param {number} seed */
  async visitor(seed) {
    const random = randomOf(seed)
    while (!this.stopping) {
      const node = this.nodes[Math.floor(random() * this.nodes.length)]
      const client = node && (await RawClient.connected(node.ws).catch(() => null))
      if (client) await this.#visit(client, random).catch(() => {})
      await pause(random() * 300)
    }
  }

  /** @param {RawClient} client @param {() => number} random */
  async #visit(client, random) {
    /** @type {Map<string, Stay>} */
    const held = new Map()
    this.t.teardown(() => client.socket.terminate())
    let closes = false
    client.closed.then(() => {
      const now = Date.now()
      for (const stay of held.values()) {
        stay.leaving = Math.min(stay.leaving, closes ? now : this.killedAt)
        stay.until = now
      }
    })
    const steps = 4 + random() * 20
    for (let step = 0; step < steps && !this.stopping; step++) {
      const channel = this.channels[Math.floor(random() ** 2 * this.channels.length)]
      const stay = held.get(channel)
      if (stay) await this.#leave(client, held, stay)
      else await this.#enter(client, held, channel)
      await pause(random() * 400)
    }
    const now = Date.now()
    for (const stay of held.values()) stay.leaving = Math.min(stay.leaving, now)
    closes = true
    await client.close()
  }

  /** @param {RawClient} client @param {Map<string, Stay>} held @param {string} channel */
  async #enter(client, held, channel) {
    const stay = { channel, from: Date.now(), sure: Infinity, leaving: Infinity, until: Infinity }
    this.stays.push(stay)
    held.set(channel, stay)
    const { error } = await client.subscribe(channel)
    if (error) {
      stay.until = Date.now()
      held.delete(channel)
    } else stay.sure = Date.now()
  }

  /** @param {RawClient} client @param {Map<string, Stay>} held @param {Stay} stay */
  async #leave(client, held, stay) {
    stay.leaving = Math.min(stay.leaving, Date.now())
    await client.call('unsubscribe', { channel: stay.channel })
    stay.until = Date.now()
    held.delete(stay.channel)
  }

  /** @param {() => unknown} kill */
  kill(kill) {
    this.killedAt = Date.now()
    kill()
  }
}

/** Kills one running worker. @param {Storm} storm @param {() => number} random */
export function killWorker(storm, random) {
  const pids = storm.nodes.flatMap(({ workerPids }) => workerPids).filter(isAlive)
  if (pids.length === 0) return false
  storm.kill(() => process.kill(pids[Math.floor(random() * pids.length)], 'SIGKILL'))
  return true
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Mulberry32. @param {number} seed @returns {() => number} 0 to 1 */
export function randomOf(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

/**
 * @param {Storm} storm @param {StateBackend} backend
 * @param {number} quiet time without clients after which a channel must have been vacated, ms
 * @returns {{faults: string[], gaps: number}} `gaps`: such times that were checked
 */
export function compare(storm, backend, quiet) {
  /** @type {string[]} */
  const faults = []
  let gaps = 0
  for (const channel of storm.channels) {
    const events = backend.events.filter(event => event.channel === channel)
    const stays = storm.stays.filter(stay => stay.channel === channel).sort((a, b) => a.from - b.from)
    const show = (/** @type {number} */ at) =>
      `${at}; ${events.map(({ type, time_ms }) => `${type} ${time_ms}`).join(', ')}`
    for (const { type, time_ms: at } of events) {
      if (type === 'vacated') {
        const present = stays.find(({ sure, leaving }) => sure + TOLERANCE < at && at < leaving - TOLERANCE)
        if (present) faults.push(`${channel}: vacated with a client: ${JSON.stringify(present)} ${show(at)}`)
      } else if (!stays.some(({ from, until }) => from - TOLERANCE <= at && at <= until + TOLERANCE))
        faults.push(`${channel}: occupied without a client: ${show(at)}`)
    }
    // Between two times with clients, if it is long enough, and after the last one.
    let end = stays[0]?.until ?? 0
    for (const { from, until } of stays) {
      if (from - end > quiet) {
        gaps++
        const vacated = events.filter(
          ({ type, time_ms }) => type === 'vacated' && time_ms >= end - quiet && time_ms <= from,
        )
        if (vacated.length === 0) faults.push(`${channel}: not vacated from ${end} to ${show(from)}`)
        const again = events.filter(({ type, time_ms }) => type === 'occupied' && time_ms >= from - TOLERANCE)
        if (again.length === 0) faults.push(`${channel}: not occupied from ${show(from)}`)
      }
      end = Math.max(end, until)
    }
    if (stays.some(({ sure }) => sure < Infinity) && events.length === 0) faults.push(`${channel}: no event`)
  }
  return { faults, gaps }
}
