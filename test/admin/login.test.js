import http from 'node:http'
import t from 'tap'
import { AdminTokens, TOKEN_TTL } from '../../src/admin/tokens.js'
import { unless } from '../needs.js'
import { PASSWORD, startAdmin } from './rig.js'

/** The first byte of a character of three, without the others. */
const NO_TEXT = Buffer.from('{"password":"\xe2"}', 'latin1')

const ALIASES = {
  skip: unless(process.platform === 'linux', 'elsewhere the loopback interface has one address'),
}

/**
 * A login from an address of this machine's own, on a connection of its own.
 * @param {string} url
 * @param {string} localAddress
 * @param {string} password
 * @returns {Promise<number | undefined>} the status
 */
function loginFrom(url, localAddress, password) {
  return new Promise((resolve, reject) => {
    const sent = http.request(`${url}/api/login`, { method: 'POST', localAddress, agent: false }, answer => {
      answer.resume()
      answer.on('end', () => resolve(answer.statusCode))
    })
    sent.on('error', reject)
    sent.end(JSON.stringify({ password }))
  })
}

for (const driver of /** @type {const} */ (['uws', 'node'])) {
  t.test(`${driver}: the right key gets a token for a day, which nobody keeps`, async t => {
    const now = Date.now()
    const admin = await startAdmin(t, { driver, clock: () => now })
    const { status, headers, body } = await admin.login()
    t.equal(status, 200)
    t.equal(headers.get('cache-control'), 'no-store')
    t.equal(headers.get('content-type'), 'application/json')
    t.equal(body.expires, now + TOKEN_TTL)
    t.equal((await admin.post('command', { type: 'gc' }, body)).status, 200)
  })

  t.test(`${driver}: a wrong key gets 401, and nothing but that`, async t => {
    const admin = await startAdmin(t, { driver })
    for (const key of ['', 'x', PASSWORD.slice(0, -1), `${PASSWORD} `, PASSWORD.toUpperCase()]) {
      const { status, headers, body } = await admin.login(key)
      t.equal(status, 401)
      t.equal(headers.get('cache-control'), 'no-store')
      t.same(body, { error: 'wrong key' })
    }
  })

  t.test(`${driver}: what is no login is refused in one line of JSON, and is no guess`, async t => {
    const admin = await startAdmin(t, { driver })
    const garbage = ['', '{', 'null', '5', '[]', '{}', '{"password":5}', '{"password":["x"]}', '\0']
    for (const body of [...garbage, ...garbage]) {
      const answer = await admin.post('login', body)
      t.equal(answer.status, 400, JSON.stringify(String(body)))
      t.same(answer.body, { error: 'the body is not what this takes' })
    }
    t.equal((await admin.post('login', NO_TEXT)).status, 401, 'bytes that are no UTF-8 are a wrong key')
    const large = await admin.post('login', JSON.stringify({ password: 'x'.repeat(5000) }))
    t.equal(large.status, 413)
    t.equal((await admin.login()).status, 200)
    const get = await fetch(`${admin.url}/api/login`)
    t.equal(get.status, 405)
    t.equal(get.headers.get('allow'), 'POST')
  })
}

t.test('ten wrong keys of an address are enough for a minute, over all workers', ALIASES, async t => {
  let now = 1_000_000
  const admin = await startAdmin(t, { workers: 3, clock: () => now })
  for (let n = 0; n < 10; n++) {
    t.equal((await admin.login('guess', n % 3)).status, 401)
    now += 1000
  }
  for (const worker of [0, 1, 2]) {
    const wrong = await admin.login('guess', worker)
    t.equal(wrong.status, 429)
    t.equal(wrong.headers.get('retry-after'), '50')
    t.match(wrong.body.error, 'try again in 50 s')
    t.same(await admin.login(PASSWORD, worker).then(({ status }) => status), 429, 'the right one waits, too')
  }
  t.equal(await loginFrom(admin.urls[1], '127.0.0.2', PASSWORD), 200, 'another address does not')
  now += 50_000
  t.equal((await admin.login(PASSWORD, 2)).status, 200, 'the wait was no longer than it said')
  t.equal((await admin.login('guess', 1)).status, 401)
  t.equal((await admin.login('guess', 1)).status, 429, 'the oldest one alone was forgotten')
})

