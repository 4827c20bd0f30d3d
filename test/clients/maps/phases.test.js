// The phases of a subscription to a map, message by message.

import t from 'tap'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'
import { error } from '../session/support.js'

const MAP = {
  subscription_type: 'map',
  allow_subscribe_for_client: true,
  allow_subscribe_for_anonymous: true,
}
const PAGES = { min_page_size: 1, default_page_size: 4, max_page_size: 8 }
const [STREAM, STATE] = [1, 2]

const namespaces = [
  { name: 'fleeting', ...MAP, map: { mode: 'ephemeral', key_ttl: '60s', ...PAGES } },
  { name: 'board', ...MAP, allow_tags_filter: true, map: { mode: 'persistent', stream_size: 20, ...PAGES } },
  {
    name: 'strict',
    ...MAP,
    map: { mode: 'persistent', ...PAGES, live_transition_max_publication_limit: 2 },
  },
  { name: 'hasty', ...MAP, map: { mode: 'persistent', ...PAGES, subscribe_catch_up_timeout: '300ms' } },
  { name: 'large', ...MAP, map: { mode: 'persistent' } },
  { name: 'secret', ...MAP, allow_subscribe_for_client: false, map: { mode: 'persistent' } },
  { name: 'stream', allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true },
]

const gateway = await startGateway(t, {
  workers: 1,
  client: { allow_anonymous_connect_without_token: true, channel_limit: 4, queue_max_size: 262_144 },
  channel: { namespaces },
})

/** @param {any} t */
async function connect(t) {
  const client = await RawClient.connected(gateway.ws)
  t.teardown(() => client.socket.terminate())
  return client
}

let channels = 0
/** @param {string} namespace @returns {string} an empty map */
const newMap = namespace => `${namespace}:${++channels}`

/** @param {string} channel @param {string} key @param {any} data @param {object} [options] */
const put = (channel, key, data, options) => gateway.api('map_publish', { channel, key, data, ...options })

/** @param {string} channel @param {number} count @param {object} [options] */
async function fill(channel, count, options) {
  for (let n = 0; n < count; n++) await put(channel, `k${n}`, n, options)
}

const keysOf = (/** @type {any[]} */ publications = []) => publications.map(({ key }) => key)

/**
 * @param {RawClient} client @param {string} channel @param {object} request
 * @returns {Promise<any>} the result, or the reply with an error
 */
async function ask(client, channel, request) {
  const reply = await client.subscribe(channel, { type: 1, ...request })
  return reply.subscribe ?? reply
}

/** @param {number} code @param {string} message */
const failed = (code, message) => ({ error: error(code, message) })
const DENIED = failed(103, 'permission denied')
const BAD = failed(107, 'bad request')
const LOST = failed(112, 'unrecoverable position')

t.test('a small state and the subscription come in one reply', async t => {
  const client = await connect(t)
  for (const namespace of ['fleeting', 'board']) {
    const channel = newMap(namespace)
    await put(channel, 'a', { n: 1 }, { tags: { team: 'red' } })
    const reply = await ask(client, channel, { phase: STATE })
    t.match(reply, { type: 1, state: [{ key: 'a', data: { n: 1 }, tags: { team: 'red' } }] })
    t.notHas(reply, 'phase')
    t.notHas(reply, 'cursor')
    if (namespace === 'board') t.match(reply, { recoverable: true, offset: 1, epoch: String })
    else t.notHas(reply, 'recoverable')
    await put(channel, 'b', 2)
    t.match(await client.push('pub'), { channel, pub: { key: 'b', data: 2 } })
    await gateway.api('map_remove', { channel, key: 'a' })
    const { pub } = await client.push('pub')
    t.match(pub, { key: 'a', removed: true, tags: { team: 'red' } })
    t.notHas(pub, 'data')
    await client.call('unsubscribe', { channel })
  }
})

