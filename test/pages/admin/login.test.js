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

/**
 * A request with the right key and any headers, also those that `fetch` does not send.
 * @param {string} url
 * @param {Record<string, string>} headers
 * @param {string} [name] of the endpoint
 * @returns {Promise<number | undefined>} the status
 */
function requestWith(url, headers, name = 'login') {
  return new Promise((resolve, reject) => {
    const sent = http.request(`${url}/api/${name}`, { method: 'POST', headers, agent: false }, answer => {
      answer.resume()
      answer.on('end', () => resolve(answer.statusCode))
    })
    sent.on('error', reject)
    sent.end(JSON.stringify({ password: PASSWORD }))
  })
}

for (const driver of drivers) {
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

t.test(
  'after ten wrong keys an address gets one answer every six seconds, over all workers',
  ALIASES,
  async t => {
    let now = 1_000_000
    /** @type {(() => void)[]} */
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
    const asleep = async () => {
      await until(() => sleepers.length > 0)
      return /** @type {() => void} */ (sleepers.shift())
    }
    for (let n = 0; n < 10; n++) t.equal((await admin.login('guess', n % 3)).status, 401)
    const slow = admin.login(PASSWORD, 1)
    const wake = await asleep()
    for (const worker of [0, 1, 2]) {
      for (const key of ['guess', PASSWORD]) {
        const refused = await admin.login(key, worker)
        t.equal(refused.status, 429, 'no more than one at a time')
        t.equal(refused.headers.get('retry-after'), '6')
        t.match(refused.body.error, 'try again in 6 s')
      }
    }
    t.equal(await loginFrom(admin.urls[1], '127.0.0.2', PASSWORD), 200, 'another address does not wait')
    const before = now
    wake()
    t.equal((await slow).status, 200, 'the right key gets in')
    t.equal(now - before, 6000)
    const guess = admin.login('guess', 2)
    ;(await asleep())()
    t.equal((await guess).status, 401, 'a guess waits as long')
    now += 70_000
    for (let n = 0; n < 10; n++) t.equal((await admin.login('guess', n % 3)).status, 401, 'all is forgotten')
    t.equal(sleepers.length, 0)
  },
)

t.test('guesses that come all at once are counted before any of them is answered', async t => {
  const admin = await startAdmin(t, { workers: 2, sleep: async () => {} })
  const all = await Promise.all(Array.from({ length: 40 }, (_, n) => admin.login(`guess ${n}`, n % 2)))
  t.equal(all.filter(({ status }) => status === 401).length, 11)
  t.equal(all.filter(({ status }) => status === 429).length, 29)
})

t.test('many guessers lock nobody else out, however many addresses they have', ALIASES, async t => {
  const admin = await startAdmin(t, { workers: 2, sleep: async () => {} })
  for (let n = 0; n < 100; n++)
    await loginFrom(admin.urls[n % 2], `127.0.1.${Math.floor(n / 12) + 1}`, 'guess')
  for (let n = 0; n < 12; n++) t.equal(await loginFrom(admin.urls[n % 2], '127.0.2.1', PASSWORD), 200)
})

t.test('the table of addresses is bounded, forgets, and survives a clock that is set back', async t => {
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

t.test('addresses of one IPv6 network count as one', async t => {
  const network = networkOf('2001:db8:1:2::1')
  t.equal(networkOf('2001:0db8:0001:0002:ffff:ffff:ffff:ffff'), network)
  t.equal(networkOf('2001:db8:1:2:3:4:5:6'), network)
  t.not(networkOf('2001:db8:1:3::1'), network)
  t.equal(networkOf('::1'), networkOf('0000:0000:0000:0000:0000:0000:0000:0001'))
  t.equal(networkOf('fe80::1%eth0'), networkOf('fe80::2'))
  t.equal(networkOf('192.0.2.7'), '192.0.2.7')
})

for (const driver of drivers) {
  t.test(`${driver}: a page of another address gets 403 before its body is read`, async t => {
    const admin = await startAdmin(t, { driver })
    const { host } = new URL(admin.url)
    const token = await admin.token()
    const login = (/** @type {Record<string, string>} */ headers) => requestWith(admin.url, headers)
    const page = { 'content-type': 'text/plain' }
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: `http://evil.example/${host}` },
      { origin: `http://${host}.evil.example` },
      { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
      { origin: `http://127.0.0.1:1` },
    ]) {
      t.same(await login({ ...page, ...headers }), 403, JSON.stringify(headers))
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
      t.equal(await login({ ...page, ...headers }), 200, JSON.stringify(headers))
    t.equal(await requestWith(admin.url, { origin: 'https://evil.example' }, 'publish'), 403)
    t.equal(await requestWith(admin.url, { origin: 'https://evil.example' }, 'command'), 403)
  })
}

t.test('right keys lock nobody out', async t => {
  const admin = await startAdmin(t, { workers: 2 })
  const all = await Promise.all(Array.from({ length: 100 }, (_, n) => admin.login(PASSWORD, n % 2)))
  t.ok(all.every(({ status }) => status === 200))
})

t.test('while the worker that counts hangs, the others count for themselves', async t => {
  const admin = await startAdmin(t, { workers: 2, sleep: async () => {} })
  admin.silent.add(0)
  t.equal((await admin.login(PASSWORD, 1)).status, 200)
  const all = await Promise.all(Array.from({ length: 13 }, () => admin.login('guess', 1)))
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
