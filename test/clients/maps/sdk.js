// Map subscriptions of the official SDK, against a gateway with any engine and socket server.

import { Centrifuge } from 'centrifuge'
import { Centrifuge as ProtobufCentrifuge } from 'centrifuge/build/protobuf'
import WebSocket from 'ws'
import { startGateway } from '../../kit/gateway.js'
import { until } from '../../kit/wait.js'
import { at, SECRET, token } from '../session/support.js'

const MAP = { subscription_type: 'map', allowed_delta_types: ['fossil'], allow_tags_filter: true }
const PERSISTENT = { mode: 'persistent', min_page_size: 1, default_page_size: 10 }

export const config = {
  workers: 2,
  client: { insecure: true, concurrency: 8, token: { hmac_secret_key: SECRET } },
  http_api: { insecure: true },
  shared_poll: { hmac_secret_key: 'a secret of the tests, long enough' },
  channel: {
    proxy: { shared_poll_refresh: { endpoint: 'http://127.0.0.1:1/refresh' } },
    namespaces: [
      { name: 'ephemeral', ...MAP, map: { mode: 'ephemeral', key_ttl: '60s', min_page_size: 1 } },
      { name: 'short', ...MAP, map: { mode: 'ephemeral', key_ttl: '1s' } },
      { name: 'recoverable', ...MAP, map: { mode: 'recoverable', key_ttl: '60s', min_page_size: 1 } },
      { name: 'small', ...MAP, map: { ...PERSISTENT, stream_size: 3 } },
      { name: 'board', ...MAP, delta_publish: true, map: PERSISTENT },
      { name: 'private', ...MAP, map: PERSISTENT },
      {
        name: 'own',
        ...MAP,
        map: { ...PERSISTENT, client_key: 'client_id', remove_client_on_unsubscribe: true },
      },
      {
        name: 'room',
        presence: true,
        map_clients_presence_channel_prefix: 'who:',
        map_users_presence_channel_prefix: 'users:',
      },
      { name: 'poll', subscription_type: 'shared_poll' },
      { name: 'who', subscription_type: 'map_clients', map: { mode: 'ephemeral', key_ttl: '60s' } },
      { name: 'users', subscription_type: 'map_users', map: { mode: 'ephemeral', key_ttl: '60s' } },
    ],
  },
}

/**
 * @param {any} t @param {string} name of the variant @param {object} more configuration
 */
export async function testMaps(t, name, more) {
  const gateway = await startGateway(t, { ...config, ...more })
  t.jobs = 2
  for (const protobuf of [false, true])
    t.test(`${name}, ${protobuf ? 'Protobuf' : 'JSON'}`, t => testCodec(t, gateway, protobuf))
}

/** @param {any} gateway @param {string} method @param {object} params @returns {Promise<any>} its result */
async function api(gateway, method, params) {
  const response = await fetch(`${gateway.url}/api/${method}`, {
    method: 'POST',
    body: JSON.stringify(params),
  })
  return response.json()
}