t.test('pages show the state of the first one, the changes follow', async t => {
  const client = await connect(t)
  const channel = newMap('board')
  await fill(channel, 10)
  const first = await ask(client, channel, { phase: STATE })
  t.match(first, { type: 1, phase: STATE, offset: 10, cursor: String, epoch: String })
  t.same(keysOf(first.state), ['k0', 'k1', 'k2', 'k3'], 'default_page_size')
  const { epoch } = first
  await put(channel, 'k9', 'new')
  await put(channel, 'k5', 'new')
  const second = await ask(client, channel, {
    phase: STATE,
    cursor: first.cursor,
    offset: 10,
    epoch,
    limit: 3,
  })
  t.match(second, { phase: STATE, offset: 10, epoch })
  t.same(keysOf(second.state), ['k4', 'k6', 'k7'], 'without the entry that is newer')
  const last = await ask(client, channel, { phase: STATE, cursor: second.cursor, offset: 10, epoch })
  t.notHas(last, 'phase')
  t.same(keysOf(last.state), ['k8'])
  t.match(last, {
    offset: 12,
    publications: [
      { key: 'k9', data: 'new', offset: 11 },
      { key: 'k5', data: 'new', offset: 12 },
    ],
  })
})

t.test('more changes than a page are read in pages', async t => {
  const client = await connect(t)
  const channel = newMap('board')
  await fill(channel, 5)
  const { cursor, epoch } = await ask(client, channel, { phase: STATE })
  for (let n = 0; n < 11; n++) await put(channel, `c${n}`, n)
  const end = await ask(client, channel, { phase: STATE, cursor, epoch, offset: 5 })
  t.match(end, { phase: STATE, offset: 5, epoch, state: [{ key: 'k4' }] })
  t.notHas(end, 'cursor')
  const page = await ask(client, channel, { phase: STREAM, offset: 5, epoch })
  t.match(page, { phase: STREAM, offset: 9, epoch })
  t.same(keysOf(page.publications), ['c0', 'c1', 'c2', 'c3'])
  const next = await ask(client, channel, { phase: STREAM, offset: 9, epoch })
  t.match(next, { phase: STREAM, offset: 13 })
  await put(channel, 'late', 1)
  const live = await ask(client, channel, { phase: STREAM, offset: 13, epoch })
  t.notHas(live, 'phase')
  t.notHas(live, 'was_recovering')
  t.same(keysOf(live.publications), ['c8', 'c9', 'c10', 'late'])
  t.equal(live.offset, 17)
})

t.test('a client with a position recovers without the state', async t => {
  const client = await connect(t)
  const channel = newMap('board')
  await fill(channel, 3)
  const { epoch } = await ask(client, channel, { phase: STATE })
  await client.call('unsubscribe', { channel })
  await fill(channel, 2)
  const near = await ask(client, channel, { phase: STREAM, recover: true, offset: 3, epoch })
  t.match(near, {
    was_recovering: true,
    recovered: true,
    offset: 5,
    publications: [{ offset: 4 }, { offset: 5 }],
  })
  t.notHas(near, 'state')
  await client.call('unsubscribe', { channel })
  await fill(channel, 10)
  const far = await ask(client, channel, { phase: STREAM, recover: true, offset: 5, epoch, limit: 6 })
  t.match(far, { phase: STREAM, offset: 11 })
  const live = await ask(client, channel, { phase: STREAM, recover: true, offset: 11, epoch, limit: 6 })
  t.match(live, { was_recovering: true, recovered: true, offset: 15 })
  t.equal(live.publications.length, 4)
  await client.call('unsubscribe', { channel })
  t.match(
    await ask(client, channel, { recover: true, offset: 15, epoch }),
    { recovered: true, offset: 15 },
    'the phase LIVE',
  )
})

t.test('a position that cannot be recovered', async t => {
  const client = await connect(t)
  const channel = newMap('board')
  await fill(channel, 30)
  const position = (await gateway.api('map_read_stream', { channel })).result
  for (const [request, why] of /** @type {[object, string][]} */ ([
    [{ offset: 30, epoch: 'other' }, 'another epoch'],
    [{ offset: 30, epoch: '' }, 'no epoch'],
    [{ offset: 5, epoch: position.epoch }, 'trimmed changes'],
    [{ offset: 0, epoch: position.epoch }, 'the start of a trimmed stream'],
    [{ offset: 31, epoch: position.epoch }, 'a position in the future'],
    [{ offset: 2 ** 53 - 1, epoch: position.epoch }, 'the largest offset'],
  ]))
    t.match(await ask(client, channel, { phase: STREAM, recover: true, ...request }), LOST, why)
  const limited = newMap('strict')
  await put(limited, 'a', 1)
  const { result } = await gateway.api('map_read_stream', { channel: limited })
  await fill(limited, 3)
  const request = { phase: STREAM, recover: true, offset: 1, epoch: result.epoch }
  t.match(await ask(client, limited, request), LOST, 'above live_transition_max_publication_limit')
  t.match(await ask(client, limited, { ...request, offset: 2 }), { recovered: true, offset: 4 })
})

