// The server API as methods: the gateway object and the HTTP client behave the same, with each engine.

import { ApiClient } from 'halley-gateway/api'
import { createGateway } from '../../../src/index.js'
import { freePort } from '../../kit/ports.js'
import { RawClient } from '../../kit/raw-client.js'

const KEY = 'Zm9yIHRlc3RzIG9mIHRoZSBtZXRob2Rz'

/**
 * A gateway in this process, stopped with the test.
 * @param {any} t @param {any} [config] over these @param {object} [options] of createGateway
 */
export async function embed(t, config = {}, options = {}) {
  const gateway = await createGateway({
    config: {
      workers: 2,
      log: { level: 'none' },
      overload: { max_tick: '0s' },
      ...config,
      stats: { socket: 'none', ...config.stats },
      http_server: { address: '127.0.0.1', port: await freePort(), ...config.http_server },
      http_api: { key: KEY, ...config.http_api },
      client: {
        allowed_origins: ['*'],
        user_id_http_header: 'x-user',
        ping_interval: '10m',
        acks: { enabled: true },
        ...config.client,
      },
      channel: {
        targeted_publications: true,
        without_namespace: { presence: true, allow_subscribe_for_client: true },
        namespaces: [
          {
            name: 'his',
            presence: true,
            history_size: 5,
            history_ttl: '1m',
            allow_subscribe_for_client: true,
          },
          { name: 'binary', history_size: 5, history_ttl: '1m', publication_data_format: 'binary' },
          { name: 'map', subscription_type: 'map', map: { mode: 'persistent', max_value_bytes: 20 } },
        ],
      },
    },
    ...options,
  })
  t.teardown(() => gateway.stop())
  return gateway
}

export function clientOf(t, gateway, options = {}) {
  const client = new ApiClient({ url: gateway.url, key: KEY, ...options })
  t.teardown(() => client.close())
  return client
}

export const connect = (gateway, user) =>
  RawClient.connected(
    `${gateway.url.replace('http', 'ws')}/connection/websocket`,
    {},
    { headers: { 'x-user': user } },
  )

const refusal = (code, message) => ({
  name: 'ApiError',
  code,
  message,
})

/**
 * @param {any} t @param {any} gateway @param {any} api that is tested: the gateway itself, or a client of it
 * @param {string} name part of channels and users, so that two suites share a gateway
 */
