import t from 'tap'
import { stringify } from 'yaml'
import { ConfigError, loadConfig } from '../../src/config/load.js'
import { put } from '../../src/config/values.js'
import { directory, faultsOf } from './support.js'

t.test('without any source, every key has its default', async t => {
  const { config, warnings } = loadConfig()
  t.same(warnings, [])
  t.match(config, {
    workers: 0,
    http_server: { address: '', port: 8000, driver: 'auto' },
    engine: { type: 'memory', memory: { max_bytes: 512 * 1024 * 1024 } },
    client: { ping_interval: 25_000, pong_timeout: 8000, channel_limit: 128, allowed_origins: [] },
    channel: { history_meta_ttl: 720 * 3_600_000, max_length: 255, private_prefix: '$', namespaces: [] },
    http_api: { handler_prefix: '/api', key: '' },
    websocket: { handler_prefix: '/connection/websocket', message_size_limit: 65536 },
    shutdown: { timeout: 30_000 },
  })
})

t.test('the configuration is deeply frozen', async t => {
  const { config: typed } = loadConfig({ base: { channel: { namespaces: [{ name: 'chat' }] } } })
  const config = /** @type {any} */ (typed)
  t.throws(() => {
    config.client.token.hmac_secret_key = 'x'
  }, TypeError)
  t.throws(() => config.channel.namespaces.push({}), TypeError)
  t.throws(() => {
    config.channel.namespaces[0].presence = true
  }, TypeError)
  t.throws(() => config.client.allowed_origins.push('*'), TypeError)
})

t.test('configurations share no objects', async t => {
  const one = loadConfig().config
  const two = loadConfig().config
  t.not(one.client.allowed_origins, two.client.allowed_origins)
})

const TREE = {
  http_server: { port: 9000 },
  client: { token: { hmac_secret_key: 'secret' }, ping_interval: '10s', pong_timeout: '3s' },
  channel: {
    without_namespace: { presence: true },
    namespaces: [{ name: 'chat', history_size: 10, history_ttl: '1m', channel_regex: '^a+$' }],
  },
}

t.test('JSON and YAML files give the same configuration', async t => {
  const dir = directory(t)
  const files = [
    dir.write('a.json', TREE),
    dir.write('b.yaml', stringify(TREE)),
    dir.write('c.yml', stringify(TREE)),
  ]
  for (const file of files) {
    const { config } = loadConfig({ file })
    t.equal(config.http_server.port, 9000)
    t.equal(config.client.ping_interval, 10_000)
    t.equal(config.channel.without_namespace.presence, true)
    t.match(config.channel.namespaces, [
      { name: 'chat', history_size: 10, history_ttl: 60_000, presence: false },
    ])
  }
  t.same(loadConfig({ file: 'a.json', cwd: dir.path }).config.http_server.port, 9000, 'relative to cwd')
  t.equal(loadConfig({ file: dir.write('empty.yaml', '# nothing\n') }).config.http_server.port, 8000)
  t.equal(loadConfig({ file: dir.write('bom.json', '\ufeff{"workers": 3}') }).config.workers, 3)
})

t.test('an unreadable file is a one-line error', async t => {
  const dir = directory(t)
  for (const [file, line] of /** @type {[string, RegExp][]} */ ([
    [`${dir.path}/none.json`, /none\.json: no such file/],
    [dir.write('a.toml', ''), /TOML is not supported/],
    [dir.write('a.conf', ''), /must end with \.json, \.yaml or \.yml/],
    [dir.write('bad.json', '{\n  "workers": 1,,\n}'), /bad\.json: invalid JSON at line 2, column 16/],
    [dir.write('cut.json', '{"workers": 1'), /cut\.json: invalid JSON/],
    [dir.write('bad.yaml', 'a: 1\nb: [1, 2\nc: 3\n'), /bad\.yaml: invalid YAML at line \d/],
    [dir.write('list.json', '[]'), /must contain an object/],
    [dir.write('text.yaml', 'hello'), /must contain an object/],
    [dir.write('alias.yaml', 'a: *nowhere\n'), /invalid YAML/],
  ])) {
    let error
    try {
      loadConfig({ file })
    } catch (thrown) {
      error = thrown
    }
    t.ok(error instanceof ConfigError)
    t.match(error.message, line)
    t.notMatch(error.message, '\n', 'one line')
  }
})