t.test('a map cleared between two pages', async t => {
  const client = await connect(t)
  const channel = newMap('board')
  await fill(channel, 6)
  const { cursor, epoch } = await ask(client, channel, { phase: STATE })
  await gateway.api('map_clear', { channel })
  const next = { phase: STATE, cursor, epoch, offset: 6 }
  t.match(await ask(client, channel, next), LOST)
  t.match(await ask(client, channel, next), DENIED, 'the catch-up has ended')
  t.match(await ask(client, channel, { phase: STATE }), { type: 1, recoverable: true })
})

t.test('changes of an ephemeral map while a client reads its pages', async t => {
  const client = await connect(t)
  const channel = newMap('fleeting')
  await fill(channel, 9)
  const { cursor, state } = await ask(client, channel, { phase: STATE })
  t.same(keysOf(state), ['k0', 'k1', 'k2', 'k3'])
  await put(channel, 'k0', 'old')
  await put(channel, 'k0', 'new')
  await gateway.api('map_remove', { channel, key: 'k1' })
  await put(channel, 'a', 1)
  const last = await ask(client, channel, { phase: STATE, cursor, limit: 8 })
  t.same(keysOf(last.state), ['k4', 'k5', 'k6', 'k7', 'k8'])
  t.match(last.publications, [{ key: 'k0', data: 'new' }, { key: 'k1', removed: true }, { key: 'a' }])
})

t.test('a tags filter applies to pages, changes and pushes', async t => {
  const client = await connect(t)
  const channel = newMap('board')
  const tf = { key: 'team', cmp: 'eq', val: 'red' }
  for (let n = 0; n < 8; n++) await put(channel, `k${n}`, n, { tags: { team: n % 2 ? 'red' : 'blue' } })
  const first = await ask(client, channel, { phase: STATE, tf })
  t.same(keysOf(first.state), ['k1', 'k3'])
  await put(channel, 'x', 1, { tags: { team: 'red' } })
  await put(channel, 'y', 1, { tags: { team: 'blue' } })
  const { cursor, epoch, offset } = first
  const last = await ask(client, channel, { phase: STATE, cursor, epoch, offset, limit: 8 })
  t.same(
    [keysOf(last.state), keysOf(last.publications)],
    [['k5', 'k7'], ['x']],
    'the filter of the first request',
  )
  t.equal(last.offset, 10)
  await put(channel, 'z', 1, { tags: { team: 'blue' } })
  await put(channel, 'x', 2, { tags: { team: 'red' } })
  t.match(await client.push('pub'), { pub: { key: 'x', data: 2, offset: 12 } })
  t.match(await ask(client, newMap('fleeting'), { phase: STATE, tf }), BAD, 'without allow_tags_filter')
  t.match(await ask(client, newMap('board'), { phase: STATE, tf: { key: 'team', cmp: 'like' } }), BAD)
})

t.test('entries of a page have all fields, with and without a filter', async t => {
  const client = await connect(t)
  const channel = newMap('board')
  const tags = { größe: '"\\' }
  const written = [
    { key: 'a "quoted" \\ key\n', data: { text: 'ä\u2028🎉中文', n: [1.5, null] } },
    { key: 'a', data: '' },
    { key: 'schlüssel 🗝', data: 'x', tags, version: 7 },
    { key: 'k'.repeat(100), data: -0.5 },
  ]
  for (const { key, data, ...options } of written) await put(channel, key, data, options)
  const read = async (/** @type {object} */ more) => {
    const { state } = await ask(client, channel, { phase: STATE, ...more })
    await client.call('unsubscribe', { channel })
    return state
  }
  const state = await read({})
  const inOrder = written.sort((a, b) => Buffer.compare(Buffer.from(a.key), Buffer.from(b.key)))
  t.match(state, inOrder)
  for (const { offset, time } of state) t.ok(offset > 0 && time > 0)
  t.same(await read({ tf: { key: 'none', cmp: 'neq', val: 'x' } }), state)
})

