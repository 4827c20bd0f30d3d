// The WebSocket endpoint (client protocol).

import { once } from 'node:events'
import t from 'tap'
import WebSocket from 'ws'
import { drivers } from '../../kit/drivers.js'
import { fetch } from '../../kit/fetch.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'
import { anonymous } from '../session/support.js'

const anonymousAllowed = { allow_anonymous_connect_without_token: true }

/**
 * @param {string} url
 * @param {{headers?: Record<string, string>, protocols?: string[]}} [options]
 * @returns {Promise<number>} the HTTP status that an upgrade was answered with
 */
async function status(url, { headers, protocols = [] } = {}) {
  const socket = new WebSocket(url, protocols, { headers })
  return new Promise(resolve => {
    socket.on('error', () => {})
    socket.once('unexpected-response', (request, response) => {
      request.destroy()
      resolve(response.statusCode ?? 0)
    })
    socket.once('open', () => {
      socket.terminate()
      resolve(101)
    })
  })
}

t.jobs = 2

for (const driver of drivers) {
  t.test(driver, async t => {
    t.jobs = 4
    t.test('the endpoint', async t => {
      const gateway = await startGateway(t, {
        workers: 1,
        client: {
          ...anonymousAllowed,
          allowed_origins: ['https://example.com', 'https://*.Example.org', 'http://a?.test:8080'],
        },
        http_server: { driver },
      })

      t.test('is its path exactly', async t => {
        const { port } = gateway
        t.equal(await status(`ws://127.0.0.1:${port}/connection/websocket`), 101)
        t.equal(await status(`ws://127.0.0.1:${port}/connection/websocket?x=y`), 101)
        for (const path of [
          '/connection/websocket/',
          '/connection/websocketx',
          '/connection',
          '/',
          '/Connection/WebSocket',
        ]) {
          t.equal(await status(`ws://127.0.0.1:${port}${path}`), 404, path)
        }
      })

      t.test('answers requests that are no upgrade with 400', async t => {
        t.equal((await fetch(`${gateway.url}/connection/websocket`)).status, 400)
        t.equal((await fetch(`${gateway.url}/connection/websocket/`)).status, 404)
      })

      t.test('lets in those without an origin and those of the list, others get 403', async t => {
        /** @type {[string, number][]} */
        const table = [
          ['https://example.com', 101],
          ['HTTPS://EXAMPLE.COM', 101],
          ['https://a.example.org', 101],
          ['https://a.b.example.org', 101],
          ['http://a1.test:8080', 101],
          ['http://example.com', 403],
          ['https://example.com:8443', 403],
          ['https://example.com.evil.test', 403],
          ['https://evil.test/https://example.com', 403],
          ['https://example.org', 403],
          ['https://aexampleXorg', 403],
          ['http://a12.test:8080', 403],
          ['null', 403],
        ]
        t.equal(await status(gateway.ws), 101)
        for (const [origin, expected] of table)
          t.equal(await status(gateway.ws, { headers: { Origin: origin } }), expected, origin)
      })

      t.test('chooses the subprotocol that it knows among those offered', async t => {
        const socket = new WebSocket(gateway.ws, ['x', 'centrifuge-json'])
        await once(socket, 'open')
        t.equal(socket.protocol, 'centrifuge-json')
        const client = new RawClient(socket)
        t.match(await client.call('connect'), { connect: { client: String } })
        await client.close()
      })

      t.test('takes an empty subprotocol header for none', async t => {
        const socket = new WebSocket(gateway.ws, [], { headers: { 'Sec-WebSocket-Protocol': '' } })
        const [[response]] = await Promise.all([once(socket, 'upgrade'), once(socket, 'open')])
        t.notOk('sec-websocket-protocol' in response.headers)
        const client = new RawClient(socket)
        t.match(await client.call('connect'), { connect: { client: String } })
        await client.close()
      })

      t.test('answers an offer that it does not know without any', async t => {
        const socket = new WebSocket(gateway.ws, [], { headers: { 'Sec-WebSocket-Protocol': 'soap, wamp' } })
        const [response] = await once(socket, 'upgrade')
        t.notOk('sec-websocket-protocol' in response.headers)
        socket.on('error', () => {})
        socket.terminate()
      })

      t.test('answers pings, and echoes a close', async t => {
        const client = await anonymous(t, gateway)
        client.socket.ping('hello')
        const [data] = await once(client.socket, 'pong')
        t.equal(data.toString(), 'hello')
        client.socket.close(1000)
        t.equal((await client.closed).code, 1000)
      })

      t.test('does not compress unless asked to', async t => {
        const socket = new WebSocket(gateway.ws, { perMessageDeflate: true })
        await once(socket, 'open')
        t.equal(socket.extensions, '')
        socket.terminate()
      })
    })

    t.test(
      'no page gets in without allowed origins; over the connection limit the answer is 503, until somebody leaves',
      async t => {
        const limit = 6
        const gateway = await startGateway(t, {
          client: { ...anonymousAllowed, connection_limit: limit, allowed_origins: [] },
          http_server: { driver },
        })
        for (const origin of ['https://example.com', gateway.url])
          t.equal(await status(gateway.ws, { headers: { Origin: origin } }), 403, 'no origin is allowed')

        /** @type {WebSocket[]} */
        const open = []
        // Workers tell each other how many they have, so one may be a little late to know of another's.
        const attempt = async () => {
          const socket = new WebSocket(gateway.ws)
          t.teardown(() => socket.terminate())
          try {
            await once(socket, 'open')
            open.push(socket)
            return ''
          } catch (error) {
            return error.message
          }
        }
        let refusal = ''
        await until(async () => (refusal = await attempt()) !== '')
        t.match(refusal, /503/)
        t.ok(open.length >= limit, `${open.length} got in`)
        while (open.length >= limit) {
          const socket = /** @type {WebSocket} */ (open.pop())
          socket.close()
          await once(socket, 'close')
        }
        await until(async () => (refusal = await attempt()) === '')
        t.equal(open.length, limit)
      },
    )

    t.test('over the connection rate the answer is 503, and later it is not', async t => {
      const [rate, burst] = driver === 'uws' ? [4, 4] : [1, 2]
      const client = { ...anonymousAllowed, connection_rate_limit: rate }
      const gateway = await startGateway(t, { client, http_server: { driver } })
      const begin = performance.now()
      let admitted = 0
      while ((await status(gateway.ws)) === 101) admitted++
      const passed = (performance.now() - begin) / 1000
      t.ok(admitted >= 1, `with ${rate} a second somebody gets in`)
      t.ok(admitted <= burst + Math.ceil(passed * rate), `${admitted} at ${rate} a second`)
      // Time itself is the subject, and nothing tells when the next place is free.
      await until(async () => (await status(gateway.ws)) === 101)
    })
  })
}