t.test('the error for a broken file shows no secrets', async t => {
  const file = directory(t).write('s.json', '{"client": {"token": {"hmac_secret_key": "hush",}}}')
  let message = ''
  try {
    loadConfig({ file })
  } catch (error) {
    message = error.message
  }
  t.match(message, 'invalid JSON')
  t.notMatch(message, 'hush')
})

t.test('flags override variables, variables override the file, the file overrides defaults', async t => {
  const file = directory(t).write('a.json', {
    workers: 1,
    http_server: { port: 1001, address: 'file' },
    log: { level: 'warn' },
  })
  const env = { HALLEY_WORKERS: '2', HALLEY_HTTP_SERVER_PORT: '1002' }
  const { config } = loadConfig({ file, env, flags: { workers: '3', 'http_server.address': undefined } })
  t.equal(config.workers, 3)
  t.equal(config.http_server.port, 1002)
  t.equal(config.http_server.address, 'file')
  t.equal(config.log.level, 'warn')
  t.equal(config.http_server.driver, 'auto')
})

t.test('variables have the names of their keys', async t => {
  const { config, warnings } = loadConfig({
    env: {
      PATH: '/bin',
      CENTRIFUGO_CLIENT_INSECURE: 'nonsense',
      HALLEY_CLIENT_TOKEN_HMAC_SECRET_KEY: ' with spaces ',
      HALLEY_CLIENT_ALLOWED_ORIGINS: ' https://a.example  https://*.b.example ',
      HALLEY_CLIENT_PING_INTERVAL: '1m',
      HALLEY_CLIENT_INSECURE: 'TRUE',
      HALLEY_HEALTH_ENABLED: '1',
      HALLEY_DEMO_ENABLED: 'false',
      HALLEY_LOG_LEVEL: '',
      HALLEY_CHANNEL_WITHOUT_NAMESPACE_PRESENCE: 'true',
      HALLEY_CHANNEL_NAMESPACES: '[{"name":"chat","presence":true},{"name":"chat.x-y"}]',
      HALLEY_CHANNEL_NAMESPACES_CHAT_HISTORY_SIZE: '7',
      HALLEY_CHANNEL_NAMESPACES_CHAT_HISTORY_TTL: '5s',
      HALLEY_CHANNEL_NAMESPACES_CHAT_X_Y_JOIN_LEAVE: 'true',
    },
  })
  t.same(warnings, [])
  t.equal(config.client.token.hmac_secret_key, ' with spaces ')
  t.same(config.client.allowed_origins, ['https://a.example', 'https://*.b.example'])
  t.equal(config.client.ping_interval, 60_000)
  t.equal(config.client.insecure, true)
  t.equal(config.health.enabled, true)
  t.equal(config.demo.enabled, false)
  t.equal(config.log.level, 'info', 'an empty variable is unset')
  t.equal(config.channel.without_namespace.presence, true)
  const [chat, other] = config.channel.namespaces
  t.match(chat, { name: 'chat', presence: true, history_size: 7, history_ttl: 5000, join_leave: false })
  t.match(other, { name: 'chat.x-y', join_leave: true, history_size: 0 })
})

t.test('a variable changes one option of a namespace from the file', async t => {
  const { config } = loadConfig({
    base: { channel: { namespaces: [{ name: 'my-chat', presence: true }] } },
    env: {
      HALLEY_CHANNEL_NAMESPACES_MY_CHAT_PRESENCE: 'false',
      HALLEY_CHANNEL_NAMESPACES_MY_CHAT_JOIN_LEAVE: 't',
    },
  })
  t.match(config.channel.namespaces[0], { presence: false, join_leave: true })
})

t.test('variables of other commands are ignored', async t => {
  const others = { HALLEY_FLEET_DIR: '/x', HALLEY_FLEET_API_KEY: 'k', HALLEY_ADMIN_KEY: 'k' }
  t.same(faultsOf({}, others), [])
})

