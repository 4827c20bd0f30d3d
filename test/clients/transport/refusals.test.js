// A refused client is logged with reason and address, and counted; it cannot flood the log.

import { once } from 'node:events'
import t from 'tap'
import WebSocket from 'ws'
import { drivers } from '../../kit/drivers.js'
import { fetch } from '../../kit/fetch.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { post } from '../../kit/stream-client.js'
import { settled } from '../../metrics/prometheus/scrape.js'
import { at, forged, token } from '../session/support.js'

/** @param {import('../../kit/gateway.js').TestGateway} gateway @param {string} reason */
const refused = (gateway, reason) =>
  gateway.line(line => line.msg === 'client refused' && line.reason === reason)

/** @param {string} url @param {object} [options] @returns {Promise<number>} the status of the refused upgrade */
async function statusOf(url, options) {
  const socket = new WebSocket(url, options)
  socket.on('error', () => {})
  const [, answer] = await once(socket, 'unexpected-response')
  answer.resume()
  return answer.statusCode
}

/** @param {{ws: string}} gateway @param {string} text first frame @returns {Promise<number>} */
async function closeCode(gateway, text) {
  const client = await RawClient.open(gateway.ws)
  client.sendText(text)
  return (await client.closed).code
}

const connect = (/** @type {object} */ request) => JSON.stringify({ id: 1, connect: request })

t.jobs = 3

for (const driver of drivers) {
  t.test(`refusals on ${driver}`, async t => {
    const gateway = await startGateway(t, {
      workers: 1,
      log: { level: 'info' },
      http_server: { driver },
      prometheus: { enabled: true },
      poll: { enabled: true },
      uni_poll: { enabled: true },
      http_stream: { enabled: true },
      uni_sse: { enabled: true },
      uni_websocket: { enabled: true },
      client: {
        allowed_origins: ['https://good.example'],
        token: { hmac_secret_key: 'secret of the tests' },
        user_connection_limit: 1,
      },
    })
    const address = '127.0.0.1'

    await t.test('a foreign origin is logged, cut to 200 characters', async t => {
      t.equal(await statusOf(gateway.ws, { origin: `https://evil.example/${'x'.repeat(300)}` }), 403)
      const line = await refused(gateway, 'origin')
      t.match(line, { level: 30, worker: 0, address })
      t.match(line.origin, /^https:\/\/evil\.example\/x+$/)
      t.equal(line.origin.length, 200, 'untrusted text is cut')
    })

    await t.test('refused tokens and connections are logged with their reason', async t => {
      t.equal(await closeCode(gateway, connect({ token: forged({ sub: 'u' }) })), 3500)
      t.match(await refused(gateway, 'invalid_token'), { address })
      t.equal(await closeCode(gateway, connect({})), 3501)
      t.match(await refused(gateway, 'bad_request'), { address })
      const expired = await RawClient.open(gateway.ws)
      t.equal((await expired.call('connect', { token: token({ sub: 'u', exp: at(-60) }) })).error.code, 109)
      t.match(await refused(gateway, 'token_expired'), { address })
      expired.socket.close()

      const first = await RawClient.connected(gateway.ws, { token: token({ sub: 'u' }) })
      t.equal(await closeCode(gateway, connect({ token: token({ sub: 'u' }) })), 3504)
      t.match(await refused(gateway, 'user_connection_limit'), { address })
      first.socket.close()
    })

    await t.test('refusals of other transports and of the server API are logged', async t => {
      const seen = () => gateway.lines.filter(({ msg }) => msg === 'client refused').length
      const text = { 'Content-Type': 'text/plain' }
      const command = connect({ token: forged({ sub: 'u' }) })
      const bare = JSON.stringify({ token: forged({ sub: 'u' }) })
      let before = seen()
      for (const request of [
        () => post(`${gateway.url}/connection/poll`, command, text),
        () => post(`${gateway.url}/connection/http_stream`, command, text),
        () => fetch(`${gateway.url}/connection/uni_sse?cf_connect=${encodeURIComponent(bare)}`),
        () => fetch(`${gateway.url}/connection/uni_poll?channel=a`),
        () => fetch(`${gateway.url}/api/info`, { method: 'POST', body: '{}' }),
      ]) {
        await request()
        const wanted = ++before
        await gateway.line(() => seen() >= wanted)
        t.match(gateway.lines.filter(({ msg }) => msg === 'client refused').at(-1), { address })
      }
      await refused(gateway, 'unauthorized')
      await refused(gateway, 'api_key')
    })

    await t.test('many refusals write a few log lines, and all are counted', async t => {
      const many = Array.from({ length: 30 }, () => closeCode(gateway, connect({ token: 'x' })))
      t.ok((await Promise.all(many)).every(code => code === 3500))
      const metrics = await settled(gateway, got => {
        const { samples } = got.get('halley_refused_total') ?? { samples: [] }
        return (samples.find(({ labels }) => labels.reason === 'invalid_token')?.value ?? 0) >= 34
      })
      const reasons = metrics.get('halley_refused_total')?.samples.map(({ labels }) => labels.reason)
      const all = 'api_key bad_request invalid_token origin token_expired unauthorized user_connection_limit'
      t.equal(reasons?.sort().join(' '), all)
      t.equal(gateway.lines.filter(({ reason }) => reason === 'invalid_token').length, 10)
      t.equal((await gateway.stop()).code, 0)
      t.match(
        gateway.lines.find(({ msg }) => msg === 'log lines suppressed by the rate limit'),
        { line: 'client refused: invalid_token', seconds: 60 },
        'the number of lines left out is logged at the end',
      )
    })
  })
}

t.test('fields reserved for the gateway are ignored in a request', async t => {
  const gateway = await startGateway(t, {
    workers: 1,
    client: { allow_anonymous_connect_without_token: true },
    channel: { without_namespace: { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true } },
  })
  const client = await RawClient.open(gateway.ws)
  const reply = await client.call('connect', { positions: 5, subs: { news: {} } })
  t.ok(reply.connect.subs.news, 'the same as without the field')
  client.socket.close()
  t.same(
    gateway.lines.filter(({ level }) => level >= 50),
    [],
    'no stack in the log',
  )
})
