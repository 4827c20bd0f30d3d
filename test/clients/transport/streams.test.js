import { once } from 'node:events'
import net from 'node:net'
import t from 'tap'
import { transports } from '../../guarantees/receivers.js'
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
      t.test(`${transport}: all commands work, with POSTs to any worker`, async t => {
        const client = await StreamClient.connected(url, transport)
        t.match(client.connect.session, /^[0-9a-f]{8}-[0-9a-f]{4}-4/)
        t.match(client.connect, { node: String, client: String, ping: 600, pong: true })
        const channel = `whole-${transport}`
        t.match(await client.subscribe(channel), { subscribe: { recoverable: true, epoch: String } })
        const data = (/** @type {number} */ n) => ({ n, text: 'zwölf — 十二 🎉' })
        for (let n = 1; n <= 20; n++) {
          t.same(await client.call('publish', { channel, data: data(n) }), { id: n + 2, publish: {} })
          t.match(await client.push('pub'), { pub: { offset: n, data: data(n) } })
        }
        t.match(await client.call('presence', { channel }), {
          presence: { presence: { [client.connect.client]: { client: client.connect.client } } },
        })
        t.equal((await client.call('history', { channel, limit: 5 })).history.publications.length, 5)
        t.same((await client.call('rpc', { method: 'ping' })).rpc, {})
        t.same((await client.call('unsubscribe', { channel })).unsubscribe, {})
        await client.close()
        await until(async () => (await gateway.api('presence_stats', { channel })).result.num_clients === 0)
      })

      t.test(`${transport}: a disconnect is the last message`, async t => {
        const client = await StreamClient.connected(url, transport)
        const { session } = client.connect
        await gateway.api('disconnect', { user: '', session, disconnect: { code: 4100, reason: 'enough' } })
        t.same(await client.push('disconnect'), { disconnect: { code: 4100, reason: 'enough' } })
        await client.closed
      })

      t.test(`${transport}: a malformed command and an unrequested pong end it with 3501`, async t => {
        for (const text of ['{"id":2,"subscribe":', '{}']) {
          const client = await StreamClient.connected(url, transport)
          t.equal((await client.sendText(text)).status, 204)
          t.same((await client.push('disconnect')).disconnect, { code: 3501, reason: 'bad request' })
          await client.closed
          t.equal((await client.sendText('{}')).status, 204, 'posts to an ended session are dropped')
        }
      })

      t.test(`${transport}: several commands in the request are answered in order`, async t => {
        const commands = [
          { id: 7, connect: {} },
          { id: 8, subscribe: { channel: 'first' } },
          { id: 9, publish: { channel: 'first', data: 1 } },
        ]
        const body = commands.map(command => JSON.stringify(command)).join('\n')
        const client = await StreamClient.open(url, `/connection/${transport}`, { method: 'POST', body })
        for (const key of ['connect', 'subscribe', 'push', 'publish']) t.ok((await client.next())[key], key)
        await client.close()
      })

      t.test(`${transport}: a slow reader is closed with 3008 and recovers; others miss nothing`, async t => {
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
        // Publications without history fill the buffers.
        const flood = { publish: { channel: 'plain:flood', data: 'x'.repeat(50_000) } }
        await until(async () => {
          await publish()
          await gateway.api('batch', { commands: Array(10).fill(flood) })
          return (await present()) <= 1
        })
        await publish()
        slow.response.resume()
        await slow.closed
        t.same(slow.messages.pop(), { push: { disconnect: { code: 3008, reason: 'slow' } } })
        const payloads = (/** @type {StreamClient} */ { messages }) =>
          messages.flatMap(({ push }) => (push?.channel === kept ? [push.pub.data] : []))
        const got = payloads(slow)
        const all = Array.from({ length: last }, (_, i) => i + 1)
        await until(() => other.messages.length >= last)
        t.same(payloads(other), all)
        const again = await StreamClient.connected(url, transport)
        const { subscribe } = await again.subscribe(kept, { recover: true, offset: got.length, epoch })
        t.ok(subscribe.recovered)
        for (const { data } of subscribe.publications) got.push(data)
        t.same(got, all)
        await again.close()
        await other.close()
      })
    }

    t.test('http_stream: sends complete lines in ASCII', async t => {
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

    t.test('sse: line breaks in a payload do not end its event', async t => {
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

    t.test('responses have the headers of their transport', async t => {
      const stream = await StreamClient.connected(url, 'http_stream')
      t.match(stream.response.headers, {
        'content-type': 'text/plain; charset=utf-8',
        'x-accel-buffering': 'no',
        'cache-control': 'private, no-cache, no-store, must-revalidate, max-age=0',
        pragma: 'no-cache',
        'transfer-encoding': 'chunked',
      })
      t.equal(stream.response.headers['access-control-allow-origin'], undefined)
      const headers = { Origin: 'https://app.example.com' }
      const sse = await StreamClient.connected(url, 'sse', {}, { headers })
      t.match(sse.response.headers, {
        'content-type': 'text/event-stream; charset=utf-8',
        'access-control-allow-origin': 'https://app.example.com',
        'access-control-allow-credentials': 'true',
      })
      t.equal(Buffer.concat(sse.chunks).subarray(0, 8).toString(), '\r\ndata: ')
      await stream.close()
      await sse.close()
    })

    t.test('an invalid request is refused', async t => {
      const { connect } = await StreamClient.connected(url, 'sse')
      const { node, session } = connect
      const gone = `${session.slice(0, -4)}00ff`
      const long = 'x'.repeat(65537)
      /** @type {[string, string, number, (string | object)?, Record<string, string>?][]} */
      const table = [
        ['GET', '/connection/http_stream', 405],
        ['PUT', '/connection/http_stream', 405],
        ['POST', '/connection/http_stream', 413, long],
        ['GET', '/connection/sse', 400],
        ['OPTIONS', '/connection/sse', 405],
        ['POST', '/connection/sse', 413, long],
        ['GET', '/emulation', 405],
        ['POST', '/emulation', 400],
        ['POST', '/emulation', 400, []],
        ['POST', '/emulation', 400, '{"node":'],
        ['POST', '/emulation', 404, { node: 'other', session: 'x', data: '{}' }],
        ['POST', '/emulation', 404, {}],
        ['POST', '/emulation', 413, long],
        ['POST', '/emulation', 400, '\x08', { 'Content-Type': 'application/octet-stream' }],
        ['POST', '/emulation', 204, { node, session: 'nobody', data: '{}' }],
        ['POST', '/emulation', 204, { node, session, data: {} }],
        ['POST', '/emulation', 204, { node, session: gone, data: '{}' }],
      ]
      for (const [method, path, status, body = '', headers = {}] of table) {
        const text = typeof body === 'string' ? body : JSON.stringify(body)
        t.equal((await post(url + path, text, headers, method)).status, status, `${method} ${path} ${text}`)
      }
      const empty = await StreamClient.open(url, '/connection/http_stream', { method: 'POST' })
      t.same(await empty.push('disconnect'), { disconnect: { code: 3501, reason: 'bad request' } })
      await empty.closed
      const first = await StreamClient.open(url, '/connection/http_stream', {
        method: 'POST',
        body: '{"id":1,"subscribe":{"channel":"x"}}',
      })
      t.equal((await first.push('disconnect')).disconnect.code, 3501)
    })

    t.test('a preflight request is answered for allowed origins', async t => {
      const requested = { 'Access-Control-Request-Headers': 'content-type' }
      const headers = { Origin: 'https://app.example.com', ...requested }
      for (const path of ['/connection/http_stream', '/emulation']) {
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
  })

  t.test(`client.connection_limit on ${driver} counts a request after its complete body`, async t => {
    const gateway = await startGateway(t, {
      workers: 1,
      http_server: { driver },
      ...transports,
      client: { insecure: true, connection_limit: 5 },
    })
    const command = '{"id":1,"connect":{}}'
    const two = { http_stream: command, sse: command, poll: command }
    const bodies = { ...two, uni_sse: '{}', uni_http_stream: '{}' }
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
    // All heads arrive before the first body.
    await gateway.api('info')
    const statuses = []
    for (const { socket, rest } of waiting) {
      socket.write(rest)
      const [answer] = await once(socket, 'data')
      statuses.push(Number(answer.toString().slice(9, 12)))
    }
    t.same(statuses, [200, 200, 200, 200, 200, 503, 503, 503, 503, 503])
  })
}
