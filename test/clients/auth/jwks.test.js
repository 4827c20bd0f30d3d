import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import t from 'tap'
import { disconnects, errors } from '../../../src/base/errors.js'
import { Jwks } from '../../../src/clients/auth/jwks.js'
import { Tokens } from '../../../src/clients/auth/tokens.js'
import { makeConfig, makeToken, NOW, thrown } from './jwt.js'

const { invalidToken } = disconnects
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const p521 = generateKeyPairSync('ec', { namedCurve: 'P-521' })
const ed = generateKeyPairSync('ed25519')
const other = generateKeyPairSync('rsa', { modulusLength: 2048 })

const jwk = (pair, more) => ({ ...pair.publicKey.export({ format: 'jwk' }), use: 'sig', ...more })
const down = (_request, response) => response.writeHead(503).end()

/** A JWKS server that records its requests. */
async function serve(t, keys) {
  const answer = (_request, response) => response.end(JSON.stringify({ keys: it.keys }))
  const it = { keys, requests: [], url: '', good: answer, answer: /** @type {any} */ (answer) }
  const server = createServer((request, response) => {
    it.requests.push(request.url)
    it.answer(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  it.url = `http://127.0.0.1:${port}/jwks`
  return it
}

const tokens = (url, settings = {}, options = {}) =>
  new Tokens(/** @type {any} */ (makeConfig({ jwks_public_endpoint: url, ...settings })), {
    clock: () => NOW * 1000,
    minInterval: 0,
    // On a busy machine a response may be slow.
    timeout: 10_000,
    ...options,
  })

/** @returns {Promise<any>} `good`, or the error */
const outcome = async (it, token) => {
  try {
    await it.connect(token)
    return 'good'
  } catch (error) {
    return error
  }
}

const token = (alg, pair, kid) => makeToken({ sub: '1' }, pair.privateKey, { alg, kid })
/** By the key `k`. */
const signed = (claims, pair = rsa) => makeToken(claims, pair.privateKey, { alg: 'RS256', kid: 'k' })

t.test('RSA, EC and Ed25519 keys, in every algorithm of their family', async t => {
  const server = await serve(t, [
    jwk(rsa, { kid: 'r' }),
    jwk(p256, { kid: 'e1' }),
    jwk(p521, { kid: 'e5' }),
    jwk(ed, { kid: 'd' }),
  ])
  const it = tokens(server.url)
  for (const [alg, pair, kid, expected] of [
    ...['RS256', 'RS384', 'RS512'].map(alg => [alg, rsa, 'r', 'good']),
    ['ES256', p256, 'e1', 'good'],
    ['ES512', p521, 'e5', 'good'],
    ['EdDSA', ed, 'd', 'good'],
    ['RS256', other, 'r', invalidToken],
    ['ES384', p256, 'e1', invalidToken],
    ['RS256', rsa, 'd', invalidToken],
  ])
    t.equal(await outcome(it, token(alg, pair, kid)), expected, `${alg} ${kid}`)
  t.equal(server.requests.length, 1, 'one request fetches all keys')
})

t.test('verified claims equal those of a static key; with a known key the result is synchronous', async t => {
  const server = await serve(t, [jwk(rsa, { kid: 'k' })])
  const it = tokens(server.url)
  const first = it.connect(signed({ sub: '42', exp: NOW + 5 }))
  t.ok(first instanceof Promise)
  t.match(await first, { user: '42', expireAt: NOW + 5 })
  t.match(it.connect(signed({ sub: '43' })), { user: '43' })
  t.match(it.subscribe(signed({ channel: 'x' })), { channel: 'x' })
  const expired = signed({ exp: NOW - 5 })
  const error = thrown(() => it.connect(expired))
  t.equal(error, errors.tokenExpired)
  t.equal(await outcome(tokens(server.url), expired), errors.tokenExpired)
  const forged = tokens(server.url).subscribe(signed({ channel: 'x' }, other))
  t.equal(await Promise.resolve(forged).catch(error => error), errors.permissionDenied)
})

t.test('only well-formed keys with use: sig are accepted, each for its own algorithm', async t => {
  const server = await serve(t, [
    jwk(rsa, { kid: 'nouse', use: undefined }),
    jwk(rsa, { kid: 'enc', use: 'enc' }),
    jwk(rsa, { kid: 'alg', alg: 'RS384' }),
    jwk(rsa, { kid: 'ps', alg: 'PS256' }),
    jwk(rsa, { kid: 'odd', alg: 7 }),
    { kty: 'RSA', kid: 'broken', use: 'sig', n: '', e: '' },
    { kty: 'oct', kid: 'oct', use: 'sig', k: 'c2VjcmV0' },
    { kty: 'EC', crv: 'P-256', kid: 'half', use: 'sig', x: 'AA' },
    jwk(rsa, { kid: 5 }),
    null,
    7,
    jwk(p256, { kid: 'same' }),
    jwk(rsa, { kid: 'same' }),
    jwk(rsa, { kid: 'last' }),
  ])
  const it = tokens(server.url)
  for (const kid of ['nouse', 'enc', 'ps', 'odd', 'broken', 'half', '5']) {
    t.equal(await outcome(it, token('RS256', rsa, kid)), invalidToken, kid)
  }
  t.equal(await outcome(it, makeToken({}, 'secret', { kid: 'oct' })), invalidToken)
  t.equal(await outcome(it, token('RS256', rsa, 'alg')), invalidToken)
  t.equal(await outcome(it, token('RS384', rsa, 'alg')), 'good')
  t.equal(await outcome(it, token('RS256', rsa, 'same')), 'good', 'one key id, two keys')
  t.equal(await outcome(it, token('ES256', p256, 'same')), 'good')
  t.equal(await outcome(it, token('RS256', rsa, 'last')), 'good')
})

t.test('a token that no key set can verify sends no request', async t => {
  const server = await serve(t, [jwk(rsa, { kid: 'r' })])
  const it = tokens(server.url, { hmac_secret_key: 'secret' })
  t.equal(await outcome(it, makeToken({}, 'secret')), invalidToken, 'static keys are not used')
  t.equal(await outcome(it, makeToken({}, 'secret', { kid: 'r' })), invalidToken)
  for (const kid of [undefined, '', 5, null, {}])
    t.equal(await outcome(it, token('RS256', rsa, kid)), invalidToken, JSON.stringify(kid))
  t.same(server.requests, [])
})

t.test('keys are kept for an hour', async t => {
  const server = await serve(t, [jwk(rsa, { kid: 'r' })])
  let now = NOW * 1000
  const it = tokens(server.url, {}, { clock: () => now })
  const good = token('RS256', rsa, 'r')
  t.equal(await outcome(it, good), 'good')
  now += 3_599_000
  t.equal(await outcome(it, good), 'good')
  t.equal(server.requests.length, 1)
  server.keys = []
  now += 2_000
  t.equal(await outcome(it, good), invalidToken, 'a revoked key is refused')
  t.equal(server.requests.length, 2)
})

t.test('an unknown key id sends a request, so a new key works immediately', async t => {
  const server = await serve(t, [jwk(other, { kid: 'old' })])
  const it = tokens(server.url)
  t.equal(await outcome(it, token('RS256', other, 'old')), 'good')
  server.keys.push(jwk(rsa, { kid: 'new' }))
  t.equal(await outcome(it, token('RS256', rsa, 'new')), 'good')
  t.equal(await outcome(it, token('RS256', other, 'old')), 'good')
  t.equal(server.requests.length, 2)
})

t.test('a flood of unknown key ids sends one request per interval', async t => {
  const server = await serve(t, [jwk(rsa, { kid: 'r' })])
  const it = tokens(server.url, {}, { minInterval: 200, clock: Date.now })
  const flood = () =>
    Promise.all(
      Array.from({ length: 300 }, (_, at) => outcome(it, token('EdDSA', ed, `${Math.random()}${at}`))),
    )
  const start = Date.now()
  for (const error of new Set(await flood())) t.equal(error, invalidToken)
  t.equal(server.requests.length, 1)
  for (const error of new Set(await flood())) t.equal(error, invalidToken)
  t.equal(server.requests.length, 2)
  t.ok(Date.now() - start >= 195, 'the second request waited')
  const made = flood()
  t.equal(await outcome(it, token('RS256', rsa, 'r')), 'good', 'known keys do not wait')
  t.equal(server.requests.length, 2)
  await made
})

t.test('after two failed requests, the error is temporary', async t => {
  const server = await serve(t, [jwk(rsa, { kid: 'r' })])
  const good = token('RS256', rsa, 'r')
  /** @type {[string, (request: any, response: any) => void][]} */
  const faults = [
    ['status 500', (_request, response) => response.writeHead(500).end('{}')],
    ['status 404', (_request, response) => response.writeHead(404).end()],
    ['no JSON', (_request, response) => response.end('<html>')],
    ['no keys', (_request, response) => response.end('{}')],
    ['null', (_request, response) => response.end('null')],
    ['cut off', request => request.socket.destroy()],
    ['too long', (_request, response) => response.end(`{"keys":[]}${' '.repeat(1 << 20)}`)],
    ['no answer', () => {}],
  ]
  for (const [name, fault] of faults) {
    const reported = []
    const timeout = name === 'no answer' ? 2000 : 10_000
    const it = tokens(server.url, {}, { timeout, onUnreachable: error => reported.push(error) })
    server.requests.length = 0
    server.answer = fault
    t.equal(await outcome(it, good), errors.internal, name)
    t.equal(server.requests.length, 2, name)
    t.match(reported, [{ message: `cannot fetch the keys from ${server.url}: ` }], name)
    server.answer = server.good
    t.equal(await outcome(it, good), 'good', `after ${name}`)
  }
  const it = tokens(server.url)
  server.requests.length = 0
  server.answer = (request, response) =>
    (server.requests.length === 1 ? down : server.good)(request, response)
  t.equal(await outcome(it, good), 'good', 'the second try')
})

t.test('after a failure, the next request waits for the end of the interval', async t => {
  const server = await serve(t, [])
  const times = []
  server.answer = (_request, response) => {
    times.push(Date.now())
    response.writeHead(500).end()
  }
  const it = tokens(server.url, {}, { minInterval: 100, clock: Date.now })
  const good = token('RS256', rsa, 'r')
  t.equal(await outcome(it, good), errors.internal)
  t.equal(await outcome(it, good), errors.internal)
  t.equal(times.length, 4)
  t.ok(times[2] - times[1] >= 95, `${times}`)
})

t.test('while the endpoint is down, its last keys stay valid', async t => {
  const server = await serve(t, [jwk(rsa, { kid: 'r' })])
  let now = NOW * 1000
  const reports = []
  const onUnreachable = (error, kept) => reports.push({ error, kept })
  const it = tokens(server.url, {}, { clock: () => now, onUnreachable })
  const good = token('RS256', rsa, 'r')
  t.equal(await outcome(it, good), 'good')
  server.answer = down

  // An hour after the first answer, and for another hour.
  now += 3_600_000
  t.equal(await outcome(it, good), 'good', 'the first caller waits for the answer')
  t.match(reports, [{ error: { message: /^cannot fetch the keys from .*: HTTP status 503$/ }, kept: 1 }])
  const requests = server.requests.length
  for (let i = 0; i < 100; i++) {
    now += 50
    t.match(it.connect(good), { user: '1' }, 'other callers do not wait')
  }
  t.equal(server.requests.length, requests, 'without requests for some time')
  t.equal(await outcome(it, token('EdDSA', ed, 'new')), errors.internal, 'an unknown key may be valid')
  t.equal(await outcome(it, token('RS256', other, 'r')), invalidToken, 'a forged token is not')
  for (let minute = 0; minute < 60; minute++) {
    now += 60_000
    t.match(it.connect(good), { user: '1' })
    // The background request ends before the next minute begins.
    await outcome(it, token('EdDSA', ed, `new ${minute}`))
  }
  t.equal(reports.length, 61, 'one report a minute')

  server.answer = server.good
  now += 60_000
  t.match(it.connect(good), { user: '1' }, 'the background request succeeds')
  await outcome(it, token('EdDSA', ed, 'waits for it'))
  server.keys = []
  now += 3_600_000
  t.equal(await outcome(it, good), invalidToken, 'a response without the key ends it')
  server.answer = down
  now += 10_000
  t.equal(await outcome(it, good), errors.internal, 'also while it is down again')
})

t.test('a key id that is missing in a response stays unknown for some seconds', async t => {
  const server = await serve(t, [jwk(other, { kid: 'old' })])
  let now = NOW * 1000
  const it = tokens(server.url, {}, { clock: () => now })
  const early = token('RS256', rsa, 'new')
  t.equal(await outcome(it, early), invalidToken)
  t.equal(server.requests.length, 1)
  server.keys.push(jwk(rsa, { kid: 'new' }))
  for (let i = 0; i < 20; i++) t.equal(await outcome(it, early), invalidToken)
  t.equal(server.requests.length, 1)
  now += 10_000
  t.equal(await outcome(it, early), 'good')
  t.equal(server.requests.length, 2)
})

t.test('a reload keeps the known keys', async t => {
  const server = await serve(t, [jwk(rsa, { kid: 'r' })])
  const jwks = new Jwks({ timeout: 10_000 })
  const good = token('RS256', rsa, 'r')
  t.equal(await outcome(tokens(server.url, {}, { jwks }), good), 'good')
  server.answer = request => request.socket.destroy()
  t.equal(await outcome(tokens(server.url, { audience: '' }, { jwks }), good), 'good')
  t.equal(server.requests.length, 1)
})

t.test('a new worker starts with the keys of the other workers', async t => {
  const server = await serve(t, [jwk(rsa, { kid: 'r' }), jwk(ed, { kid: 'e', use: 'enc' })])
  const changes = []
  let now = NOW * 1000
  const onKeys = (url, keys) => changes.push({ url, keys })
  const fetched = new Jwks({ clock: () => now, timeout: 10_000, onKeys })
  const good = token('RS256', rsa, 'r')
  t.equal(await outcome(tokens(server.url, {}, { jwks: fetched }), good), 'good')
  now += 3_600_000
  t.equal(await outcome(tokens(server.url, {}, { jwks: fetched }), good), 'good')
  t.equal(server.requests.length, 2)
  t.match(changes, [{ url: server.url, keys: /"kid":"r"/ }], 'only changes are reported')
  t.equal(changes.length, 1)

  server.answer = down
  const known = changes.slice()
  const later = tokens(server.url, {}, { known, clock: () => now })
  t.equal(await outcome(later, good), 'good', 'while the endpoint is down')
  t.equal(await outcome(later, token('EdDSA', ed, 'e')), errors.internal)
  t.equal(await outcome(tokens(server.url), good), errors.internal, 'without them')

  server.answer = server.good
  server.keys = []
  now += 10_000
  t.equal(await outcome(tokens(server.url, {}, { known }), good), invalidToken, 'the endpoint has precedence')
  await outcome(tokens(server.url, {}, { jwks: fetched }), token('EdDSA', ed, 'new'))
  t.strictSame(changes[1], { url: server.url, keys: '[]' })
})

t.test('a token of another issuer sends no request', async t => {
  const server = await serve(t, [jwk(rsa, { kid: 'k' })])
  const it = tokens(server.url, { issuer_regex: '^them$' })
  t.equal(await outcome(it, signed({ iss: 'you' })), invalidToken)
  t.same(server.requests, [])
  t.equal(await outcome(it, signed({ iss: 'them' })), 'good')
})

t.test('each address built from issuer and audience has its own keys', async t => {
  const server = await serve(t, [])
  server.answer = (request, response) => {
    const keys = { '/one/app': [jwk(rsa, { kid: 'k' })], '/two/app': [jwk(other, { kid: 'k' })] }
    response.end(JSON.stringify({ keys: keys[request.url] ?? [] }))
  }
  const it = tokens(server.url.replace('/jwks', '/{{tenant}}/{{aud}}'), {
    issuer_regex: '^https://(?P<tenant>one|two)\\.example$',
    audience_regex: '^(?P<aud>app|web)$',
  })
  for (const [tenant, aud, pair, expected] of /** @type {any[][]} */ ([
    ['one', 'app', rsa, 'good'],
    ['two', ['x', 'app'], other, 'good'],
    ['two', 'app', rsa, invalidToken],
    ['three', 'app', rsa, invalidToken],
  ]))
    t.equal(await outcome(it, signed({ iss: `https://${tenant}.example`, aud }, pair)), expected, tenant)
  t.same(server.requests, ['/one/app', '/two/app'])
})

t.test('a token that would change the address sends no request', async t => {
  const server = await serve(t, [jwk(rsa, { kid: 'k' })])
  const it = tokens(server.url.replace('/jwks', '/{{tenant}}/{{aud}}/keys'), {
    issuer_regex: '^https://idp/(?P<tenant>.*)$',
    audience_regex: '^(?P<aud>.*)$',
    insecure_skip_jwks_endpoint_safety_check: true,
  })
  const make = (tenant, aud) => signed({ iss: `https://idp/${tenant}`, aud })
  for (const part of ['', '.', '..', '%2e%2e', '%252e%252e', 'a/b', 'a%2fb', 'a?b', 'a:1', 'b@a', 'a#']) {
    t.equal(await outcome(it, make(part, 'app')), invalidToken, `issuer ${part}`)
    t.equal(await outcome(it, make('one', part)), invalidToken, `audience ${part}`)
  }
  t.same(server.requests, [])
  t.equal(await outcome(it, make('one', 'app')), 'good')
  t.same(server.requests, ['/one/app/keys'])
})

t.test('the number of endpoints and concurrent requests is limited', async t => {
  const server = await serve(t, [jwk(rsa, { kid: 'k' })])
  const jwks = new Jwks({ minInterval: 0, timeout: 10_000 })
  const results = await Promise.allSettled(
    Array.from({ length: 100 }, (_, at) => jwks.find(`${server.url}/${at}`, 'k')),
  )
  t.equal(results.filter(({ status }) => status === 'fulfilled').length, 32)
  t.equal(server.requests.length, 32)
  for (let at = 0; at < 300; at++) await jwks.find(`${server.url}/${at}`, 'k')
  server.requests.length = 0
  t.ok(Array.isArray(jwks.find(`${server.url}/299`, 'k')))
  await jwks.find(`${server.url}/0`, 'k')
  t.same(server.requests, ['/jwks/0'], 'the oldest endpoint was dropped')
  server.answer = (_request, response) => response.end('{"keys":[]}')
  for (let at = 0; at < 300; at++) await jwks.find(`${server.url}/empty/${at}`, 'k')
  t.ok(Array.isArray(jwks.find(`${server.url}/299`, 'k')), 'endpoints without keys replace no others')
})
