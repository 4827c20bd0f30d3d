import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import { loadConfig } from '../../src/config/load.js'
import { faultsOf } from './support.js'

/** @param {Record<string, unknown>} options */
const bare = options => ({ channel: { without_namespace: options } })
/** @param {unknown[]} namespaces */
const named = (...namespaces) => ({ channel: { namespaces } })
const HISTORY = { history_size: 10, history_ttl: '1m' }

/** @param {import('tap').Test} t @param {[Record<string, unknown>, string | RegExp][]} cases */
function refused(t, cases) {
  for (const [tree, line] of cases) {
    const faults = faultsOf(tree)
    t.equal(faults.length, 1, JSON.stringify(tree))
    t.match(faults[0], line)
  }
}

t.test('history needs size and TTL', async t => {
  t.same(faultsOf(bare(HISTORY)), [])
  refused(t, [
    [bare({ history_size: 10 }), 'channel.without_namespace.history_size: 10 needs history_ttl too'],
    [bare({ history_ttl: '1m' }), 'channel.without_namespace.history_ttl: 1m needs history_size too'],
    [named({ name: 'chat', history_size: 10 }), 'namespaces[0].history_size: 10 needs history_ttl too'],
    [bare({ history_size: 10, history_ttl: '1500ms' }), '1500ms is not a whole number of seconds'],
  ])
})

t.test('history may not outlive its metadata', async t => {
  t.same(faultsOf(bare({ ...HISTORY, history_meta_ttl: '1m' })), [])
  refused(t, [
    [bare({ ...HISTORY, history_meta_ttl: '30s' }), 'history_ttl: 1m is longer than history_meta_ttl (30s)'],
    [bare({ ...HISTORY, history_ttl: '721h' }), 'history_ttl: 721h is longer than history_meta_ttl (720h)'],
    [
      { channel: { history_meta_ttl: '10s', namespaces: [{ name: 'chat', ...HISTORY }] } },
      /longer than history_meta_ttl \(10s\)/,
    ],
  ])
})

t.test('recovery needs history, automatic cache recovery needs cache recovery', async t => {
  const cache = { ...HISTORY, force_recovery: true, force_recovery_mode: 'cache' }
  t.same(faultsOf(bare({ ...cache, auto_cache_recover: true })), [])
  refused(t, [
    [bare({ force_recovery: true }), 'force_recovery: true needs history'],
    [named({ name: 'chat', force_recovery: true }), 'namespaces[0].force_recovery: true needs history'],
    [bare({ ...HISTORY, auto_cache_recover: true }), 'auto_cache_recover: true needs force_recovery'],
    [bare({ ...HISTORY, force_recovery: true, auto_cache_recover: true }), 'auto_cache_recover: true needs'],
    [bare({ force_recovery_mode: 'all' }), 'force_recovery_mode: "all" is not one of "", "stream", "cache"'],
  ])
})

t.test('excluded senders need targets, and streams', async t => {
  const exclude = { publish_exclude_sender: true }
  const channel = (/** @type {object} */ options, targeted_publications = true) => ({
    channel: { targeted_publications, without_namespace: options },
  })
  t.same(faultsOf(channel(exclude)), [])
  refused(t, [
    [channel(exclude, false), 'publish_exclude_sender: true needs channel.targeted_publications'],
    [
      channel({ ...exclude, subscription_type: 'map', map: { mode: 'persistent' } }),
      'publish_exclude_sender: true needs a stream, not "map"',
    ],
  ])
})

t.test('batch options are checked together', async t => {
  const latest = { batch_max_delay: '100ms', batch_flush_latest: true }
  t.same(faultsOf(bare({ ...latest, batch_conflate_tag: 'key' })), [])
  t.same(faultsOf({ client: { max_messages_in_frame: -1 } }), [])
  refused(t, [
    [bare({ batch_flush_latest: true }), 'batch_flush_latest: true needs batch_max_delay or batch_max_size'],
    [bare({ batch_max_delay: '1s', batch_conflate_tag: 'key' }), 'needs batch_flush_latest'],
    [bare({ ...latest, allow_tags_filter: true }), 'batch_flush_latest: true cannot be combined with'],
    [
      bare({ ...latest, require_server_tags_filter: true }),
      'require_server_tags_filter: true cannot be combined with batch_flush_latest',
    ],
    [bare({ batch_max_delay: '61s' }), 'batch_max_delay'],
    [bare({ batch_max_size: 10_001 }), 'batch_max_size'],
    [
      { client: { max_messages_in_frame: 0 } },
      'max_messages_in_frame: 0 would send nothing; use -1 for no limit',
    ],
  ])
  const warnings = (/** @type {any} */ options) => loadConfig({ base: bare(options) }).warnings.join()
  t.match(warnings({ batch_max_size: 5 }), /5 without batch_max_delay: incomplete batches are sent after 1 s/)
  t.match(
    warnings({ ...latest, ...HISTORY, force_recovery: true }),
    /recovery sends publications that live delivery skips/,
  )
  t.match(
    warnings({ keep_latest_publication: true }),
    /keep_latest_publication: has no effect without allowed_delta_types/,
  )
  t.equal(warnings({ keep_latest_publication: true, allowed_delta_types: ['fossil'] }), '')
})

