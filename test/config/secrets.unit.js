import { randomBytes } from 'node:crypto'
import t from 'tap'
import { loadConfig } from '../../src/config/load.js'
import { checkExposure, configureServer } from '../../src/config/profile.js'

const KEY = 'http_api.key'

/**
 * @param {any} tree @param {string} address
 * @returns {{faults: string[], warnings: string[]}} the keys at the beginning of the lines
 */
function check(tree, address) {
  const base = { ...tree, http_server: { address } }
  const keys = (/** @type {readonly string[]} */ lines) => lines.map(line => line.split(':')[0])
  try {
    return { faults: [], warnings: keys(checkExposure(loadConfig({ base }).config)) }
  } catch (error) {
    return { faults: keys(error.faults), warnings: keys(error.warnings) }
  }
}

/** @param {string} key @param {string} address */
const checkKey = (key, address) =>
  check({ client: { insecure: true, allowed_origins: ['*'] }, http_api: { key } }, address)

t.test('placeholders of the documentation are refused on every address', async t => {
  for (const key of [
    'a long random text',
    'another long random text',
    'change me: a long random text',
    'change me: another long random text',
    'a long random key',
    '32 random bytes',
    'CHANGE_ME',
    'changeme',
    'change-this',
    '<change me>',
  ]) {
    t.same(checkKey(key, '').faults, [KEY], key)
    t.same(checkKey(key, '127.0.0.1').faults, [KEY], `${key}, behind a proxy on the same machine`)
  }
})

t.test('common words are refused unless only this machine can connect', async t => {
  for (const key of 'secret my-secret supersecret key KEY THE_KEY api_key secret123 password <YOUR-SECRET-KEY>'.split(
    ' ',
  )) {
    t.same(checkKey(key, '').faults, [KEY], key)
    t.same(checkKey(key, '192.0.2.1').faults, [KEY], key)
    t.same(checkKey(key, 'localhost'), { faults: [], warnings: [KEY] }, `${key}, for a try`)
  }
})

t.test('random secrets are accepted', async t => {
  for (const encoding of /** @type {const} */ (['hex', 'base64', 'base64url'])) {
    for (let n = 0; n < 100; n++) {
      const key = randomBytes(32).toString(encoding)
      const { faults, warnings } = checkKey(key, '')
      if (faults.length + warnings.length > 0) t.fail(key)
    }
  }
  t.same(checkKey(`key-${randomBytes(16).toString('hex')}`, ''), { faults: [], warnings: [] })
})

t.test('a secret shorter than 32 bytes is a warning', async t => {
  t.same(checkKey('x'.repeat(31), ''), { faults: [], warnings: [KEY] })
  t.same(checkKey('x'.repeat(32), ''), { faults: [], warnings: [] })
  t.same(checkKey('é'.repeat(16), ''), { faults: [], warnings: [] })
})

t.test('only secrets in use are checked', async t => {
  const short = 'x'
  const all = {
    client: {
      token: { hmac_secret_key: short, hmac_previous_secret_key: short },
      subscription_token: { enabled: true, hmac_secret_key: short, hmac_previous_secret_key: short },
      allowed_origins: ['*'],
    },
    http_api: { key: short },
    admin: { password: short, secret: short },
    uni_poll: { enabled: true, cursor_secret_key: short },
  }
  t.same(check(all, '').warnings, [
    'client.token.hmac_secret_key',
    'client.token.hmac_previous_secret_key',
    'client.subscription_token.hmac_secret_key',
    'client.subscription_token.hmac_previous_secret_key',
    'http_api.key',
    'admin.password',
    'admin.secret',
    'uni_poll.cursor_secret_key',
  ])
  const jwks = 'https://example.com/jwks'
  t.same(
    check(
      {
        client: {
          token: { hmac_secret_key: short, jwks_public_endpoint: jwks },
          subscription_token: { hmac_secret_key: short },
          allowed_origins: ['*'],
        },
        http_api: { key: short, disabled: true },
        admin: { password: short, enabled: false },
        uni_poll: { cursor_secret_key: short },
      },
      '',
    ),
    { faults: [], warnings: [] },
  )
})

t.test('the development profile needs no secret, and warns about a short one', async t => {
  t.same(configureServer({}).warnings, [])
  const { warnings, profile } = configureServer({ env: { HALLEY_ADMIN_PASSWORD: 'x' } })
  t.equal(profile, 'development')
  t.match(warnings, [/^admin\.password: is only 1 byte long/])
})
