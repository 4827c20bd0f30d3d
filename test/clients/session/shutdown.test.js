// On shutdown, a gateway closes its clients with 3001: they reconnect (client protocol).

import { once } from 'node:events'
import { Centrifuge } from 'centrifuge'
import t from 'tap'
import WebSocket from 'ws'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { anonymous, history, open, opened, token, tokenClient } from './support.js'

const config = {
  client: tokenClient({ allow_anonymous_connect_without_token: true }),
  channel: { without_namespace: { ...open, ...history, force_recovery: true } },
}

/** @param {any} emitter @param {string} event @returns {Promise<any>} */
const next = (emitter, event) => new Promise(resolve => emitter.once(event, resolve))

t.jobs = 2

for (const driver of drivers) {
  t.test(driver, async t => {
    t.test(
      'SIGTERM: clients get earlier publications, are closed with 3001 and reconnect to the next gateway',
      async t => {
        const gateway = await startGateway(t, { ...config, http_server: { driver } })
        const { port } = gateway
        const clients = Array.from({ length: 6 }, (_, i) => {
          const centrifuge = new Centrifuge(gateway.ws, {
            websocket: WebSocket,
            token: token({ sub: `u${i}`, channels: ['server-side'] }),
            minReconnectDelay: 100,
            maxReconnectDelay: 500,
          })
          const subscription = centrifuge.newSubscription('news')
          t.teardown(() => centrifuge.disconnect())
          return { centrifuge, subscription }
        })
        const all = (/** @type {(client: typeof clients[0]) => Promise<any>} */ wait) =>
          Promise.all(clients.map(wait))
        const ready = all(({ subscription }) => next(subscription, 'subscribed'))
        for (const { centrifuge, subscription } of clients) {
          subscription.subscribe()
          centrifuge.connect()
        }
        await ready
        const first = all(({ subscription }) => next(subscription, 'publication'))
        await gateway.api('publish', { channel: 'news', data: 1 })
        for (const { data } of await first) t.equal(data, 1)

        const readers = []
        for (let i = 0; i < 4; i++) {
          const reader = await anonymous(t, gateway)
          await reader.subscribe('last')
          readers.push(reader)
        }
        for (let n = 1; n <= 50; n++) await gateway.api('publish', { channel: 'last', data: n })
        const left = all(({ centrifuge }) => next(centrifuge, 'connecting'))
        t.strictSame(await gateway.stop(), { code: 0, signal: null })
        for (const { code, reason } of await left)
          t.strictSame({ code, reason }, { code: 3001, reason: 'shutdown' })
        for (const reader of readers) {
          t.strictSame(await reader.closed, { code: 3001, reason: 'shutdown' })
          t.equal(reader.messages.filter(({ push }) => push?.pub).length, 50)
        }
        t.ok(gateway.lines.some(({ msg }) => msg === 'gateway stopped'))
        t.same(
          gateway.lines.filter(({ level }) => level >= 40),
          [],
          'without complaint',
        )

        const again = all(({ subscription }) => next(subscription, 'subscribed'))
        const other = await startGateway(t, { ...config, http_server: { driver, port } })
        for (const context of await again) t.match(context, { wasRecovering: true, recovered: false })
        const second = all(({ subscription }) => next(subscription, 'publication'))
        const served = all(({ centrifuge }) => next(centrifuge, 'publication'))
        await other.api('publish', { channel: 'news', data: 2 })
        await other.api('publish', { channel: 'server-side', data: 3 })
        for (const { data } of await second) t.equal(data, 2)
        for (const { data } of await served) t.equal(data, 3)
      },
    )

    t.test('SIGINT: clients that send no connect command or do not read do not delay it', async t => {
      const gateway = await startGateway(t, { ...config, http_server: { driver } })
      const client = await anonymous(t, gateway)
      const unconnected = await opened(t, gateway)
      const stuck = await anonymous(t, gateway)
      const tcp = /** @type {any} */ (stuck.socket)._socket
      tcp.pause()
      gateway.process.kill('SIGINT')
      t.strictSame(await client.closed, { code: 3001, reason: 'shutdown' })
      t.strictSame(await unconnected.closed, { code: 3001, reason: 'shutdown' })
      t.strictSame(await gateway.exited, { code: 0, signal: null })
      tcp.resume()
      await stuck.closed
      const [error] = await once(new WebSocket(gateway.ws), 'error')
      t.match(error.message, /ECONNREFUSED/)
    })
  })
}
