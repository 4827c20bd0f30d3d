// A page of a foreign origin makes requests that need no preflight: a form, an image, a `fetch` of text/plain. With a
// proxy that names the user, they would run as the user of the browser.

import { once } from 'node:events'
import http from 'node:http'
import t from 'tap'
import { transports } from '../../guarantees/receivers.js'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'

const GOOD = 'https://app.example.com'
const FOREIGN = [{ Origin: 'https://evil.example' }, { Origin: 'null' }]
/** An image or a link on another site: the browser sends no origin. */
const FOREIGN_GET = [...FOREIGN, { 'Sec-Fetch-Site': 'cross-site' }, { 'Sec-Fetch-Site': 'same-site' }]
const WELCOME = [{}, { Origin: GOOD }, { Origin: GOOD, 'Sec-Fetch-Site': 'cross-site' }]
const WELCOME_GET = [...WELCOME, { 'Sec-Fetch-Site': 'same-origin' }, { 'Sec-Fetch-Site': 'none' }]

const commands = (/** @type {string} */ channel) =>
  `{"id":1,"connect":{}}\n{"id":2,"publish":{"channel":"${channel}","data":1}}`
const query = (/** @type {string} */ channel) => `cf_connect=${encodeURIComponent(commands(channel))}`

for (const driver of drivers) {
  t.test(`${driver}: a page of a foreign origin gets 403, and no command runs`, async t => {
    const gateway = await startGateway(t, {
      workers: 1,
      http_server: { driver },
      ...transports,
      client: { insecure: true, user_id_http_header: 'X-User-Id', allowed_origins: [GOOD] },
      channel: { without_namespace: { history_size: 10, history_ttl: '1m' } },
    })
    const { url } = gateway
    let last = 0
    const offsetOf = async (/** @type {string} */ channel) =>
      (await gateway.api('history', { channel })).result.offset
    /** @type {[string, 'GET' | 'POST', (channel: string) => string, (channel: string) => string][]} */
    const ways = [
      ['/connection/http_stream', 'POST', () => '', commands],
      ['/connection/poll', 'POST', () => '', commands],
      ['/connection/sse', 'GET', query, () => ''],
      ['/connection/sse', 'POST', () => '', commands],
      ['/connection/uni_http_stream', 'POST', () => '', () => '{}'],
      ['/connection/uni_sse', 'GET', () => '', () => ''],
      ['/connection/uni_sse', 'POST', () => '', () => '{}'],
      ['/connection/uni_poll', 'GET', () => 'channel=x&timeout=0', () => ''],
      ['/connection/uni_poll', 'POST', () => '', () => '{"channel":"x","timeout":0}'],
      ['/emulation', 'POST', () => '', () => '{"node":"","session":"","data":""}'],
    ]
    for (const [path, method, search, body] of ways) {
      const runs = search === query || body === commands
      for (const headers of method === 'GET' ? FOREIGN_GET : FOREIGN) {
        const channel = `c${++last}`
        const answer = await request(`${url}${path}?${search(channel)}`, method, body(channel), headers)
        t.equal(answer.status, 403, `${method} ${path} ${JSON.stringify(headers)}`)
        t.equal(answer.headers['access-control-allow-origin'], undefined)
        const refused = 'Origin' in headers ? headers.Origin : 'null'
        const text = path === '/connection/uni_poll' ? JSON.parse(answer.text).error.message : answer.text
        t.equal(text, `the origin of the page, "${refused}", is not in client.allowed_origins`)
        if (runs) t.equal(await offsetOf(channel), 0, 'no publish')
      }
      for (const headers of method === 'GET' ? WELCOME_GET : WELCOME) {
        const channel = `c${++last}`
        const { status } = await request(`${url}${path}?${search(channel)}`, method, body(channel), headers)
        t.equal(status, path === '/emulation' ? 404 : 200, `${method} ${path} ${JSON.stringify(headers)}`)
      }
    }

    const refused = await gateway.line(({ msg, reason }) => msg === 'client refused' && reason === 'origin')
    t.match(refused, { origin: 'https://evil.example', option: 'client.allowed_origins' })
    const upgrade = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' }
    const key = { 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==' }
    for (const path of ['/connection/websocket', '/connection/uni_websocket']) {
      const headers = { ...upgrade, ...key, ...FOREIGN[0] }
      const { status, text } = await request(`${url}${path}`, 'GET', '', headers)
      t.equal(status, 403, path)
      t.equal(text, 'the origin of the page, "https://evil.example", is not in client.allowed_origins')
    }

    // The refusal does not wait for the body.
    for (const path of [
      '/connection/http_stream',
      '/connection/poll',
      '/connection/uni_poll',
      '/emulation',
    ]) {
      const headers = { ...FOREIGN[0], 'Content-Length': '60000' }
      const sent = http.request(`${url}${path}`, { method: 'POST', headers, agent: false })
      sent.on('error', () => {})
      sent.write('the first bytes')
      const [response] = await once(sent, 'response')
      t.equal(response.statusCode, 403, path)
      sent.destroy()
    }
  })
}

/**
 * What a page can send without a preflight. A stream ends with its head.
 * @param {string} url @param {string} method @param {string} body @param {Record<string, string>} headers
 * @returns {Promise<{status: number | undefined, headers: http.IncomingHttpHeaders, text: string}>}
 */
async function request(url, method, body, headers) {
  const type = method === 'POST' ? { 'Content-Type': 'text/plain' } : {}
  const all = { 'X-User-Id': 'anna', ...type, ...headers }
  const sent = http.request(url, { method, headers: all, agent: false }).end(body)
  const [response] = await once(sent, 'response')
  let text = ''
  if (response.statusCode !== 200) for await (const chunk of response) text += chunk
  sent.destroy()
  return { status: response.statusCode, headers: response.headers, text }
}
