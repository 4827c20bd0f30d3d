// Publications that exclude a client or a user, or are for some users only (docs/access.md).

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { startGateway } from '../../kit/gateway.js'
import { PollClient } from '../../kit/poll-client.js'
import { StreamClient } from '../../kit/stream-client.js'
import { clients, poll } from '../../kit/uni-poll-client.js'
import { DeltaReader } from '../delta/reader.js'
import { ProtobufClient } from '../transport/protobuf-client.js'
import { history, open, roundTrip, token, tokenClient, user } from './support.js'

const recovered = { ...open, ...history, force_recovery: true }
const FILL = 'what stays the same from one publication to the next, '.repeat(4)

const gateway = await startGateway(t, {
  client: tokenClient(),
  sse: { enabled: true },
  http_stream: { enabled: true },
  poll: { enabled: true },
  uni_sse: { enabled: true },
  uni_poll: { enabled: true },
  channel: {
    targeted_publications: true,
    without_namespace: { ...open, allow_tags_filter: true },
    namespaces: [
      { name: 'kept', ...recovered },
      { name: 'cache', ...recovered, force_recovery_mode: 'cache', auto_cache_recover: true },
      { name: 'delta', ...recovered, allowed_delta_types: ['fossil'], delta_publish: true },
      { name: 'batch', ...recovered, batch_max_size: 10, batch_max_delay: '60s' },
      { name: 'echo', ...recovered, publish_exclude_sender: true },
      {
        name: 'compact',
        ...open,
        allow_channel_compaction: true,
        allowed_delta_types: ['fossil'],
        delta_publish: true,
        keep_latest_publication: true,
      },
    ],
  },
})

/** @param {string} channel @param {any} data @param {object} [target] */
const publish = async (channel, data, target) => {
  const { result, error } = await gateway.api('publish', { channel, data, ...target })
  if (error) throw new Error(`${channel}: ${error.message}`)
  return result
}

/** A client of a user, subscribed. @param {any} t @param {string} sub @param {string} channel @param {object} [request] */
async function subscribed(t, sub, channel, request) {
  const client = await user(t, gateway, { sub })
  const { subscribe } = await client.subscribe(channel, request)
  return Object.assign(client, { reply: subscribe })
}

/** @param {any} client @returns {Promise<any>} data of its next publication */
const next = async client => (await client.push('pub')).pub.data
const dataOf = (/** @type {any[]} */ publications) => publications.map(({ data }) => data)

t.test('exclude_client: one connection does not receive it', async t => {
  const [a, same, b] = await Promise.all(['u1', 'u1', 'u2'].map(sub => subscribed(t, sub, 'client')))
  await publish('client', 1, { exclude_client: a.connect.client })
  await publish('client', 2, { exclude_client: 'unknown' })
  t.equal(await next(a), 2)
  for (const client of [same, b]) t.strictSame([await next(client), await next(client)], [1, 2])
})

t.test('compact subscribers, and the latest publication as the base of deltas', async t => {
  const channel = 'compact:x'
  const [a, b] = await Promise.all(['u1', 'u2'].map(sub => subscribed(t, sub, channel, { flag: 1 })))
  const delta = await subscribed(t, 'u3', channel, { flag: 1, delta: 'fossil' })
  const reader = new DeltaReader()
  const read = async () => {
    const { id, pub } = await delta.push('pub')
    return [id, Boolean(pub.delta), JSON.parse(reader.read(pub))]
  }
  const { id } = a.reply
  t.ok(id > 0)
  await publish(channel, `${FILL}1`)
  await publish(channel, `${FILL}2`)
  await publish(channel, `${FILL}3`, { exclude_client: a.connect.client })
  await publish(channel, `${FILL}4`, { users: ['u2', 'u3'] })
  await publish(channel, `${FILL}5`)
  const pushes = async (/** @type {any} */ client, /** @type {number[]} */ numbers) => {
    for (const n of numbers) t.match(await client.push('pub'), { id, pub: { data: `${FILL}${n}` } })
  }
  await pushes(a, [1, 2, 5])
  await pushes(b, [1, 2, 3, 4, 5])
  t.strictSame(await read(), [id, false, `${FILL}1`])
  t.strictSame(await read(), [id, true, `${FILL}2`])
  for (const n of [3, 4, 5]) t.strictSame(await read(), [id, false, `${FILL}${n}`], 'full')
})

