import http from 'node:http'
import t from 'tap'
import { BURST, FailedLogins, MAX_ADDRESSES, networkOf, PACE } from '../../../src/pages/admin/login-guard.js'
import { AdminTokens, TOKEN_TTL } from '../../../src/pages/admin/tokens.js'
import { drivers } from '../../kit/drivers.js'
import { fetch } from '../../kit/fetch.js'
import { unless } from '../../kit/needs.js'
import { until } from '../../kit/wait.js'
import { PASSWORD, startAdmin } from './rig.js'

/** The first byte of a character of three, without the others. */
const NO_TEXT = Buffer.from('{"password":"\xe2"}', 'latin1')

const ALIASES = {
  skip: unless(process.platform === 'linux', 'on other platforms the loopback interface has one address'),
}

/**
 * A POST on a connection of its own, also with headers that `fetch` does not send.
 * @param {string} url of the endpoint
 * @param {{password?: string, headers?: Record<string, string>, localAddress?: string}} [options]
 * @returns {Promise<number | undefined>} status
 */
const post = (url, { password = PASSWORD, ...options } = {}) =>
  new Promise((resolve, reject) => {
    const request = http.request(url, { method: 'POST', agent: false, ...options }, answer => {
      answer.resume()
      answer.on('end', () => resolve(answer.statusCode))
    })
    request.on('error', reject)
    request.end(JSON.stringify({ password }))
  })

/** Numbers of answers by status. */
async function statuses(answers) {
  const counts = {}
  for (const { status } of await Promise.all(answers)) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

for (const driver of drivers) {
  t.test(`${driver}: the key gets a token for a day, a wrong one 401; neither is cached`, async t => {
    const now = Date.now()
    const admin = await startAdmin(t, { driver, clock: () => now })
    const { status, headers, body } = await admin.login()
    t.equal(status, 200)
    t.equal(headers.get('cache-control'), 'no-store')
    t.equal(headers.get('content-type'), 'application/json')
    t.equal(body.expires, now + TOKEN_TTL)
    t.equal((await admin.post('command', { type: 'gc' }, body)).status, 200)
    for (const key of ['', 'x', PASSWORD.slice(0, -1), `${PASSWORD} `, PASSWORD.toUpperCase()]) {
      const wrong = await admin.login(key)
      t.equal(wrong.status, 401)
      t.equal(wrong.headers.get('cache-control'), 'no-store')
      t.same(wrong.body, { error: 'wrong key' })
    }
  })

  t.test(
    `${driver}: an invalid login is refused with one line of JSON and does not count as a guess`,
    async t => {
      const admin = await startAdmin(t, { driver })
      const garbage = ['', '{', 'null', '5', '[]', '{}', '{"password":5}', '{"password":["x"]}', '\0']
      for (const body of [...garbage, ...garbage]) {
        const answer = await admin.post('login', body)
        t.equal(answer.status, 400, JSON.stringify(String(body)))
        t.same(answer.body, { error: 'invalid request body' })
      }
      t.equal((await admin.post('login', NO_TEXT)).status, 401, 'invalid UTF-8 is a wrong key')
      const large = await admin.post('login', JSON.stringify({ password: 'x'.repeat(5000) }))
      t.equal(large.status, 413)
      t.equal((await admin.login()).status, 200)
      const get = await fetch(`${admin.url}/api/login`)
      t.equal(get.status, 405)
      t.equal(get.headers.get('allow'), 'POST')
    },
  )

  t.test(`${driver}: a page of another origin gets 403 before its body is read`, async t => {
    const admin = await startAdmin(t, { driver })
    const { host } = new URL(admin.url)
    const token = await admin.token()
    const login = headers =>
      post(`${admin.url}/api/login`, { headers: { 'content-type': 'text/plain', ...headers } })
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: `http://evil.example/${host}` },
      { origin: `http://${host}.evil.example` },
      { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
      { origin: `http://127.0.0.1:1` },
    ]) {
      t.same(await login(headers), 403, JSON.stringify(headers))
      const { status } = await admin.post('command', { type: 'gc' }, { token, headers })
      t.equal(status, 403, 'also with a token')
    }
    for (const headers of [
      {},
      { origin: `http://${host}` },
      { origin: `https://${host}` },
      { origin: 'https://admin.example', host: 'admin.example' },
      { origin: 'https://admin.example', host: 'admin.example:443' },
      { origin: 'https://admin.example', 'sec-fetch-site': 'same-origin' },
    ])
      t.equal(await login(headers), 200, JSON.stringify(headers))
    for (const name of ['publish', 'command'])
      t.equal(await post(`${admin.url}/api/${name}`, { headers: { origin: 'https://evil.example' } }), 403)
  })
}

t.test(
  'after ten wrong keys, an address gets one answer per six seconds, across all workers',
  ALIASES,
  async t => {
    let now = 1_000_000
    const sleepers = []
    const admin = await startAdmin(t, {
      workers: 3,
      clock: () => now,
      sleep: ms =>
        new Promise(resolve => {
          sleepers.push(() => {
            now += ms
            resolve(undefined)
          })
        }),
    })
    const asleep = () => until(() => sleepers.shift())
    for (let n = 0; n < 10; n++) t.equal((await admin.login('guess', n % 3)).status, 401)
    const slow = admin.login(PASSWORD, 1)
    const wake = await asleep()
    for (const worker of [0, 1, 2]) {
      for (const key of ['guess', PASSWORD]) {
        const refused = await admin.login(key, worker)
        t.equal(refused.status, 429, 'one at a time')
        t.equal(refused.headers.get('retry-after'), '6')
        t.match(refused.body.error, 'try again in 6 s')
      }
    }
    t.equal(
      await post(`${admin.urls[1]}/api/login`, { localAddress: '127.0.0.2' }),
      200,
      'another address does not wait',
    )
    const before = now
    wake()
    t.equal((await slow).status, 200, 'the correct key is accepted')
    t.equal(now - before, 6000)
    const guess = admin.login('guess', 2)
    ;(await asleep())()
    t.equal((await guess).status, 401, 'a wrong guess waits as long')
    now += 70_000
    for (let n = 0; n < 10; n++) t.equal((await admin.login('guess', n % 3)).status, 401, 'all has expired')
    t.equal(sleepers.length, 0)
  },
)