t.test('namespace names are checked', async t => {
  t.same(faultsOf(named({ name: 'ab' }, { name: '-a.B_9' })), [])
  refused(t, [
    [named({}), 'channel.namespaces[0].name: is missing'],
    [named({ name: 'a' }), 'channel.namespaces[0].name: "a" must be two or more'],
    [named({ name: 'a:b' }), 'channel.namespaces[0].name: "a:b" must be two or more'],
    [named({ name: 'ab\n' }), 'must be two or more'],
    [named({ name: '' }), 'must be two or more'],
    [named({ name: 5 }), 'channel.namespaces[0].name: 5 is a number'],
    [named({ name: 'chat' }, { name: 'news' }, { name: 'chat' }), 'is also the name of another namespace'],
  ])
})

t.test('values of channel options are checked', async t => {
  t.same(faultsOf(bare({ subscription_type: 'stream', publication_data_format: 'json_object' })), [])
  refused(t, [
    [bare({ publication_data_format: 'xml' }), 'publication_data_format: "xml" is not one of'],
    [{ channel: { publication_data_format: 'xml' } }, 'channel.publication_data_format: "xml" is not one of'],
    [named({ name: 'chat', subscription_type: 'stack' }), 'subscription_type: "stack" is not one of'],
    [bare({ channel_regex: '^(a' }), 'channel.without_namespace.channel_regex: '],
    [named({ name: 'chat', channel_regex: '[' }), 'channel.namespaces[0].channel_regex: '],
  ])
})

t.test('the ping interval must exceed the pong timeout', async t => {
  refused(t, [
    [{ client: { ping_interval: '5s', pong_timeout: '5s' } }, '5s is not above client.pong_timeout (5s)'],
    [{ client: { pong_timeout: '30s' } }, 'client.ping_interval: 25s is not above client.pong_timeout (30s)'],
  ])
})

t.test('personal channels need a valid namespace', async t => {
  /** @param {Record<string, unknown>} personal @param {Record<string, unknown>} [channel] */
  const tree = (personal, channel = {}) => ({
    client: { subscribe_to_user_personal_channel: { enabled: true, ...personal } },
    channel,
  })
  const space = { personal_channel_namespace: 'user' }
  t.same(faultsOf(tree({})), [])
  t.same(faultsOf(tree({ ...space, enabled: false })), [], 'not looked at while off')
  t.same(
    faultsOf(tree({ ...space, single_connection: true }, { namespaces: [{ name: 'user', presence: true }] })),
    [],
  )
  refused(t, [
    [tree(space), /personal_channel_namespace: unknown namespace "user"/],
    [
      tree({ single_connection: true }),
      /single_connection: true needs presence in channel\.without_namespace/,
    ],
    [
      tree({ ...space, single_connection: true }, { namespaces: [{ name: 'user' }] }),
      /needs presence in namespace "user"/,
    ],
    [
      tree(space, { namespaces: [{ name: 'user', require_server_tags_filter: true }] }),
      /namespace "user" has require_server_tags_filter/,
    ],
  ])
})

