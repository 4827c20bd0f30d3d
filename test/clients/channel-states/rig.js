// Occupied and vacated events (docs/access.md) as a backend receives them, and clients that come and go.

import { Backend } from '../../backends/hooks/backend.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'

/** @typedef {{id: string, channel: string, type: string, time_ms: number}} StateEvent */

/** A backend that records the events it has accepted. */
export class StateBackend {
  /** Accepted events in order, each once. @type {StateEvent[]} */
  events = []
  /** All events of all calls. @type {StateEvent[]} */
  received = []
  /** Ids received more than once. */
  repeated = 0
  /** @type {string[]} */
  faults = []
  /** Calls in progress, and the most at a time. */
  open = 0
  most = 0
  /** Status of the next answers; empty: 200. @type {number[]} */
  refusals = []
  /** Time that an answer takes, ms; to be awaited. @type {() => Promise<void>} */
  delay = async () => {}
  /** @type {Map<string, StateEvent>} */
  #known = new Map()
  /** Last type by channel. @type {Map<string, string>} */
  #last = new Map()

  /** @param {any} t */
  static async start(t) {
    const own = new StateBackend()
    const backend = await Backend.start(t)
    own.url = `${backend.url}/state`
    backend.answer = async ({ json: { events } }) => {
      own.most = Math.max(own.most, ++own.open)
      await own.delay()
      own.open--
      own.received.push(...events)
      const status = own.refusals.shift() ?? 200
      if (status === 200) for (const event of events) own.#accept(event)
      return { status, body: status === 200 ? '{"result":{}}' : '{}' }
    }
    return own
  }

  url = ''

  /** @param {StateEvent} event */
  #accept(event) {
    const known = this.#known.get(event.id)
    if (known) {
      this.repeated++
      if (JSON.stringify(known) !== JSON.stringify(event))
        this.faults.push(`${event.id}: ${JSON.stringify(known)} and ${JSON.stringify(event)}`)
      return
    }
    this.#known.set(event.id, event)
    const last = this.#last.get(event.channel) ?? 'vacated'
    if (last === event.type) this.faults.push(`${event.channel}: ${event.type} twice`)
    this.#last.set(event.channel, event.type)
    this.events.push(event)
  }

  /** @param {string} channel @returns {string[]} types of its events */
  of(channel) {
    return this.events.filter(event => event.channel === channel).map(({ type }) => type)
  }

  /** Channels that are occupied after all events. */
  get occupied() {
    return [...this.#last].filter(([, type]) => type === 'occupied').map(([channel]) => channel)
  }

  /** @param {string} channel @param {string} types separated by spaces @returns {Promise<StateEvent[]>} all its events */
  async until(channel, types) {
    await until(
      () => this.of(channel).length >= types.split(' ').length,
      () => `${types} of ${channel}; got ${this.of(channel)}`,
    )
    return this.events.filter(event => event.channel === channel)
  }
}

/**
 * A connected client. @param {any} t @param {{ws: string}} gateway @param {...string} channels it subscribes to
 * @returns {Promise<RawClient>}
 */
export async function enter(t, gateway, ...channels) {
  const client = await RawClient.connected(gateway.ws)
  t.teardown(() => client.socket.terminate())
  for (const channel of channels) await client.subscribe(channel)
  return client
}

/** @param {RawClient} client @param {string} channel */
export const leave = (client, channel) => client.call('unsubscribe', { channel })
