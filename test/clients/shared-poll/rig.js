// Gateways with shared polls, and clients that speak the protocol message by message.

import { workerOf } from '../../../src/clients/session/ids.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { StreamClient } from '../../kit/stream-client.js'
import { token, tokenClient } from '../session/support.js'
import { SECRET, sign } from './refresh-backend.js'

/** @import { TestGateway } from '../../kit/gateway.js' */

/** @param {string} name @param {object} [poll] options of the shared poll @param {object} [more] of the namespace */
export const namespace = (name, poll = {}, more = {}) => ({
  name,
  subscription_type: 'shared_poll',
  allow_subscribe_for_client: true,
  allow_subscribe_for_anonymous: true,
  shared_poll: { mode: 'versioned', refresh_interval: '50ms', ...poll },
  ...more,
})

/**
 * @param {any} t @param {object} proxy that refreshes, unless the namespace names another one
 * @param {object[]} namespaces @param {any} [more] configuration
 */
export const startPolls = (t, proxy, namespaces, { shared_poll, ...more } = {}) =>
  startGateway(t, {
    workers: 1,
    client: tokenClient({ allow_anonymous_connect_without_token: true }),
    shared_poll: { hmac_secret_key: SECRET, ...shared_poll },
    channel: {
      proxy: { shared_poll_refresh: { timeout: '20s', breaker: { failures: 0 }, ...proxy } },
      namespaces,
    },
    http_stream: { enabled: true },
    ...more,
  })

let channels = 0

/** @param {string} [name] of the namespace */
export const newChannel = (name = 'poll') => `${name}:${++channels}`

/** One subscription of one client. */
export class Poller {
  /** @param {(RawClient | StreamClient)} client @param {string} channel @param {string} user */
  constructor(client, channel, user) {
    this.client = client
    this.channel = channel
    this.user = user
    /** @type {any} the subscribe result */
    this.result = null
  }

  /**
   * A client with a live subscription.
   * @param {any} t @param {TestGateway} gateway @param {string} channel
   * @param {{user?: string, request?: object, stream?: boolean}} [options] request: of the subscribe; stream: over HTTP
   *   streaming, where `worker` is known
   */
  static async open(t, gateway, channel, { user = '', request = {}, stream = false } = {}) {
    const login = user === '' ? {} : { token: token({ sub: user }) }
    /** @type {any} */
    const client = stream
      ? await StreamClient.connected(gateway.url, 'http_stream', login)
      : await RawClient.connected(gateway.ws, login)
    t.teardown(() => (stream ? client.close() : client.socket.terminate()))
    const poller = new Poller(client, channel, user)
    await poller.subscribe(request)
    return poller
  }

  /** @param {object} [request] */
  async subscribe(request = {}) {
    const { subscribe, error } = await this.client.subscribe(this.channel, { type: 4, ...request })
    if (error) throw new Error(`subscribe: ${error.code}`)
    this.result = subscribe
  }

  /** Number of the worker; only over HTTP streaming. */
  get worker() {
    return workerOf(this.client.connect.session)
  }

  /** @param {object} fields of a sub_refresh @returns {Promise<any>} its result, or the error */
  async refresh(fields) {
    const { sub_refresh, error } = await this.client.call('sub_refresh', { channel: this.channel, ...fields })
    return sub_refresh ?? error
  }

  /**
   * @param {Record<string, number>} versions of the keys @param {any} [signing] options of `sign`
   * @param {object} [more] fields of the request
   */
  track(versions, signing, more) {
    return this.refresh({ type: 1, track: [this.batch(versions, signing)], ...more })
  }

  /** @param {Record<string, number>} versions @param {any} [signing] */
  batch(versions, signing) {
    const keys = Object.keys(versions)
    return {
      signature: sign(this.channel, keys, { user: this.user, ...signing }),
      items: keys.map(key => (versions[key] === 0 ? { key } : { key, version: versions[key] })),
    }
  }

  /** @param {string[]} keys */
  untrack(keys) {
    return this.refresh({ type: 2, untrack: keys })
  }

  /** @returns {Promise<any>} the next publication */
  async next() {
    return (await this.client.push('pub')).pub
  }

  /** @param {string} key @param {number} [version] @returns {Promise<any[]>} publications up to that one */
  async until(key, version) {
    for (const all = []; ; ) {
      const pub = await this.next()
      all.push(pub)
      if (pub.key === key && (version === undefined || pub.version === version)) return all
    }
  }
}

/**
 * Two clients on each of two workers.
 * @param {any} t @param {TestGateway} gateway with two workers @param {string} channel
 * @returns {Promise<Poller[]>} four, those of a worker together
 */
export async function onBothWorkers(t, gateway, channel) {
  /** @type {Map<number, Poller[]>} */
  const byWorker = new Map()
  for (;;) {
    const poller = await Poller.open(t, gateway, channel, { stream: true })
    const list = byWorker.get(poller.worker) ?? []
    byWorker.set(poller.worker, list)
    if (list.length === 2) {
      await poller.client.close()
      continue
    }
    list.push(poller)
    if (byWorker.size === 2 && [...byWorker.values()].every(all => all.length === 2))
      return [...byWorker.values()].flat()
  }
}