t.test('errors for invalid variables name the variable', async t => {
  const faults = faultsOf(
    { channel: { namespaces: [{ name: 'chat' }] } },
    {
      HALLEY_PORT: '1',
      HALLEY_CLIENT_TOKEN_HMAC_SECRET: 'x',
      HALLEY_HTTP_SERVER_PORT: '80a',
      HALLEY_CLIENT_INSECURE: 'yes',
      HALLEY_CHANNEL_NAMESPACES_CHAT_PRESENSE: '1',
      HALLEY_CHANNEL_NAMESPACES_NEWS_PRESENCE: '1',
    },
  )
  t.same([...faults].sort(), [
    'HALLEY_CHANNEL_NAMESPACES_CHAT_PRESENSE: unknown variable; did you mean HALLEY_CHANNEL_NAMESPACES_CHAT_PRESENCE?',
    'HALLEY_CHANNEL_NAMESPACES_NEWS_PRESENCE: no namespace matches this variable (namespaces: "chat")',
    'HALLEY_CLIENT_INSECURE: "yes" is not true or false',
    'HALLEY_CLIENT_TOKEN_HMAC_SECRET: unknown variable; did you mean HALLEY_CLIENT_TOKEN_HMAC_SECRET_KEY?',
    'HALLEY_HTTP_SERVER_PORT: "80a" is not a whole number',
    'HALLEY_PORT: unknown variable; did you mean HALLEY_HTTP_SERVER_PORT?',
  ])
  t.same(faultsOf({}, { HALLEY_CHANNEL_NAMESPACES: 'chat' }), [
    'HALLEY_CHANNEL_NAMESPACES: is not a JSON array of namespaces',
  ])
  t.same(faultsOf({}, {}, { 'http_server.port': 'x' }), ['--port: "x" is not a whole number'])
})

t.test('an unsupported Centrifugo key causes one warning with its name', async t => {
  const { warnings } = loadConfig({
    base: {
      webtransport: { enabled: true },
      uni_grpc: { enabled: true, tls: { enabled: false } },
      channel: {
        proxy: { subscribe_stream: { endpoint: 'http://x' } },
        without_namespace: { subscribe_stream_proxy_enabled: false },
        namespaces: [{ name: 'chat', subscribe_stream_proxy_name: 'x' }],
      },
      map_broker: { postgres: { dsn: 'postgres://x' }, redis: { cleanup_interval: '1s' } },
      engine: { redis: { force_resp2: true, replica_client: { enabled: true } } },
    },
    env: {
      HALLEY_DEBUG_ENABLED: 'true',
      HALLEY_SWAGGER_ENABLED: 'true',
      HALLEY_CHANNEL_NAMESPACES_CHAT_SUBSCRIBE_STREAM_PROXY_ENABLED: 'false',
    },
  })
  const names = warnings.map(line => line.slice(0, line.indexOf(':')))
  t.same(names.sort(), [
    'HALLEY_CHANNEL_NAMESPACES_CHAT_SUBSCRIBE_STREAM_PROXY_ENABLED',
    'HALLEY_DEBUG_ENABLED',
    'HALLEY_SWAGGER_ENABLED',
    'channel.namespaces[0].subscribe_stream_proxy_name',
    'channel.proxy.subscribe_stream.endpoint',
    'channel.without_namespace.subscribe_stream_proxy_enabled',
    'engine.redis.force_resp2',
    'engine.redis.replica_client.enabled',
    'map_broker.postgres.dsn',
    'map_broker.redis.cleanup_interval',
    'uni_grpc.enabled',
    'uni_grpc.tls.enabled',
    'webtransport.enabled',
  ])
  for (const warning of warnings) t.match(warning, 'Centrifugo key that Halley does not support yet')
})

