import t from 'tap'
import { loadConfig } from '../../src/config/load.js'
import { faultsOf } from './support.js'

/** @param {Record<string, unknown>[]} namespaces */
const named = (...namespaces) => ({ channel: { namespaces } })
/** @param {Record<string, unknown>} map options of the map @param {Record<string, unknown>} [other] */
const mapOf = (map, other) => named({ name: 'boards', subscription_type: 'map', map, ...other })
const EPHEMERAL = { mode: 'ephemeral', key_ttl: '60s' }
const RECOVERABLE = { mode: 'recoverable', key_ttl: '60s' }
const PERSISTENT = { mode: 'persistent' }
const POLL = { name: 'poll', subscription_type: 'shared_poll' }
const endpoint = 'http://127.0.0.1:3000/refresh'

/** @param {import('tap').Test} t @param {[tree: Record<string, unknown>, line: string][]} cases */
function refused(t, cases) {
  for (const [tree, line] of cases) {
    const faults = faultsOf(tree)
    t.equal(faults.length, 1, JSON.stringify(tree))
    t.match(faults[0], line)
  }
}

/** @param {Record<string, unknown>} tree */
const warningsOf = tree => loadConfig({ base: tree }).warnings

t.test('a map has a mode that fits its retention', async t => {
  for (const map of [EPHEMERAL, RECOVERABLE, PERSISTENT]) t.same(warningsOf(mapOf(map)), [], map.mode)
  const kept = { stream_size: 10, stream_ttl: '2m' }
  t.same(faultsOf(mapOf({ ...RECOVERABLE, ...kept, meta_ttl: '2m' })), [])
  t.same(faultsOf(mapOf({ ...PERSISTENT, ...kept, meta_ttl: '720h' })), [])
  const map = 'channel.namespaces[0].map'
  refused(t, [
    [mapOf({}), `${map}.mode: is empty; set it to ephemeral, recoverable or persistent, because`],
    [mapOf({ mode: 'lasting' }), `${map}.mode: "lasting" is not one of "", "ephemeral", "recoverable"`],
    [mapOf({ mode: 'ephemeral' }), `${map}.key_ttl: is not set; map.mode "ephemeral" needs it`],
    [mapOf({ mode: 'recoverable' }), `${map}.key_ttl: is not set; map.mode "recoverable" needs it`],
    [mapOf({ ...PERSISTENT, key_ttl: '1s' }), `${map}.key_ttl: 1s with map.mode "persistent"`],
    [mapOf({ ...EPHEMERAL, stream_size: 1 }), `${map}.stream_size: cannot be set with map.mode "ephemeral"`],
    [mapOf({ ...EPHEMERAL, stream_ttl: '1s' }), `${map}.stream_ttl: cannot be set with map.mode`],
    [mapOf({ ...EPHEMERAL, meta_ttl: '1s' }), `${map}.meta_ttl: cannot be set with map.mode`],
    [
      mapOf({ mode: 'recoverable', key_ttl: '1s', meta_ttl: '30s' }),
      `${map}.meta_ttl: 30s is shorter than map.stream_ttl (1m)`,
    ],
    [
      mapOf({ mode: 'recoverable', key_ttl: '1h', meta_ttl: '2m' }),
      `${map}.meta_ttl: 2m is shorter than map.key_ttl (1h)`,
    ],
    [
      named({ name: 'who', subscription_type: 'map_users', map: PERSISTENT }),
      `${map}.mode: "persistent" would keep all users for ever`,
    ],
    [named({ name: 'chat', map: { mode: 'ephemeral' } }), `${map}.key_ttl: is not set`],
  ])
})

t.test('keys and pages of a map', async t => {
  const pages = { min_page_size: 10, default_page_size: 20, max_page_size: 30 }
  t.same(faultsOf(mapOf({ ...PERSISTENT, ...pages, client_key: 'user_id' })), [])
  const proxied = { publish_proxy_enabled: true, publish_proxy_name: 'x' }
  const proxies = [{ name: 'xx', endpoint }]
  refused(t, [
    [mapOf({ ...PERSISTENT, client_key: 'user' }), 'map.client_key: "user" is not one of'],
    [
      { ...mapOf({ ...PERSISTENT, ...proxied, publish_proxy_name: 'xx', client_key: 'client_id' }), proxies },
      'map.client_key: "client_id" cannot be combined with map.publish_proxy_enabled',
    ],
    [
      mapOf({ ...PERSISTENT, ...pages, min_page_size: 31 }),
      'min_page_size: 31 is above map.max_page_size (30)',
    ],
    [
      mapOf({ ...PERSISTENT, ...pages, default_page_size: 31 }),
      'default_page_size: 31 is above map.max_page',
    ],
    [
      mapOf({ ...PERSISTENT, ...pages, default_page_size: 9 }),
      'default_page_size: 9 is below map.min_page_size',
    ],
    [
      named({ name: 'chat', map: { remove_client_on_unsubscribe: true } }),
      'map.remove_client_on_unsubscribe: true needs a map',
    ],
    [mapOf({ ...PERSISTENT, ...proxied }), 'map.publish_proxy_name: unknown proxy "x"'],
    [
      mapOf({ ...PERSISTENT, remove_proxy_enabled: true }),
      'channel.proxy.map_remove.endpoint: is empty, but channel.namespaces[0].map.remove_proxy_enabled needs it',
    ],
  ])
  for (const event of ['map_publish', 'map_remove'])
    refused(t, [
      [
        { channel: { proxy: { [event]: { endpoint, retries: 1 } } } },
        `channel.proxy.${event}.retries: must be 0`,
      ],
    ])
})

