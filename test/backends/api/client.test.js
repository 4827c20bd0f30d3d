// The HTTP client against servers that answer wrongly, late or not at all.

import { once } from 'node:events'
import { createServer } from 'node:http'
import { ApiClient } from 'halley-gateway/api'
import t from 'tap'
import { freePort } from '../../kit/ports.js'

/**
 * A server that answers as it is told.
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

/** @param {any} t @param {string} url @param {object} [options] */
function clientOf(t, url, options) {
  const client = new ApiClient({ url, key: 'key', ...options })
  t.teardown(() => client.close())
  return client
}

const OK = '{"result":{"offset":1,"epoch":"abc"}}'
const json = { 'content-type': 'application/json' }

t.test('a publication is repeated with the same idempotency key, and its key of the API is sent', async t => {
  const bodies = []
  const url = await serve(t, (request, response) => {
    bodies.push(JSON.parse(request.text))
    t.equal(request.headers['x-api-key'], 'key')
    t.equal(request.url, '/api/publish')
    if (request.count === 1) request.socket.destroy()
    else if (request.count === 2) response.writeHead(503).end('no')
    else response.writeHead(200, json).end(OK)
  })
  t.same(await clientOf(t, url).publish('a', { n: 1 }), { offset: 1, epoch: 'abc' })
  t.equal(bodies.length, 3)
  t.match(bodies[0].idempotency_key, /^[0-9a-f-]{36}$/)
  t.equal(new Set(bodies.map(body => body.idempotency_key)).size, 1)
})

t.test('a key of the caller stays; a batch is repeated only if every call may be', async t => {
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
    { code: 0, message: /no answer from/ },
  )
  t.equal(bodies.length, 3)
})

t.test('a call with effects is not repeated once it was sent, but if nobody has received it', async t => {
  let calls = 0
  const url = await serve(t, request => {
    calls++
    request.socket.destroy()
  })
  await t.rejects(clientOf(t, url).disconnect('u'), { name: 'ApiError', code: 0, message: /no answer from/ })
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

t.test('a temporary error of the API is repeated, another one is not', async t => {
  const codes = [100, 111, 102]
  const url = await serve(t, (request, response) =>
    response.writeHead(200, json).end(`{"error":{"code":${codes[request.count - 1]},"message":"no"}}`),
  )
  await t.rejects(clientOf(t, url).info(), { name: 'ApiError', code: 102, message: 'no' })
})

t.test('an answer that does not come, or not whole, ends at the time limit', async t => {
  const silent = await serve(t, () => {})
  await t.rejects(clientOf(t, silent, { timeout: 50, retries: 1 }).info(), {
    code: 0,
    message: /no answer from .* within 50 ms/,
  })
  const half = await serve(t, (_request, response) => void response.writeHead(200, json).write('{"result":'))
  await t.rejects(clientOf(t, half, { timeout: 50, retries: 0 }).info(), { code: 0, message: /within 50 ms/ })
  const cut = await serve(t, (request, response) => {
    response.writeHead(200, { ...json, 'content-length': 100 }).write('{"result":')
    setImmediate(() => request.socket.destroy())
  })
  await t.rejects(clientOf(t, cut, { retries: 0 }).info(), { code: 0, message: /no answer from/ })
})

t.test('answers of something else are refused', async t => {
  /** @type {[number, string, number, RegExp][]} */
  const answers = [
    [200, '<html>', 0, /does not answer like a server API/],
    [200, '[]', 0, /does not answer like a server API/],
    [200, 'null', 0, /does not answer like a server API/],
    [302, '', 0, /HTTP 302/],
    [400, 'Bad Request: channel must be a string', 107, /channel must be a string/],
    [401, 'Unauthorized: the API key is wrong', 101, /the API key is wrong/],
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

t.test('answers of another shape are refused', async t => {
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
  const refusal = { name: 'ApiError', code: 0, message: /not the answer of a server API/ }
  for (const _ of [1, 2]) await t.rejects(client.history('a'), refusal)
  for (const _ of [3, 4]) await t.rejects(client.batch([['info'], ['info']]), refusal)
})

t.test('an empty idempotency key is none', async t => {
  const keys = []
  const url = await serve(t, (request, response) => {
    keys.push(JSON.parse(request.text).idempotency_key)
    if (request.count !== 2) request.socket.destroy()
    else response.writeHead(200, json).end(OK)
  })
  await clientOf(t, url).publish('a', 1, { idempotencyKey: '' })
  t.match(keys[0], /^[0-9a-f-]{36}$/)
  t.equal(keys[1], keys[0])
  await t.rejects(clientOf(t, url, { retries: 0 }).publish('a', 1, { idempotencyKey: '' }), { code: 0 })
  t.equal(keys.length, 3)
})

t.test('an answer without end is cut off', async t => {
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

t.test('requests at a time are limited, waiting calls are bounded in bytes, and close ends them', async t => {
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

t.test('wrong options', async t => {
  /** @type {[any, RegExp][]} */
  const wrong = [
    [undefined, /needs options with a url/],
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
