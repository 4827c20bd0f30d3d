import t from 'tap'
import { ConfigError, loadConfig } from '../../src/config/load.js'
import { checkExposure, configureServer, exposureFaults, isLoopback } from '../../src/config/profile.js'
import { directory } from './support.js'

t.test('without any configuration, the development profile runs on loopback', async t => {
  const { config, profile, warnings } = configureServer({
    env: { HALLEY_WORKERS: '3', HALLEY_HTTP_SERVER_PORT: '9001' },
  })
  t.equal(profile, 'development')
  t.same(warnings, [])
  t.match(config, {
    workers: 3,
    http_server: { address: '127.0.0.1', port: 9001 },
    client: { allow_anonymous_connect_without_token: true, insecure: false, allowed_origins: ['loopback'] },
    http_api: { key: /^[0-9a-f]{32}$/ },
    health: { enabled: true },
    demo: { enabled: true },
    channel: {
      without_namespace: { allow_subscribe_for_anonymous: true, history_size: 50 },
      namespaces: [
        { name: 'demo', presence: true, join_leave: true, history_ttl: 600_000 },
        { name: 'pointers', subscription_type: 'map', map: { mode: 'ephemeral', client_key: 'client_id' } },
      ],
    },
  })
  t.equal(exposureFaults(config).length, 0)
})

t.test('its key is new at each start and is kept by a reload', async t => {
  const { key } = configureServer({}).config.http_api
  t.not(configureServer({}).config.http_api.key, key)
  t.equal(configureServer({}, { key }).config.http_api.key, key)
})

t.test('flags set its port and loopback address', async t => {
  const { config } = configureServer({ flags: { 'http_server.port': '0', 'http_server.address': '::1' } })
  t.equal(config.http_server.address, '::1')
  t.equal(config.http_server.port, 0)
})

t.test('any configuration disables it', async t => {
  const file = directory(t).write('a.json', { http_server: { address: '127.0.0.1' } })
  const { config, profile } = configureServer({ file })
  t.equal(profile, 'configured')
  t.equal(config.demo.enabled, false)
  t.equal(config.client.allow_anonymous_connect_without_token, false)
  for (const env of [
    { HALLEY_CLIENT_TOKEN_HMAC_SECRET_KEY: 'x' },
    { HALLEY_HTTP_API_KEY: 'x' },
    { HALLEY_CHANNEL_MAX_LENGTH: '100' },
    { HALLEY_HTTP_SERVER_ADDRESS: '0.0.0.0' },
  ]) {
    t.throws(() => configureServer({ env }), ConfigError, JSON.stringify(env))
    const local = { ...env, HALLEY_HTTP_SERVER_ADDRESS: '127.0.0.1' }
    if (!env.HALLEY_HTTP_SERVER_ADDRESS) t.equal(configureServer({ env: local }).profile, 'configured')
  }
})

t.test('the error names what disabled the profile, and --dev', async t => {
  const env = { HALLEY_CLIENT_ALLOWED_ORIGINS: 'http://localhost:5173', HALLEY_WORKERS: '1' }
  const faults = [
    /^client\.token\.hmac_secret_key: no token secret/,
    /^http_api\.key: no API key/,
    'the development profile is off because of HALLEY_CLIENT_ALLOWED_ORIGINS; --dev applies it below your settings',
  ]
  t.throws(() => configureServer({ env }), /** @type {any} */ ({ faults }))
  const file = directory(t).write('a.json', { http_server: { port: 9000 } })
  const address = { HALLEY_HTTP_SERVER_ADDRESS: '0.0.0.0' }
  t.throws(() => configureServer({ file }), { message: new RegExp(`off because of the file ${file}; --dev`) })
  t.throws(() => configureServer({ env: address }), { message: /because of the address 0\.0\.0\.0; --dev/ })

  const local = { ...env, HALLEY_HTTP_SERVER_ADDRESS: '127.0.0.1' }
  t.equal(configureServer({ env: local }).ended, 'HALLEY_CLIENT_ALLOWED_ORIGINS')
  t.equal(configureServer({}).ended, '')
  t.throws(() => configureServer({ env: { HALLEY_HTTP_API_KEY: 'secret' } }), ConfigError)
})

t.test('--dev applies the profile below a file, variables and flags', async t => {
  const file = directory(t).write('a.json', {
    client: { allowed_origins: ['https://app.example.com'], allow_anonymous_connect_without_token: false },
    channel: {
      namespaces: [
        { name: 'chat', presence: true },
        { name: 'pointers', history_size: 3, history_ttl: '1m' },
      ],
    },
    sse: { enabled: false },
  })
  const env = { HALLEY_CLIENT_CHANNEL_LIMIT: '7', HALLEY_CHANNEL_WITHOUT_NAMESPACE_HISTORY_SIZE: '9' }
  const { config, profile, warnings, generatedKey } = configureServer(
    { file, env, flags: { 'http_server.port': '9002' } },
    { dev: true, key: 'k'.repeat(32) },
  )
  t.same(
    { profile, warnings, generatedKey },
    { profile: 'development', warnings: [], generatedKey: 'k'.repeat(32) },
  )
  t.match(config, {
    http_server: { address: '127.0.0.1', port: 9002 },
    client: {
      allowed_origins: ['https://app.example.com'],
      allow_anonymous_connect_without_token: false,
      channel_limit: 7,
    },
    sse: { enabled: false },
    poll: { enabled: true },
    http_api: { key: 'k'.repeat(32) },
    admin: { password: 'k'.repeat(32) },
    demo: { enabled: true },
  })
  t.match(config.channel.namespaces, [
    { name: 'chat', history_size: 0 },
    { name: 'pointers', history_size: 3 },
    { name: 'demo', history_size: 50 },
  ])
  t.equal(config.channel.without_namespace.history_size, 9)
  t.equal(config.channel.without_namespace.presence, true)
  t.ok(
    Object.isFrozen(config) && Object.isFrozen(config.channel) && Object.isFrozen(config.channel.namespaces),
  )
})