t.test('exclude_user: no connection of the user receives it, over any transport', async t => {
  const channel = 'user'
  const all = async (/** @type {string} */ sub) => {
    const request = { token: token({ sub }) }
    const connect = encodeURIComponent(JSON.stringify({ ...request, subs: { [channel]: {} } }))
    const [protobuf, stream, sse, uniSse, long, ...two] = await Promise.all([
      ProtobufClient.connected(gateway.ws, request),
      StreamClient.connected(gateway.url, 'http_stream', request),
      StreamClient.connected(gateway.url, 'sse', request),
      StreamClient.open(gateway.url, `/connection/uni_sse?cf_connect=${connect}`),
      PollClient.connected(gateway, request),
      user(t, gateway, { sub }),
      user(t, gateway, { sub }),
    ])
    t.teardown(() => [protobuf, stream, sse, uniSse].map(client => client.close()))
    const twoWay = [protobuf, stream, sse, long, ...two]
    for (const client of twoWay) await client.subscribe(channel)
    await uniSse.next()
    return { twoWay, uniSse }
  }
  const [u1, u2] = await Promise.all(['u1', 'u2'].map(all))
  await publish(channel, 1, { exclude_user: 'u1' })
  await publish(channel, 2)
  await publish(channel, 3, { users: ['u1'] })
  await publish(channel, 4)
  for (const [{ twoWay, uniSse }, expected] of /** @type {const} */ ([
    [u1, [2, 3, 4]],
    [u2, [1, 2, 4]],
  ])) {
    for (const client of twoWay) {
      const read = []
      for (const _ of expected) read.push(Number(await next(client)))
      t.strictSame(read, expected)
    }
    const read = []
    for (const _ of expected) read.push((await uniSse.next(({ pub }) => pub)).pub.data)
    t.strictSame(read, expected, 'one-way')
  }
})

t.test('exclude_client and exclude_user together; within the filter of a client', async t => {
  const tf = { key: 'k', cmp: 'eq', val: 'x' }
  const [a, b, c] = await Promise.all(['u1', 'u2', 'u3'].map(sub => subscribed(t, sub, 'both', { tf })))
  const tags = { k: 'x' }
  await publish('both', 1, { tags, exclude_client: a.connect.client, exclude_user: 'u2' })
  await publish('both', 2, { tags: { k: 'y' }, exclude_user: 'u2' })
  await publish('both', 3, { tags: { k: 'y' }, users: ['u3'] })
  await publish('both', 4, { tags, users: ['u3', 'u1', 'u1', 'nobody'] })
  await publish('both', 5, { tags })
  t.equal(await next(b), 5)
  t.strictSame([await next(a), await next(a)], [4, 5])
  t.strictSame([await next(c), await next(c), await next(c)], [1, 4, 5])
})

t.test('a publication that excludes a user is stored, and recovered and read by others only', async t => {
  const channel = 'kept:user'
  const a = await subscribed(t, 'u1', channel)
  const { epoch } = a.reply
  await a.close()
  for (const n of [1, 2, 3]) await publish(channel, n, n === 2 ? { exclude_user: 'u1' } : {})
  const request = { recover: true, epoch, offset: 0 }
  const back = await subscribed(t, 'u1', channel, request)
  t.equal(back.reply.recovered, true)
  t.strictSame(dataOf(back.reply.publications), [1, 3])
  const other = await subscribed(t, 'u2', channel, request)
  t.strictSame(dataOf(other.reply.publications), [1, 2, 3])
  await publish(channel, 4)
  t.match((await back.push('pub')).pub, { data: 4, offset: 4 })
  for (const [client, expected] of /** @type {[any, number[]][]} */ ([
    [back, [1, 3, 4]],
    [other, [1, 2, 3, 4]],
  ])) {
    const read = (await client.call('history', { channel, limit: 10 })).history
    t.strictSame(dataOf(read.publications), expected)
    t.equal(read.offset, 4)
  }
  const { publications } = (await gateway.api('history', { channel, limit: 2 })).result
  t.strictSame(publications, [
    { data: 1, offset: 1 },
    { data: 2, offset: 2, exclude_user: 'u1' },
  ])
})

t.test('an excluded connection receives it as a new connection', async t => {
  const channel = 'kept:client'
  const a = await subscribed(t, 'u1', channel)
  const { epoch } = a.reply
  const request = { recover: true, epoch, offset: 0 }
  await publish(channel, 1, { exclude_client: a.connect.client })
  await publish(channel, 2)
  t.equal(await next(a), 2)
  await a.call('unsubscribe', { channel })
  t.strictSame(dataOf((await a.subscribe(channel, request)).subscribe.publications), [2])
  t.strictSame(dataOf((await subscribed(t, 'u1', channel, request)).reply.publications), [1, 2])
})

