// Ping and pong (client protocol), on short intervals.

import { once } from 'node:events'
import t from 'tap'
import WebSocket from 'ws'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { ProtobufClient } from '../transport/protobuf-client.js'
import { anonymous, open, opened } from './support.js'

const BAD = { code: 3501, reason: 'bad request' }
const INTERVAL = 3000
// Long enough for a test on a busy machine to answer in time.
const PONG_TIMEOUT = 2500
/** The server counts in ticks of a 16th of the interval, ms. */
const SLACK = INTERVAL / 16 + 10
const config = {
  client: {
    allow_anonymous_connect_without_token: true,
    ping_interval: `${INTERVAL}ms`,
    pong_timeout: `${PONG_TIMEOUT}ms`,
  },
  channel: { without_namespace: open },
}

/** @param {any} message */
const isPing = message => Object.keys(message).length === 0

t.jobs = 2

for (const driver of drivers) {
  t.test(driver, async t => {
    const gateway = await startGateway(t, { ...config, workers: 1, http_server: { driver } })
    t.jobs = 8

    t.test(
      'the first ping comes after at least half an interval, the next ones an interval apart',
      async t => {
        const connected = performance.now()
        const client = await anonymous(t, gateway)
        t.match(client.connect, { ping: 3, pong: true })
        for (let i = 0; i < 3; i++) {
          await client.next(isPing)
          // A busy test may see pings late, but none too early.
          const time = performance.now() - connected
          t.ok(time >= (i + 0.5) * INTERVAL - SLACK, `${i}: ${time} ms`)
          client.sendText('{}')
        }
      },
    )

    t.test('pings keep their schedule while other data is sent', async t => {
      const client = await anonymous(t, gateway)
      await client.subscribe('flow')
      let pings = 0
      let publications = 0
      while (pings < 2) {
        client.send({ id: 50, publish: { channel: 'flow', data: 1 } })
        await client.next(({ id }) => id === 50)
        publications += client.messages.filter(({ push }) => push).length
        for (const message of client.messages.splice(0)) {
          if (!isPing(message)) continue
          pings++
          client.sendText('{}')
        }
      }
      t.ok(publications > 0)
    })

    t.test('a client that sends no pongs is closed with 3012, whatever else it sends', async t => {
      const begin = performance.now()
      const client = await anonymous(t, gateway)
      const mute = await anonymous(t, gateway)
      await client.next(isPing)
      const talking = setInterval(() => client.send({ id: 50, unsubscribe: { channel: 'a' } }), 20)
      t.teardown(() => clearInterval(talking))
      t.strictSame(await client.closed, { code: 3012, reason: 'no pong' })
      t.ok(performance.now() - begin >= INTERVAL / 2 + PONG_TIMEOUT - SLACK)
      t.strictSame(await mute.closed, { code: 3012, reason: 'no pong' })
    })

    t.test('WebSocket pongs do not count as pongs', async t => {
      const client = await anonymous(t, gateway)
      await client.next(isPing)
      client.socket.pong()
      t.strictSame(await client.closed, { code: 3012, reason: 'no pong' })
    })

    t.test('a pong before any ping closes with 3501', async t => {
      for (const frame of ['{}', '{"id":0}', ' {} ', '{}\n']) {
        const client = await opened(t, gateway, { id: 1, connect: {} })
        // At once: half an interval later there might have been a ping.
        client.sendText(frame)
        t.strictSame(await client.closed, BAD)
      }
    })

    t.test('a second pong for one ping closes with 3501, in the same frame or later', async t => {
      for (const frames of [['{}\n{}'], ['{}', '{}']]) {
        const client = await anonymous(t, gateway)
        await client.next(isPing)
        for (const frame of frames) client.sendText(frame)
        t.strictSame(await client.closed, BAD)
      }
    })

    t.test('a pong may share a frame with commands', async t => {
      const client = await anonymous(t, gateway)
      await client.next(isPing)
      client.sendText('{"id":50,"unsubscribe":{"channel":"a"}}\n{}\n{"id":51,"unsubscribe":{"channel":"a"}}')
      t.strictSame(await client.next(), { id: 50, unsubscribe: {} })
      t.strictSame(await client.next(), { id: 51, unsubscribe: {} })
      await client.next(isPing)
    })

    t.test('a pong may be queued behind a slow command', async t => {
      const client = await anonymous(t, gateway)
      await client.next(isPing)
      client.sendText('{"id":50,"publish":{"channel":"a","data":1}}\n{}')
      t.strictSame(await client.next(), { id: 50, publish: {} })
      t.strictSame(await client.next(), {}, 'pings continue')
    })

    t.test('with cf_ws_frame_ping_pong=true, pings are WebSocket pings', async t => {
      const client = await RawClient.connected(`${gateway.ws}?cf_ws_frame_ping_pong=true`)
      t.teardown(() => client.socket.terminate())
      t.notOk('ping' in client.connect || 'pong' in client.connect)
      for (let i = 0; i < 2; i++) await new Promise(resolve => client.socket.once('ping', resolve))
      t.strictSame(client.messages, [])
      client.sendText('{}')
      t.strictSame(await client.closed, BAD, 'a pong without a ping')
    })

    t.test('in Protobuf, pings and pongs are one zero byte', async t => {
      const [lively, mute] = [
        await ProtobufClient.connected(gateway.ws),
        await ProtobufClient.connected(gateway.ws),
      ]
      t.match(lively.connect, { ping: 3, pong: true })
      for (let i = 0; i < 2; i++) {
        t.strictSame(await lively.next(), {})
        const { data, binary } = lively.frames.at(-1) ?? {}
        t.strictSame([...(data ?? [])], [0])
        t.ok(binary)
        lively.sendBytes(Buffer.from([0]))
      }
      lively.sendBytes(Buffer.from([0]))
      t.strictSame(await lively.closed, BAD, 'a second pong for one ping')
      t.strictSame(await mute.closed, { code: 3012, reason: 'no pong' })
    })

    t.test('a client that does not answer frame pings is closed', async t => {
      const mute = new WebSocket(`${gateway.ws}?cf_ws_frame_ping_pong=true`, { autoPong: false })
      const client = new RawClient(mute)
      await once(mute, 'open')
      await client.call('connect')
      t.teardown(() => client.socket.terminate())
      t.strictSame(await client.closed, { code: 3012, reason: 'no pong' })
      const other = await RawClient.connected(`${gateway.ws}?cf_ws_frame_ping_pong=false`)
      t.teardown(() => other.socket.terminate())
      t.match(other.connect, { ping: 3, pong: true })
    })
  })
}