t.test('--dev: one key for API and admin page, and a warning beyond loopback', async t => {
  const own = 'a long key of 32 bytes, not known'
  const set = configureServer({ env: { HALLEY_HTTP_API_KEY: own } }, { dev: true })
  t.match(set, { generatedKey: '', config: { http_api: { key: own }, admin: { password: own } } })
  const other = configureServer(
    { env: { HALLEY_HTTP_API_KEY: own, HALLEY_ADMIN_PASSWORD: `${own}2` } },
    { dev: true },
  )
  t.match(other, { generatedKey: '', config: { http_api: { key: own }, admin: { password: `${own}2` } } })
  const open = configureServer({ flags: { 'http_server.address': '0.0.0.0' } }, { dev: true })
  t.equal(open.config.http_server.address, '0.0.0.0')
  t.same(open.warnings, ['http_server.address: "0.0.0.0" exposes the development profile to other machines'])
  const exposed = { env: { HALLEY_HTTP_API_KEY: 'secret' }, flags: { 'http_server.address': '' } }
  t.throws(() => configureServer(exposed), { message: /^client\.token/ })
})

t.test('isLoopback() accepts only loopback addresses', async t => {
  for (const address of '127.0.0.1 127.8.9.10 localhost LOCALHOST ::1 [::1] ::ffff:127.0.0.1'.split(' ')) {
    t.ok(isLoopback(address), address)
  }
  for (const address of ['', '0.0.0.0', '::', '10.0.0.1', '127.0.0.1.example.com', 'example.com', '::2']) {
    t.notOk(isLoopback(address), address)
  }
})

/** Keys that are missing, for the address given. @param {Record<string, unknown>} tree */
const missing = tree => exposureFaults(loadConfig({ base: tree }).config).map(line => line.split(':')[0])

const TOKEN = 'client.token.hmac_secret_key'
const KEY = 'http_api.key'
const ORIGINS = 'client.allowed_origins'

t.test('a gateway beyond loopback needs a token key, an API key and origins', async t => {
  t.same(missing({ http_server: { address: '127.0.0.1' } }), [])
  t.same(missing({}), [TOKEN, KEY, ORIGINS])
  t.same(missing({ http_server: { address: '::' } }), [TOKEN, KEY, ORIGINS])
  t.same(missing({ http_server: { address: '192.0.2.1' } }), [TOKEN, KEY, ORIGINS])
  t.same(missing({ client: { token: { hmac_secret_key: 'x' } } }), [KEY, ORIGINS])
  t.same(missing({ client: { token: { jwks_public_endpoint: 'https://x/' } } }), [KEY, ORIGINS])
  t.same(missing({ http_api: { key: 'x' } }), [TOKEN, ORIGINS])
  t.same(missing({ client: { allowed_origins: ['https://a.example'] } }), [TOKEN, KEY])
  t.same(
    missing({ client: { token: { hmac_secret_key: 'x' }, allowed_origins: ['*'] }, http_api: { key: 'x' } }),
    [],
  )
})

t.test('an internal port reachable by others needs an API key', async t => {
  const loopback = { address: '127.0.0.1', internal_port: 9000 }
  t.same(missing({ http_server: loopback }), [])
  t.same(missing({ http_server: { ...loopback, internal_address: '::1' } }), [])
  t.same(missing({ http_server: { ...loopback, internal_address: '0.0.0.0' } }), [KEY])
  t.same(missing({ http_server: { ...loopback, internal_address: '0.0.0.0', internal_port: 0 } }), [])
  t.same(missing({ http_server: { address: '', internal_port: 9000, internal_address: '127.0.0.1' } }), [
    TOKEN,
    KEY,
    ORIGINS,
  ])
  const { config } = loadConfig({
    base: {
      http_server: { ...loopback, internal_address: '192.0.2.1' },
      http_api: { key: 'api_key' },
      admin: { password: 'secret' },
    },
  })
  t.throws(() => checkExposure(config), {
    message: /^http_api\.key: is a well-known value; .*\nadmin\.password: is a well-known value; .*$/,
  })
  t.match(
    exposureFaults(loadConfig({ base: { http_server: { ...loopback, internal_address: '::' } } }).config),
    [/^http_api\.key: no API key is set while http_server\.internal_address is "::"; /],
  )
})

t.test('each insecure mode replaces only its own setting', async t => {
  t.same(missing({ client: { insecure: true } }), [KEY, ORIGINS])
  t.same(missing({ client: { allow_anonymous_connect_without_token: true } }), [KEY, ORIGINS])
  t.same(missing({ http_api: { insecure: true } }), [TOKEN, ORIGINS])
  t.same(missing({ http_api: { disabled: true } }), [TOKEN, ORIGINS])
  t.same(missing({ client: { allowed_origins: ['*'] } }), [TOKEN, KEY])
  t.same(missing({ client: { insecure: true, allowed_origins: ['*'] }, http_api: { insecure: true } }), [])
  t.same(missing({ client: { subscription_token: { enabled: true, hmac_secret_key: 'x' } } }), [
    TOKEN,
    KEY,
    ORIGINS,
  ])
})
