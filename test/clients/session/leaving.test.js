// Many clients of one worker leave at once, by a cut or by the server API: each is released once.

import t from 'tap'
import { Session } from '../../../src/clients/session/session.js'
import { Trait } from '../../../src/clients/session/state.js'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'
import { anonymous, open } from './support.js'
import { createWorker } from './worker.js'

const COUNT = 200
const config = {
  workers: 1,
  client: { allow_anonymous_connect_without_token: true },
  channel: { without_namespace: { ...open, join_leave: true } },
}

/** @param {any} gateway @param {(stats: any) => boolean} matches */
const presence = (gateway, matches) =>
  until(async () => {
    const { result } = await gateway.api('presence_stats', { channel: 'room' })
    return matches(result) && result
  })

t.jobs = 2

for (const driver of drivers) {
  t.test(driver, async t => {
    const gateway = await startGateway(t, { ...config, http_server: { driver } })
    const watcher = await anonymous(t, gateway)
    await watcher.call('subscribe', { channel: 'room', join_leave: true })
    const crowd = async () => {
      const clients = await Promise.all(Array.from({ length: COUNT }, () => RawClient.connected(gateway.ws)))
      t.teardown(() => {
        for (const { socket } of clients) socket.terminate()
      })
      await Promise.all(clients.map(client => client.subscribe('room')))
      return clients
    }
    /** @returns {Promise<string[]>} client ids of the next COUNT leaves */
    const leaves = async () => {
      const ids = []
      while (ids.length < COUNT) ids.push((await watcher.push('leave')).leave.info.client)
      return ids
    }

    t.test('connections that are cut leave all their channels', async t => {
      const clients = await crowd()
      for (const { socket } of clients) socket.terminate()
      t.equal(new Set(await leaves()).size, COUNT)
      t.match(await presence(gateway, ({ num_clients }) => num_clients === 1), { num_clients: 1 })
      t.match(await gateway.api('channels', {}), { result: { channels: { room: { num_clients: 1 } } } })
    })

    t.test('connections closed by the server API leave all their channels', async t => {
      const clients = await crowd()
      const [, refreshed] = await Promise.all([
        gateway.api('disconnect', { user: '', whitelist: [watcher.connect.client] }),
        gateway.api('refresh', { user: '', client: clients[COUNT - 1].connect.client }),
      ])
      t.notOk(refreshed.error)
      for (const { closed } of clients) t.match(await closed, { code: 3503 })
      t.equal(new Set(await leaves()).size, COUNT)
      t.match(await presence(gateway, ({ num_clients }) => num_clients === 1), { num_clients: 1 })
      await watcher.call('rpc', { method: 'nothing' })
      t.notOk(watcher.messages.some(({ push }) => push?.leave))
    })
  })
}

// A user who reconnects at once must not be refused with 3504.
t.test('ended sessions do not count for client.user_connection_limit', async t => {
  /** @type {string[]} */
  const released = []
  const control = { releaseUser: (/** @type {string} */ user) => released.push(user) }
  const context = { ...createWorker(), broker: { control } }
  const crowd = Array.from({ length: COUNT }, (_, i) => {
    const [transport, codec] = /** @type {any[]} */ ([{ context }, null])
    const session = new Session(transport, null, codec, Trait.USER_CLAIMED)
    session.user = `${i}`
    return session
  })
  for (const session of crowd) session.ended()
  t.equal(released.length, COUNT, 'at once')
  await new Promise(setImmediate)
  t.equal(new Set(released).size, COUNT)
  t.equal(released.length, COUNT, 'one time each')
})
