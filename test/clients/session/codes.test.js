// Every code that a client can be given (client protocol), each brought about once. The tables of
// src/base/errors.js are held against the tables here, so that a new code needs a way to be reached, or a reason why not.

import t from 'tap'
import { disconnects, errors, unsubscribes } from '../../../src/base/errors.js'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'
import { at, error, forged, open, token, tokenClient } from './support.js'

/** @typedef {import('../../kit/gateway.js').TestGateway} TestGateway */

const config = {
  rpc: { ping: { enabled: true } },
  client: tokenClient({
    expired_close_delay: '0s',
    expired_sub_close_delay: '0s',
    channel_position_check_delay: '3s',
    user_connection_limit: 1,
    channel_limit: 2,
    queue_max_size: 100_000,
    disallow_anonymous_connection_tokens: true,
  }),
  channel: {
    without_namespace: { ...open, publication_data_format: 'binary' },
    namespaces: [
      { name: 'rec', ...open, history_size: 1, history_ttl: '60s', force_recovery: true },
      { name: 'shut', history_size: 1, history_ttl: '1s' },
      // Its streams are forgotten so soon that a position does not outlive the next check.
      {
        name: 'short',
        ...open,
        history_size: 1,
        history_ttl: '1s',
        history_meta_ttl: '1s',
        force_positioning: true,
      },
    ],
  },
}

t.jobs = 2

let users = 0

/**
 * A connected client.
 * @param {any} t
 * @param {TestGateway} gateway
 * @param {object} [claims]
 */
async function someone(t, gateway, claims = {}) {
  const sub = `user ${++users}`
  const client = await RawClient.connected(gateway.ws, {
    token: token({ sub, ...claims }),
  })
  t.teardown(() => client.socket.terminate())
  return Object.assign(client, { user: sub })
}

/**
 * A client with this connect request, or none.
 * @param {any} t
 * @param {TestGateway} gateway
 * @param {object} [request]
 */
async function newcomer(t, gateway, request) {
  const client = await RawClient.open(gateway.ws)
  t.teardown(() => client.socket.terminate())
  if (request) client.send({ id: 1, connect: request })
  return client
}

/** @type {Record<number, (t: any, gateway: TestGateway) => Promise<RawClient>>} each client is closed with the code */
const closed = {
  async 3005(t, gateway) {
    const client = await someone(t, gateway)
    await gateway.api('refresh', { user: client.user, expired: true })
    return client
  },
  async 3006(t, gateway) {
    const client = await someone(t, gateway)
    const subscribe = () => gateway.api('subscribe', { user: client.user, channel: 'a', expire_at: at(3) })
    // On a busy machine that time may be over before a worker hears of it.
    await until(async () => !(await subscribe()).error)
    return client
  },
  async 3008(t, gateway) {
    const client = await someone(t, gateway)
    await client.subscribe('much')
    const tcp = /** @type {any} */ (client.socket)._socket
    tcp.pause()
    const { client: id } = client.connect
    const commands = Array(40).fill({ publish: { channel: 'much', data: 'x'.repeat(50_000) } })
    await until(async () => {
      await gateway.api('batch', { commands })
      return !(id in (await gateway.api('presence', { channel: 'much' })).result.presence)
    })
    tcp.resume()
    return client
  },
  async 3010(t, gateway) {
    const client = await someone(t, gateway)
    client.send({ id: 9, refresh: { token: token({ sub: client.user, channels: ['a'] }) } })
    return client
  },
  async 3011(t, gateway) {
    const client = await someone(t, gateway)
    await gateway.api('disconnect', {
      user: client.user,
      disconnect: { code: 3011, reason: 'force reconnect' },
    })
    return client
  },
  async 3013(t, gateway) {
    const client = await someone(t, gateway)
    // Each subscribe waits for the broker, and everything behind it for the subscribe.
    const pair = [
      { id: 9, subscribe: { channel: 'flood' } },
      { id: 9, unsubscribe: { channel: 'flood' } },
    ]
    const frame = Array.from({ length: 500 }, () => pair).flat()
    for (let i = 0; i < 30; i++) client.send(...frame)
    return client
  },
  3500: async (t, gateway) => newcomer(t, gateway, { token: forged({ sub: 'u' }) }),
  3501: async (t, gateway) => newcomer(t, gateway, {}),
  async 3503(t, gateway) {
    const client = await someone(t, gateway)
    await gateway.api('disconnect', { user: client.user })
    return client
  },
  async 3504(t, gateway) {
    const { user } = await someone(t, gateway)
    return newcomer(t, gateway, { token: token({ sub: user }) })
  },
  3505: async (t, gateway) => newcomer(t, gateway, { token: token({ sub: 'u', channels: ['a', 'b', 'c'] }) }),
  async 3506(t, gateway) {
    const client = await someone(t, gateway)
    await client.subscribe('bytes')
    await gateway.api('publish', { channel: 'bytes', b64data: 'AAEC' })
    return client
  },
  3507: async (t, gateway) => newcomer(t, gateway, { token: token({}) }),
  async 3508(t, gateway) {
    const client = await someone(t, gateway)
    client.send({ send: { data: 1 } })
    return client
  },
}