t.test('a presence prefix leads to a map of that kind', async t => {
  const target = { name: 'who', subscription_type: 'map_clients', map: EPHEMERAL }
  /** @param {string} prefix @param {string} [kind] */
  const room = (prefix, kind = 'clients') => ({
    name: 'room',
    [`map_${kind}_presence_channel_prefix`]: prefix,
  })
  t.same(warningsOf(named(room('who:'), target)), [])
  t.same(faultsOf(named(room('$who:of-'), target)), [])
  const key = 'channel.namespaces[0].map_clients_presence_channel_prefix'
  refused(t, [
    [named(room('whom:'), target), `${key}: unknown namespace "whom"`],
    [
      named(room('who:'), { ...target, map: { ...EPHEMERAL, key_ttl: '20s' } }),
      'map.key_ttl of namespace "who" must be longer than client.presence_update_interval (27s)',
    ],
    [named(room('who'), target), `${key}: "who" does not contain a namespace and ":"`],
    [named(room('room:'), target), `${key}: needs subscription_type "map_clients" in namespace "room"`],
    [
      named(room('who:', 'users'), target),
      'map_users_presence_channel_prefix: needs subscription_type "map_users" in namespace "who", which has "map_c',
    ],
    [
      { channel: { namespace_boundary: '', namespaces: [room('who:'), target] } },
      `${key}: needs subscription_type "map_clients" in channel.without_namespace`,
    ],
  ])
})

t.test('a shared poll has a secret and a backend', async t => {
  const secret = { shared_poll: { hmac_secret_key: 'x'.repeat(32) } }
  const block = { proxy: { shared_poll_refresh: { endpoint } } }
  t.same(warningsOf({ ...secret, channel: { ...block, namespaces: [POLL] } }), [])
  const own = { ...POLL, shared_poll: { proxy_name: 'own', mode: 'versioned', publish_enabled: true } }
  t.same(faultsOf({ ...secret, ...named(own), proxies: [{ name: 'own', endpoint }] }), [])
  t.same(faultsOf({ ...secret, ...named(POLL), hooks: import.meta.filename }), [], 'a hook answers')
  const type = 'channel.namespaces[0].subscription_type'
  refused(t, [
    [
      { channel: { ...block, namespaces: [POLL] } },
      `shared_poll.hmac_secret_key: is empty; ${type} needs it`,
    ],
    [
      { ...secret, ...named(POLL) },
      `channel.proxy.shared_poll_refresh.endpoint: is empty, but ${type} needs it`,
    ],
    [{ ...secret, ...named(own) }, 'shared_poll.proxy_name: unknown proxy "own"'],
    [
      { ...secret, channel: { ...block, namespaces: [{ ...POLL, shared_poll: { publish_enabled: true } }] } },
      'shared_poll.publish_enabled: true needs shared_poll.mode "versioned"',
    ],
    [
      { ...secret, channel: { ...block, namespaces: [{ ...POLL, shared_poll: { mode: 'x' } }] } },
      'shared_poll.mode: "x" is not one of',
    ],
  ])
})

t.test('maps are kept by the engine', async t => {
  t.same(faultsOf({ map_broker: {} }), [])
  for (const type of ['memory', 'redis']) t.same(faultsOf({ engine: { type }, map_broker: { type } }), [])
  refused(t, [
    [{ map_broker: { type: 'redis' } }, 'map_broker.type: "redis" differs from engine.type "memory"'],
    [{ map_broker: { type: 'postgres' } }, 'map_broker.type: "postgres": maps are kept by the engine'],
  ])
})

t.test('maps are not republished', async t => {
  const redis_stream = { address: 'redis://127.0.0.1', stream: 's' }
  const republish = [
    { name: 'out', enabled: true, type: 'redis_stream', namespaces: ['boards'], redis_stream },
  ]
  refused(t, [
    [
      { ...mapOf(PERSISTENT), republish },
      'republish[0].namespaces: "boards" has no streams: changes of maps are not republished',
    ],
  ])
})

t.test('options of another kind of channel cause a warning', async t => {
  const history = { history_size: 10, history_ttl: '1m', force_recovery: true, batch_max_delay: '10ms' }
  const names = warningsOf(mapOf(PERSISTENT, { ...history, allow_publish_for_client: true, presence: true }))
  t.same(
    names.map(line => line.split('.').at(-1)),
    [...['history_size', 'history_ttl', 'force_recovery', 'batch_max_delay', 'allow_publish_for_client']].map(
      name => `${name}: has no effect: subscription_type is "map"`,
    ),
  )
  t.match(warningsOf(mapOf(PERSISTENT, { keep_latest_publication: true, allowed_delta_types: ['fossil'] })), [
    /keep_latest_publication: has no effect: subscription_type is "map"/,
  ])
  t.same(warningsOf(mapOf(PERSISTENT, { allow_channel_compaction: true })), [])
  t.match(warningsOf(named({ name: 'chat', map: EPHEMERAL })), [
    /map.mode: has no effect without subscription_type/,
  ])
  t.match(
    faultsOf({
      ...mapOf(PERSISTENT),
      client: {
        subscribe_to_user_personal_channel: { enabled: true, personal_channel_namespace: 'boards' },
      },
    }),
    [/personal_channel_namespace: needs subscription_type "stream" in namespace "boards", which has "map"/],
  )
})

t.test('variables set options of maps', async t => {
  const { config } = loadConfig({
    base: mapOf({}),
    env: {
      HALLEY_CHANNEL_NAMESPACES_BOARDS_MAP_MODE: 'persistent',
      HALLEY_CHANNEL_NAMESPACES_BOARDS_MAP_STREAM_SIZE: '5',
      HALLEY_MAP_BROKER_TYPE: 'memory',
    },
  })
  t.match(config.channel.namespaces[0].map, { mode: 'persistent', stream_size: 5, max_page_size: 1000 })
})
