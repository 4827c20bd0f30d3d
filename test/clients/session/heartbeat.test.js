// Ping and pong (client protocol), on short intervals.

import { once } from 'node:events'
import { Centrifuge } from 'centrifuge/build/protobuf'
import t from 'tap'
import WebSocket from 'ws'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { ProtobufClient } from '../transport/protobuf-client.js'
import { anonymous, open } from './support.js'

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
      'the first ping comes after half an interval at the earliest, the next ones an interval apart',
      async t => {
        const connected = performance.now()
        const client = await anonymous(t, gateway)
        t.match(client.connect, { ping: 3, pong: true })
        const times = []
        for (let i = 0; i < 3; i++) {
          await client.next(isPing)
          times.push(performance.now())
          client.sendText('{}')
        }
        // A busy test may see a ping late, and the next one in time: what holds is that none comes before its time.
        for (const [i, time] of times.entries())
          t.ok(time - connected >= (i + 0.5) * INTERVAL - SLACK, `${i}: ${time - connected} ms`)
      },
    )

    t.test('pings come on schedule while other data flows', async t => {
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

    t.test('who does not answer is closed with 3012, whatever else it sends', async t => {
      const begin = performance.now()
      const client = await anonymous(t, gateway)
      const silent = await anonymous(t, gateway)
      await client.next(isPing)
      const talking = setInterval(() => client.send({ id: 50, unsubscribe: { channel: 'a' } }), 20)
      t.teardown(() => clearInterval(talking))
      t.strictSame(await client.closed, { code: 3012, reason: 'no pong' })
      t.ok(performance.now() - begin >= INTERVAL / 2 + PONG_TIMEOUT - SLACK)
      t.strictSame(await silent.closed, { code: 3012, reason: 'no pong' })
    })

    t.test('WebSocket pongs are no answer', async t => {
      const client = await anonymous(t, gateway)
      await client.next(isPing)
      client.socket.pong()
      t.strictSame(await client.closed, { code: 3012, reason: 'no pong' })
    })

    t.test('a pong before any ping closes with 3501', async t => {
      for (const frame of ['{}', '{"id":0}', ' {} ', '{}\n']) {
        const client = await RawClient.open(gateway.ws)
        t.teardown(() => client.socket.terminate())
        client.send({ id: 1, connect: {} })
        // Right behind it: half an interval later there might have been a ping.
        client.sendText(frame)
        t.strictSame(await client.closed, BAD)
      }
    })

    t.test('so does a second pong for one ping, in the same frame or later', async t => {
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

    t.test('a pong may wait behind a slow command', async t => {
      const client = await anonymous(t, gateway)
      await client.next(isPing)
      client.sendText('{"id":50,"publish":{"channel":"a","data":1}}\n{}')
      t.strictSame(await client.next(), { id: 50, publish: {} })
      t.strictSame(await client.next(), {}, 'it goes on')
    })

    t.test('with cf_ws_frame_ping_pong=true the pings are those of WebSocket', async t => {
      const client = await RawClient.connected(`${gateway.ws}?cf_ws_frame_ping_pong=true`)
      t.teardown(() => client.socket.terminate())
      t.notOk('ping' in client.connect || 'pong' in client.connect)
      for (let i = 0; i < 2; i++) await new Promise(resolve => client.socket.once('ping', resolve))
      t.strictSame(client.messages, [])
      client.sendText('{}')
      t.strictSame(await client.closed, BAD, 'where there are no pings, a pong is one too many')
    })

    t.test('in Protobuf pings and pongs are one zero byte', async t => {
      const [lively, silent] = [
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
      t.strictSame(await silent.closed, { code: 3012, reason: 'no pong' })
    })

    t.test('the SDK in its Protobuf mode answers pings', async t => {
      let pongs = 0
      let enough = () => {}
      class Socket extends WebSocket {
        /** @param {Uint8Array} data @param {any} options */
        send(data, options) {
          super.send(data, options)
          if (data.length === 1 && data[0] === 0 && ++pongs === 3) enough()
        }
      }
      const answered = new Promise(resolve => (enough = () => resolve(undefined)))
      const client = new Centrifuge(gateway.ws, { websocket: Socket })
      t.teardown(() => client.disconnect())
      client.connect()
      await client.ready()
      let ended = 0
      client.on('disconnected', () => ended++)
      client.on('connecting', () => ended++)
      await answered
      t.match(await client.history('nope').catch((/** @type {any} */ error) => error), { code: 108 })
      t.equal(ended, 0)
    })

    t.test('and who does not answer those is closed', async t => {
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