const neverClosed = {
  3000: 'internal, never written',
  3001: 'at shutdown, below',
  3004: 'a fault of the server, and there shall be none',
  3012: 'in heartbeat.test.js',
  3009: 'a connection that cannot be written to cannot be told',
  3014: 'for the application to give',
  3502: 'in connect.unit.js',
  3509: 'errors are not counted',
}

/** @type {Record<number, (t: any, gateway: TestGateway) => Promise<any>>} each gives the reply */
const refused = {
  async 102(t, gateway) {
    return (await someone(t, gateway)).subscribe('nope:a')
  },
  async 103(t, gateway) {
    return (await someone(t, gateway)).subscribe('shut:a')
  },
  async 104(t, gateway) {
    return (await someone(t, gateway)).call('rpc', { method: 'x' })
  },
  async 105(t, gateway) {
    return (await someone(t, gateway, { channels: ['a'] })).subscribe('a')
  },
  async 106(t, gateway) {
    return (await someone(t, gateway, { channels: ['a', 'b'] })).subscribe('c')
  },
  async 107(t, gateway) {
    return (await someone(t, gateway)).subscribe('é')
  },
  async 108(t, gateway) {
    return (await someone(t, gateway)).call('presence', { channel: 'shut:a' })
  },
  async 109(t, gateway) {
    return (await newcomer(t, gateway, { token: token({ sub: 'u', exp: at(-5) }) })).next()
  },
  async 110(t, gateway) {
    return (await newcomer(t, gateway, { token: token({ sub: 'u', expire_at: at(-5) }) })).next()
  },
  async 112(t, gateway) {
    return (await someone(t, gateway)).subscribe('rec:a', { recover: true, offset: 5, flag: 2 })
  },
}

const neverRefused = {
  100: 'below',
  101: 'a client without credentials is closed with 3501',
  111: 'nothing is counted',
  113: 'of the server API',
}

/** @type {Record<number, (t: any, gateway: TestGateway) => Promise<RawClient>>} each client gets the push */
const unsubscribed = {
  async 2000(t, gateway) {
    const client = await someone(t, gateway)
    await client.subscribe('a')
    await gateway.api('unsubscribe', { user: client.user, channel: 'a' })
    return client
  },
  async 2500(t, gateway) {
    const client = await someone(t, gateway)
    await client.subscribe('short:a')
    await gateway.api('publish', { channel: 'short:a', data: 1 })
    return client
  },
  async 2501(t, gateway) {
    const client = await someone(t, gateway)
    await client.subscribe('a', { token: token({ sub: client.user, channel: 'a', exp: at(5) }) })
    return client
  },
}

const neverUnsubscribed = { 2502: 'for the application to give' }

/** @param {Record<string, {code: number}>} table @param {object[]} known @returns {[number[], number[]]} */
const check = (table, ...known) => [
  [...new Set(Object.values(table).map(({ code }) => code))].sort((a, b) => a - b),
  known.flatMap(codes => Object.keys(codes).map(Number)).sort((a, b) => a - b),
]

t.test('every code of the tables has its way, or a reason why there is none', async t => {
  t.strictSame(...check(disconnects, closed, neverClosed))
  t.strictSame(...check(errors, refused, neverRefused))
  t.strictSame(...check(unsubscribes, unsubscribed, neverUnsubscribed))
})

/** @param {Record<string, any>} table @param {string | number} code */
const entry = (table, code) => Object.values(table).find(entry => entry.code === Number(code))

for (const driver of drivers) {
  t.test(driver, async t => {
    const gateway = await startGateway(t, {
      ...config,
      workers: driver === 'uws' ? 2 : 1,
      http_server: { driver },
    })

    t.test('codes', async t => {
      t.jobs = 32
      for (const [code, bringAbout] of Object.entries(closed)) {
        const { reason } = entry(disconnects, code)
        t.test(`close ${code} ${reason}`, async t => {
          const client = await bringAbout(t, gateway)
          t.strictSame(await client.closed, { code: Number(code), reason })
        })
      }
      for (const [code, bringAbout] of Object.entries(refused)) {
        const { message, temporary } = entry(errors, code)
        t.test(`error ${code} ${message}`, async t => {
          const reply = await bringAbout(t, gateway)
          t.strictSame(reply, { id: reply.id, error: error(Number(code), message, temporary || undefined) })
        })
      }
      t.test('close 3010 insufficient state, where the subscription is server-side', async t => {
        const client = await someone(t, gateway, { channels: ['short:b'] })
        await gateway.api('publish', { channel: 'short:b', data: 1 })
        t.strictSame(await client.closed, { code: 3010, reason: 'insufficient state' })
      })
      for (const [code, bringAbout] of Object.entries(unsubscribed)) {
        const { reason } = entry(unsubscribes, code)
        t.test(`unsubscribe ${code} ${reason}`, async t => {
          const client = await bringAbout(t, gateway)
          const { unsubscribe } = await client.push('unsubscribe')
          t.strictSame(unsubscribe, { code: Number(code), reason })
        })
      }
    })

    t.test('no worker has died', async t => t.notOk(gateway.lines.some(({ msg }) => msg === 'worker died')))

    t.test('close 3001 shutdown', async t => {
      const clients = []
      for (let i = 0; i < 4; i++) clients.push(await someone(t, gateway))
      const ended = gateway.stop()
      for (const client of clients) t.strictSame(await client.closed, { code: 3001, reason: 'shutdown' })
      t.match(await ended, { code: 0 })
    })
  })
}
