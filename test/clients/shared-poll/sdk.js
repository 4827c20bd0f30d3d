// Shared polls of the official SDK, against a gateway with any engine and socket server.

import { Centrifuge, errorCodes } from 'centrifuge'
import { Centrifuge as ProtobufCentrifuge } from 'centrifuge/build/protobuf'
import WebSocket from 'ws'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'
import { RefreshBackend, SECRET, sign } from './refresh-backend.js'

const LIMITS = { refresh_interval: '50ms', refresh_batch_size: 100, max_keys_per_connection: 100 }
const SHARED = { subscription_type: 'shared_poll', allow_subscribe_for_client: true }
/** Cases at the same time: most of their time is that of rounds. */
const JOBS = 8

/**
 * @param {any} t @param {string} name of the variant @param {object} more configuration
 */
export async function testSharedPolls(t, name, more) {
  const backend = await RefreshBackend.start(t)
  const gateway = await startGateway(t, {
    client: { insecure: true, concurrency: 8 },
    shared_poll: { hmac_secret_key: SECRET },
    proxies: [{ name: 'backend', endpoint: backend.url, timeout: '20s' }],
    channel: {
      namespaces: [
        { name: 'poll', ...SHARED, shared_poll: { proxy_name: 'backend', mode: 'versioned', ...LIMITS } },
        { name: 'pollvl', ...SHARED, shared_poll: { proxy_name: 'backend', ...LIMITS } },
      ],
    },
    ...more,
  })
  for (const protobuf of [false, true])
    t.test(`${name}, ${protobuf ? 'Protobuf' : 'JSON'}`, t => {
      t.jobs = JOBS
      testCodec(t, gateway, backend, protobuf)
      t.end()
    })
}

/**
 * @param {any} t @param {import('../../kit/gateway.js').TestGateway} gateway @param {RefreshBackend} backend
 * @param {boolean} protobuf
 */
