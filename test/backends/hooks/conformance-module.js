// A hooks module that calls a backend over HTTP, as the table of the conformance suite says, and answers as modules do.

import { disconnect, reject } from '../../../src/backends/hooks/index.js'

/** @param {Record<string, any>} answer @returns {Record<string, any>} without what is absent */
const given = answer => Object.fromEntries(Object.entries(answer).filter(([, value]) => value !== undefined))

const OVERRIDES = { force_recovery: 'forceRecovery' }

/** @param {Record<string, any>} options of a subscription, as a backend answers them */
const subscriptionOf = ({ info, data, expire_at, override, allow, server_tags_filter }) =>
  given({
    info,
    allow,
    data,
    serverTagsFilter: server_tags_filter ?? undefined,
    expireAt: expire_at,
    override:
      override &&
      Object.fromEntries(Object.entries(override).map(([name, { value }]) => [OVERRIDES[name], value])),
  })

const subscriptionsOf = ({ channels = [], subs = {} }) => ({
  ...Object.fromEntries(channels.map(channel => [channel, {}])),
  ...Object.fromEntries(Object.entries(subs).map(([channel, options]) => [channel, subscriptionOf(options)])),
})

/** @param {string} url of the backend @returns {import('../../../src/backends/hooks/index.js').Hooks} */
export function hooksOf(url) {
  /** @param {string} name @param {any} event @param {string[]} [more] its fields @returns {Promise<any>} the result */
  async function ask(name, event, more = []) {
    const fields = { encoding: 'json' }
    for (const field of ['client', 'transport', 'protocol', 'user', 'meta', ...more])
      if (event[field] !== '') fields[field] = event[field]
    const response = await fetch(`${url}/${name}`, {
      method: 'POST',
      body: JSON.stringify(fields),
      signal: event.signal,
    })
    const answer = await response.json()
    if (answer.disconnect) throw disconnect(answer.disconnect.code, answer.disconnect.reason)
    if (answer.error) {
      const { code = 0, message = '', temporary = false } = answer.error
      throw reject(code, message, { temporary })
    }
    return answer.result
  }

  async function refresh(name, event, more) {
    const result = await ask(name, event, more)
    const { expired, expire_at: expireAt, info, meta, caps, server_tags_filter: filter } = result ?? {}
    return result && given({ expired, expireAt, info, meta, caps, serverTagsFilter: filter ?? undefined })
  }

  return {
    async connect(event) {
      const result = await ask('connect', event, ['data'])
      if (result === undefined) return undefined
      const { user, info, data, expire_at: expireAt, meta, caps } = result
      return given({ user, info, data, expireAt, meta, caps, subscriptions: subscriptionsOf(result) })
    },
    refresh: event => refresh('refresh', event),
    subRefresh: event => refresh('sub_refresh', event, ['channel']),
    // As with proxies, no result means allowed.
    subscribe: async event => subscriptionOf((await ask('subscribe', event, ['channel', 'data'])) ?? {}),
    async publish(event) {
      const { data, tags, skip_history, idempotency_key, exclude_sender } =
        (await ask('publish', event, ['channel', 'data'])) ?? {}
      return given({
        data,
        tags,
        skipHistory: skip_history,
        idempotencyKey: idempotency_key,
        excludeSender: exclude_sender,
      })
    },
    async mapPublish(event) {
      const result = (await ask('map_publish', event, ['channel', 'key', 'data'])) ?? {}
      const { key, data, tags, key_mode, stream_data, idempotency_key: idempotencyKey } = result
      return given({ key, data, tags, keyMode: key_mode, streamData: stream_data, idempotencyKey })
    },
    async mapRemove(event) {
      const result = (await ask('map_remove', event, ['channel', 'key'])) ?? {}
      const { key, tags, idempotency_key: idempotencyKey } = result
      return given({ key, tags, idempotencyKey })
    },
    async sharedPollRefresh({ channel, items, signal }) {
      const asked = items.map(({ key, version }) => ({ key, version: Number(version) }))
      return ask('shared_poll_refresh', { channel, items: asked, signal }, ['channel', 'items'])
    },
    cacheEmpty: async event => (await ask('cache_empty', event, ['channel'])) ?? undefined,
    rpc: async event => (await ask('rpc', event, ['method', 'data']))?.data,
    disconnected: event => ask('disconnected', event, ['code', 'reason', 'channels', 'duration']),
    unsubscribed: event => ask('unsubscribed', event, ['channel', 'code', 'reason']),
  }
}
