// Clients that send many commands at once: each is answered or the client is closed; other clients miss nothing.

import t from 'tap'
import { skipDriver } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { until } from '../../kit/wait.js'
import { anonymous, history, open, opened, roundTrip } from './support.js'

const config = {
  client: { allow_anonymous_connect_without_token: true },
  channel: { without_namespace: { ...open, ...history } },
}

/** @param {number} count @param {(id: number) => object} make */
const commands = (count, make) => Array.from({ length: count }, (_, i) => ({ id: i + 1, ...make(i + 1) }))

for (const driver of /** @type {const} */ (['uws', 'node'])) {
  t.test(driver, { skip: skipDriver(driver) }, async t => {
    const gateway = await startGateway(t, { ...config, http_server: { driver } })
    const watcher = await anonymous(t, gateway)
    await watcher.subscribe('watched')
    let published = 0

    /** Publishes until the work is done; the watcher receives the last publication. @param {Promise<any>} work */
    async function undisturbed(work) {
      let working = true
      work.finally(() => {
        working = false
      })
      do await gateway.api('publish', { channel: 'watched', data: ++published })
      while (working)
      await work
      await watcher.next(({ push }) => push?.pub.data === published)
      watcher.messages.length = 0
    }

    t.test('thousands of commands in small frames are all answered', async t => {
      const client = await anonymous(t, gateway)
      for (const command of commands(5000, () => ({ rpc: {} }))) client.send(command)
      await undisturbed(client.next(({ id }) => id === 5000))
      t.equal(client.messages.length, 4999)
    })

    t.test('too many queued publishes close with 3013; all confirmed ones are delivered', async t => {
      const client = await anonymous(t, gateway)
      const before = (await gateway.api('history', { channel: 'counted' })).result.offset
      const frame = commands(1000, id => ({ publish: { channel: 'counted', data: id } }))
      for (let i = 0; i < 50; i++) client.send(...frame)
      await undisturbed(client.closed)
      t.strictSame(client.ended, { code: 3013, reason: 'too many requests' })
      const answered = client.messages.filter(({ publish }) => publish).length
      const { offset } = (await gateway.api('history', { channel: 'counted' })).result
      // Pending ones may have taken effect without a reply.
      t.ok(
        offset - before >= answered && offset - before <= answered + 1024,
        `${offset - before} ${answered}`,
      )
    })

    t.test('connections closed at any moment leave no subscriptions', async t => {
      const storm = async () => {
        for (let i = 0; i < 60; i++) {
          const subscribes = commands(20, id => ({ subscribe: { channel: `storm ${id}` } }))
          const client = await opened(t, gateway, { id: 1, connect: {} }, ...subscribes)
          if (i % 3 === 0) await client.next()
          if (i % 3 === 1) client.socket.close()
          else client.socket.terminate()
          await client.closed
        }
      }
      await undisturbed(Promise.all(Array.from({ length: 8 }, storm)))
      await until(async () => {
        const { channels } = (await gateway.api('channels', { pattern: 'storm*' })).result
        return Object.keys(channels).length === 0
      })
      t.strictSame((await gateway.api('presence', { channel: 'storm 1' })).result.presence, {})
      await roundTrip(watcher)
    })

    t.test('no worker has exited', async t => t.notOk(gateway.lines.some(({ msg }) => msg === 'worker died')))
  })
}