t.test('token settings of both kinds are checked', async t => {
  const pem = /** @type {const} */ ({ type: 'spki', format: 'pem' })
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export(pem)
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export(pem)
  for (const block of ['token', 'subscription_token']) {
    /** @param {Record<string, unknown>} token */
    const tree = token => ({ client: { [block]: token } })
    const url = { jwks_public_endpoint: 'https://id.example/{{tenant}}/jwks' }
    t.same(
      faultsOf(tree({ rsa_public_key: rsa, ecdsa_public_key: ec, audience: 'a', issuer_regex: '^b$' })),
      [],
    )
    t.same(faultsOf(tree({ ...url, issuer_regex: '^https://(?P<tenant>one|two\\.x)/$' })), [])
    const spaced = 'https://id.example/{{ tenant }}/jwks'
    t.same(faultsOf(tree({ jwks_public_endpoint: spaced, issuer_regex: '(?P<tenant>one)' })), [])
    const unsafe = { issuer_regex: '(?P<tenant>.+)', insecure_skip_jwks_endpoint_safety_check: true }
    t.same(faultsOf(tree({ ...url, ...unsafe })), [])
    refused(t, [
      [tree({ audience: 'a', audience_regex: 'a' }), 'audience: cannot be combined with audience_regex'],
      [tree({ issuer: 'a', issuer_regex: 'a' }), `${block}.issuer: cannot be combined with issuer_regex`],
      [tree({ issuer_regex: '(' }), `client.${block}.issuer_regex: `],
      [tree({ user_id_claim: 'user-id' }), 'user_id_claim: "user-id" may contain only letters and _'],
      [tree({ user_id_claim: 'user1' }), 'user_id_claim: "user1" may contain only letters and _'],
      [tree({ rsa_public_key: 'x' }), `${block}.rsa_public_key: is not a public key or certificate in PEM`],
      [tree({ rsa_public_key: ec }), 'rsa_public_key: is a key of type ec, not rsa'],
      [tree({ ecdsa_public_key: rsa }), 'ecdsa_public_key: is a key of type rsa, not ec'],
      [tree({ jwks_public_endpoint: 'id.example/jwks' }), '"id.example/jwks" is not an http or https URL'],
      [tree({ ...url }), 'jwks_public_endpoint: {{tenant}} is not a named group'],
      [tree({ ...url, issuer_regex: '(?P<tenant>.+)' }), 'matches more than a list of literals'],
      [tree({ ...url, audience_regex: '(?P<tenant>[a-z]+)' }), 'matches more than a list of literals'],
      [tree({ ...url, audience_regex: '(?P<tenant>one|)' }), 'matches more than a list of literals'],
      [
        tree({ ...url, issuer_regex: '(?P<tenant>one)', audience_regex: '(?P<tenant>.+)' }),
        'matches more than a list of literals',
      ],
    ])
  }
})

t.test('endpoints are checked', async t => {
  t.same(
    faultsOf({ websocket: { handler_prefix: '/x' }, http_api: { handler_prefix: '/x', disabled: true } }),
    [],
  )
  refused(t, [
    [{ http_api: { error_mode: 'status' } }, 'http_api.error_mode: "status" is not one of "", "transport"'],
    [{ http_api: { handler_prefix: '/connection/websocket' } }, 'also the path of websocket.handler_prefix'],
    [{ rpc: { ping: { enabled: true, method: '' } } }, 'rpc.ping.method: is empty'],
    [{ admin: { password: 'x', handler_prefix: '/api' } }, 'is also the path of http_api.handler_prefix'],
    [{ http_server: { port: 8000, internal_port: 8000 } }, 'http_server.port; use another port'],
  ])
  t.same(faultsOf({ admin: { handler_prefix: '/api' } }), [], 'without a key there is no admin page')
  t.same(
    faultsOf({ http_server: { internal_port: 9000 }, http_api: { handler_prefix: '/connection/websocket' } }),
    [],
    'each port has its own paths',
  )
})

t.test('an origin pattern that can never match is a warning', async t => {
  const origins = ['https://a.example', 'https://b.example/', '*', 'null', 'http://[::1]:*']
  const { warnings } = loadConfig({ base: { client: { allowed_origins: origins } } })
  t.equal(warnings.length, 1)
  t.match(warnings[0], 'client.allowed_origins: "https://b.example/" never matches')
})

t.test('disconnect reasons must fit a close frame, codes must be known to SDKs', async t => {
  const to = (/** @type {string} */ reason) => ({
    client: {
      connect_code_to_unidirectional_disconnect: {
        enabled: true,
        transforms: [{ code: 109, to: { code: 4109, reason } }],
      },
    },
  })
  t.same(faultsOf(to('é'.repeat(61))), [])
  refused(t, [
    [to('é'.repeat(62)), /transforms: to\.reason of code 109: .* is longer than 123 bytes/],
    [to(''), /to\.reason of code 109: "" is empty/],
    [to('123'), /to\.reason of code 109: "123" is JSON/],
  ])
})

t.test('a snapshot file of the memory engine has no effect with Redis', async t => {
  const warningsOf = type =>
    loadConfig({ base: { engine: { type, memory: { snapshot_file: 'state' } } } }).warnings
  t.same(warningsOf('memory'), [])
  t.match(warningsOf('redis'), [/engine\.memory\.snapshot_file: has no effect: engine\.type is redis/])
})
