// Presence, joins and leaves over two workers (client protocol).

import { isDeepStrictEqual } from 'node:util'
import { Centrifuge } from 'centrifuge'
import t from 'tap'
import WebSocket from 'ws'
import { makeToken } from '../clients/auth/jwt.js'
import { drivers } from '../kit/drivers.js'
import { startGateway } from '../kit/gateway.js'
import { RawClient } from '../kit/raw-client.js'
import { until } from '../kit/wait.js'

const SECRET = 'secret'
const open = { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true }
const readable = { allow_presence_for_subscriber: true, allow_presence_for_anonymous: true }

const config = {
  client: { allow_anonymous_connect_without_token: true, token: { hmac_secret_key: SECRET } },
  channel: {
    without_namespace: open,
    namespaces: [
      { name: 'room', ...open, ...readable, presence: true, join_leave: true, force_push_join_leave: true },
      { name: 'ask', ...open, ...readable, presence: true, join_leave: true },
      { name: 'shut', ...open, presence: true, join_leave: true },
      { name: 'mute', ...open, ...readable, presence: true },
    ],
  },
}

const token = claims => makeToken(claims, SECRET)

for (const driver of drivers) {
  t.test(driver, async t => {
    const gateway = await startGateway(t, { ...config, http_server: { driver } })
    let last = 0
    const name = namespace => `${namespace}:${++last}`
    const connected = async (t, user = '', claims = {}) => {
      const client = await RawClient.connected(
        gateway.ws,
        user ? { token: token({ sub: user, ...claims }) } : {},
      )
      t.teardown(() => client.close())
      return Object.assign(client, { id: client.connect.client })
    }
    const present = async channel => (await gateway.api('presence', { channel })).result.presence
    /** Waits for this presence: the queried worker may be ahead of the worker that a client has left. */
    const comesTo = async (channel, expected) => {
      await until(async () => isDeepStrictEqual(await present(channel), expected))
    }

    t.test('a join is sent to all subscribers, a leave to all others', async t => {
      const channel = name('room')
      const anna = await connected(t, 'anna', { info: { name: 'Ä' } })
      const info = { user: 'anna', client: anna.id, conn_info: { name: 'Ä' } }
      t.strictSame((await anna.subscribe(channel)).subscribe, {})
      t.strictSame(await anna.push(), { channel, join: { info } }, 'after its own subscribe reply')
      const bob = await connected(t, 'bob')
      await bob.subscribe(channel)
      const bobJoins = { channel, join: { info: { user: 'bob', client: bob.id } } }
      t.strictSame(await anna.push(), bobJoins)
      t.strictSame(await bob.push(), bobJoins, 'no joins of earlier clients')
      await anna.call('unsubscribe', { channel })
      t.strictSame(await bob.push(), { channel, leave: { info } })
      await anna.subscribe(channel)
      t.match(await anna.push(), { join: { info: { client: anna.id } } }, 'not its own leave')
      t.match(await bob.push(), { join: { info: { client: anna.id } } })
      anna.close()
      t.strictSame(await bob.push(), { channel, leave: { info } })
    })

    t.test('joins and leaves on request need presence access', async t => {
      const [ask, shut] = [name('ask'), name('shut')]
      const [wants, plain, visitor] = [await connected(t), await connected(t), await connected(t, 'visitor')]
      for (const channel of [ask, shut]) {
        await wants.subscribe(channel, { join_leave: true })
        await plain.subscribe(channel)
        await visitor.subscribe(channel)
        await visitor.call('unsubscribe', { channel })
      }
      await gateway.api('broadcast', { channels: [ask, shut], data: 'end' })
      const received = async (client, channel) => {
        const list = []
        const next = async () => (await client.next(({ push }) => push?.channel === channel)).push
        for (let push = await next(); !push.pub; push = await next())
          list.push(push.join ? `join ${push.join.info.user}` : `leave ${push.leave.info.user}`)
        return list
      }
      // Announcements of two workers have no common order.
      t.strictSame((await received(wants, ask)).sort(), ['join ', 'join ', 'join visitor', 'leave visitor'])
      t.strictSame(await received(plain, ask), [])
      t.strictSame(await received(wants, shut), [], 'no access to presence')
      t.strictSame(await received(plain, shut), [])
    })

    t.test('presence and presence_stats include all workers', async t => {
      const channel = name('room')
      const clients = []
      for (const user of ['anna', 'anna', 'bob', '', ''])
        clients.push(await connected(t, user, { info: { u: user } }))
      await Promise.all(clients.slice(0, 4).map(client => client.subscribe(channel)))
      const subscription = token({ sub: '', channel, info: { seat: 7 } })
      await clients[4].subscribe(channel, { token: subscription })
      const expected = Object.fromEntries(
        ['anna', 'anna', 'bob', ''].map((user, i) => [
          clients[i].id,
          { user, client: clients[i].id, ...(user ? { conn_info: { u: user } } : {}) },
        ]),
      )
      expected[clients[4].id] = { user: '', client: clients[4].id, chan_info: { seat: 7 } }
      t.strictSame(await present(channel), expected)
      t.strictSame((await gateway.api('presence_stats', { channel })).result, {
        num_clients: 5,
        num_users: 3,
      })
      for (const client of clients) {
        t.strictSame((await client.call('presence', { channel })).presence, { presence: expected })
        t.strictSame((await client.call('presence_stats', { channel })).presence_stats, {
          num_clients: 5,
          num_users: 3,
        })
      }
      await clients[0].call('unsubscribe', { channel })
      delete expected[clients[0].id]
      await comesTo(channel, expected)
      await gateway.api('disconnect', { user: 'bob' })
      await clients[2].closed
      delete expected[clients[2].id]
      await comesTo(channel, expected)
      await gateway.api('unsubscribe', { user: 'anna', channel })
      delete expected[clients[1].id]
      await comesTo(channel, expected)
      t.strictSame((await gateway.api('presence_stats', { channel })).result, {
        num_clients: 2,
        num_users: 1,
      })
    })

    t.test('server-side subscriptions are in presence, as overridden by the API', async t => {
      const channel = name('room')
      const watcher = await connected(t, 'watcher')
      await watcher.subscribe(channel)
      await watcher.push('join')
      const user = `u${last}`
      const client = await connected(t, user, { channels: [channel] })
      t.match(await watcher.push(), { join: { info: { client: client.id } } })
      t.match(await client.push(), { join: { info: { client: client.id } } })
      t.match(await present(channel), { [client.id]: { user } })
      await gateway.api('subscribe', { channel, user, info: { again: true } })
      t.match(await client.push('subscribe'), { channel })
      t.strictSame((await present(channel))[client.id].chan_info, { again: true }, 'the newer info counts')
      t.match(await watcher.push(), { join: { info: { client: client.id } } })
      await gateway.api('subscribe', { channel, user, override: { presence: { value: false } } })
      await client.push('subscribe')
      await client.call('unsubscribe', { channel })
      t.match(await watcher.push('leave'), { leave: { info: { client: client.id } } })
      await until(async () => Object.keys(await present(channel)).join() === watcher.id)
    })

    t.test('presence matches joins and leaves after many random visits', async t => {
      const channel = name('room')
      const watcher = await connected(t, 'watcher')
      await watcher.subscribe(channel)
      await watcher.push('join')
      const staying = []
      let visits = 0
      const visitor = async v => {
        for (let round = 0; round < 3; round++) {
          const client = await RawClient.connected(gateway.ws, { token: token({ sub: `v${v}` }) })
          await client.subscribe(channel)
          visits++
          if (round === 2 && v % 2) return staying.push(client)
          if ((v + round) % 3 === 0) await client.call('unsubscribe', { channel })
          if ((v + round) % 2) client.socket.terminate()
          else client.close()
          await client.closed
        }
      }
      await Promise.all(Array.from({ length: 16 }, (_, v) => visitor(v)))
      const balance = new Map()
      const faults = []
      for (let left = 2 * visits - staying.length; left > 0; left--) {
        const push = await watcher.push()
        const { client } = (push.join ?? push.leave).info
        const now = (balance.get(client) ?? 0) + (push.join ? 1 : -1)
        if (now !== 0 && now !== 1) faults.push(push)
        balance.set(client, now)
      }
      t.same(faults, [], 'a join comes before its leave, each once')
      const ids = [watcher.id, ...staying.map(client => client.connect.client)].sort()
      t.strictSame(Object.keys(await present(channel)).sort(), ids)
      t.strictSame(
        [...balance]
          .filter(([, there]) => there)
          .map(([client]) => client)
          .sort(),
        ids.filter(id => id !== watcher.id).sort(),
      )
      await Promise.all(staying.map(client => client.close()))
    })

    t.test('clients of a killed worker leave immediately and return', async t => {
      const channel = 'room:crash'
      const raw = []
      for (let i = 0; i < 20; i++) {
        const client = await RawClient.connected(gateway.ws, { token: token({ sub: `raw${i}` }) })
        await client.subscribe(channel)
        raw.push(client)
      }
      const sdks = await Promise.all(
        Array.from({ length: 8 }, async (_, i) => {
          const client = new Centrifuge(gateway.ws, {
            websocket: WebSocket,
            token: token({ sub: `sdk${i}` }),
            minReconnectDelay: 5,
            maxReconnectDelay: 100,
          })
          t.teardown(() => client.disconnect())
          const subscription = client.newSubscription(channel)
          subscription.subscribe()
          client.connect()
          await subscription.ready()
          return { client, subscription, user: `sdk${i}` }
        }),
      )
      const present = async () => (await api(gateway, 'presence', { channel })).result.presence
      const before = Object.keys(await present())
      t.equal(before.length, 28)

      process.kill(gateway.workerPids[0], 'SIGKILL')
      // Clients of the killed worker lose their connection, the others respond.
      const alive = []
      await Promise.all(
        raw.map(client =>
          client.call('presence', { channel }).then(
            () => alive.push(client),
            () => {},
          ),
        ),
      )
      const dead = raw.filter(client => !alive.includes(client)).map(idOf)
      t.ok(alive.length > 0 && dead.length > 0, `${dead.length} of ${raw.length} were hit`)
      let now = {}
      await until(async () => {
        now = await present()
        return !dead.some(id => id in now)
      })
      for (const client of alive) t.ok(idOf(client) in now)

      for (const { subscription } of sdks) await subscription.ready()
      // Disconnected SDKs get a new client id when they reconnect.
      await until(async () => {
        now = await present()
        return Object.keys(now).length === alive.length + sdks.length
      })
      const users = [
        ...alive.map(client => raw.indexOf(client)).map(i => `raw${i}`),
        ...sdks.map((_, i) => `sdk${i}`),
      ]
      t.strictSame(
        Object.values(now)
          .map(({ user }) => user)
          .sort(),
        users.sort(),
      )
      const left = before.filter(id => !(id in now)).sort()
      for (const client of alive) {
        const leaves = []
        while (leaves.length < left.length) leaves.push((await client.push('leave')).leave.info.client)
        t.strictSame(leaves.sort(), left, 'each leave is sent once')
        t.notOk(client.messages.some(({ push }) => push?.leave))
        client.close()
      }
    })
  })
}

const idOf = client => client.connect.client

/** Calls the API on any live worker: a worker that has just died may have closed the connection. */
async function api(gateway, method, params) {
  return until(() => gateway.api(method, params))
}
