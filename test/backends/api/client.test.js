// The HTTP client against servers that respond incorrectly, late or never.

import { once } from 'node:events'
import { createServer } from 'node:http'
import { ApiClient } from 'halley-gateway/api'
import t from 'tap'
import { freePort } from '../../kit/ports.js'

/**
 * A server with an answer for each request.
 * @param {any} t @param {(request: import('node:http').IncomingMessage & {text: string, count: number},
 *   response: import('node:http').ServerResponse) => void} answer
 */
async function serve(t, answer) {
  let count = 0
  const server = createServer(async (request, response) => {
    let text = ''
    try {
      for await (const chunk of request) text += chunk
    } catch {
      return
    }
    answer(Object.assign(request, { text, count: ++count }), response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${/** @type {any} */ (server.address()).port}`
}

function clientOf(t, url, options) {
  const client = new ApiClient({ url, key: 'key', ...options })
  t.teardown(() => client.close())
  return client
}

const OK = '{"result":{"offset":1,"epoch":"abc"}}'
const json = { 'content-type': 'application/json' }

t.test('a retry of a publication has the same idempotency key and the API key', async t => {
  const bodies = []
  const url = await serve(t, (request, response) => {
    bodies.push(JSON.parse(request.text))
    t.equal(request.headers['x-api-key'], 'key')
    t.equal(request.url, '/api/publish')
    if (request.count % 3 === 1) request.socket.destroy()
    else if (request.count % 3 === 2) response.writeHead(503).end('no')
    else response.writeHead(200, json).end(OK)
  })
  // An empty key counts as none.
  for (const options of [undefined, { idempotencyKey: '' }]) {
    t.same(await clientOf(t, url).publish('a', { n: 1 }, options), { offset: 1, epoch: 'abc' })
    const keys = bodies.splice(0).map(body => body.idempotency_key)
    t.match(keys, [/^[0-9a-f-]{36}$/, keys[0], keys[0]])
    t.equal(keys.length, 3)
  }
})

t.test('a key of the caller is kept; a batch is retried only if all its calls may be', async t => {
  const bodies = []
  const url = await serve(t, (request, response) => {
    bodies.push(JSON.parse(request.text))
    if (request.count % 2 === 1) request.socket.destroy()
    else response.writeHead(200, json).end('{"replies":[{"publish":{}},{"info":{}}]}')
  })
  const client = clientOf(t, url)
  await client.batch([['publish', 'a', 1, { idempotencyKey: 'mine' }], ['info']])
  t.equal(bodies.length, 2)
  t.equal(bodies[1].commands[0].publish.idempotency_key, 'mine')
  await t.rejects(
    client.batch([
      ['publish', 'a', 1],
      ['disconnect', 'u'],
    ]),
    { code: 0, message: /no response from/ },
  )
  t.equal(bodies.length, 3)
})

t.test('a call with side effects is retried only if it was not received', async t => {
  let calls = 0
  const url = await serve(t, request => {
    calls++
    request.socket.destroy()
  })
  await t.rejects(clientOf(t, url).disconnect('u'), {
    name: 'ApiError',
    code: 0,
    message: /no response from/,
  })
  t.equal(calls, 1)
  await t.rejects(clientOf(t, url, { retries: 0 }).publish('a', 1), { code: 0 })
  t.equal(calls, 2)

  const port = await freePort()
  const server = createServer((_request, response) => response.writeHead(200, json).end('{"result":{}}'))
  t.teardown(() => server.close())
  const called = clientOf(t, `http://127.0.0.1:${port}`, { retries: 10 }).disconnect('u')
  setImmediate(() => server.listen(port, '127.0.0.1'))
  t.equal(await called, undefined, 'the server was started after the first attempt')
})

t.test('only temporary errors of the API are retried', async t => {
  const codes = [100, 111, 102]
  const url = await serve(t, (request, response) =>
    response.writeHead(200, json).end(`{"error":{"code":${codes[request.count - 1]},"message":"no"}}`),
  )
  await t.rejects(clientOf(t, url).info(), { name: 'ApiError', code: 102, message: 'no' })
})

t.test('a missing or incomplete response times out', async t => {
  const silent = await serve(t, () => {})
  await t.rejects(clientOf(t, silent, { timeout: 50, retries: 1 }).info(), {
    code: 0,
    message: /no response from .* within 50 ms/,
  })
  const half = await serve(t, (_request, response) => void response.writeHead(200, json).write('{"result":'))
  await t.rejects(clientOf(t, half, { timeout: 50, retries: 0 }).info(), { code: 0, message: /within 50 ms/ })
  const cut = await serve(t, (request, response) => {
    response.writeHead(200, { ...json, 'content-length': 100 }).write('{"result":')
    setImmediate(() => request.socket.destroy())
  })
  await t.rejects(clientOf(t, cut, { retries: 0 }).info(), { code: 0, message: /no response from/ })
})

t.test('responses of other servers are refused', async t => {
  /** @type {[number, string, number, RegExp][]} */
  const answers = [
    [200, '<html>', 0, /not a server API response/],
    [200, '[]', 0, /not a server API response/],
    [200, 'null', 0, /not a server API response/],
    [302, '', 0, /HTTP 302/],
    [400, 'Bad Request: channel must be a string', 107, /channel must be a string/],
    [401, 'Unauthorized: invalid API key', 101, /invalid API key/],
    [404, 'x'.repeat(1000), 104, /HTTP 404$/],
    [413, 'Request Entity Too Large', 106, /HTTP 413/],
    [416, '{"code":112,"message":"unrecoverable position"}', 112, /^unrecoverable position$/],
  ]
  const url = await serve(t, (request, response) => {
    const [status, text] = answers[request.count - 1]
    response.writeHead(status, { location: '/elsewhere' }).end(text)
  })
  const client = clientOf(t, url)
  for (const [status, , code, message] of answers)
    await t.rejects(client.info(), { name: 'ApiError', code, status, message })
})

t.test('responses in an unexpected format are refused', async t => {
  const answers = [
    '{"result":{"publications":5}}',
    '{"result":{"publications":[null]}}',
    '{"replies":[null,{}]}',
    '{"replies":[]}',
  ]
  const url = await serve(t, (request, response) =>
    response.writeHead(200, json).end(answers[request.count - 1]),
  )
  const client = clientOf(t, url)
  const refusal = { name: 'ApiError', code: 0, message: /not a server API response/ }
  for (const _ of [1, 2]) await t.rejects(client.history('a'), refusal)
  for (const _ of [3, 4]) await t.rejects(client.batch([['info'], ['info']]), refusal)
})

t.test('an endless response is aborted', async t => {
  const piece = Buffer.alloc(1024 * 1024, 0x20)
  const url = await serve(t, (_request, response) => {
    response.writeHead(200, json)
    const write = () => {
      while (!response.destroyed && response.write(piece));
    }
    response.on('drain', write)
    write()
  })
  await t.rejects(clientOf(t, url, { timeout: 60_000 }).info(), { code: 0, message: /larger than \d+ bytes/ })
})

t.test('concurrent requests and the bytes of waiting calls are limited; close aborts them', async t => {
  let open = 0
  let most = 0
  let full = () => {}
  const filled = new Promise(resolve => (full = () => resolve(undefined)))
  const url = await serve(t, (_request, response) => {
    most = Math.max(most, ++open)
    response.on('close', () => open--)
    if (open === 3) full()
  })
  const client = clientOf(t, url, { connections: 3, timeout: 60_000 })
  const large = 'x'.repeat(15 * 1024 * 1024)
  const calls = Array.from({ length: 4 }, () => client.publish('a', large))
  const ended = Promise.allSettled(calls)
  await t.rejects(client.publish('a', large), { code: 111, message: /too many requests/ })
  await filled
  client.close()
  for (const outcome of await ended)
    t.match(outcome, { reason: { code: 0, message: 'the client is closed' } })
  t.equal(most, 3)
  await t.rejects(client.info(), { message: 'the client is closed' })
})

t.test('invalid options are errors', async t => {
  /** @type {[any, RegExp][]} */
  const wrong = [
    [undefined, /the option url is required/],
    [{}, /url must be an http/],
    [{ url: 'ftp://a' }, /url must be an http/],
    [{ url: 'http://user:pw@a' }, /without credentials/],
    [{ url: 'http://a', key: 'h\u00e9' }, /key must be a string of printable/],
    [{ url: 'http://a', timeout: 0 }, /timeout must be an integer from 1/],
    [{ url: 'http://a', retries: 1.5 }, /retries must be an integer from 0 to 10/],
    [{ url: 'http://a', conections: 1 }, /no option "conections"; did you mean connections/],
  ]
  for (const [options, message] of wrong)
    t.throws(() => new ApiClient(options), { name: 'TypeError', message })
})