t.test('simultaneous guesses are counted before any of them is answered', async t => {
  const admin = await startAdmin(t, { workers: 2, sleep: async () => {} })
  const all = Array.from({ length: 40 }, (_, n) => admin.login(`guess ${n}`, n % 2))
  t.same(await statuses(all), { 401: 11, 429: 29 })
})

t.test('guesses from many addresses do not lock out another address', ALIASES, async t => {
  const admin = await startAdmin(t, { workers: 2, sleep: async () => {} })
  const login = (n, options) => post(`${admin.urls[n % 2]}/api/login`, options)
  for (let n = 0; n < 100; n++)
    await login(n, { localAddress: `127.0.1.${Math.floor(n / 12) + 1}`, password: 'guess' })
  for (let n = 0; n < 12; n++) t.equal(await login(n, { localAddress: '127.0.2.1' }), 200)
})

t.test('correct keys do not lock out anyone', async t => {
  const admin = await startAdmin(t, { workers: 2 })
  const all = Array.from({ length: 100 }, (_, n) => admin.login(PASSWORD, n % 2))
  t.same(await statuses(all), { 200: 100 })
})

t.test('while the counting worker hangs, each worker counts its own logins', async t => {
  const admin = await startAdmin(t, { workers: 2, sleep: async () => {} })
  admin.silent.add(0)
  t.equal((await admin.login(PASSWORD, 1)).status, 200)
  const all = Array.from({ length: 13 }, () => admin.login('guess', 1))
  t.match(await statuses(all), { 429: 2 })
})

t.test('the table of addresses is bounded, expires, and survives a clock set back', async t => {
  const failures = new FailedLogins()
  let now = 1_000_000
  for (let n = 0; n < BURST; n++) t.equal(failures.tried('10.0.0.1', false, now), 0)
  t.equal(failures.tried('10.0.0.1', true, now), PACE)
  t.equal(failures.tried('10.0.0.1', true, now), -PACE)
  t.equal(failures.tried('10.0.0.1', true, now - 100_000), 0, 'the clock was set back')
  for (let n = 0; n < 2 * MAX_ADDRESSES; n++)
    failures.tried(`10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`, false, now)
  t.equal(failures.size, MAX_ADDRESSES)
  now += 10 * 60_000
  failures.tried('10.0.0.2', false, now)
  t.equal(failures.size, 1)
})

for (const [a, b, same] of /** @type {const} */ ([
  ['2001:db8:1:2::1', '2001:0db8:0001:0002:ffff:ffff:ffff:ffff', true],
  ['2001:db8:1:2::1', '2001:db8:1:2:3:4:5:6', true],
  ['2001:db8:1:2::1', '2001:db8:1:3::1', false],
  ['::1', '0000:0000:0000:0000:0000:0000:0000:0001', true],
  ['fe80::1%eth0', 'fe80::2', true],
  ['192.0.2.7', '192.0.2.8', false],
]))
  t.test(`${a} and ${b} are ${same ? 'one network' : 'two networks'}`, async t => {
    t.equal(networkOf(a) === networkOf(b), same)
  })

t.test('only tokens of this key are valid, until they expire', async t => {
  let now = 1_000_000
  const admin = await startAdmin(t, { clock: () => now })
  const token = await admin.token()
  const [expires, signature] = token.split('.')
  const command = async candidate =>
    (await admin.post('command', { type: 'gc' }, { token: candidate })).status
  t.equal(await command(token), 200)
  const tokens = options => new AdminTokens({ password: PASSWORD, secret: '', ...options }).issue(now).token
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

t.test('admin.secret signs the tokens, and another key invalidates them too', async t => {
  const admin = await startAdmin(t, { admin: { secret: 'a secret' } })
  const status = async options =>
    (await admin.post('command', { type: 'gc' }, new AdminTokens(options).issue(Date.now()))).status
  t.equal(await status({ password: PASSWORD, secret: 'a secret' }), 200)
  t.equal(await status({ password: PASSWORD, secret: '' }), 401)
  t.equal(await status({ password: 'former', secret: 'a secret' }), 401)
})

t.test('a token is accepted only in the Authorization header', async t => {
  const admin = await startAdmin(t)
  const token = await admin.token()
  const send = (headers, query = '') =>
    fetch(`${admin.url}/api/command${query}`, { method: 'POST', headers, body: '{"type":"gc"}' })
  for (const authorization of [`Bearer ${token}`, `bearer  ${token}`])
    t.equal((await send({ authorization })).status, 200)
  for (const headers of [
    { cookie: `token=${token}; halley-admin-token=${token}` },
    { authorization: `apikey ${token}` },
    { authorization: token },
    { 'x-api-key': PASSWORD },
  ])
    t.equal((await send(headers)).status, 401, JSON.stringify(headers))
  t.equal((await send({}, `?token=${token}`)).status, 401)
})