t.test('guesses that come all at once are counted before any of them is answered', async t => {
  const admin = await startAdmin(t, { workers: 2 })
  const all = await Promise.all(Array.from({ length: 40 }, (_, n) => admin.login(`guess ${n}`, n % 2)))
  t.equal(all.filter(({ status }) => status === 401).length, 10)
  t.equal(all.filter(({ status }) => status === 429).length, 30)
})

t.test(
  'sixty wrong keys altogether are enough for a minute, however many addresses they come from',
  async t => {
    let now = 1_000_000
    const admin = await startAdmin(t, { workers: 2, clock: () => now })
    for (let n = 0; n < 60; n++) {
      const status = await loginFrom(admin.urls[n % 2], `127.0.1.${Math.floor(n / 9) + 1}`, 'guess')
      if (status !== 401) t.equal(status, 401, `guess ${n}`)
    }
    t.equal(await loginFrom(admin.urls[0], '127.0.2.1', 'guess'), 429)
    t.equal(await loginFrom(admin.urls[1], '127.0.2.1', PASSWORD), 429)
    now += 60_000
    t.equal(await loginFrom(admin.urls[1], '127.0.2.1', PASSWORD), 200)
  },
)

t.test('right keys lock nobody out', async t => {
  const admin = await startAdmin(t, { workers: 2 })
  const all = await Promise.all(Array.from({ length: 100 }, (_, n) => admin.login(PASSWORD, n % 2)))
  t.ok(all.every(({ status }) => status === 200))
})

t.test('while the worker that counts hangs, the others count for themselves', async t => {
  const admin = await startAdmin(t, { workers: 2 })
  admin.silent.add(0)
  t.equal((await admin.login(PASSWORD, 1)).status, 200)
  const all = await Promise.all(Array.from({ length: 12 }, () => admin.login('guess', 1)))
  t.equal(all.filter(({ status }) => status === 429).length, 2)
})

t.test('only tokens of this key are good, and until they expire', async t => {
  let now = 1_000_000
  const admin = await startAdmin(t, { clock: () => now })
  const token = await admin.token()
  const [expires, signature] = token.split('.')
  const command = async (/** @type {string} */ candidate) =>
    (await admin.post('command', { type: 'gc' }, { token: candidate })).status
  t.equal(await command(token), 200)
  const tokens = (/** @type {object} */ options) =>
    new AdminTokens({ password: PASSWORD, secret: '', ...options }).issue(now).token
  t.equal(await command(tokens({})), 200, 'another worker or node with the same key')
  for (const candidate of [
    `${Number(expires) + 1}.${signature}`,
    `${expires}.${'A'.repeat(43)}`,
    `${expires}.`,
    `${expires}.${signature}x`,
    `0${expires}.${signature}`,
    signature,
    'x',
    tokens({ password: 'another' }),
    tokens({ secret: 'a secret' }),
  ]) {
    t.equal(await command(candidate), 401, candidate)
  }
  now += TOKEN_TTL - 1
  t.equal(await command(token), 200)
  now += 1
  t.equal(await command(token), 401)
})

t.test('with admin.secret tokens are signed with it, and another key ends them all the same', async t => {
  const admin = await startAdmin(t, { admin: { secret: 'a secret' } })
  const command = async (/** @type {object} */ options) =>
    (
      await admin.post(
        'command',
        { type: 'gc' },
        new AdminTokens(/** @type {any} */ (options)).issue(Date.now()),
      )
    ).status
  t.equal(await command({ password: PASSWORD, secret: 'a secret' }), 200)
  t.equal(await command({ password: PASSWORD, secret: '' }), 401)
  t.equal(await command({ password: 'former', secret: 'a secret' }), 401)
})

t.test('a token counts in the Authorization header alone', async t => {
  const admin = await startAdmin(t)
  const token = await admin.token()
  const url = `${admin.url}/api/command`
  const send = (/** @type {string} */ to, /** @type {Record<string, string>} */ headers) =>
    fetch(to, { method: 'POST', headers, body: '{"type":"gc"}' }).then(({ status }) => status)
  t.equal(await send(url, { authorization: `Bearer ${token}` }), 200)
  t.equal(await send(url, { authorization: `bearer  ${token}` }), 200)
  t.equal(await send(url, { cookie: `token=${token}; halley-admin-token=${token}` }), 401)
  t.equal(await send(`${url}?token=${token}`, {}), 401)
  t.equal(await send(url, { authorization: `apikey ${token}` }), 401)
  t.equal(await send(url, { authorization: token }), 401)
  t.equal(await send(url, { 'x-api-key': PASSWORD }), 401)
})
