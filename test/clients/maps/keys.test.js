// Keys and appended parts of clients.

import t from 'tap'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { error, token, tokenClient } from '../session/support.js'

/** @param {object} map options */
const namespace = map => ({
  subscription_type: 'map',
  allow_subscribe_for_client: true,
  allow_subscribe_for_anonymous: true,
  map: { mode: 'recoverable', key_ttl: '60s', ...map },
})
const OPEN = { allow_publish_for_client: true, allow_remove_for_client: true }
const EVERYBODY = { ...OPEN, allow_publish_for_anonymous: true, allow_remove_for_anonymous: true }

const gateway = await startGateway(t, {
  workers: 1,
  client: tokenClient({ allow_anonymous_connect_without_token: true }),
  channel: {
    namespaces: [
      { name: 'open', ...namespace(OPEN) },
      { name: 'everybody', ...namespace({ ...EVERYBODY, max_value_bytes: 64 }) },
      {
        name: 'client',
        ...namespace({ ...EVERYBODY, client_key: 'client_id', remove_client_on_unsubscribe: true }),
      },
      { name: 'user', ...namespace({ ...EVERYBODY, client_key: 'user_id' }) },
    ],
  },
})

/** @param {any} t @param {string} [user] '' = anonymous */
async function connect(t, user = '') {
  const client = await RawClient.connected(gateway.ws, user ? { token: token({ sub: user }) } : {})
  t.teardown(() => client.socket.terminate())
  return client
}

let channels = 0
const newMap = (/** @type {string} */ name) => `${name}:${++channels}`

/** @param {RawClient} client @param {string} channel @param {string} key @param {object} [more] @returns {Promise<any>} */
async function put(client, channel, key, more) {
  const reply = await client.call('publish', { channel, type: 1, key, data: 1, ...more })
  return reply.publish ?? reply.error
}

/** @param {RawClient} client @param {string} channel @param {string} key */
const remove = (client, channel, key) => put(client, channel, key, { data: undefined, removed: true })

/** @param {string} channel */
async function entries(channel) {
  const { result } = await gateway.api('map_read_state', { channel, limit: -1 })
  return Object.fromEntries(result.entries.map((/** @type {any} */ { key, data }) => [key, data]))
}

const DENIED = error(103, 'permission denied')
const BAD = error(107, 'bad request')

t.test('keys', async t => {
  const client = await connect(t)
  const channel = newMap('everybody')
  for (const key of ['', 'k'.repeat(1025), 'é'.repeat(513), '\ud800'])
    t.strictSame(await put(client, channel, key), BAD, key.slice(0, 3))
  t.strictSame(await put(client, channel, /** @type {any} */ (undefined)), BAD)
  for (const key of ['k'.repeat(1024), '__proto__', '键🎈', ' ', '\u0000'])
    t.strictSame(await put(client, channel, key), {}, JSON.stringify(key.slice(0, 9)))
  t.equal(Object.keys(await entries(channel)).length, 5)
})

t.test('the gateway sets the key with map.client_key', async t => {
  const [anna, nobody] = [await connect(t, 'anna'), await connect(t)]
  const [byClient, byUser] = [newMap('client'), newMap('user')]
  await put(anna, byClient, 'mine')
  await put(nobody, byClient, '')
  t.strictSame(await entries(byClient), { [anna.connect.client]: 1, [nobody.connect.client]: 1 })
  await put(anna, byUser, 'mine')
  t.strictSame(await put(nobody, byUser, 'mine'), DENIED, 'anonymous')
  t.strictSame(await entries(byUser), { anna: 1 })
  await anna.subscribe(byClient, { type: 1, phase: 2 })
  await anna.call('unsubscribe', { channel: byClient })
  await remove(nobody, byClient, 'another')
  t.strictSame(await entries(byClient), {}, 'an unsubscribe removes the key')
})

t.test('append', async t => {
  const client = await connect(t)
  const channel = newMap('everybody')
  const append = (/** @type {any} */ data, key = 'a') => put(client, channel, key, { append: true, data })
  t.match(await append('one'), { offset: 1 })
  t.match(await append(' "two"'), { offset: 2 })
  t.strictSame(await entries(channel), { a: 'one "two"' })
  t.strictSame(await append(3), BAD, 'a number')
  t.strictSame(await append('x'.repeat(64)), BAD, 'above max_value_bytes')
  await put(client, channel, 'object', { data: {} })
  t.strictSame(await append('x', 'object'), BAD, 'to an object')
  t.strictSame(await entries(channel), { a: 'one "two"', object: {} })
})

t.test('a client that recovers parts gets whole values', async t => {
  const client = await connect(t)
  const channel = newMap('open')
  const writer = await connect(t, 'anna')
  const append = (/** @type {string} */ data, key = 'a') => put(writer, channel, key, { append: true, data })
  await append('1')
  const { subscribe } = await client.subscribe(channel, { type: 1, phase: 2 })
  const { epoch, offset } = subscribe
  t.equal(offset, 1)
  await client.call('unsubscribe', { channel })
  for (const part of ['2', '3', '4']) await append(part)
  await append('x', 'new')
  const reply = await client.subscribe(channel, { type: 1, phase: 1, recover: true, offset, epoch })
  t.match(reply.subscribe, {
    recovered: true,
    offset: 5,
    publications: [
      { key: 'a', data: '1234', offset: 4 },
      { key: 'new', data: 'x', offset: 5 },
    ],
  })
  t.notHas(reply.subscribe.publications[0], 'append')
})

t.test('a client that joins parts recovers parts', async t => {
  const client = await RawClient.connected(gateway.ws, { flag: 1 << 30 })
  t.teardown(() => client.socket.terminate())
  const channel = newMap('open')
  const writer = await connect(t, 'anna')
  const append = (/** @type {string} */ data) => put(writer, channel, 'a', { append: true, data })
  await append('1')
  const { epoch } = (await client.subscribe(channel, { type: 1, phase: 2 })).subscribe
  await client.call('unsubscribe', { channel })
  await append('2')
  const reply = await client.subscribe(channel, { type: 1, phase: 1, recover: true, offset: 1, epoch })
  t.match(reply.subscribe.publications, [{ key: 'a', data: '2', append: true, offset: 2 }])
  await append('3')
  t.match(await client.push('pub'), { pub: { key: 'a', data: '3', append: true, offset: 3 } })
})