t.test('requests out of order', async t => {
  const client = await connect(t)
  const [board, fleeting] = [newMap('board'), newMap('fleeting')]
  for (const channel of [board, fleeting]) await fill(channel, 9)
  const epoch = 'e'
  for (const [channel, request, answer, why] of /** @type {[string, object, object, string][]} */ ([
    [board, { phase: STATE, cursor: 'k1' }, DENIED, 'a page without the first'],
    [board, { phase: STREAM, offset: 1, epoch }, DENIED, 'changes without the state'],
    [board, {}, DENIED, 'LIVE without the state'],
    [board, { phase: 3 }, DENIED, 'an unknown phase'],
    [board, { phase: 3, recover: true, epoch }, BAD, 'an unknown phase'],
    [board, { phase: -1, recover: true, epoch }, BAD, 'an unknown phase'],
    [fleeting, { phase: STREAM, recover: true, epoch }, BAD, 'changes of an ephemeral map'],
    [fleeting, { recover: true, epoch }, BAD, 'recovery in an ephemeral map'],
  ]))
    t.match(await ask(client, channel, request), answer, why)
  const { cursor } = await ask(client, fleeting, { phase: STATE })
  t.match(await ask(client, fleeting, { phase: STATE }), failed(105, 'already subscribed'))
  t.match(await ask(client, fleeting, { phase: STREAM, cursor }), BAD, 'ends the catch-up')
  t.match(await ask(client, fleeting, { phase: STATE, cursor }), DENIED)
  await ask(client, board, { phase: STATE })
  t.match(await ask(client, board, { phase: STATE, cursor: 'k3', epoch: 'other' }), LOST)
  const whole = newMap('board')
  await ask(client, whole, { phase: STATE })
  t.match(await ask(client, whole, { phase: STATE }), failed(105, 'already subscribed'))
})

t.test('requests of another type', async t => {
  const client = await connect(t)
  for (const [channel, type, answer] of /** @type {[string, number | undefined, object][]} */ ([
    [newMap('board'), 0, DENIED],
    [newMap('board'), undefined, DENIED],
    [newMap('board'), 2, DENIED],
    [newMap('board'), 4, failed(108, 'not available')],
    [newMap('board'), 9, DENIED],
    [newMap('board'), -1, DENIED],
    [newMap('stream'), 1, DENIED],
    [newMap('stream'), 4, failed(108, 'not available')],
    ['unknown:1', 1, failed(102, 'unknown channel')],
    [newMap('secret'), 1, DENIED],
  ]))
    t.match(await ask(client, channel, { type, phase: STATE }), answer, `${channel}, type ${type}`)
})

t.test('forged cursors return a page of the map, or nothing', async t => {
  const client = await connect(t)
  const channel = newMap('board')
  await fill(channel, 6)
  for (const cursor of ['k2', 'zzz', '\u0000', '😀'.repeat(500)]) {
    await ask(client, channel, { phase: STATE })
    const page = await ask(client, channel, { phase: STATE, cursor })
    t.ok(page.state === undefined || keysOf(page.state).every(key => /^k\d$/.test(key)), cursor.slice(0, 9))
    await client.call('unsubscribe', { channel })
  }
})

t.test('catch-ups count as channels until they end', async t => {
  const client = await connect(t)
  const maps = Array.from({ length: 6 }, () => newMap('board'))
  for (const channel of maps) await fill(channel, 5)
  for (const channel of maps.slice(0, 4))
    t.match(await ask(client, channel, { phase: STATE }), { cursor: String })
  const full = failed(106, 'limit exceeded')
  t.match(await ask(client, maps[4], { phase: STATE }), full)
  t.match(await client.subscribe(newMap('stream')), full)
  await client.call('unsubscribe', { channel: maps[0] })
  t.match(await ask(client, maps[0], { phase: STATE, cursor: 'k1' }), DENIED)
  t.match(await ask(client, maps[1], { phase: STATE, cursor: 'k3' }), {
    state: [{ key: 'k4' }],
    recoverable: true,
  })
  t.match(await ask(client, maps[4], { phase: STATE }), { cursor: String })
  t.match(await ask(client, maps[5], { phase: STATE }), full)
  t.match((await gateway.api('channels')).result.channels[maps[1]], { num_clients: 1 })
  t.notHas((await gateway.api('channels')).result.channels, maps[2], 'a catch-up is no subscriber')
})