t.test('an unsupported Centrifugo key that restricts is a one-line error', async t => {
  const RESTRICTS = 'Centrifugo restriction that Halley does not support yet; remove it to start without it'
  /** Path, value, and reported key. @type {[string, unknown, string][]} */
  const restricting = [
    ['client.rate_limit.ip_connect.max_concurrent_per_ip', 20, 'client.rate_limit.ip_connect'],
    ['http_server.tls_autocert', { enabled: true, host_whitelist: ['a'] }, 'http_server.tls_autocert'],
  ]
  for (const [name, value] of [
    ['subscribe_stream_proxy_enabled', true],
    ['client_publish_debounce_interval', '100ms'],
  ]) {
    const key = `channel.without_namespace.${name}`
    restricting.push([key, value, key])
    const namespaces = [{ name: 'chat', [String(name)]: value }]
    restricting.push(['channel.namespaces', namespaces, `channel.namespaces[0].${name}`])
  }
  for (const [path, value, key] of restricting) {
    /** @type {Record<string, unknown>} */
    const base = {}
    put(base, path, value)
    t.same(faultsOf(base), [`${key}: ${RESTRICTS}`], path)
  }
  const namespaces = { channel: { namespaces: [{ name: 'chat' }] } }
  for (const name of [
    'HALLEY_CLIENT_RATE_LIMIT_IP_CONNECT_ENABLED',
    'HALLEY_CHANNEL_WITHOUT_NAMESPACE_SUBSCRIBE_STREAM_PROXY_ENABLED',
    'HALLEY_CHANNEL_NAMESPACES_CHAT_SUBSCRIBE_STREAM_PROXY_ENABLED',
  ])
    t.same(faultsOf(namespaces, { [name]: 'true' }), [`${name}: ${RESTRICTS}`])
})

t.test('an unsupported restriction that is off is a warning', async t => {
  const { warnings } = loadConfig({
    base: {
      client: {
        rate_limit: {
          ip_connect: { enabled: false, buckets: [{ interval: '1s', rate: 1 }] },
        },
      },
      http_server: { tls_autocert: { enabled: false, cache_dir: '/tmp' } },
      channel: {
        without_namespace: { client_publish_debounce_interval: '0s' },
        namespaces: [{ name: 'chat', subscribe_stream_proxy_enabled: false }],
      },
    },
    env: { HALLEY_CLIENT_RATE_LIMIT_IP_CONNECT_ENABLED: 'false' },
  })
  t.ok(warnings.length > 0)
  for (const warning of warnings) t.match(warning, 'Centrifugo key that Halley does not support yet')
})

t.test('an unknown key is refused, with the nearest known one', async t => {
  t.same(faultsOf({ http_server: { prot: 1 } }), [
    'http_server.prot: unknown key; did you mean http_server.port?',
  ])
  t.same(faultsOf({ cleint: { insecure: true } }), ['cleint: unknown key; did you mean client?'])
  t.same(faultsOf({ sse: { enabeld: true } }), ['sse.enabeld: unknown key; did you mean sse.enabled?'])
  t.same(faultsOf({ channel: { namespaces: [{ name: 'chat', presense: true }] } }), [
    'channel.namespaces[0].presense: unknown key; did you mean channel.namespaces[0].presence?',
  ])
  const faults = faultsOf(
    JSON.parse('{"__proto__": {"polluted": 1}, "constructor": 1, "toString": {}, "": 2}'),
  )
  t.equal(faults.length, 4)
  for (const fault of faults) t.match(fault, 'unknown key')
})

