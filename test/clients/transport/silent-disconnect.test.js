// Disconnects with code 3000: the connection ends as if the network had lost it, and no client gets the code.

import { Centrifuge } from 'centrifuge'
import t from 'tap'
import WebSocket from 'ws'
import { Backend, json } from '../../backends/hooks/backend.js'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { PollClient } from '../../kit/poll-client.js'
import { RawClient } from '../../kit/raw-client.js'
import { StreamClient } from '../../kit/stream-client.js'
import { open, token, tokenClient } from '../session/support.js'
import { ProtobufClient } from './protobuf-client.js'

/** What the API and backends may say. */
const SILENT = { code: 3000, reason: 'connection closed' }

for (const driver of drivers) {
  t.test(`disconnects with code 3000 on ${driver}`, async t => {
    const backend = await Backend.start(t)
    backend.answer = () => json({ disconnect: SILENT })
    const on = { enabled: true }
    const gateway = await startGateway(t, {
      http_server: { driver },
      http_stream: on,
      sse: on,
      poll: on,
      uni_websocket: on,
      uni_sse: on,
      uni_http_stream: on,
      client: tokenClient(),
      channel: {
        proxy: { subscribe: { endpoint: backend.url } },
        without_namespace: open,
        namespaces: [{ name: 'asked', subscribe_proxy_enabled: true }],
      },
    })
    const query = (/** @type {string} */ user) =>
      `cf_connect=${encodeURIComponent(JSON.stringify({ token: token({ sub: user }) }))}`
    const disconnect = (/** @type {string} */ user) => gateway.api('disconnect', { user, disconnect: SILENT })

    t.test('websocket: no close frame, by the API and by a proxy', async t => {
      for (const Client of [RawClient, ProtobufClient]) {
        const client = await Client.connected(gateway.ws, { token: token({ sub: Client.name }) })
        await disconnect(Client.name)
        t.equal((await client.closed).code, 1006, Client.name)
        const asking = await Client.connected(gateway.ws, { token: token({ sub: 'asking' }) })
        asking.send({ id: 7, subscribe: { channel: 'asked:x' } })
        t.equal((await asking.closed).code, 1006, Client.name)
      }
    })

    t.test('uni_websocket: neither push nor close frame', async t => {
      const socket = new WebSocket(`${gateway.ws.replace('websocket', 'uni_websocket')}?${query('uni')}`)
      const client = new RawClient(socket)
      t.ok((await client.next()).connect)
      await disconnect('uni')
      t.equal((await client.closed).code, 1006)
      t.strictSame(client.messages, [])
    })

    for (const transport of ['uni_sse', 'uni_http_stream']) {
      t.test(`${transport}: the stream ends without a push`, async t => {
        const body = JSON.stringify({ token: token({ sub: transport }) })
        const client =
          transport === 'uni_sse'
            ? await StreamClient.open(gateway.url, `/connection/uni_sse?${query(transport)}`)
            : await StreamClient.open(gateway.url, `/connection/${transport}`, { method: 'POST', body })
        t.ok((await client.next()).connect)
        await disconnect(transport)
        await client.closed
        t.strictSame(client.messages, [])
      })
    }

    t.test('http_stream: the stream ends without a push', async t => {
      const body = JSON.stringify({ id: 1, connect: { token: token({ sub: 'stream' }) } })
      const client = await StreamClient.open(gateway.url, '/connection/http_stream', { method: 'POST', body })
      t.ok((await client.next()).connect)
      await disconnect('stream')
      await client.closed
      t.strictSame(client.messages, [])
    })

    t.test('sse: the stream ends without a push', async t => {
      const command = JSON.stringify({ id: 1, connect: { token: token({ sub: 'sse' }) } })
      const path = `/connection/sse?cf_connect=${encodeURIComponent(command)}`
      const client = await StreamClient.open(gateway.url, path)
      t.ok((await client.next()).connect)
      await disconnect('sse')
      await client.closed
      t.strictSame(client.messages, [])
    })

    t.test('poll: the session ends as after a lost connection', async t => {
      const client = await PollClient.connected(gateway, { token: token({ sub: 'poll' }) })
      const polled = client.poll()
      await disconnect('poll')
      t.strictSame(await polled, [])
      t.match(client.close, /^1006/)
    })

    t.test('a publish that an SDK queues while it reconnects is delivered', async t => {
      const sdk = new Centrifuge(gateway.ws, {
        websocket: WebSocket,
        token: token({ sub: 'sdk' }),
        minReconnectDelay: 1,
      })
      t.teardown(() => sdk.disconnect())
      const observer = await RawClient.connected(gateway.ws, { token: token({ sub: 'observer' }) })
      await observer.subscribe('queued')
      sdk.connect()
      await sdk.ready(5000)
      const connecting = new Promise(resolve => sdk.once('connecting', resolve))
      await disconnect('sdk')
      t.equal(/** @type {any} */ (await connecting).code, 1, 'transport closed')
      await sdk.publish('queued', { late: true })
      t.strictSame((await observer.push('pub')).pub.data, { late: true })
      await observer.close()
    })
  })
}
