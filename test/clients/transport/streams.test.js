import { once } from 'node:events'
import net from 'node:net'
import { Centrifuge } from 'centrifuge'
import t from 'tap'
import WebSocket from 'ws'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { post, StreamClient } from '../../kit/stream-client.js'
import { until } from '../../kit/wait.js'
import { history, open } from '../session/support.js'

const OPEN = { ...open, ...history, force_recovery: true }

/** @param {string} driver */
const config = driver => ({
  // The posts of both servers reach other workers in emulation.test.js.
  workers: driver === 'uws' ? 2 : 1,
  http_server: { driver },
  http_stream: { enabled: true },
  sse: { enabled: true },
  client: { insecure: true, allowed_origins: ['https://app.example.com'], queue_max_size: 1_000_000 },
  channel: { without_namespace: OPEN, namespaces: [{ name: 'plain', ...open }] },
  rpc: { ping: { enabled: true } },
})

for (const driver of drivers) {
  t.test(`streams on ${driver}`, async t => {
    const gateway = await startGateway(t, config(driver))
    const { url } = gateway

    for (const transport of /** @type {const} */ (['http_stream', 'sse'])) {
      t.test(`${transport}: the whole protocol, posts landing on any worker`, async t => {
        const client = await StreamClient.connected(url, transport)
        t.match(client.connect.session, /^[0-9a-f]{8}-[0-9a-f]{4}-4/)
        t.match(client.connect, { node: String, client: String, ping: 600, pong: true })
        const channel = `${transport}:${driver}`.replace(':', '-')
        t.match(await client.subscribe(channel), { subscribe: { recoverable: true, epoch: String } })
        for (let n = 1; n <= 20; n++) {
          t.same(await client.call('publish', { channel, data: { n, text: 'zwölf — 十二 🎉' } }), {
            id: n + 2,
            publish: {},
          })
        }
        for (let n = 1; n <= 20; n++) {
          const { pub } = await client.push('pub')
          t.same([pub.offset, pub.data], [n, { n, text: 'zwölf — 十二 🎉' }])
        }
        t.match(await client.call('presence', { channel }), {
          presence: { presence: { [client.connect.client]: { client: client.connect.client } } },
        })
        t.equal((await client.call('history', { channel, limit: 5 })).history.publications.length, 5)
        t.same((await client.call('rpc', { method: 'ping' })).rpc, {})
        t.same((await client.call('unsubscribe', { channel })).unsubscribe, {})
        await client.close()
        // The gateway notices that the client has left.
        await until(async () => (await gateway.api('presence_stats', { channel })).result.num_clients === 0)
      })

      t.test(`${transport}: a disconnect is the last message`, async t => {
        const client = await StreamClient.connected(url, transport)
        const { session } = client.connect
        await gateway.api('disconnect', { user: '', session, disconnect: { code: 4100, reason: 'enough' } })
        t.same(await client.push('disconnect'), { disconnect: { code: 4100, reason: 'enough' } })
        await client.closed
      })

      t.test(`${transport}: a bad command ends it with 3501`, async t => {
        const client = await StreamClient.connected(url, transport)
        t.equal((await client.sendText('{"id":2,"subscribe":')).status, 204)
        t.same((await client.push('disconnect')).disconnect, { code: 3501, reason: 'bad request' })
        await client.closed
        t.equal((await client.sendText('{}')).status, 204, 'posts for a session that has ended are lost')
      })

      t.test(`${transport}: a second pong is a fault, as everywhere`, async t => {
        const client = await StreamClient.connected(url, transport)
        await client.sendText('{}')
        t.equal((await client.push('disconnect')).disconnect.code, 3501)
      })

      t.test(`${transport}: several commands in the request are answered in their order`, async t => {
        const commands = [
          { id: 7, connect: {} },
          { id: 8, subscribe: { channel: 'first' } },
          { id: 9, publish: { channel: 'first', data: 1 } },
        ]
        const body = commands.map(command => JSON.stringify(command)).join('\n')
        const client =
          transport === 'sse'
            ? await StreamClient.open(url, '/connection/sse', { method: 'POST', body })
            : await StreamClient.open(url, '/connection/http_stream', { method: 'POST', body })
        t.ok((await client.next()).connect)
        t.ok((await client.next()).subscribe)
        t.ok((await client.next()).push.pub)
        t.ok((await client.next()).publish)
        await client.close()
      })

      t.test(
        `${transport}: a slow reader is told 3008, comes back and gets what it missed; others go on`,
        async t => {
          const kept = `kept-${transport}`
          const slow = await StreamClient.connected(url, transport)
          const { epoch } = (await slow.subscribe(kept)).subscribe
          await slow.subscribe('plain:flood')
          const other = await StreamClient.connected(url, transport)
          await other.subscribe(kept)
          slow.response.pause()
          const present = async () =>
            (await gateway.api('presence_stats', { channel: kept })).result.num_clients
          let last = 0
          const publish = () => gateway.api('publish', { channel: kept, data: ++last })
          // What nobody keeps fills the buffers on the way, between what history has.
          const flood = { publish: { channel: 'plain:flood', data: 'x'.repeat(50_000) } }
          await until(async () => {
            await publish()
            await gateway.api('batch', { commands: Array(10).fill(flood) })
            return (await present()) <= 1
          })
          await publish()
          slow.response.resume()
          /** @type {number[]} */
          const got = []
          for (;;) {
            const { channel, pub, disconnect } = await slow.push()
            if (channel === kept) got.push(pub.data)
            if (!disconnect) continue
            t.same(disconnect, { code: 3008, reason: 'slow' })
            break
          }
          await slow.closed
          const all = Array.from({ length: last }, (_, i) => i + 1)
          const others = []
          while (others.length < last) others.push((await other.push('pub')).pub.data)
          t.same(others, all)
          const again = await StreamClient.connected(url, transport)
          const { subscribe } = await again.subscribe(kept, { recover: true, offset: got.length, epoch })
          t.ok(subscribe.recovered)
          for (const { data } of subscribe.publications) got.push(data)
          t.same(got, all)
          await again.close()
          await other.close()
        },
      )
    }

    t.test('http_stream: every chunk ends with whole lines, in ASCII', async t => {
      const client = await StreamClient.connected(url, 'http_stream')
      await client.subscribe('lines')
      for (let n = 0; n < 50; n++)
        await gateway.api('publish', { channel: 'lines', data: `größer ${n} 🎉\u2028` })
      for (let n = 0; n < 50; n++) t.equal((await client.push('pub')).pub.data, `größer ${n} 🎉\u2028`)
      const whole = Buffer.concat(client.chunks)
      t.ok(whole.every(byte => byte < 0x80))
      t.notMatch(whole.toString(), '\n\n')
      await client.close()
    })

    t.test('sse: white space of a payload does not break its event', async t => {
      const client = await StreamClient.connected(url, 'sse')
      await client.subscribe('breaks')
      const data = '{\r\r"a":\r\n1\r}'
      await gateway.api('publish', { channel: 'breaks', b64data: Buffer.from(data).toString('base64') })
      // To an EventSource a carriage return ends a line, and two of them an event.
      await gateway.api('publish', { channel: 'breaks', b64data: Buffer.from('[\r\r1]').toString('base64') })
      t.same((await client.push('pub')).pub.data, { a: 1 })
      t.same((await client.push('pub')).pub.data, [1])
      t.equal(Buffer.concat(client.chunks).lastIndexOf('\r'), 0)
      await client.close()
    })

    t.test('heads', async t => {
      const stream = await StreamClient.connected(url, 'http_stream')
      t.match(stream.response.headers, {
        'content-type': 'text/plain; charset=utf-8',
        'x-accel-buffering': 'no',
        'cache-control': 'private, no-cache, no-store, must-revalidate, max-age=0',
        pragma: 'no-cache',
        'transfer-encoding': 'chunked',
      })
      t.equal(stream.response.headers['access-control-allow-origin'], undefined)
      const sse = await StreamClient.connected(
        url,
        'sse',
        {},
        { headers: { Origin: 'https://app.example.com' } },
      )
      t.match(sse.response.headers, {
        'content-type': 'text/event-stream; charset=utf-8',
        'access-control-allow-origin': 'https://app.example.com',
        'access-control-allow-credentials': 'true',
      })
      t.equal(Buffer.concat(sse.chunks).subarray(0, 8).toString(), '\r\ndata: ')
      await stream.close()
      await sse.close()
    })

    t.test('bad requests', async t => {
      const wrong = async (
        /** @type {string} */ path,
        /** @type {string} */ method,
        /** @type {number} */ status,
        body = '',
        headers = {},
      ) => t.equal((await post(url + path, body, headers, method)).status, status, `${method} ${path}`)
      await wrong('/connection/http_stream', 'GET', 405)
      await wrong('/connection/http_stream', 'PUT', 405)
      await wrong('/connection/http_stream', 'POST', 413, 'x'.repeat(65537))
      await wrong('/connection/sse', 'GET', 400)
      await wrong('/connection/sse', 'OPTIONS', 405)
      await wrong('/connection/sse', 'POST', 413, 'x'.repeat(65537))
      await wrong('/emulation', 'GET', 405)
      await wrong('/emulation', 'POST', 400)
      await wrong('/emulation', 'POST', 400, '[]')
      await wrong('/emulation', 'POST', 400, '{"node":')
      await wrong('/emulation', 'POST', 404, '{"node":"other","session":"x","data":"{}"}')
      await wrong('/emulation', 'POST', 404, '{}')
      await wrong('/emulation', 'POST', 413, 'x'.repeat(65537))
      await wrong('/emulation', 'POST', 400, '\x08', { 'Content-Type': 'application/octet-stream' })
      const { connect } = await StreamClient.connected(url, 'sse')
      const { node, session } = connect
      await wrong('/emulation', 'POST', 204, JSON.stringify({ node, session: 'nobody', data: '{}' }))
      await wrong('/emulation', 'POST', 204, JSON.stringify({ node, session, data: {} }))
      const gone = `${session.slice(0, -4)}00ff`
      await wrong('/emulation', 'POST', 204, JSON.stringify({ node, session: gone, data: '{}' }))
      const empty = await StreamClient.open(url, '/connection/http_stream', { method: 'POST' })
      t.same(await empty.push('disconnect'), { disconnect: { code: 3501, reason: 'bad request' } })
      await empty.closed
      const first = await StreamClient.open(url, '/connection/http_stream', {
        method: 'POST',
        body: '{"id":1,"subscribe":{"channel":"x"}}',
      })
      t.equal((await first.push('disconnect')).disconnect.code, 3501)
    })

    t.test('a body that is cut off leaves nothing behind', async t => {
      const socket = net.connect(gateway.port, '127.0.0.1')
      await once(socket, 'connect')
      socket.write(
        'POST /connection/http_stream HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"id":1,"conn',
      )
      socket.destroy()
      const client = await StreamClient.connected(url, 'http_stream')
      t.ok(client.connect)
      await client.close()
    })

    t.test('preflight', async t => {
      for (const path of ['/connection/http_stream', '/emulation']) {
        const headers = {
          Origin: 'https://app.example.com',
          'Access-Control-Request-Headers': 'content-type',
        }
        const allowed = await post(url + path, '', headers, 'OPTIONS')
        t.match(allowed, {
          status: 204,
          headers: {
            'access-control-allow-origin': 'https://app.example.com',
            'access-control-allow-credentials': 'true',
            'access-control-allow-headers': 'content-type',
            'access-control-allow-methods': 'POST, OPTIONS',
            'access-control-max-age': '300',
          },
        })
        const foreign = await post(url + path, '', { ...headers, Origin: 'https://evil.example' }, 'OPTIONS')
        t.equal(foreign.status, 204)
        t.equal(foreign.headers['access-control-allow-origin'], undefined)
      }
    })

    t.test('the SDK falls back from one to the other, and recovers', async t => {
      const endpoint = url.replace('http', 'ws')
      const centrifuge = new Centrifuge(
        [
          { transport: 'websocket', endpoint: `${endpoint}/connection/nowhere` },
          { transport: 'http_stream', endpoint: `${url}/connection/http_stream` },
        ],
        {
          websocket: WebSocket,
          fetch,
          readableStream: ReadableStream,
          emulationEndpoint: `${url}/emulation`,
        },
      )
      t.teardown(() => centrifuge.disconnect())
      const subscription = centrifuge.newSubscription('sdk')
      /** @type {number[]} */
      const got = []
      subscription.on('publication', ({ data }) => got.push(data.n))
      subscription.subscribe()
      const connected = new Promise(resolve => centrifuge.once('connected', resolve))
      centrifuge.connect()
      t.match(await connected, { transport: 'http_stream' })
      await subscription.ready()
      for (let n = 0; n < 10; n++) await centrifuge.publish('sdk', { n })
      const again = new Promise(resolve => centrifuge.once('connected', resolve))
      await gateway.api('disconnect', { user: '', disconnect: { code: 4001, reason: 'come again' } })
      for (let n = 10; n < 20; n++) await gateway.api('publish', { channel: 'sdk', data: { n } })
      await again
      await subscription.ready()
      await until(() => got.length >= 20)
      t.same(
        got,
        Array.from({ length: 20 }, (_, n) => n),
      )
    })
  })

  t.test(
    `client.connection_limit on ${driver}: whose body takes its time is counted when it is there`,
    async t => {
      const gateway = await startGateway(t, {
        workers: 1,
        http_server: { driver },
        http_stream: { enabled: true },
        sse: { enabled: true },
        poll: { enabled: true },
        uni_sse: { enabled: true },
        uni_http_stream: { enabled: true },
        client: { insecure: true, connection_limit: 5 },
      })
      const command = '{"id":1,"connect":{}}'
      const bodies = {
        http_stream: command,
        sse: command,
        poll: command,
        uni_sse: '{}',
        uni_http_stream: '{}',
      }
      /** @type {{socket: net.Socket, rest: string}[]} */
      const waiting = []
      for (const [transport, body] of [...Object.entries(bodies), ...Object.entries(bodies)]) {
        const socket = net.connect(gateway.port, '127.0.0.1')
        t.teardown(() => socket.destroy())
        await once(socket, 'connect')
        socket.write(
          `POST /connection/${transport} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, -1)}`,
        )
        waiting.push({ socket, rest: body.slice(-1) })
      }
      // All heads are there before the first body is.
      await gateway.api('info')
      const statuses = []
      for (const { socket, rest } of waiting) {
        socket.write(rest)
        const [answer] = await once(socket, 'data')
        statuses.push(Number(answer.toString().slice(9, 12)))
      }
      t.same(statuses, [200, 200, 200, 200, 200, 503, 503, 503, 503, 503])
    },
  )
}