export async function methodsSuite(t, gateway, api, name) {
  const channel = `his:${name}`
  const user = `user-${name}`

  t.test('connections are listed and selected by labels and fields', async t => {
    const one = await connect(gateway, `${user}-listed`)
    await one.subscribe(channel)
    const { connections, total, truncated } = await api.connections({
      user: `${user}-listed`,
      where: { key: 'channel', cmp: 'eq', val: channel },
      labelFilter: { key: 'tier', cmp: 'nex' },
      limit: 5,
    })
    t.same([total, truncated], [1, false])
    t.match(connections[one.connect.client], {
      user: `${user}-listed`,
      transport: 'websocket',
      protocol: 'json',
      appName: '',
      connectedAtMs: Number,
      pingPongLatencyMs: -1,
      labels: {},
      channels: { [channel]: { source: 6 } },
      subscriptionTokens: {},
    })
    await t.rejects(api.connections({}), refusal(107, /user, label_filter or where is required/))
    await t.rejects(api.connections({ users: 'x' }), refusal(107, /unknown option "users"/))
    const others = { labelFilter: { key: 'tier', cmp: 'ex' } }
    await api.disconnect(`${user}-listed`, others)
    t.equal((await api.connections({ user: `${user}-listed` })).total, 1)
    await api.disconnect('', { allUsers: true, client: one.connect.client })
    t.equal((await one.closed).code, 3503)
  })

  t.test('publish and history accept JSON, bytes, tags, versions and idempotency keys', async t => {
    const listener = await connect(gateway, user)
    await listener.subscribe(channel)
    const first = await api.publish(channel, { text: 'h\u00e9llo' }, { tags: { kind: 'a' } })
    t.match(first, { offset: 1, epoch: /^\S+$/ })
    t.match((await listener.push('pub')).pub, {
      data: { text: 'h\u00e9llo' },
      offset: 1,
      tags: { kind: 'a' },
    })
    t.same(await api.publish(channel, null, { idempotencyKey: 'once' }), { ...first, offset: 2 })
    t.same(await api.publish(channel, null, { idempotencyKey: 'once' }), { ...first, offset: 2 })
    t.equal((await api.publish(channel, 'v', { version: 2n ** 63n })).offset, 3)
    t.equal((await api.publish(channel, 'older', { version: 5 })).offset, 3, 'an older version')
    t.equal((await api.publish(channel, 0, { skipHistory: true })).offset, 0)
    const { publications, offset, epoch } = await api.history(channel, { limit: -1 })
    t.same(publications, [
      { data: { text: 'h\u00e9llo' }, offset: 1, tags: { kind: 'a' } },
      { data: null, offset: 2 },
      { data: 'v', offset: 3 },
    ])
    t.same({ offset, epoch }, { ...first, offset: 3 })
    const since = await api.history(channel, { limit: 1, since: { offset: 1, epoch } })
    t.same(
      since.publications.map(one => one.offset),
      [2],
    )
    const newest = await api.history(channel, { limit: 1, reverse: true })
    t.equal(newest.publications[0].offset, 3)
    await api.publish(channel, 'hidden', { excludeUser: user })
    t.match((await api.history(channel, { limit: 1, reverse: true })).publications, [
      { data: 'hidden', excludeUser: user },
    ])
    t.same(await api.publish(channel, 'only', { users: [user] }), { offset: 0, epoch: '' })
    await api.broadcast([channel], 'others', { excludeClient: listener.connect.client })
    await api.publish(channel, 'end')
    const received = []
    while (received.at(-1) !== 'end') received.push((await listener.push('pub')).pub.data)
    t.same(received, [null, 'v', 0, 'only', 'end'])
    await api.historyRemove(channel)
    t.same((await api.history(channel, { limit: -1 })).publications, [])

    const bytes = `binary:${name}`
    await api.publish(bytes, Buffer.from([0, 255]))
    await api.publish(bytes, new Uint8Array([1, 2, 254]).subarray(1))
    await api.publish(bytes, Buffer.from('{"a":1}'))
    t.same(
      (await api.history(bytes, { limit: -1 })).publications.map(one => one.data),
      [Buffer.from([0, 255]), Buffer.from([2, 254]), { a: 1 }],
    )
    await listener.close()
  })

  t.test('broadcast and batch return one result per item', async t => {
    const { responses } = await api.broadcast([channel, 'nowhere:a', `plain-${name}`], { n: 1 })
    t.match(responses, [
      { result: { offset: /\d/ } },
      { error: refusal(102, /unknown channel/) },
      { result: {} },
    ])
    const outcomes = await api.batch(
      [
        ['publish', channel, { n: 2 }, { tags: { a: 'b' } }],
        ['history', channel, { limit: 1, reverse: true }],
        ['publish', '', 1],
        ['disconnect', `nobody-${name}`],
        ['info'],
      ],
      { parallel: false },
    )
    t.match(outcomes[1].result.publications, [{ data: { n: 2 }, tags: { a: 'b' } }])
    t.match(outcomes[2].error, refusal(107, /channel is missing/))
    t.same(outcomes[3], { result: undefined })
    t.equal(outcomes[4].result.nodes.length, 1)
    t.same(await api.batch([]), [])
  })

  t.test('methods for a user reach the connections on every worker', async t => {
    const clients = await Promise.all(Array.from({ length: 4 }, () => connect(gateway, user)))
    const room = `room-${name}`
    await api.subscribe(user, room, { info: { color: 'red' }, data: [1], override: { presence: true } })
    for (const client of clients) t.same((await client.push('subscribe')).subscribe.data, [1])
    const { presence } = await api.presence(room)
    t.same(Object.keys(presence).sort(), clients.map(({ connect }) => connect.client).sort())
    const [{ connect: first }] = clients
    t.same(presence[first.client], { user, client: first.client, chanInfo: { color: 'red' } })
    t.same(await api.presenceStats(room), { numClients: 4, numUsers: 1 })
    t.same((await api.channels({ pattern: `room-${name}*` })).channels, { [room]: { numClients: 4 } })
    await api.refresh(user, { client: first.client, expireAt: Math.floor(Date.now() / 1000) + 3600 })
    t.match(await clients[0].push('refresh'), { refresh: { expires: true, ttl: /\d+/ } })
    await api.unsubscribe(user, room, { client: first.client })
    t.equal((await clients[0].push('unsubscribe')).unsubscribe.code, 2000)
    await api.disconnect(user, { code: 4004, reason: 'maintenance', whitelist: [first.client] })
    for (const client of clients.slice(1)) t.same(await client.closed, { code: 4004, reason: 'maintenance' })
    await api.refresh(user, { expired: true })
    t.equal((await clients[0].closed).code, 3005)
  })

  t.test('clients answer requests and confirm publications', async t => {
    const asked = `asked-${name}`
    const clients = await Promise.all(Array.from({ length: 4 }, () => connect(gateway, asked)))
    const [first] = clients
    const id = first.connect.client
    const answer = async (client, data) => {
      const { message, pub } = await client.push()
      const { rpc } = await client.call('rpc', {
        method: '$ack',
        data: { id: message?.data.$req.id ?? pub.tags.$ack, ...data },
      })
      t.ok(rpc)
    }
    const one = api.request({ client: id }, 'm', { n: 1 })
    await answer(first, { b64data: 'AP8=' })
    t.same(await one, {
      sent: 1,
      answered: 1,
      gone: 0,
      complete: true,
      truncated: false,
      answers: { [id]: { user: asked, data: Buffer.from([0, 255]) } },
    })
    const all = api.request({ user: asked }, 'm')
    for (const client of clients) await answer(client, { data: 'yes' })
    t.match(await all, { sent: 4, answered: 4, complete: true })
    for (const client of clients) await client.subscribe(`acked-${name}`)
    const published = api.publish(`acked-${name}`, 1, { ack: { count: 4, timeoutMs: 60_000 } })
    for (const client of clients) await answer(client, { error: { code: 1, message: 'no' } })
    const { offset, acks } = await published
    t.equal(offset, 0)
    t.match(acks, { sent: 4, answered: 4, answers: { [id]: { error: { code: 1, message: 'no' } } } })
    t.match(await api.request({ user: asked }, 'm', 1, { timeoutMs: 1 }), { sent: 4, complete: false })
    await t.rejects(api.request({ client: 'nobody' }, 'm'), refusal(104, /not found/))
    await t.rejects(api.request({ users: asked }, 'm'), refusal(107, /unknown option "users"/))
    await t.rejects(api.publish('x', 1, { ack: { wait: 1 } }), refusal(107, /unknown option "wait"/))
    for (const client of clients) await client.close()
  })

  t.test('a blocked user is disconnected, and may connect when unblocked', async t => {
    const client = await connect(gateway, user)
    const expireAt = Math.floor(Date.now() / 1000) + 3600
    await api.blockUser(user, { expireAt })
    t.equal((await client.closed).code, 3507)
    await t.rejects(connect(gateway, user))
    await api.unblockUser(user)
    await connect(gateway, user)
    t.equal(await api.revokeToken('id', { expireAt }), undefined)
    t.equal(await api.invalidateUserTokens(user, { issuedBefore: 5, channel: 'a', expireAt }), undefined)
    const commands = /** @type {any} */ ([
      ['blockUser', 'other'],
      ['unblockUser', 'other'],
    ])
    t.same(await api.batch(commands), [{ result: undefined }, { result: undefined }])
  })

  t.test('maps support conditional writes, pages and changes', async t => {
    const channel = `map:${name}`
    const { maps } = api
    const written = { suppressed: false, suppressReason: '' }
    const first = await maps.publish(channel, 'a', { n: 1 }, { tags: { kind: 'x' }, version: 2n ** 63n })
    t.match(first, { offset: 1, epoch: /^\S+$/, ...written })
    const { epoch } = first
    t.match(await maps.publish(channel, 'a', 0, { version: 5 }), { suppressReason: 'version' })
    t.same(await maps.publish(channel, 'b', Buffer.from([0, 255])), { offset: 2, epoch, ...written })
    t.match(await maps.publish(channel, 'b', 1, { keyMode: 'if_new' }), { suppressReason: 'key_exists' })
    t.match(await maps.publish(channel, 'b', 1, { expectedOffset: 1, expectedEpoch: epoch }), {
      suppressed: true,
      suppressReason: 'position_mismatch',
      current: { key: 'b', data: Buffer.from([0, 255]), offset: 2 },
    })
    const change = { streamData: Buffer.from([254]), expectedOffset: 2 }
    t.match(await maps.publish(channel, 'b', null, change), { offset: 3 })
    t.match(await maps.publish(channel, 'c', 'one', { append: true }), { offset: 4 })
    t.match(await maps.publish(channel, 'c', ' two', { append: true }), { offset: 5 })
    await t.rejects(maps.publish(channel, 'c', 'x'.repeat(20), { append: true }), refusal(107, /bad request/))
    t.same(await maps.stats(channel), { numKeys: 3 })

    const { entries, cursor } = await maps.readState(channel, { limit: -1 })
    t.equal(cursor, '')
    t.match(
      entries.sort((one, other) => one.offset - other.offset),
      [
        { key: 'a', data: { n: 1 }, offset: 1, tags: { kind: 'x' }, time: Number },
        { key: 'b', data: null, offset: 3 },
        { key: 'c', data: 'one two', offset: 5 },
      ],
    )
    const removed = await maps.remove(channel, 'a', { idempotencyKey: 'once' })
    t.same(removed, { offset: 6, epoch, ...written })
    t.match(await maps.remove(channel, 'a', { idempotencyKey: 'once' }), {
      offset: 6,
      suppressReason: 'idempotency',
    })
    t.match((await maps.readStream(channel, { sinceOffset: 2, sinceEpoch: epoch, limit: -1 })).entries, [
      { key: 'b', data: Buffer.from([254]), offset: 3 },
      { key: 'c', data: 'one', offset: 4 },
      { key: 'c', data: ' two', append: true, offset: 5 },
      { key: 'a', removed: true, offset: 6, tags: { kind: 'x' } },
    ])
    const outcomes = await api.batch([
      ['mapPublish', channel, 'd', 1],
      ['mapReadState', channel, { key: 'd' }],
      ['mapStats', 'plain'],
    ])
    t.match(outcomes, [
      { result: { offset: 7 } },
      { result: { entries: [{ key: 'd', data: 1 }] } },
      { error: refusal(107, /bad request/) },
    ])
    await maps.clear(channel)
    const cleared = await maps.readState(channel, { limit: 10 })
    t.same(cleared.entries, [])
    t.not(cleared.epoch, epoch)
    await t.rejects(
      maps.readState(channel, { limit: 1, revisionEpoch: epoch }),
      refusal(112, /unrecoverable position/),
    )
  })

  t.test('info returns camelCase fields for each node', async t => {
    const [node] = (await api.info()).nodes
    t.match(node, { uid: /\S/, name: /\S/, version: /^\d/, numClients: /\d/, numSubs: /\d/ })
  })

  t.test('an invalid call is refused with a reason', async t => {
    const cyclic = {}
    cyclic.itself = cyclic
    /** @type {[() => Promise<any>, number, RegExp][]} */
    const wrong = [
      [() => api.publish(), 107, /data must be a JSON value or bytes, not undefined/],
      [() => api.publish(7, 1), 107, /channel must be a string/],
      [() => api.publish('', 1), 107, /channel is missing/],
      [() => api.publish('nowhere:a', 1), 102, /unknown channel/],
      [() => api.publish('a', () => 1), 107, /not function/],
      [() => api.publish('a', 1n), 107, /cannot be serialized as JSON/],
      [() => api.publish('a', cyclic), 107, /cannot be serialized as JSON: [^\n]*$/],
      [() => api.publish('a', 1, 'options'), 107, /must be an object/],
      [
        () => api.publish('a', 1, { skiphistory: true }),
        107,
        /unknown option "skiphistory"; did you mean skipHistory/,
      ],
      [() => api.publish('a', 1, { tags: 'a' }), 107, /tags must be an object with string values/],
      [() => api.publish('a', 1, { version: 2 ** 60 }), 107, /version must be an integer/],
      [() => api.publish('a', 'x'.repeat(17 * 1024 * 1024)), 106, /limit exceeded: a call of \d+ bytes/],
      [() => api.broadcast('a', 1), 107, /channels must be an array of strings/],
      [() => api.broadcast([], 1), 107, /bad request/],
      [() => api.disconnect(), 107, /user must be a string, not undefined/],
      [() => api.disconnect('u', { code: 1000 }), 107, /bad request/],
      [() => api.blockUser('u', { expireAt: 1 }), 107, /expire_at has passed/],
      [() => api.revokeToken(''), 107, /uid is missing/],
      [() => api.disconnect('u', { reason: 'x' }), 107, /requires a code/],
      [() => api.subscribe('u', 'a', { override: { presense: true } }), 107, /did you mean presence/],
      [() => api.subscribe('u', 'a', { serverTagsFilter: {} }), 107, /bad request/],
      [() => api.history('a', { limit: 1 }), 108, /not available/],
      [() => api.history(channel, { since: { offset: -1 } }), 107, /offset must be a non-negative integer/],
      [
        () => api.history(channel, { since: { offset: 1, epoch: 'other' }, limit: 1 }),
        112,
        /unrecoverable position/,
      ],
      [() => api.publish('map:a', 1), 107, /bad request/],
      [() => api.maps.publish('a', 'k', 1), 107, /bad request/],
      [() => api.maps.publish('map:a', '', 1), 107, /bad request/],
      [() => api.maps.publish('map:a', 'k', 1, { keyMode: 'new' }), 107, /bad request/],
      [() => api.maps.publish('map:a', 'k', 1, { keymode: 'if_new' }), 107, /did you mean keyMode/],
      [() => api.maps.publish('nowhere:a', 'k', 1), 102, /unknown channel/],
      [() => api.history('map:a', { limit: 1 }), 108, /not available/],
      [() => api.batch('publish'), 107, /must be an array/],
      [() => api.batch([['publsh', 'a', 1]]), 107, /command 0 .*; did you mean publish/],
      [() => api.batch([['publish', 'a', cyclic]]), 107, /cannot be serialized as JSON/],
    ]
    for (const [call, code, message] of wrong) await t.rejects(call(), refusal(code, message))
  })
}
