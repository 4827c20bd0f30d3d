// The WebSocket endpoint (client protocol).

import { once } from 'node:events'
import t from 'tap'
import WebSocket from 'ws'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { until } from '../../kit/wait.js'

const anonymousAllowed = { allow_anonymous_connect_without_token: true }

/**
 * @param {string} url @param {{headers?: Record<string, string>, protocols?: string[]}} [options]
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
          allowed_origins: ['https://example.com', 'https://*.Example.org'],
        },
        http_server: { driver },
      })

      t.test('is at its exact path only', async t => {
        const { port } = gateway
        t.equal(await status(`ws://127.0.0.1:${port}/connection/websocket`), 101)
        t.equal(await status(`ws://127.0.0.1:${port}/connection/websocket?x=y`), 101)
        for (const path of ['/connection/websocket/', '/connection/websocketx', '/', '/Connection/WebSocket'])
          t.equal(await status(`ws://127.0.0.1:${port}${path}`), 404, path)
      })

      t.test('accepts requests without an origin or from an allowed one, others get 403', async t => {
        t.equal(await status(gateway.ws), 101)
        for (const origin of ['https://example.com', 'HTTPS://EXAMPLE.COM', 'https://a.example.org'])
          t.equal(await status(gateway.ws, { headers: { Origin: origin } }), 101, origin)
        for (const origin of ['http://example.com', 'https://example.com.evil.test', 'null'])
          t.equal(await status(gateway.ws, { headers: { Origin: origin } }), 403, origin)
      })

      t.test('does not compress unless configured', async t => {
        const socket = new WebSocket(gateway.ws, { perMessageDeflate: true })
        await once(socket, 'open')
        t.equal(socket.extensions, '')
        socket.terminate()
      })
    })

    t.test(
      'without allowed_origins all pages are refused; above connection_limit requests get 503',
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
        // A worker learns of the connections of others with a delay.
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
        t.ok(open.length >= limit, `${open.length} admitted`)
        while (open.length >= limit) {
          const socket = /** @type {WebSocket} */ (open.pop())
          socket.close()
          await once(socket, 'close')
        }
        await until(async () => (refusal = await attempt()) === '')
        t.equal(open.length, limit)
      },
    )
  })
}