t.test('cache recovery returns the newest one that does not exclude the user', async t => {
  const channel = 'cache:c'
  for (const n of [1, 2, 3]) await publish(channel, n, n > 1 ? { exclude_user: 'u1' } : {})
  const [a, b] = await Promise.all(['u1', 'u2'].map(sub => subscribed(t, sub, channel)))
  t.match(a.reply, { recovered: true, publications: [{ data: 1, offset: 1 }] })
  t.equal(a.reply.publications.length, 1)
  t.match(b.reply, { recovered: true, publications: [{ data: 3, offset: 3 }] })
  await publish(channel, 4)
  t.equal(await next(a), 4)
})

t.test('users: only their subscribed connections receive it, and it is not stored', async t => {
  const channel = 'kept:users'
  const [a, b, c] = await Promise.all(['u1', 'u2', 'u1'].map(sub => subscribed(t, sub, channel)))
  await c.call('unsubscribe', { channel })
  await publish(channel, 1)
  t.strictSame(await publish(channel, 2, { users: ['u1'] }), {}, 'without offset')
  await publish(channel, 3)
  t.match([(await a.push('pub')).pub, (await a.push('pub')).pub], [{ data: 1, offset: 1 }, { data: 2 }])
  t.match((await a.push('pub')).pub, { data: 3, offset: 2 })
  t.strictSame([await next(b), await next(b)], [1, 3])
  await roundTrip(c)
  t.notOk(c.messages.some(({ push }) => push))
  const { publications, offset } = (await gateway.api('history', { channel, limit: 10 })).result
  t.strictSame(dataOf(publications), [1, 3])
  t.equal(offset, 2)
  const missed = await subscribed(t, 'u1', channel, { recover: true, epoch: a.reply.epoch, offset: 0 })
  t.strictSame(dataOf(missed.reply.publications), [1, 3])
})

t.test('publish_exclude_sender: a client gets the reply, not its publication', async t => {
  const channel = 'echo:room'
  const [a, same, b] = await Promise.all(['u1', 'u1', 'u2'].map(sub => subscribed(t, sub, channel)))
  t.strictSame((await a.call('publish', { channel, data: 1 })).publish, {})
  await b.call('publish', { channel, data: 2 })
  t.match((await a.push('pub')).pub, { data: 2, offset: 2 })
  t.strictSame([await next(same), await next(same)], [1, 2])
  t.match((await b.push('pub')).pub, { data: 1, info: { user: 'u1', client: a.connect.client } })
  await publish(channel, 3)
  for (const client of [a, b]) t.equal(await next(client), 3)
})

t.test('deltas: it is sent in full, and so is the next one', async t => {
  const channel = 'delta:d'
  const readers = await Promise.all(
    ['u1', 'u2'].map(async sub => ({
      client: await subscribed(t, sub, channel, { delta: 'fossil' }),
      reader: new DeltaReader(),
    })),
  )
  const [a, b] = readers
  /** @param {number} n @param {object} target @param {...typeof a} receivers */
  const deliver = async (n, target, ...receivers) => {
    await publish(channel, FILL + n, target)
    for (const { client, reader } of receivers)
      t.equal(reader.read((await client.push('pub')).pub), JSON.stringify(FILL + n))
  }
  await deliver(1, {}, a, b)
  await deliver(2, {}, a, b)
  await deliver(3, { exclude_user: 'u1' }, b)
  await deliver(4, {}, a, b)
  await deliver(5, {}, a, b)
  await deliver(6, { users: ['u1'] }, a)
  await deliver(7, {}, a, b)
  await deliver(8, {}, a, b)
  t.strictSame(a.reader.taken(), ['full', 'delta', 'full', 'delta', 'full', 'full', 'delta'])
  t.strictSame(b.reader.taken(), ['full', 'delta', 'full', 'full', 'delta', 'full', 'delta'])
})

t.test('batches: the open one is sent first, then the publication alone', async t => {
  const channel = 'batch:b'
  const [a, b] = await Promise.all(['u1', 'u2'].map(sub => subscribed(t, sub, channel)))
  for (const n of [1, 2]) await publish(channel, n)
  await publish(channel, 3, { exclude_user: 'u1' })
  t.strictSame([await next(b), await next(b), await next(b)], [1, 2, 3])
  t.strictSame(
    b.frames.slice(-2).map(frame => frame.split('\n').length),
    [2, 1],
  )
  t.strictSame([await next(a), await next(a)], [1, 2])
  await publish(channel, 4)
  await publish(channel, 5, { users: ['u1'] })
  t.strictSame([await next(a), await next(a)], [4, 5])
  t.equal(await next(b), 4)
  t.strictSame(
    [a, b].flatMap(({ messages }) => messages),
    [],
  )
})