t.test('wrong types are refused with key, value and reason', async t => {
  const duration = 'is not a duration like "25s", "300ms" or "1h30m"'
  const unit = 'has no unit; write "25s" or "25ms"'
  const levels = '"trace", "debug", "info", "warn", "error", "fatal", "none"'
  const asText = 'is a number, not text; write it in quotes'
  /** Key, value, and the fault behind the key. @type {[string, unknown, string][]} */
  const cases = [
    ['workers', '2', ': "2" is text, not a number; write it without quotes'],
    ['workers', 1.5, ': 1.5 is not a whole number'],
    ['workers', -1, ': -1 is out of range; it must be at least 0'],
    ['workers', null, ': null is not a whole number'],
    ['workers', true, ': true is not a whole number'],
    ['http_server.port', 65536, ': 65536 is out of range; it must be at most 65535'],
    ['http_server.port', [], ': a list is not a whole number'],
    ['http_server.address', 1, `: 1 ${asText}`],
    ['http_server.address', null, ': null is not text'],
    ['http_server', 8000, ': 8000 is not an object with keys'],
    ['http_server', null, ': null is not an object with keys'],
    ['http_server.driver', 'ws', ': "ws" is not one of "auto", "uws", "node"'],
    ['client.insecure', 'true', ': "true" is not true or false'],
    ['client.ping_interval', 25, `: 25 ${unit}`],
    ['client.ping_interval', '25', `: "25" ${unit}`],
    ['client.ping_interval', 'x', `: "x" ${duration}`],
    ['client.stale_close_delay', 0, ': 0ms is out of range; it must be at least 1ms'],
    ['client.allowed_origins', '*', ': "*" is not a list; write ["*"]'],
    ['client.allowed_origins', [1], `[0]: 1 ${asText}`],
    ['client.token.hmac_secret_key', 123, `: the value ${asText}`],
    ['channel.namespaces', {}, ': an object is not a list of namespaces'],
    ['channel.namespaces', ['chat'], '[0]: "chat" is not an object with a name and options'],
    ['engine.type', 'nats', ': "nats" is not one of "memory", "redis"'],
    ['websocket.handler_prefix', 'ws', ': "ws" is not a path like "/api" (a leading slash, none at the end)'],
    ['log.level', 'loud', `: "loud" is not one of ${levels}`],
  ]
  for (const [key, value, fault] of cases) {
    /** @type {Record<string, unknown>} */
    const tree = {}
    put(tree, key, value)
    t.same(faultsOf(tree), [key + fault])
  }
})

t.test('an error within a list names the entry', async t => {
  const key = 'client.connect_code_to_unidirectional_disconnect.transforms'
  const block = 'connect_code_to_unidirectional_disconnect'
  const good = { code: 109, to: { code: 4109, reason: 'old token' } }
  const cases = /** @type {[unknown, string][]} */ ([
    ['x', ': "x" is not a list; write ["x"]'],
    [[1], '[0]: 1 is not an object with keys'],
    [[{ ...good, code: '109' }], '[0].code: "109" is text, not a number; write it without quotes'],
    [[{ code: 109 }], '[0]: to is missing'],
    [[good, { ...good, tp: {} }], '[1]: unknown key "tp"'],
    [[{ code: 109, to: { code: 4109 } }], '[0].to: reason is missing'],
    [
      [{ code: 109, to: { code: 200, reason: '' } }],
      '[0].to.code: 200 is out of range; it must be at least 3000',
    ],
    [
      [{ code: 109, to: { code: 4109, reason: 1 } }],
      '[0].to.reason: 1 is a number, not text; write it in quotes',
    ],
  ])
  for (const [transforms, end] of cases) {
    t.same(faultsOf({ client: { [block]: { transforms } } }), [key + end])
  }
  const name = 'HALLEY_CLIENT_CONNECT_CODE_TO_UNIDIRECTIONAL_DISCONNECT_TRANSFORMS'
  t.same(faultsOf({}, { [name]: '[' }), [`${name}: is not a JSON array`])
  t.same(faultsOf({}, { [name]: '[{"code":1}]' }), [`${name}[0]: to is missing`])
  const body = { ...good, to: { status_code: 401 } }
  const { config } = loadConfig({
    base: { uni_sse: { connect_code_to_http_response: { transforms: [body] } } },
  })
  t.same(config.uni_sse.connect_code_to_http_response.transforms, [
    { code: 109, to: { status_code: 401, body: '' } },
  ])
  t.same(body.to, { status_code: 401 }, 'the given tree stays as it is')
})

t.test('all errors are reported together, and rules skip invalid keys', async t => {
  const faults = faultsOf({
    workers: 'x',
    client: { ping_interval: '1', pong_timeout: '1h' },
    channel: { without_namespace: { history_size: 'x', history_ttl: '1m' } },
  })
  t.same(
    faults.map(line => line.split(':')[0]),
    ['workers', 'client.ping_interval', 'channel.without_namespace.history_size'],
  )
  t.throws(() => loadConfig({ base: { workers: 'x', nope: 1 } }), { message: /^workers: .*\nnope: .*$/ })
})
