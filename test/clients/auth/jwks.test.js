import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import t from 'tap'
import { disconnects, errors } from '../../../src/base/errors.js'
import { Jwks } from '../../../src/clients/auth/jwks.js'
import { Tokens } from '../../../src/clients/auth/tokens.js'
import { makeConfig, makeToken, NOW, thrown } from './jwt.js'

/** @import { IncomingMessage, ServerResponse } from 'node:http' */
/** @import { KeyObject } from 'node:crypto' */

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const p521 = generateKeyPairSync('ec', { namedCurve: 'P-521' })
const ed = generateKeyPairSync('ed25519')
const other = generateKeyPairSync('rsa', { modulusLength: 2048 })

/**
 * @param {{publicKey: KeyObject}} pair
 * @param {object} more
 */
const jwk = (pair, more) => ({ ...pair.publicKey.export({ format: 'jwk' }), use: 'sig', ...more })

/**
 * A JWKS server with a count of its requests.
 *
 * @param {any} t
 * @param {object[]} keys
 */
async function serve(t, keys) {
  const it = {
    keys,
    /** @type {string[]} */
    requests: [],
    url: '',
    /** @type {(request: IncomingMessage, response: ServerResponse) => void} */
    answer: (_request, response) => void response.end(JSON.stringify({ keys: it.keys })),
  }
  const server = createServer((request, response) => {
    it.requests.push(request.url ?? '')
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

/**
 * @param {string} url
 * @param {Parameters<typeof makeConfig>[0]} [settings]
 * @param {import('../../../src/clients/auth/tokens.js').TokensOptions} [options]
 */
const tokens = (url, settings = {}, options = {}) =>
  new Tokens(/** @type {any} */ (makeConfig({ jwks_public_endpoint: url, ...settings })), {
    clock: () => NOW * 1000,
    minInterval: 0,
    // On a busy machine an answer may take its time.
    timeout: 10_000,
    ...options,
  })

/**
 * @param {ReturnType<typeof tokens>} it
 * @param {string} token
 * @returns {Promise<any>}
 */
const outcome = async (it, token) => {
  try {
    await it.connect(token)
    return 'good'
  } catch (error) {
    return error
  }
}

/**
 * @param {string} alg
 * @param {{privateKey: KeyObject}} pair
 * @param {string} kid
 */
const token = (alg, pair, kid) => makeToken({ sub: '1' }, pair.privateKey, { alg, kid })

t.test('RSA, EC and Ed25519 keys, in every algorithm of their family', async t => {
  const server = await serve(t, [
    jwk(rsa, { kid: 'r' }),
    jwk(p256, { kid: 'e1' }),
    jwk(p521, { kid: 'e5' }),
    jwk(ed, { kid: 'd' }),
  ])
  const it = tokens(server.url)
  for (const alg of ['RS256', 'RS384', 'RS512']) t.equal(await outcome(it, token(alg, rsa, 'r')), 'good', alg)
  t.equal(await outcome(it, token('ES256', p256, 'e1')), 'good')
  t.equal(await outcome(it, token('ES512', p521, 'e5')), 'good')
  t.equal(await outcome(it, token('EdDSA', ed, 'd')), 'good')
  t.equal(await outcome(it, token('RS256', other, 'r')), disconnects.invalidToken, 'another key')
  t.equal(await outcome(it, token('ES384', p256, 'e1')), disconnects.invalidToken, 'another curve')
  t.equal(await outcome(it, token('RS256', rsa, 'd')), disconnects.invalidToken, 'another kind')
  t.equal(server.requests.length, 1, 'one request for all of them')
})

t.test('claims come as with other keys, at once when the key is known', async t => {
  const server = await serve(t, [jwk(rsa, { kid: 'r' })])
  const it = tokens(server.url)
  const header = { alg: 'RS256', kid: 'r' }
  const first = it.connect(makeToken({ sub: '42', exp: NOW + 5 }, rsa.privateKey, header))
  t.ok(first instanceof Promise)
  t.match(await first, { user: '42', expireAt: NOW + 5 })
  t.match(it.connect(makeToken({ sub: '43' }, rsa.privateKey, header)), { user: '43' })
  t.match(it.subscribe(makeToken({ channel: 'x' }, rsa.privateKey, header)), { channel: 'x' })
  const expired = makeToken({ exp: NOW - 5 }, rsa.privateKey, header)
  t.equal(
    thrown(() => it.connect(expired)),
    errors.tokenExpired,
  )
  const fresh = tokens(server.url)
  t.equal(await outcome(fresh, expired), errors.tokenExpired)
  const bad = makeToken({ channel: 'x' }, other.privateKey, header)
  t.equal(
    await Promise.resolve(tokens(server.url).subscribe(bad)).catch(error => error),
    errors.permissionDenied,
  )
})

t.test('a key counts only with use: sig, a readable form, and in its own algorithm', async t => {
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
    t.equal(await outcome(it, token('RS256', rsa, kid)), disconnects.invalidToken, kid)
  }
  t.equal(await outcome(it, makeToken({}, 'secret', { kid: 'oct' })), disconnects.invalidToken)
  t.equal(await outcome(it, token('RS256', rsa, 'alg')), disconnects.invalidToken)
  t.equal(await outcome(it, token('RS384', rsa, 'alg')), 'good')
  t.equal(await outcome(it, token('RS256', rsa, 'same')), 'good', 'one key id, two keys')
  t.equal(await outcome(it, token('ES256', p256, 'same')), 'good')
  t.equal(await outcome(it, token('RS256', rsa, 'last')), 'good')
})

t.test('what no key set could verify asks for nothing', async t => {
  const server = await serve(t, [jwk(rsa, { kid: 'r' })])
  const it = tokens(server.url, { hmac_secret_key: 'secret' })
  t.equal(await outcome(it, makeToken({}, 'secret')), disconnects.invalidToken, 'static keys do not count')
  t.equal(await outcome(it, makeToken({}, 'secret', { kid: 'r' })), disconnects.invalidToken)
  t.equal(
    await outcome(it, makeToken({}, rsa.privateKey, { alg: 'RS256' })),
    disconnects.invalidToken,
    'no kid',
  )
  for (const kid of ['', 5, null, {}]) {
    const odd = makeToken({}, rsa.privateKey, { alg: 'RS256', kid })
    t.equal(await outcome(it, odd), disconnects.invalidToken, JSON.stringify(kid))
  }
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
  t.equal(await outcome(it, good), disconnects.invalidToken, 'a key taken back')
  t.equal(server.requests.length, 2)
})

t.test('an unknown key id asks again: a new key works at once', async t => {
  const server = await serve(t, [jwk(other, { kid: 'old' })])
  const it = tokens(server.url)
  t.equal(await outcome(it, token('RS256', other, 'old')), 'good')
  server.keys.push(jwk(rsa, { kid: 'new' }))
  t.equal(await outcome(it, token('RS256', rsa, 'new')), 'good')
  t.equal(await outcome(it, token('RS256', other, 'old')), 'good')
  t.equal(server.requests.length, 2)
})

t.test('a flood of unknown key ids costs one request an interval', async t => {
  const server = await serve(t, [jwk(rsa, { kid: 'r' })])
  const it = tokens(server.url, {}, { minInterval: 200, clock: Date.now })
  const flood = () =>
    Promise.all(
      Array.from({ length: 300 }, (_, at) => outcome(it, token('EdDSA', ed, `${Math.random()}${at}`))),
    )
  const start = Date.now()
  for (const error of new Set(await flood())) t.equal(error, disconnects.invalidToken)
  t.equal(server.requests.length, 1)
  for (const error of new Set(await flood())) t.equal(error, disconnects.invalidToken)
  t.equal(server.requests.length, 2)
  t.ok(Date.now() - start >= 195, 'the second request waited')
  const made = flood()
  t.equal(await outcome(it, token('RS256', rsa, 'r')), 'good', 'known keys do not wait')
  t.equal(server.requests.length, 2)
  await made
})

t.test('two tries, then the client may come back', async t => {
  const server = await serve(t, [jwk(rsa, { kid: 'r' })])
  const good = token('RS256', rsa, 'r')
  const { answer } = server
  /** @type {[string, typeof answer][]} */
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
    /** @type {Error[]} */
    const heard = []
    const timeout = name === 'no answer' ? 2000 : 10_000
    const it = tokens(server.url, {}, { timeout, onUnreachable: error => heard.push(error) })
    server.requests.length = 0
    server.answer = fault
    t.equal(await outcome(it, good), errors.internal, name)
    t.equal(server.requests.length, 2, name)
    t.match(heard, [{ message: `cannot get the keys from ${server.url}: ` }], name)
    server.answer = answer
    t.equal(await outcome(it, good), 'good', `${name}, and back again`)
  }
  const it = tokens(server.url)
  server.requests.length = 0
  server.answer = (request, response) =>
    server.requests.length === 1 ? response.writeHead(503).end() : answer(request, response)
  t.equal(await outcome(it, good), 'good', 'the second try')
})

t.test('a failure is not asked for again before the interval is over', async t => {
  const server = await serve(t, [])
  /** @type {number[]} */
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

t.test('while the endpoint is down, keys that it has published stay good', async t => {
  const server = await serve(t, [jwk(rsa, { kid: 'r' })])
  let now = NOW * 1000
  /** @type {{error: Error, kept: number}[]} */
  const reports = []
  const it = tokens(
    server.url,
    {},
    { clock: () => now, onUnreachable: (error, kept) => reports.push({ error, kept }) },
  )
  const good = token('RS256', rsa, 'r')
  t.equal(await outcome(it, good), 'good')
  const { answer } = server
  server.answer = (_request, response) => response.writeHead(503).end()

  // An hour after the first answer, and for another hour.
  now += 3_600_000
  t.equal(await outcome(it, good), 'good', 'who finds out has waited for the answer')
  t.match(reports, [{ error: { message: /^cannot get the keys from .*: HTTP status 503$/ }, kept: 1 }])
  const asked = server.requests.length
  for (let i = 0; i < 100; i++) {
    now += 50
    t.match(it.connect(good), { user: '1' }, 'nobody else waits')
  }
  t.equal(server.requests.length, asked, 'nor asks, for some time')
  t.equal(await outcome(it, token('EdDSA', ed, 'new')), errors.internal, 'an unknown key may be good')
  t.equal(await outcome(it, token('RS256', other, 'r')), disconnects.invalidToken, 'a forged token is not')
  for (let minute = 0; minute < 60; minute++) {
    now += 60_000
    t.match(it.connect(good), { user: '1' })
    // The request behind it ends before the next minute begins.
    await outcome(it, token('EdDSA', ed, `new ${minute}`))
  }
  t.equal(reports.length, 61, 'one report a minute')

  server.answer = answer
  now += 60_000
  t.match(it.connect(good), { user: '1' }, 'the request behind this one succeeds')
  await outcome(it, token('EdDSA', ed, 'waits for it'))
  server.keys = []
  now += 3_600_000
  t.equal(await outcome(it, good), disconnects.invalidToken, 'an answer without the key ends it')
  server.answer = (_request, response) => response.writeHead(503).end()
  now += 10_000
  t.equal(await outcome(it, good), errors.internal, 'for good')
})

t.test('an id that an answer did not have is unknown for some seconds', async t => {
  const server = await serve(t, [jwk(other, { kid: 'old' })])
  let now = NOW * 1000
  const it = tokens(server.url, {}, { clock: () => now })
  const early = token('RS256', rsa, 'new')
  t.equal(await outcome(it, early), disconnects.invalidToken)
  t.equal(server.requests.length, 1)
  server.keys.push(jwk(rsa, { kid: 'new' }))
  for (let i = 0; i < 20; i++) t.equal(await outcome(it, early), disconnects.invalidToken)
  t.equal(server.requests.length, 1)
  now += 10_000
  t.equal(await outcome(it, early), 'good')
  t.equal(server.requests.length, 2)
})

t.test('a reload keeps the keys that are known', async t => {
  const server = await serve(t, [jwk(rsa, { kid: 'r' })])
  const jwks = new Jwks({ timeout: 10_000 })
  const good = token('RS256', rsa, 'r')
  t.equal(await outcome(tokens(server.url, {}, { jwks }), good), 'good')
  server.answer = request => request.socket.destroy()
  t.equal(await outcome(tokens(server.url, { audience: '' }, { jwks }), good), 'good')
  t.equal(server.requests.length, 1)
})

t.test('a new worker begins with the keys that others know, until the endpoint says otherwise', async t => {
  const server = await serve(t, [jwk(rsa, { kid: 'r' }), jwk(ed, { kid: 'e', use: 'enc' })])
  /** @type {{url: string, keys: string}[]} */
  const told = []
  let now = NOW * 1000
  const fetched = new Jwks({
    clock: () => now,
    timeout: 10_000,
    onKeys: (url, keys) => told.push({ url, keys }),
  })
  const good = token('RS256', rsa, 'r')
  t.equal(await outcome(tokens(server.url, {}, { jwks: fetched }), good), 'good')
  now += 3_600_000
  t.equal(await outcome(tokens(server.url, {}, { jwks: fetched }), good), 'good')
  t.equal(server.requests.length, 2)
  t.match(told, [{ url: server.url, keys: /"kid":"r"/ }], 'only a change is told')
  t.equal(told.length, 1)

  const { answer } = server
  server.answer = (_request, response) => response.writeHead(503).end()
  const known = told.slice()
  const later = tokens(server.url, {}, { known, clock: () => now })
  t.equal(await outcome(later, good), 'good', 'while the endpoint is down')
  t.equal(await outcome(later, token('EdDSA', ed, 'e')), errors.internal)
  t.equal(await outcome(tokens(server.url), good), errors.internal, 'without them')

  server.answer = answer
  server.keys = []
  now += 10_000
  t.equal(
    await outcome(tokens(server.url, {}, { known }), good),
    disconnects.invalidToken,
    'it is asked first',
  )
  await outcome(tokens(server.url, {}, { jwks: fetched }), token('EdDSA', ed, 'new'))
  t.strictSame(told[1], { url: server.url, keys: '[]' })
})

t.test('checks before the signature keep tokens away from the endpoint', async t => {
  const server = await serve(t, [jwk(rsa, { kid: 'r' })])
  const it = tokens(server.url, { issuer_regex: '^them$' })
  const make = (/** @type {object} */ claims) => makeToken(claims, rsa.privateKey, { alg: 'RS256', kid: 'r' })
  t.equal(await outcome(it, make({ iss: 'you' })), disconnects.invalidToken)
  t.same(server.requests, [])
  t.equal(await outcome(it, make({ iss: 'them' })), 'good')
})

t.test('an address filled from issuer and audience has keys of its own', async t => {
  const server = await serve(t, [])
  server.answer = (request, response) => {
    const keys = { '/one/app': [jwk(rsa, { kid: 'k' })], '/two/app': [jwk(other, { kid: 'k' })] }
    response.end(JSON.stringify({ keys: keys[/** @type {'/one/app'} */ (request.url)] ?? [] }))
  }
  const it = tokens(server.url.replace('/jwks', '/{{tenant}}/{{aud}}'), {
    issuer_regex: '^https://(?P<tenant>one|two)\\.example$',
    audience_regex: '^(?P<aud>app|web)$',
  })
  const make = (/** @type {string} */ tenant, /** @type {any} */ aud, /** @type {KeyObject} */ key) =>
    makeToken({ iss: `https://${tenant}.example`, aud }, key, { alg: 'RS256', kid: 'k' })
  t.equal(await outcome(it, make('one', 'app', rsa.privateKey)), 'good')
  t.equal(await outcome(it, make('two', ['x', 'app'], other.privateKey)), 'good')
  t.equal(
    await outcome(it, make('two', 'app', rsa.privateKey)),
    disconnects.invalidToken,
    "one tenant's key for another",
  )
  t.equal(await outcome(it, make('three', 'app', rsa.privateKey)), disconnects.invalidToken)
  t.same(server.requests, ['/one/app', '/two/app'])
})

t.test('a token whose parts would change the address is refused before anything is asked', async t => {
  const server = await serve(t, [jwk(rsa, { kid: 'k' })])
  const it = tokens(server.url.replace('/jwks', '/{{tenant}}/{{aud}}/keys'), {
    issuer_regex: '^https://idp/(?P<tenant>.*)$',
    audience_regex: '^(?P<aud>.*)$',
    insecure_skip_jwks_endpoint_safety_check: true,
  })
  const make = (/** @type {string} */ tenant, /** @type {any} */ aud) =>
    makeToken({ iss: `https://idp/${tenant}`, aud }, rsa.privateKey, { alg: 'RS256', kid: 'k' })
  for (const part of ['', '.', '..', '%2e%2e', '%252e%252e', 'a/b', 'a%2fb', 'a?b', 'a:1', 'b@a', 'a#']) {
    t.equal(await outcome(it, make(part, 'app')), disconnects.invalidToken, `issuer ${part}`)
    t.equal(await outcome(it, make('one', part)), disconnects.invalidToken, `audience ${part}`)
  }
  t.same(server.requests, [])
  t.equal(await outcome(it, make('one', 'app')), 'good')
  t.same(server.requests, ['/one/app/keys'])
})

t.test('many endpoints: what is remembered and asked at once is bounded', async t => {
  const server = await serve(t, [jwk(rsa, { kid: 'k' })])
  const jwks = new Jwks({ minInterval: 0, timeout: 10_000 })
  const asked = Array.from({ length: 100 }, (_, at) => jwks.find(`${server.url}/${at}`, 'k'))
  const results = await Promise.allSettled(asked)
  t.equal(results.filter(({ status }) => status === 'fulfilled').length, 32)
  t.equal(server.requests.length, 32)
  for (let at = 0; at < 300; at++) await jwks.find(`${server.url}/${at}`, 'k')
  server.requests.length = 0
  t.ok(Array.isArray(jwks.find(`${server.url}/299`, 'k')))
  await jwks.find(`${server.url}/0`, 'k')
  t.same(server.requests, ['/jwks/0'], 'the oldest was forgotten')
  server.answer = (_request, response) => response.end('{"keys":[]}')
  for (let at = 0; at < 300; at++) await jwks.find(`${server.url}/empty/${at}`, 'k')
  t.ok(Array.isArray(jwks.find(`${server.url}/299`, 'k')), 'endpoints without keys drive nobody out')
})