t.test('one-way long-poll skips it for the user of the token', async t => {
  const channel = 'kept:polled'
  for (const n of [1, 2]) await publish(channel, n, n === 1 ? { exclude_user: 'u1' } : {})
  /** @param {string} sub @param {object} more */
  const ask = (sub, more) => poll(gateway, { channel, token: token({ sub }), ...more })
  const since = { since: 'earliest', timeout: 0 }
  const [a, b] = await Promise.all(['u1', 'u2', 'u1'].map(sub => ask(sub, since)))
  t.strictSame([a.data, b.data], [[2], [1, 2]])
  const waiting = [ask('u1', { cursor: a.cursor }), ask('u2', { cursor: b.cursor })]
  await clients(gateway, channel, 2)
  await publish(channel, 3, { exclude_user: 'u2' })
  const first = await waiting[0]
  t.strictSame(first.data, [3])
  await publish(channel, 4, { users: ['u1'] })
  const again = ask('u1', { cursor: first.cursor })
  await clients(gateway, channel, 2)
  await publish(channel, 5, { users: ['u2'] })
  t.strictSame((await waiting[1]).data, [5], 'it waits until something is for its user')
  await publish(channel, 6, { users: ['u1'] })
  t.strictSame((await again).data, [6], 'only while it waits')
})

t.test('broadcast, batch and idempotency keys', async t => {
  const channels = ['kept:x', 'kept:y']
  const [a, b] = await Promise.all(['u1', 'u2'].map(sub => user(t, gateway, { sub })))
  for (const client of [a, b]) for (const channel of channels) await client.subscribe(channel)
  await gateway.api('broadcast', { channels, data: 1, exclude_user: 'u1' })
  const [{ publish: first }, { publish: repeated }] = (
    await gateway.api('batch', {
      commands: [
        { publish: { channel: 'kept:x', data: 2, exclude_user: 'u1', idempotency_key: 'key' } },
        { publish: { channel: 'kept:x', data: 2, idempotency_key: 'key' } },
      ],
    })
  ).replies
  t.strictSame(repeated, first, 'the target of the first call counts')
  await publish('kept:x', 3)
  t.equal(await next(a), 3)
  const got = []
  for (let n = 0; n < 4; n++) got.push(await next(b))
  t.strictSame(got.sort(), [1, 1, 2, 3])
})

t.test('refused targets', async t => {
  const client = await subscribed(t, 'u1', 'refused')
  const users = Array.from({ length: 101 }, (_, n) => `user ${n}`)
  for (const target of [
    { users },
    { users: [] },
    { users: [''] },
    { users: ['u1'], exclude_user: 'u2' },
    { users: ['u1'], exclude_client: 'x' },
  ]) {
    const { error } = await gateway.api('publish', { channel: 'refused', data: 1, ...target })
    t.match(error, { code: 107, message: /^bad request: users / })
    const many = await gateway.api('broadcast', { channels: ['refused'], data: 1, ...target })
    t.match(many.error, { code: 107 })
  }
  await publish('refused', 2, { users: users.slice(2).concat('u1') })
  t.equal(await next(client), 2)
  await publish('refused', 3, { exclude_client: '', exclude_user: null, users: null })
  t.equal(await next(client), 3, 'empty fields exclude nobody')
})

t.test('without channel.targeted_publications', async t => {
  const file = join(gateway.folder, 'config.json')
  const config = JSON.parse(await readFile(file, 'utf8'))
  config.channel.targeted_publications = false
  await writeFile(file, JSON.stringify(config))
  gateway.process.kill('SIGHUP')
  const refused = await gateway.line(({ msg }) => msg === 'configuration not reloaded')
  t.match(JSON.stringify(refused), /publish_exclude_sender: true needs channel.targeted_publications/)
  config.channel.namespaces = config.channel.namespaces.filter(
    (/** @type {any} */ { name }) => name !== 'echo',
  )
  await writeFile(file, JSON.stringify(config))
  gateway.process.kill('SIGHUP')
  await gateway.line(({ msg }) => msg === 'configuration reloaded')
  const client = await subscribed(t, 'u1', 'kept:user')
  for (const target of [{ exclude_client: 'x' }, { exclude_user: 'u2' }, { users: ['u1'] }]) {
    const { error } = await gateway.api('publish', { channel: 'kept:user', data: 1, ...target })
    t.match(error, { code: 108 })
    const many = await gateway.api('broadcast', { channels: ['kept:user', 'none:x'], data: 1, ...target })
    t.match(many.error, { code: 108 })
  }
  const request = { recover: true, epoch: client.reply.epoch, offset: 1 }
  const back = await subscribed(t, 'u1', 'kept:user', request)
  t.strictSame(dataOf(back.reply.publications), [3, 4], 'what was stored still excludes the user')
  await publish('kept:user', 5)
  t.equal(await next(client), 5)
})
