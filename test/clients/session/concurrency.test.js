// client.concurrency above 1: which commands of a client may overtake others.

import { Centrifuge } from 'centrifuge'
import t from 'tap'
import WebSocket from 'ws'
import { Backend, json, result } from '../../backends/hooks/backend.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { StreamClient } from '../../kit/stream-client.js'
import { ProtobufClient } from '../transport/protobuf-client.js'
import { open, token, tokenClient } from './support.js'

t.test('commands of one client with client.concurrency 8', async t => {
  const backend = await Backend.start(t)
  /** Sends the answers. @type {() => void} */
  let release = () => {}
  const answers = (answer = result({})) => {
    backend.requests.length = 0
    const released = new Promise(resolve => {
      release = () => resolve(undefined)
    })
    backend.answer = async () => {
      await released
      return answer
    }
  }
  const gateway = await startGateway(t, {
    workers: 1,
    http_stream: { enabled: true },
    rpc: { ping: { enabled: true } },
    client: tokenClient({ concurrency: 8 }),
    channel: {
      proxy: { subscribe: { endpoint: `${backend.url}/subscribe`, timeout: '20s' } },
      without_namespace: { ...open, subscribe_proxy_enabled: true },
    },
  })
  const login = { token: token({ sub: 'u1' }) }
  const called = () => backend.request(({ event }) => event === 'subscribe')
  const present = async (/** @type {string} */ channel) =>
    Object.keys((await gateway.api('presence', { channel })).result.presence)

  /** @type {Record<string, () => Promise<any>>} */
  const clients = {
    json: () => RawClient.connected(gateway.ws, login),
    protobuf: () => ProtobufClient.connected(gateway.ws, login),
    http_stream: () => StreamClient.connected(gateway.url, 'http_stream', login),
  }
  for (const [name, connected] of Object.entries(clients)) {
    t.test(`${name}: an unsubscribe does not overtake its subscribe`, async t => {
      const client = await connected()
      const channel = `${name}-1`
      answers()
      client.send({ id: 11, subscribe: { channel } }, { id: 12, unsubscribe: { channel } })
      await called()
      client.send({ id: 13, rpc: { method: 'ping' } })
      t.match(await client.next(), { id: 13, rpc: {} }, 'another command does')
      release()
      t.match(await client.next(), { id: 11, subscribe: {} })
      t.match(await client.next(), { id: 12, unsubscribe: {} })
      t.strictSame(await present(channel), [])
      await gateway.api('publish', { channel, data: 1 })
      await client.call('rpc', { method: 'ping' })
      t.strictSame(client.messages, [], 'the client is not subscribed')
      await client.close()
    })

    t.test(`${name}: the second of two subscribes to a channel is refused without a hook call`, async t => {
      const client = await connected()
      const channel = `${name}-2`
      answers()
      client.send({ id: 11, subscribe: { channel } }, { id: 12, subscribe: { channel } })
      t.match(await client.next(), { id: 12, error: { code: 105 } })
      release()
      t.match(await client.next(), { id: 11, subscribe: {} })
      t.equal(backend.requests.length, 1)
      t.strictSame(await present(channel), [client.connect.client])
      await client.close()
    })
  }

  t.test('commands wait for an earlier unsubscribe of the same channel', async t => {
    const client = await RawClient.connected(gateway.ws, login)
    const channel = 'again'
    answers()
    client.send(
      { id: 11, subscribe: { channel } },
      { id: 12, unsubscribe: { channel } },
      { id: 13, subscribe: { channel } },
      { id: 14, unsubscribe: { channel } },
      { id: 15, unsubscribe: { channel } },
      { id: 16, subscribe: { channel } },
    )
    await called()
    release()
    for (let id = 11; id <= 16; id++) t.match(await client.next(), { id, error: undefined })
    t.equal(backend.requests.length, 3)
    t.strictSame(await present(channel), [client.connect.client])
    await client.close()
  })

  t.test('an unsubscribe after a refused subscribe succeeds, and the channel can be subscribed', async t => {
    const client = await RawClient.connected(gateway.ws, login)
    const channel = 'refused'
    answers(json({ error: { code: 1000, message: 'no' } }))
    client.send({ id: 11, subscribe: { channel } }, { id: 12, unsubscribe: { channel } })
    await called()
    release()
    t.match(await client.next(), { id: 11, error: { code: 1000 } })
    t.match(await client.next(), { id: 12, unsubscribe: {} })
    answers()
    release()
    t.ok((await client.subscribe(channel)).subscribe)
    await client.close()
  })

  t.test('queued commands count as pending', async t => {
    const client = await RawClient.connected(gateway.ws, login)
    const channel = 'many'
    answers()
    const unsubscribe = (/** @type {number} */ id) => ({ id, unsubscribe: { channel } })
    client.send({ id: 11, subscribe: { channel } }, ...[12, 13, 14, 15, 16, 17, 18].map(unsubscribe), {
      id: 19,
      rpc: { method: 'ping' },
    })
    await called()
    await gateway.api('info')
    t.strictSame(client.messages, [], 'the ninth command waits for its turn')
    release()
    for (let id = 11; id <= 19; id++) t.match(await client.next(), { id, error: undefined })
    await client.close()
  })

  t.test('the pending call of a client that leaves is aborted', async t => {
    const client = await RawClient.connected(gateway.ws, login)
    const channel = 'left'
    answers()
    client.send({ id: 11, subscribe: { channel } }, { id: 12, unsubscribe: { channel } })
    const { aborted } = await called()
    client.socket.terminate()
    await t.resolves(aborted)
    release()
    t.strictSame(await present(channel), [])
  })

  t.test('the SDK may unsubscribe before the subscribe reply', async t => {
    const sdk = new Centrifuge(gateway.ws, { websocket: WebSocket, ...login })
    t.teardown(() => sdk.disconnect())
    sdk.connect()
    await sdk.ready(5000)
    answers()
    const off = sdk.newSubscription('off')
    off.subscribe()
    await called()
    off.unsubscribe()
    const on = sdk.newSubscription('on')
    on.subscribe()
    release()
    await on.ready(5000)
    t.equal(off.state, 'unsubscribed')
    await sdk.rpc('ping', {})
    t.strictSame(await present('off'), [])
    t.equal((await present('on')).length, 1)
  })
})