function testCodec(t, gateway, backend, protobuf) {
  const Client = protobuf ? ProtobufCentrifuge : Centrifuge
  const decode = data => (protobuf ? JSON.parse(new TextDecoder().decode(data)) : data)
  let channels = 0
  /** @param {string} [namespace] */
  const newChannel = (namespace = 'poll') => `${namespace}:${protobuf ? 'p' : 'j'}${++channels}`

  /** @param {string} name @param {(t: any) => Promise<void>} run */
  const test = (name, run) => t.test(name, { buffered: true }, run)

  /** A client that does not connect yet. @param {any} t */
  function newClient(t) {
    const client = new Client(gateway.ws, {
      websocket: WebSocket,
      minReconnectDelay: 10,
      maxReconnectDelay: 50,
    })
    t.teardown(() => client.disconnect())
    return client
  }

  /**
   * A subscription that records what it gets.
   * @param {any} client @param {string} channel
   * @param {{ttls?: number[], authorized?: (keys: string[]) => string[], getSignature?: any}} [options] ttls: s, of the
   *   signatures in order, the last one for all others; authorized: keys of those asked
   */
  function watch(client, channel, { ttls = [3600], authorized = keys => keys, ...options } = {}) {
    const seen = {
      /** @type {any} */
      subscription: null,
      /** @type {any[]} */
      updates: [],
      /** @type {Record<string, any>} */
      view: {},
      /** @type {any[]} */
      errors: [],
      /** Keys of each call of getSignature. @type {string[][]} */
      signed: [],
      /** @param {string[]} keys @param {number} [version] */
      track(keys, version = 0, signing = {}) {
        const items = keys.map(key => ({ key, version }))
        seen.subscription.track(items, sign(channel, keys, signing))
      },
      /** @param {Record<string, any>} expected */
      async has(t, expected) {
        const sorted = view => JSON.stringify(Object.entries(view).sort())
        const isEqual = () => sorted(seen.view) === sorted(expected)
        await until(isEqual, () => `${JSON.stringify(expected)}, has ${JSON.stringify(seen.view)}`)
        t.ok(isEqual(), `clients see ${JSON.stringify(expected)}`)
      },
    }
    const subscription = client.newSharedPollSubscription(channel, {
      minResubscribeDelay: 10,
      getSignature: async ({ keys }) => {
        const ttl = ttls[Math.min(seen.signed.length, ttls.length - 1)]
        seen.signed.push(keys)
        const given = authorized(keys)
        return { keys: given, signature: sign(channel, given, { ttl }) }
      },
      ...options,
    })
    subscription.on('update', context => {
      const { key, data, version, removed } = context
      seen.updates.push({ ...context, data: removed ? null : decode(data), version })
      if (removed) delete seen.view[key]
      else seen.view[key] = decode(data)
    })
    subscription.on('error', context => seen.errors.push(context))
    seen.subscription = subscription
    return seen
  }

  /** A connected client with a live subscription. @param {any} t @param {string} channel @param {any} [options] */
  async function enter(t, channel, options) {
    const client = newClient(t)
    client.connect()
    const seen = watch(client, channel, options)
    seen.subscription.subscribe()
    await seen.subscription.ready()
    return { client, ...seen, seen }
  }

  const error = (seen, type) =>
    until(
      () => seen.errors.find(context => context.type === type),
      () => `an error of ${type}`,
    )

  test('a client subscribes', async t => {
    const channel = newChannel()
    const client = newClient(t)
    const { subscription } = watch(client, channel)
    const subscribed = new Promise(resolve => subscription.once('subscribed', resolve))
    subscription.subscribe()
    client.connect()
    t.match(await subscribed, { channel })
  })

  test('tracked keys come with their versions', async t => {
    const channel = newChannel()
    const { seen } = await enter(t, channel)
    backend.put(channel, { a: { data: { n: 1 }, version: 1 }, b: { data: { n: 2 }, version: 1 } })
    seen.track(['a', 'b'])
    await seen.has(t, { a: { n: 1 }, b: { n: 2 } })
    t.same(
      seen.updates.map(({ version }) => version),
      [1, 1],
    )
  })

  test('keys are tracked in several requests', async t => {
    const channel = newChannel()
    const { seen } = await enter(t, channel)
    backend.put(channel, { a: { data: 1, version: 1 }, b: { data: 2, version: 1 } })
    seen.track(['a'])
    seen.track(['b'])
    await seen.has(t, { a: 1, b: 2 })
  })

  test('an untracked key is not updated', async t => {
    const channel = newChannel()
    const { seen, subscription } = await enter(t, channel)
    backend.put(channel, { a: { data: 1, version: 1 }, b: { data: 1, version: 1 } })
    seen.track(['a', 'b'])
    await seen.has(t, { a: 1, b: 1 })
    subscription.untrack(['a'])
    await until(async () => (await backend.next(channel)).items.length === 1)
    backend.put(channel, { a: { data: 2, version: 2 }, b: { data: 2, version: 2 } })
    await seen.has(t, { a: 1, b: 2 })
  })

  test('an invalid signature is an error of the track', async t => {
    const { seen, subscription } = await enter(t, newChannel())
    subscription.track([{ key: 'a', version: 0 }], 'not a signature')
    t.match(await error(seen, 'track'), { error: { code: 103 } })
  })

  test('an update has key, data, version and channel', async t => {
    const channel = newChannel()
    const { seen } = await enter(t, channel)
    backend.put(channel, { '键🎈': { data: { score: 42, text: 'ü' }, version: 3 } })
    seen.track(['键🎈'])
    await until(() => seen.updates.length === 1)
    const [update] = seen.updates
    t.match(update, { channel, key: '键🎈', data: { score: 42, text: 'ü' }, version: 3 })
    t.notOk(update.removed)
  })

  test('a version that the client has is not sent', async t => {
    const channel = newChannel()
    const { seen } = await enter(t, channel)
    backend.put(channel, { a: { data: 'five', version: 5 } })
    seen.track(['a'], 5)
    await backend.next(channel, 2)
    backend.put(channel, { a: { data: 'six', version: 6 } })
    await seen.has(t, { a: 'six' })
    t.match(seen.updates, [{ version: 6 }])
    t.equal(seen.updates.length, 1)
  })

  test('a removed key is an update with removed', async t => {
    const channel = newChannel()
    const { seen, subscription } = await enter(t, channel)
    backend.put(channel, { a: { data: 1, version: 1 } })
    seen.track(['a'])
    await seen.has(t, { a: 1 })
    backend.put(channel, { a: { data: null, version: 2, removed: true } })
    await seen.has(t, {})
    t.match(seen.updates.at(-1), { key: 'a', removed: true })
    t.equal(subscription.trackedKeys().size, 0)
  })

  test('several keys change in one round', async t => {
    const channel = newChannel()
    const { seen } = await enter(t, channel)
    const values = n => ({
      a: { data: n, version: n },
      b: { data: n, version: n },
      c: { data: n, version: n },
    })
    backend.put(channel, values(1))
    seen.track(['a', 'b', 'c'])
    await seen.has(t, { a: 1, b: 1, c: 1 })
    backend.put(channel, values(2))
    await seen.has(t, { a: 2, b: 2, c: 2 })
    t.equal(seen.updates.length, 6)
  })

  test('two clients get the same updates', async t => {
    const channel = newChannel()
    const all = await Promise.all([enter(t, channel), enter(t, channel)])
    backend.put(channel, { a: { data: 'both', version: 1 } })
    for (const { seen } of all) seen.track(['a'])
    for (const { seen } of all) await seen.has(t, { a: 'both' })
    backend.put(channel, { a: { data: 'again', version: 2 } })
    for (const { seen } of all) await seen.has(t, { a: 'again' })
  })

  test('each client gets the keys that it tracks', async t => {
    const channel = newChannel()
    const [one, two] = await Promise.all([enter(t, channel), enter(t, channel)])
    backend.put(channel, { a: { data: 1, version: 1 }, b: { data: 2, version: 1 } })
    one.seen.track(['a'])
    two.seen.track(['b'])
    await one.seen.has(t, { a: 1 })
    await two.seen.has(t, { b: 2 })
  })

  test('nothing comes after an unsubscribe', async t => {
    const channel = newChannel()
    const [{ seen, subscription }, other] = await Promise.all([enter(t, channel), enter(t, channel)])
    backend.put(channel, { a: { data: 1, version: 1 } })
    for (const each of [seen, other.seen]) {
      each.track(['a'])
      await each.has(t, { a: 1 })
    }
    subscription.unsubscribe()
    backend.put(channel, { a: { data: 2, version: 2 } })
    await other.seen.has(t, { a: 2 })
    t.same(seen.view, { a: 1 })
  })

  for (const namespace of ['poll', 'pollvl'])
    test(`${namespace}: a client that reconnects gets what has changed, with its signature`, async t => {
      const channel = newChannel(namespace)
      const { client, seen } = await enter(t, channel)
      const other = await enter(t, channel)
      backend.put(channel, { a: { data: 1, version: 1 }, b: { data: 1, version: 1 } })
      for (const each of [seen, other.seen]) {
        each.track(['a', 'b'])
        await each.has(t, { a: 1, b: 1 })
      }
      client.disconnect()
      backend.put(channel, { a: { data: 2, version: 2 } })
      await other.seen.has(t, { a: 2, b: 1 })
      client.connect()
      await seen.has(t, { a: 2, b: 1 })
      backend.put(channel, { b: { data: 2, version: 2 } })
      await seen.has(t, { a: 2, b: 2 })
      t.same(seen.signed, [], 'no call of getSignature')
      t.equal(seen.updates.length, 4, 'unchanged keys are not sent again')
    })

  test('trackedKeys has what is tracked', async t => {
    const { seen, subscription } = await enter(t, newChannel())
    t.same([...subscription.trackedKeys()], [])
    seen.track(['a', 'b'])
    t.same([...subscription.trackedKeys()], ['a', 'b'])
    subscription.untrack(['a'])
    t.same([...subscription.trackedKeys()], ['b'])
  })

  test('keys tracked before the subscribe come with the given signature', async t => {
    const channel = newChannel()
    backend.put(channel, { a: { data: 1, version: 1 } })
    const client = newClient(t)
    const seen = watch(client, channel)
    seen.track(['a'])
    t.ok(seen.subscription.trackedKeys().has('a'))
    seen.subscription.subscribe()
    client.connect()
    await seen.has(t, { a: 1 })
    t.same(seen.signed, [])
  })

  test('keys untracked before the subscribe are signed, and not tracked', async t => {
    const channel = newChannel()
    backend.put(channel, { kept: { data: 1, version: 1 }, dropped: { data: 1, version: 1 } })
    const client = newClient(t)
    const seen = watch(client, channel)
    seen.track(['kept', 'dropped'])
    seen.subscription.untrack(['dropped'])
    seen.subscription.subscribe()
    client.connect()
    await seen.has(t, { kept: 1 })
    await backend.next(channel, 2)
    backend.put(channel, { kept: { data: 2, version: 2 }, dropped: { data: 2, version: 2 } })
    await seen.has(t, { kept: 2 })
    t.same(
      backend.of(channel, 'dropped').filter(round => round !== backend.of(channel)[0]),
      [],
      'the gateway does not track it',
    )
    t.same([...seen.subscription.trackedKeys()], ['kept'])
    t.same(seen.signed, [])
  })

  test('keys without a signature are signed by getSignature', async t => {
    const channel = newChannel()
    const { seen, subscription } = await enter(t, channel)
    backend.put(channel, { a: { data: 1, version: 1 }, b: { data: 2, version: 1 } })
    subscription.track(['a', 'b'])
    await seen.has(t, { a: 1, b: 2 })
    t.same(seen.signed, [['a', 'b']])
  })

  test('keys without a signature need getSignature', async t => {
    const { seen, subscription } = await enter(t, newChannel(), { getSignature: undefined })
    subscription.track(['a'])
    const { error: reason } = await error(seen, 'track')
    t.match(reason, { code: errorCodes.sharedPollGetSignature, message: /getSignature/ })
  })

  test('keys that getSignature leaves out are removed', async t => {
    const channel = newChannel()
    const authorized = keys => keys.filter(key => key !== 'revoked')
    const { seen, subscription } = await enter(t, channel, { authorized })
    backend.put(channel, { allowed: { data: 1, version: 1 }, revoked: { data: 1, version: 1 } })
    subscription.track(['allowed', 'revoked'])
    await seen.has(t, { allowed: 1 })
    t.match(
      seen.updates.find(({ key }) => key === 'revoked'),
      { removed: true, data: null },
    )
    t.same([...subscription.trackedKeys()], ['allowed'])
    t.same(backend.of(channel, 'revoked'), [])
  })

  test('keys tracked before the subscribe are signed by getSignature', async t => {
    const channel = newChannel()
    backend.put(channel, { a: { data: 1, version: 1 } })
    const client = newClient(t)
    const seen = watch(client, channel)
    seen.subscription.track(['a'])
    t.ok(seen.subscription.trackedKeys().has('a'))
    seen.subscription.subscribe()
    client.connect()
    await seen.has(t, { a: 1 })
    t.same(seen.signed, [['a']])
  })

  test('getSignature is not called for keys with a signature', async t => {
    const channel = newChannel()
    const { seen } = await enter(t, channel)
    backend.put(channel, { a: { data: 1, version: 1 } })
    seen.track(['a'])
    await seen.has(t, { a: 1 })
    t.match(seen.updates, [{ version: 1 }])
    t.same(seen.signed, [])
  })

  test('several batches tracked before the subscribe come with their signatures', async t => {
    const channel = newChannel()
    backend.put(channel, { a: { data: 1, version: 1 }, b: { data: 2, version: 1 } })
    const client = newClient(t)
    const seen = watch(client, channel)
    seen.track(['a'])
    seen.track(['b'])
    seen.subscription.subscribe()
    client.connect()
    await seen.has(t, { a: 1, b: 2 })
    t.same(seen.signed, [])
  })

  test('a key that others track comes at once', async t => {
    const channel = newChannel()
    backend.put(channel, { a: { data: { flag: true }, version: 1 }, b: { data: 2, version: 1 } })
    const first = await enter(t, channel)
    first.seen.track(['a', 'b'])
    await first.seen.has(t, { a: { flag: true }, b: 2 })
    for (let n = 0; n < 3; n++) {
      const { seen } = await enter(t, channel)
      seen.track(['a', 'b'])
      await seen.has(t, { a: { flag: true }, b: 2 })
    }
    t.equal(first.seen.updates.length, 2, 'the first client has it')
  })

  test('versionless: the gateway makes versions', async t => {
    const channel = newChannel('pollvl')
    backend.put(channel, { a: { data: { n: 1 } } })
    const { seen } = await enter(t, channel)
    seen.track(['a'])
    await seen.has(t, { a: { n: 1 } })
    backend.put(channel, { a: { data: { n: 2 } } })
    await seen.has(t, { a: { n: 2 } })
    const [one, two] = seen.updates.map(({ version }) => version)
    t.ok(one > 0)
    t.ok(two > one)
  })

  test('the epoch of a channel is made by the gateway, or by the publisher', async t => {
    const client = await RawClient.connected(gateway.ws)
    t.teardown(() => client.socket.terminate())
    const subscribe = async channel => (await client.subscribe(channel, { type: 4 })).subscribe
    t.match(await subscribe(newChannel('pollvl')), { type: 4, epoch: /^.{8}$/ })
    t.equal((await subscribe(newChannel('poll'))).epoch, undefined)
  })

  test('a rejection of getSignature is an error, and the keys stay', async t => {
    const { seen, subscription } = await enter(t, newChannel(), {
      getSignature: () => Promise.reject(new Error('no signature today')),
    })
    subscription.track(['a'])
    const { error: reason } = await error(seen, 'track')
    t.match(reason, { code: errorCodes.sharedPollGetSignature, message: /no signature today/ })
    t.same([...subscription.trackedKeys()], ['a'])
  })

  test('a rejection of getSignature after the subscribe is an error of the refresh', async t => {
    const client = newClient(t)
    const seen = watch(client, newChannel(), {
      getSignature: () => Promise.reject(new Error('no signature today')),
    })
    seen.subscription.track(['a'])
    seen.subscription.subscribe()
    client.connect()
    const { error: reason } = await error(seen, 'signatureRefresh')
    t.match(reason, { code: errorCodes.sharedPollGetSignature, message: /no signature today/ })
  })

  test('a signature is renewed for all keys before it expires', async t => {
    const channel = newChannel()
    const { seen, subscription } = await enter(t, channel, { ttls: [2, 3600] })
    backend.put(channel, { a: { data: 1, version: 1 } })
    subscription.track(['a'])
    await until(() => seen.signed.length === 2)
    t.same(seen.signed, [['a'], ['a']])
    await backend.next(channel, 2)
    backend.put(channel, { a: { data: 2, version: 2 } })
    await seen.has(t, { a: 2 })
  })

  test('an expired signature is renewed', async t => {
    const channel = newChannel()
    const { seen } = await enter(t, channel)
    backend.put(channel, { a: { data: 1, version: 1 } })
    seen.track(['a'], 0, { ttl: -60 })
    await seen.has(t, { a: 1 })
    t.match(seen.errors, [{ error: { code: 109 } }])
    t.same(seen.signed, [['a']])
  })

  test('several expired signatures are renewed once', async t => {
    const channel = newChannel()
    const keys = ['a', 'b', 'c']
    /** @type {string[][]} */
    const asked = []
    const getSignature = async ({ keys }) => {
      asked.push(keys)
      await until(() => seen.errors.length === 3)
      return { keys, signature: sign(channel, keys) }
    }
    const { seen } = await enter(t, channel, { getSignature })
    backend.put(channel, Object.fromEntries(keys.map(key => [key, { data: key, version: 1 }])))
    for (const key of keys) seen.track([key], 0, { ttl: -60 })
    await seen.has(t, { a: 'a', b: 'b', c: 'c' })
    t.same(asked, [keys])
  })

  test('a renewal covers the keys of all batches', async t => {
    const channel = newChannel()
    const { client, seen } = await enter(t, channel)
    const keys = ['a', 'b', 'c']
    backend.put(channel, Object.fromEntries(keys.map(key => [key, { data: 1, version: 1 }])))
    seen.track(['a'])
    seen.track(['b'])
    await seen.has(t, { a: 1, b: 1 })
    seen.track(['c'], 0, { ttl: -60 })
    await seen.has(t, { a: 1, b: 1, c: 1 })
    t.same(seen.signed, [keys])
    client.disconnect()
    client.connect()
    await seen.subscription.ready()
    await backend.next(channel, 2)
    backend.put(channel, Object.fromEntries(keys.map(key => [key, { data: 2, version: 2 }])))
    await seen.has(t, { a: 2, b: 2, c: 2 })
    t.equal(seen.signed.length, 1, 'the renewed signature serves the reconnect')
  })

  test('the shortest of several signatures decides when they are renewed', async t => {
    const channel = newChannel()
    const { seen } = await enter(t, channel)
    seen.track(['a'])
    seen.track(['b'], 0, { ttl: 2 })
    await until(() => seen.signed.length === 1)
    t.same(seen.signed, [['a', 'b']])
  })

  test('keys that a renewal leaves out are untracked in the gateway', async t => {
    const channel = newChannel()
    const authorized = keys => keys.filter(key => key !== 'revoked')
    const { seen } = await enter(t, channel, { authorized })
    backend.put(channel, { allowed: { data: 1, version: 1 }, revoked: { data: 1, version: 1 } })
    seen.track(['allowed', 'revoked'], 0, { ttl: 2 })
    await seen.has(t, { allowed: 1, revoked: 1 })
    await seen.has(t, { allowed: 1 })
    await until(async () => (await backend.next(channel)).items.every(({ key }) => key === 'allowed'))
    t.match(seen.updates.at(-1), { key: 'revoked', removed: true })
    t.same(seen.errors, [])
  })
}
