// Combines implementations of the contract; observes sessions for their notices.

import { isPromise, NO_CHANNEL_HANDLERS, NO_HANDLERS } from '../../clients/hooks/contract.js'
import { DisconnectedEvent, UnsubscribedEvent } from '../../clients/hooks/events.js'

/** @import { Config } from '../../config/options.js' */
/** @import { HookCalls } from '../../clients/session/hook-calls.js' */
/** @import { Handler, Handlers, Lifecycle } from '../../clients/hooks/contract.js' */
/** @import { HookEvent } from '../../clients/hooks/events.js' */
/** @import { Parts } from './proxies.js' */

/**
 * Calls the first handler; calls the second if the first returns null.
 * @template {HookEvent} E
 * @template A
 * @param {Handler<E, A> | null} first @param {Handler<E, A> | null} second
 * @param {(event: E) => boolean} [applies] whether the second may be called
 * @returns {Handler<E, A> | null}
 */
function chain(first, second, applies = always) {
  if (first === null) return second
  if (second === null) return first
  const next = (/** @type {E} */ event) => (applies(event) ? second.call(event) : null)
  return {
    name: first.name,
    timeout: first.timeout === 0 || second.timeout === 0 ? 0 : first.timeout + second.timeout,
    call(event) {
      const answer = first.call(event)
      if (answer === null) return next(event)
      return isPromise(answer) ? answer.then(value => (value === null ? next(event) : value)) : answer
    },
    // A proxy counts its failures, except timeouts.
    failed: kind => (kind === 'timeout' ? second : first).failed?.(kind),
  }
}

const always = () => true

/** @param {Handlers} first the application's module @param {Handlers} second proxies @returns {Handlers} */
export function combine(first, second) {
  if (first === NO_HANDLERS) return second
  if (second === NO_HANDLERS) return first
  const { rpc } = first
  return {
    connect: chain(first.connect, second.connect, event => event.token === null || second.connectWithToken),
    connectWithToken: first.connectWithToken || second.connectWithToken,
    refresh: chain(first.refresh, second.refresh),
    channel(name, options) {
      const [own, other] = [first.channel(name, options), second.channel(name, options)]
      if (own === NO_CHANNEL_HANDLERS) return other
      if (other === NO_CHANNEL_HANDLERS) return own
      return Object.freeze({
        subscribe: chain(own.subscribe, other.subscribe),
        publish: chain(own.publish, other.publish),
        subRefresh: chain(own.subRefresh, other.subRefresh),
        mapPublish: chain(own.mapPublish, other.mapPublish),
        mapRemove: chain(own.mapRemove, other.mapRemove),
        pollRefresh: chain(own.pollRefresh, other.pollRefresh),
        cacheEmpty: chain(own.cacheEmpty, other.cacheEmpty),
        channelState: [...own.channelState, ...other.channelState],
      })
    },
    rpc: rpc === null ? second.rpc : method => rpc(method) ?? second.rpc?.(method) ?? null,
    disconnected: [...first.disconnected, ...second.disconnected],
    unsubscribed: [...first.unsubscribed, ...second.unsubscribed],
    headers: [...new Set([...first.headers, ...second.headers])],
    emulatedHeaders: [...new Set([...first.emulatedHeaders, ...second.emulatedHeaders])],
    allHeaders: first.allHeaders || second.allHeaders,
    async close() {
      await first.close()
      await second.close()
    },
  }
}

/**
 * @param {Handlers} handlers @param {HookCalls} calls
 * @param {() => number} clock ms
 * @returns {Lifecycle | null} null: no handlers
 */
export function noticesOf({ disconnected, unsubscribed }, calls, clock) {
  if (disconnected.length === 0 && unsubscribed.length === 0) return null
  return {
    connected() {},
    subscribed() {},
    unsubscribed(session, channel, code, reason) {
      for (const handler of unsubscribed)
        calls.notify(handler, new UnsubscribedEvent(session, channel, code, reason))
    },
    disconnected(session, end, channels) {
      const duration = Math.max(0, (clock() - session.extra.connectedAt) / 1000)
      for (const handler of disconnected)
        calls.notify(handler, new DisconnectedEvent(session, end, channels, duration))
    },
  }
}

/** Loaded on demand: most workers have no proxy. @type {typeof import('./proxies.js') | null} */
let proxies = null

/** Await it before calling `createProxies` with the configuration. @param {Config} config */
export async function loadProxies({ client, channel, rpc, proxies: named }) {
  const blocks = [...Object.values(client.proxy), ...Object.values(channel.proxy), rpc.proxy, ...named]
  if (proxies === null && blocks.some(({ endpoint }) => endpoint !== ''))
    proxies = await import('./proxies.js')
}

/**
 * @param {Config} config @param {Parts} parts
 * @returns {Handlers} of all proxies in use
 * @throws {Error} naming a key
 */
export const createProxies = (config, parts) => proxies?.createProxies(config, parts) ?? NO_HANDLERS