t.test('a catch-up past its deadline', async t => {
  const client = await connect(t)
  const abandoned = Array.from({ length: 4 }, () => newMap('hasty'))
  for (const channel of abandoned) await fill(channel, 5)
  for (const channel of abandoned) await ask(client, channel, { phase: STATE })
  const another = newMap('board')
  await until(async () => (await ask(client, another, { phase: STATE })).type === 1)
  t.pass('abandoned ones of other channels are removed')
  const late = await connect(t)
  const reply = await ask(late, abandoned[0], { phase: STATE })
  t.ok(reply.cursor)
  // Its deadline passes before that of a later one.
  const later = await connect(t)
  for (const channel of abandoned) await ask(later, channel, { phase: STATE })
  await until(async () => (await ask(later, newMap('board'), { phase: STATE })).type === 1)
  late.send({ id: 99, subscribe: { channel: abandoned[0], type: 1, phase: STATE, cursor: reply.cursor } })
  t.match(await late.closed, { code: 3008, reason: 'slow' })
})

for (const [what, data, options] of /** @type {[string, any, object][]} */ ([
  ['values', 'x'.repeat(50_000), {}],
  ['tags', 1, { tags: { t: 'x'.repeat(50_000) } }],
]))
  t.test(`large ${what} do not overflow the queue of a client`, async t => {
    const client = await connect(t)
    const channel = newMap('large')
    for (let n = 0; n < 12; n++) await put(channel, `k${n}`, data, options)
    /** @type {string[]} */
    const keys = []
    let reply = await ask(client, channel, { phase: STATE, limit: 100 })
    const { epoch, offset } = reply
    for (let n = 0; n < 9; n++) await put(channel, `new${n}`, data, options)
    for (
      ;
      reply.cursor;
      reply = await ask(client, channel, { phase: STATE, cursor: reply.cursor, epoch, offset })
    ) {
      t.ok(reply.state.length < 6)
      keys.push(...keysOf(reply.state))
    }
    keys.push(...keysOf(reply.state))
    t.match(reply, { phase: STATE }, 'state and changes do not fit into one reply')
    while (reply.phase) {
      reply = await ask(client, channel, { phase: STREAM, epoch, offset: reply.offset })
      t.notHas(reply, 'error')
      keys.push(...keysOf(reply.publications))
    }
    t.equal(new Set(keys).size, 21)
    t.equal(keys.length, 21, 'each once')
    t.equal(client.ended, null)
  })

t.test('an unsubscribe of the server API ends a catch-up', async t => {
  const client = await connect(t)
  const channel = newMap('board')
  await fill(channel, 5)
  const { cursor } = await ask(client, channel, { phase: STATE })
  await gateway.api('unsubscribe', { channel, user: '', client: client.connect.client })
  t.match(await client.push('unsubscribe'), { channel, unsubscribe: { code: 2000 } })
  t.match(await ask(client, channel, { phase: STATE, cursor }), DENIED)
})

t.test('with client.concurrency, one page of a map at a time', async t => {
  const concurrent = await startGateway(t, {
    workers: 1,
    client: { allow_anonymous_connect_without_token: true, concurrency: 8 },
    channel: { namespaces },
  })
  const client = await RawClient.connected(concurrent.ws)
  t.teardown(() => client.socket.terminate())
  const channel = 'board:1'
  for (let n = 0; n < 12; n++) await concurrent.api('map_publish', { channel, key: `k${n}`, data: n })
  const page = (/** @type {number} */ id, /** @type {string} */ cursor) => ({
    id,
    subscribe: { channel, type: 1, phase: STATE, cursor },
  })
  client.send(page(11, ''), page(12, ''), page(13, 'k1'))
  t.match(await client.next(({ id }) => id === 12), failed(105, 'already subscribed'))
  const conflict = { error: error(113, 'concurrent pagination', true) }
  t.match(await client.next(({ id }) => id === 13), conflict)
  t.match((await client.next(({ id }) => id === 11)).subscribe, { phase: STATE, cursor: String })
  client.send(page(14, 'k11'), page(15, 'k11'), { id: 16, unsubscribe: { channel } }, page(17, 'k11'))
  t.match(await client.next(({ id }) => id === 15), conflict)
  t.match((await client.next(({ id }) => id === 14)).subscribe, { cursor: String }, 'not disturbed')
  t.match(await client.next(({ id }) => id === 16), { unsubscribe: {} })
  t.match(await client.next(({ id }) => id === 17), DENIED, 'after the unsubscribe')
})
