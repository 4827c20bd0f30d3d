// Disconnects with code 3000 end the connection as if the network had lost it: no client gets the code.

import { Centrifuge } from 'centrifuge'
import t from 'tap'
import WebSocket from 'ws'
import { Backend, json } from '../../backends/hooks/backend.js'
import { transports } from '../../guarantees/receivers.js'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { PollClient } from '../../kit/poll-client.js'
import { RawClient } from '../../kit/raw-client.js'
import { StreamClient } from '../../kit/stream-client.js'
import { open, token, tokenClient } from '../session/support.js'
import { ProtobufClient } from './protobuf-client.js'

const SILENT = { code: 3000, reason: 'connection closed' }

for (const driver of drivers) {
  t.test(`disconnects with code 3000 on ${driver}`, async t => {
    const backend = await Backend.start(t)
    backend.answer = () => json({ disconnect: SILENT })
    const gateway = await startGateway(t, {
      http_server: { driver },
      ...transports,
      client: tokenClient(),
      channel: {
        proxy: { subscribe: { endpoint: backend.url } },
        without_namespace: open,
        namespaces: [{ name: 'proxied', subscribe_proxy_enabled: true }],
      },
    })
    const disconnect = (/** @type {string} */ user) => gateway.api('disconnect', { user, disconnect: SILENT })

    t.test('websocket: the connection ends without a close frame', async t => {
      for (const Client of [RawClient, ProtobufClient]) {
        const client = await Client.connected(gateway.ws, { token: token({ sub: Client.name }) })
        await disconnect(Client.name)
        t.equal((await client.closed).code, 1006, Client.name)
        const subscribing = await Client.connected(gateway.ws, { token: token({ sub: 'u' }) })
        subscribing.send({ id: 7, subscribe: { channel: 'proxied:x' } })
        t.equal((await subscribing.closed).code, 1006, Client.name)
      }
    })

    const request = (/** @type {string} */ sub) => JSON.stringify({ token: token({ sub }) })
    const command = (/** @type {string} */ sub) => `{"id":1,"connect":${request(sub)}}`
    const query = (/** @type {string} */ text) => `?cf_connect=${encodeURIComponent(text)}`
    /** @type {[string, (user: string) => Promise<RawClient | StreamClient>][]} */
    const ways = [
      [
        'uni_websocket',
        async user =>
          new RawClient(
            new WebSocket(gateway.ws.replace('websocket', 'uni_websocket') + query(request(user))),
          ),
      ],
      ['uni_sse', user => StreamClient.open(gateway.url, `/connection/uni_sse${query(request(user))}`)],
      ['sse', user => StreamClient.open(gateway.url, `/connection/sse${query(command(user))}`)],
      ...['uni_http_stream', 'http_stream'].map(
        name =>
          /** @type {[string, (user: string) => Promise<StreamClient>]} */ ([
            name,
            user => {
              const body = name === 'http_stream' ? command(user) : request(user)
              return StreamClient.open(gateway.url, `/connection/${name}`, { method: 'POST', body })
            },
          ]),
      ),
    ]
    for (const [transport, connect] of ways) {
      t.test(`${transport}: the connection ends without a push`, async t => {
        const client = await connect(transport)
        t.ok((await client.next()).connect)
        await disconnect(transport)
        const end = await client.closed
        if (client instanceof RawClient) t.match(end, { code: 1006 })
        t.strictSame(client.messages, [])
      })
    }

    t.test('poll: the session ends as after a lost connection', async t => {
      const client = await PollClient.connected(gateway, { token: token({ sub: 'poll' }) })
      const polled = client.poll()
      await disconnect('poll')
      t.strictSame(await polled, [])
      t.match(client.close, /^1006/)
    })

    t.test('a publish that an SDK queues while it reconnects is delivered after it', async t => {
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
