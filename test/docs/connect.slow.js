// docs/connect.md: the test causes each row that has a code or a status, and compares its log line.

import { once } from 'node:events'
import t from 'tap'
import WebSocket from 'ws'
import { makeToken } from '../clients/auth/jwt.js'
import { at, forged, SECRET, token } from '../clients/session/support.js'
import { startGateway } from '../kit/gateway.js'
import { RawClient } from '../kit/raw-client.js'
import { readPage } from './blocks.js'

const page = readPage('docs/connect.md')

/** @param {string} title of a section @returns {{sees: string, log: string}[]} rows of its table */
function rows(title) {
  const section = page
    .slice(page.indexOf(`## ${title}`))
    .split(/\n## /)[0]
    .split('\n')
  return section
    .filter(line => line.startsWith('| ') && !line.startsWith('| the client') && !line.startsWith('| ---'))
    .map(line => line.slice(2).split(' | '))
    .map(([sees, log]) => ({ sees, log }))
}

const gateway = await startGateway(t, {
  workers: 1,
  client: {
    allowed_origins: ['https://example.com'],
    token: { hmac_secret_key: SECRET },
    stale_close_delay: '5s',
    channel_limit: 2,
    user_connection_limit: 1,
    disallow_anonymous_connection_tokens: true,
  },
  channel: {
    without_namespace: { allow_subscribe_for_client: true },
    namespaces: [{ name: 'closed' }],
  },
})

/** @param {string} url @param {object} [options] @returns {Promise<number | undefined>} status of a refused upgrade */
async function refusedWith(url, options = {}) {
  const socket = new WebSocket(url, options)
  const [, response] = await once(socket, 'unexpected-response')
  response.resume()
  return response.statusCode
}

/**
 * What a client sees of a refused command: the code of the error, or the close code.
 * @param {RawClient} client @param {string} method @param {object} request
 * @returns {Promise<number | undefined>}
 */
async function refusal(client, method, request) {
  try {
    return (await client.call(method, request)).error?.code
  } catch {
    return (await client.closed).code
  }
}

async function connecting(request) {
  const client = await RawClient.open(gateway.ws)
  t.teardown(() => client.socket.terminate())
  return refusal(client, 'connect', request)
}

/**
 * @param {string} sub
 * @returns {Promise<(...commands: [string, object][]) => Promise<number | undefined>>} of the last
 */
async function connected(sub) {
  const client = await RawClient.connected(gateway.ws, { token: token({ sub }) })
  t.teardown(() => client.socket.terminate())
  return async (...commands) => {
    let code
    for (const [method, request] of commands) code = await refusal(client, method, request)
    return code
  }
}

/** @param {string} channel @param {object} [more] @returns {[string, object]} */
const subscribe = (channel, more) => ['subscribe', { channel, ...more }]

/** A client that sends nothing. Others send within the delay, even if the machine is blocked. */
const stale = await RawClient.open(gateway.ws)
t.teardown(() => stale.socket.terminate())

/** By the first number of a row. @type {Record<string, () => Promise<number | undefined>>} */
const CONNECTING = {
  'HTTP 403': () => refusedWith(gateway.ws, { origin: 'http://localhost:5173' }),
  'HTTP 404': () => refusedWith(gateway.ws.replace('websocket', 'uni_websocket')),
  3500: () => connecting({ token: forged({ sub: '1' }) }),
  3501: () => connecting({}),
  109: () => connecting({ token: token({ sub: '1', exp: at(-10) }) }),
  102: () => connecting({ token: token({ sub: '1', channels: ['nowhere:1'] }) }),
  3502: async () => (await stale.closed).code,
  3504: async () => {
    await connected('twice')
    return connecting({ token: token({ sub: 'twice' }) })
  },
  3507: () => connecting({ token: token({}) }),
}

/** @type {Record<string, () => Promise<number | undefined>>} */
const COMMANDS = {
  102: async () => (await connected('a'))(subscribe('nowhere:1')),
  103: async () => (await connected('b'))(subscribe('closed:1')),
  105: async () => (await connected('c'))(subscribe('news'), subscribe('news')),
  106: async () => (await connected('d'))(subscribe('1'), subscribe('2'), subscribe('3')),
  107: async () => (await connected('e'))(subscribe('größe')),
  108: async () => (await connected('f'))(subscribe('news'), ['presence', { channel: 'news' }]),
  109: async () =>
    (await connected('g'))(
      subscribe('$x', { token: makeToken({ sub: 'g', channel: '$x', exp: at(-10) }, SECRET) }),
    ),
  3500: async () => (await connected('h'))(subscribe('$x', { token: token({ sub: 'h', channel: '$y' }) })),
}

/** Rows that no client of a test can cause: other machines, proxies, limits of the whole gateway. */
const ELSEWHERE = /^(?:`ECONNREFUSED`|HTTP 400|HTTP 503|an application code)/

/** @param {string} title @param {typeof CONNECTING} cases */
function check(title, cases) {
  t.test(title, async t => {
    const left = new Set(Object.keys(cases))
    for (const { sees, log } of rows(title)) {
      if (ELSEWHERE.test(sees)) continue
      const name = /^(?:HTTP )?\d+/.exec(sees)?.[0] ?? sees
      if (!left.delete(name)) {
        t.fail(`${title}: no case for ${sees}`)
        continue
      }
      t.equal(await cases[name](), Number(name.replace('HTTP ', '')), sees)
      if (log === 'none') continue
      const [, message, field] = /^`([^`]+)`, `\{?(.+?)`/.exec(log) ?? []
      const expected = { msg: message, ...JSON.parse(`{${field}}`) }
      const line = await gateway.line(each =>
        Object.entries(expected).every(([key, value]) => each[key] === value),
      )
      t.match(line, { address: '127.0.0.1' }, sees)
      if (name === 'HTTP 403') t.equal(line.origin, 'http://localhost:5173')
    }
    t.same([...left], [], 'every case has a row')
  })
}

check('Connecting', CONNECTING)
check('Subscribing', COMMANDS)

t.test('the log line of a refused command names channel and user', async t => {
  const line = await gateway.line(({ msg, code }) => msg === 'command refused' && code === 103)
  t.match(line, { reason: 'permission_denied', channel: 'closed:1', user: 'b' })
})