/** @param {any} t @param {any} gateway @param {boolean} protobuf */
async function testCodec(t, gateway, protobuf) {
  const Client = protobuf ? ProtobufCentrifuge : Centrifuge
  const tag = protobuf ? 'p' : 'j'
  const encode = value => (protobuf ? new TextEncoder().encode(JSON.stringify(value)) : value)
  const decode = data => (protobuf ? JSON.parse(new TextDecoder().decode(data)) : data)

  /** @param {any} t @param {object} [options] */
  const connect = async (t, options = {}) => {
    const client = new Client(gateway.ws, {
      websocket: WebSocket,
      minReconnectDelay: 10,
      maxReconnectDelay: 50,
      ...options,
    })
    t.teardown(() => client.disconnect())
    client.connect()
    await client.ready()
    return client
  }

  /** A subscription that applies what it gets to `view`. @type {(client: any, channel: string, options?: any) => any} */
  const watch = (client, channel, { kind = 'Map', ...options } = {}) => {
    const subscription = client[`new${kind}Subscription`](channel, { minResubscribeDelay: 10, ...options })
    const seen = {
      subscription,
      view: new Map(),
      updates: 0,
      publications: 0,
      syncs: 0,
      events: [],
      errors: [],
      info: new Map(),
    }
    const apply = ({ key, removed, data, info }) => {
      if (removed) seen.view.delete(key)
      else {
        seen.view.set(key, data === undefined || data === null || data.length === 0 ? null : decode(data))
        seen.info.set(key, info)
      }
    }
    subscription.on('subscribed', context => seen.events.push(context))
    subscription.on('publication', () => seen.publications++)
    subscription.on('error', ({ error }) => seen.errors.push(error))
    subscription.on('sync', ({ entries }) => {
      seen.syncs++
      seen.view.clear()
      for (const entry of entries) apply(entry)
    })
    subscription.on('update', context => {
      seen.updates++
      apply(context)
    })
    subscription.subscribe()
    return seen
  }

  const has = async (t, seen, expected) => {
    const isEqual = () =>
      JSON.stringify([...seen.view].sort()) === JSON.stringify(Object.entries(expected).sort())
    await until(isEqual, () => `${JSON.stringify(expected)}, has ${JSON.stringify([...seen.view])}`)
    t.ok(isEqual(), 'the view is the state of the map')
  }

  const put = (channel, key, data, options = {}) =>
    api(gateway, 'map_publish', { channel, key, data, ...options })

  for (const namespace of ['ephemeral', 'recoverable', 'board'])
    t.test(`${namespace}: clients see each other's keys`, async t => {
      const [a, b] = [await connect(t), await connect(t)]
      const channel = `${namespace}:${tag}1`
      const one = watch(a, channel)
      await one.subscription.ready()
      await one.subscription.publish('å', encode({ n: 1 }))
      await one.subscription.publish('键🎈', encode('zwei'))
      await has(t, one, { å: { n: 1 }, '键🎈': 'zwei' })
      const two = watch(b, channel)
      await has(t, two, { å: { n: 1 }, '键🎈': 'zwei' })
      t.equal(two.syncs, 1, 'the state comes as a whole')
      await two.subscription.publish('å', encode({ n: 2 }))
      await two.subscription.remove('键🎈')
      for (const seen of [one, two]) await has(t, seen, { å: { n: 2 } })
      t.equal(two.events[0].recoverable, namespace !== 'ephemeral')
      t.match(one.info.get('å'), { client: String })
    })

  t.test('an empty map has an empty state', async t => {
    for (const namespace of ['ephemeral', 'board']) {
      const seen = watch(await connect(t), `${namespace}:${tag}empty`)
      await seen.subscription.ready()
      t.match([seen.syncs, seen.updates, seen.view.size, seen.events[0].state ?? []], [1, 0, 0, []])
      await put(`${namespace}:${tag}empty`, 'a', { n: 1 })
      await has(t, seen, { a: { n: 1 } })
      await api(gateway, 'map_remove', { channel: `${namespace}:${tag}empty`, key: 'a' })
      await has(t, seen, {})
      t.equal(seen.updates, 2)
    }
  })

  t.test('a client that subscribes, unsubscribes and subscribes at once gets one state', async t => {
    for (const namespace of ['ephemeral', 'board']) {
      const channel = `${namespace}:${tag}hasty`
      const expected = {}
      for (let n = 0; n < 9; n++) await put(channel, `k${n}`, (expected[`k${n}`] = n))
      const seen = watch(await connect(t), channel, { pageSize: 2 })
      for (let n = 0; n < 5; n++) {
        seen.subscription.unsubscribe()
        seen.subscription.subscribe()
      }
      await has(t, seen, expected)
      await put(channel, 'last', 1)
      await has(t, seen, { ...expected, last: 1 })
      t.equal(seen.syncs, 1)
      t.equal(seen.events.length, 1)
      t.same(seen.errors, [])
    }
  })

  t.test('a client of an ephemeral map that reconnects gets the state again', async t => {
    const channel = `ephemeral:${tag}again`
    await put(channel, 'a', 1)
    const client = await connect(t)
    const seen = watch(client, channel)
    await has(t, seen, { a: 1 })
    client.disconnect()
    await put(channel, 'b', 1)
    await api(gateway, 'map_remove', { channel, key: 'a' })
    client.connect()
    await has(t, seen, { b: 1 })
    t.equal(seen.syncs, 2)
    t.ok(seen.events.every(({ recoverable, recovered }) => !recoverable && !recovered))
  })

  t.test('a state of many pages is complete', async t => {
    const channel = `board:${tag}pages`
    const expected = {}
    await Promise.all(
      Array.from({ length: 95 }, (_, n) => {
        expected[`k${n}`] = n
        return put(channel, `k${n}`, n)
      }),
    )
    const seen = watch(await connect(t), channel, { pageSize: 7 })
    await has(t, seen, expected)
    t.equal(seen.syncs, 1)
    t.equal(seen.events[0].state.length, 95)
    await put(channel, 'late', 1)
    await has(t, seen, { ...expected, late: 1 })
    t.equal(seen.updates, 1)
  })

  t.test('changes while a client reads its pages are not lost', async t => {
    const channel = `board:${tag}moving`
    const expected = {}
    for (let n = 0; n < 40; n++) await put(channel, `k${n}`, (expected[`k${n}`] = n))
    const clients = await Promise.all(Array.from({ length: 4 }, () => connect(t)))
    const all = clients.map(client => watch(client, channel, { pageSize: 3 }))
    for (let n = 0; n < 60; n++) {
      if (n % 7 === 0) {
        delete expected[`k${n % 40}`]
        await api(gateway, 'map_remove', { channel, key: `k${n % 40}` })
      } else await put(channel, `k${n % 50}`, (expected[`k${n % 50}`] = `new ${n}`))
    }
    for (const seen of all) await has(t, seen, expected)
  })

  t.test('a reconnecting client recovers the changes', async t => {
    const channel = `recoverable:${tag}back`
    const client = await connect(t)
    const seen = watch(client, channel)
    await seen.subscription.ready()
    await put(channel, 'a', 1)
    await put(channel, 'b', 1)
    await has(t, seen, { a: 1, b: 1 })
    client.disconnect()
    await put(channel, 'a', 2)
    await api(gateway, 'map_remove', { channel, key: 'b' })
    await put(channel, 'c', 3)
    client.connect()
    await has(t, seen, { a: 2, c: 3 })
    t.equal(seen.syncs, 1, 'without reading the state again')
    t.match(seen.events[1], { wasRecovering: true, recovered: true })
  })

  t.test('a client that missed more than the stream has reads the state again', async t => {
    const channel = `small:${tag}1`
    const client = await connect(t)
    const seen = watch(client, channel, { unrecoverableStrategy: 'from_scratch' })
    await seen.subscription.ready()
    await put(channel, 'a', 1)
    await has(t, seen, { a: 1 })
    client.disconnect()
    for (let n = 0; n < 10; n++) await put(channel, `k${n}`, n)
    await api(gateway, 'map_remove', { channel, key: 'a' })
    client.connect()
    await has(t, seen, Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`k${n}`, n])))
    t.equal(seen.syncs, 2)
    t.equal(seen.events[1].recovered, false)
  })

  t.test('deltas give the same values', async t => {
    const channel = `recoverable:${tag}delta`
    const client = await connect(t)
    const seen = watch(client, channel, { delta: 'fossil' })
    await seen.subscription.ready()
    const text = 'what stays the same in each value, '.repeat(8)
    for (let n = 0; n < 6; n++)
      for (const key of ['a', 'b']) await put(channel, key, { text, n, key }, { delta: true })
    await has(t, seen, { a: { text, n: 5, key: 'a' }, b: { text, n: 5, key: 'b' } })
    client.disconnect()
    for (let n = 6; n < 9; n++) await put(channel, 'a', { text, n, key: 'a' }, { delta: true })
    client.connect()
    await has(t, seen, { a: { text, n: 8, key: 'a' }, b: { text, n: 5, key: 'b' } })
    const late = watch(await connect(t), channel, { delta: 'fossil' })
    await has(t, late, { a: { text, n: 8, key: 'a' }, b: { text, n: 5, key: 'b' } })
    await put(channel, 'b', { text, n: 9, key: 'b' }, { delta: true })
    for (const each of [seen, late])
      await has(t, each, { a: { text, n: 8, key: 'a' }, b: { text, n: 9, key: 'b' } })
  })

  t.test('the first value of a key is sent in full, the next ones as deltas', async t => {
    const filler = 'z'.repeat(500)
    const counts = sub => {
      const { numPublications, numFullPayloads, numDeltaPayloads } = sub.subscription.deltaStats()
      return [numPublications, numFullPayloads, numDeltaPayloads]
    }
    const [one, both, known] = ['one', 'both', 'known'].map(name => `board:${tag}stats-${name}`)
    const client = await connect(t)
    const single = watch(client, one, { delta: 'fossil' })
    const double = watch(client, both, { delta: 'fossil' })
    await Promise.all([single.subscription.ready(), double.subscription.ready()])
    for (let n = 0; n < 3; n++) await put(one, 'a', { n, filler })
    await has(t, single, { a: { n: 2, filler } })
    t.same(counts(single), [3, 1, 2])
    for (let n = 0; n < 2; n++) for (const key of ['a', 'b']) await put(both, key, { n, filler })
    await has(t, double, { a: { n: 1, filler }, b: { n: 1, filler } })
    t.same(counts(double), [4, 2, 2], 'per key')
    for (const key of ['a', 'b']) await put(known, key, { n: 0, filler })
    const late = watch(client, known, { delta: 'fossil' })
    await has(t, late, { a: { n: 0, filler }, b: { n: 0, filler } })
    for (const key of ['a', 'b']) await put(known, key, { n: 1, filler })
    await has(t, late, { a: { n: 1, filler }, b: { n: 1, filler } })
    t.same(counts(late), [4, 2, 2], 'values of the state are bases')
  })

  for (const delta of [undefined, 'fossil'])
    t.test(`a removal ${delta ? 'between deltas ' : ''}does not disturb the next changes`, async t => {
      const channel = `board:${tag}removed-${delta}`
      const filler = 'y'.repeat(300)
      const client = await connect(t)
      const seen = watch(client, channel, { delta })
      await seen.subscription.ready()
      const remove = key => api(gateway, 'map_remove', { channel, key })
      for (const n of [1, 2]) await put(channel, 'a', { n, filler })
      await remove('a')
      await put(channel, 'b', { n: 1, filler })
      await has(t, seen, { b: { n: 1, filler } })
      t.equal(seen.updates, 4)
      await put(channel, 'a', { n: 3, filler })
      await has(t, seen, { a: { n: 3, filler }, b: { n: 1, filler } })
      for (const leave of [client, seen.subscription]) {
        leave === client ? client.disconnect() : leave.unsubscribe()
        await put(channel, 'a', { n: 4, filler })
        await remove('a')
        await put(channel, 'b', { n: 2, filler })
        await put(channel, 'b', { n: 3, filler })
        leave === client ? client.connect() : leave.subscribe()
        await has(t, seen, { b: { n: 3, filler } })
        for (const n of [5, 6]) await put(channel, 'a', { n, filler })
        await has(t, seen, { a: { n: 6, filler }, b: { n: 3, filler } })
      }
      t.equal(seen.syncs, 1)
      t.match(seen.events.slice(1), [{ recovered: true }, { recovered: true }])
    })

  t.test('a state that a handler did not get comes with the next subscribe', async t => {
    const channel = `board:${tag}unsynced`
    for (const key of ['a', 'b']) await put(channel, key, 1)
    const seen = watch(await connect(t), channel, { pageSize: 1 })
    seen.subscription.once('subscribed', () => seen.subscription.unsubscribe())
    await new Promise(resolve => seen.subscription.once('unsubscribed', resolve))
    t.equal(seen.syncs, 0)
    seen.subscription.subscribe()
    await has(t, seen, { a: 1, b: 1 })
    t.equal(seen.syncs, 1)
  })

  t.test('a subscription with an expired token recovers with a new one', async t => {
    const channel = `private:${tag}token`
    const client = await connect(t, { token: token({ sub: 'anna' }) })
    let tokens = 0
    const getToken = async () => {
      // The SDK keeps the first one for the time after the reconnect.
      const exp = at(tokens++ === 0 ? 2 : 60)
      return token({ sub: 'anna', channel, exp })
    }
    const seen = watch(client, channel, { getToken })
    await seen.subscription.ready()
    await put(channel, 'a', 1)
    await has(t, seen, { a: 1 })
    const expiry = at(2)
    client.disconnect()
    await put(channel, 'b', 1)
    await until(() => at() > expiry)
    client.connect()
    await has(t, seen, { a: 1, b: 1 })
    t.equal(tokens, 2)
    t.equal(seen.syncs, 1)
    t.match(seen.events.at(-1), { recovered: true })
  })

  t.test('a subscription recovers after an unsubscribe', async t => {
    const channel = `board:${tag}resubscribed`
    const seen = watch(await connect(t), channel)
    const { subscription } = seen
    await subscription.ready()
    await put(channel, 'before', 1)
    await has(t, seen, { before: 1 })
    subscription.unsubscribe()
    for (const key of ['a', 'b', 'c']) await put(channel, key, 1)
    // What a handler did not get comes with the next subscribe.
    subscription.once('update', () => subscription.unsubscribe())
    subscription.subscribe()
    await has(t, seen, { before: 1, a: 1 })
    t.match(seen.events[1], { recovered: true, wasRecovering: true })
    subscription.once('subscribed', () => subscription.unsubscribe())
    const ended = new Promise(resolve => subscription.once('unsubscribed', resolve))
    subscription.subscribe()
    await ended
    t.equal(seen.view.size, 2)
    subscription.subscribe()
    await has(t, seen, { before: 1, a: 1, b: 1, c: 1 })
    t.equal(seen.syncs, 1)
    t.same([seen.updates, seen.publications], [4, 4], 'each once')
  })

  t.test('a lost position ends a subscription with the strategy fatal', async t => {
    const channel = `small:${tag}fatal`
    const seen = watch(await connect(t), channel, { unrecoverableStrategy: 'fatal' })
    await seen.subscription.ready()
    await put(channel, 'a', 1)
    await has(t, seen, { a: 1 })
    seen.subscription.unsubscribe()
    for (let n = 0; n < 5; n++) await put(channel, `k${n}`, n)
    const ended = new Promise(resolve => seen.subscription.once('unsubscribed', resolve))
    seen.subscription.subscribe()
    t.match(await ended, { code: 112 })
  })

  t.test('an expired key is removed', async t => {
    const seen = watch(await connect(t), `short:${tag}1`)
    await seen.subscription.ready()
    await put(`short:${tag}1`, 'a', 1)
    await until(
      () => seen.updates === 1,
      () => 'the key',
    )
    await has(t, seen, {})
    t.equal(seen.updates, 2)
  })

  t.test('a tags filter selects keys in the state and in changes', async t => {
    const channel = `board:${tag}tags`
    await put(channel, 'a', 1, { tags: { team: 'red' } })
    await put(channel, 'b', 1, { tags: { team: 'blue' } })
    const seen = watch(await connect(t), channel, { tagsFilter: { key: 'team', cmp: 'eq', val: 'red' } })
    await has(t, seen, { a: 1 })
    await put(channel, 'c', 2, { tags: { team: 'blue' } })
    await put(channel, 'd', 2, { tags: { team: 'red' } })
    await has(t, seen, { a: 1, d: 2 })
    await api(gateway, 'map_remove', { channel, key: 'a' })
    await has(t, seen, { d: 2 })
  })

  t.test('the key of a client is its id, and goes with it', async t => {
    const [a, b] = [await connect(t), await connect(t)]
    const channel = `own:${tag}1`
    const [one, two] = [watch(a, channel), watch(b, channel)]
    await Promise.all([one.subscription.ready(), two.subscription.ready()])
    await one.subscription.publish('ignored', encode('cursor'))
    await until(
      () => two.view.size === 1,
      () => 'the key of the client',
    )
    t.notOk(two.view.has('ignored'))
    a.disconnect()
    await has(t, two, {})
  })

  t.test('presence maps list clients and users of a channel', async t => {
    const [reader, visitor] = [await connect(t), await connect(t)]
    const who = watch(reader, `who:room:${tag}`, { kind: 'MapClients' })
    await who.subscription.ready()
    const room = visitor.newSubscription(`room:${tag}`)
    room.subscribe()
    await room.ready()
    await until(
      () => who.view.size === 1,
      () => 'a client in the map',
    )
    visitor.disconnect()
    await has(t, who, {})
  })

  t.test('another type of subscription is refused', async t => {
    const client = await connect(t)
    const refused = (kind, channel) =>
      new Promise(resolve => {
        const subscription = client[`new${kind}Subscription`](channel)
        subscription.on('unsubscribed', ({ code }) => resolve(code))
        subscription.subscribe()
      })
    t.equal(await refused('', `board:${tag}x`), 103)
    t.equal(await refused('Map', `room:${tag}x`), 103)
    t.equal(await refused('Map', `poll:${tag}x`), 107)
    t.equal(await refused('SharedPoll', `board:${tag}z`), 108)
    t.equal(await refused('MapClients', `board:${tag}y`), 103)
  })

  t.test('a map that is cleared while clients read its pages', async t => {
    for (const namespace of ['board', 'recoverable', 'ephemeral']) {
      const channel = `${namespace}:${tag}clearing`
      for (let n = 0; n < 40; n++) await put(channel, `old${n}`, n)
      const clients = await Promise.all(Array.from({ length: 4 }, () => connect(t)))
      const all = clients.map(client => watch(client, channel, { pageSize: 2 }))
      const read = async () => (await api(gateway, 'map_read_state', { channel, limit: -1 })).result.entries
      for (let n = 0; n < 2; n++) {
        await api(gateway, 'map_clear', { channel })
        await Promise.all([1, 2, 3].map(i => put(channel, `new${n}${i}`, i)))
      }
      const entries = await read()
      t.equal(entries.length, 3)
      for (const seen of all)
        await has(t, seen, Object.fromEntries(entries.map(({ key, data }) => [key, data])))
      await put(channel, 'last', 1)
      for (const seen of all) await until(() => seen.view.get('last') === 1)
    }
  })

  t.test('a cleared map is empty for its subscribers', async t => {
    const channel = `board:${tag}cleared`
    const client = await connect(t)
    const seen = watch(client, channel, { unrecoverableStrategy: 'from_scratch' })
    await seen.subscription.ready()
    await put(channel, 'a', 1)
    await has(t, seen, { a: 1 })
    await api(gateway, 'map_clear', { channel })
    await put(channel, 'b', 2)
    await has(t, seen, { b: 2 })
  })
}
