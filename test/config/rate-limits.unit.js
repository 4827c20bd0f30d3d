import t from 'tap'
import { loadConfig } from '../../src/config/load.js'
import { faultsOf } from './support.js'

/** @param {Record<string, unknown>} rate_limit @param {Record<string, unknown>} [more] */
const tree = (rate_limit, more = {}) => ({ client: { rate_limit }, ...more })
/** @param {Record<string, unknown>} publish @param {Record<string, unknown>} [more] */
const publish = (publish, more) => tree({ client_command: { enabled: true, publish } }, more)
/** @param {Record<string, unknown>} rpc */
const rpc = rpc => tree({ user_command: { enabled: true, rpc } })
const buckets = [{ interval: '1s', rate: 10 }]
const chat = { channel: { namespaces: [{ name: 'chat' }] } }
const PUBLISH = 'client.rate_limit.client_command.publish'
const RPC = 'client.rate_limit.user_command.rpc'

t.test('buckets of commands, namespaces and methods', async t => {
  const { config, warnings } = loadConfig({
    base: {
      ...chat,
      client: {
        rate_limit: {
          client_command: {
            enabled: true,
            publish: { enabled: true, buckets: [...buckets, { interval: '1m', rate: 20 }] },
            subscribe: { namespace_overrides: [{ namespace_name: 'chat', enabled: true, buckets }] },
            rpc: { method_override: { ping: { enabled: true, buckets } } },
          },
        },
      },
    },
    env: {
      HALLEY_CLIENT_RATE_LIMIT_CLIENT_ERROR_TOTAL_BUCKETS: '[{"interval":"5s","rate":20}]',
      HALLEY_CLIENT_RATE_LIMIT_CLIENT_ERROR_TOTAL_ENABLED: 'true',
    },
  })
  const { client_command, client_error } = config.client.rate_limit
  t.same(client_command.publish.buckets, [
    { interval: 1000, rate: 10 },
    { interval: 60_000, rate: 20 },
  ])
  const [override] = client_command.subscribe.namespace_overrides
  t.same(override, { namespace_name: 'chat', enabled: true, buckets: [{ interval: 1000, rate: 10 }] })
  t.same(client_command.rpc.method_override.ping.buckets, [{ interval: 1000, rate: 10 }])
  t.same(client_error.total.buckets, [{ interval: 5000, rate: 20 }])
  t.same(warnings, [])
})

t.test('both forms of overrides of methods are refused, naming both', async t => {
  const method_overrides = [{ method: 'ping', enabled: true, buckets }]
  const method_override = { pong: { enabled: true, buckets } }
  t.same(faultsOf(rpc({ method_overrides, method_override })), [
    `${RPC}.method_overrides: cannot be combined with ${RPC}.method_override; use only method_overrides`,
  ])
})

t.test('values out of range', async t => {
  const many = (/** @type {number} */ count) => Array.from({ length: count }, () => buckets[0])
  /** @type {[Record<string, unknown>, string][]} */
  const cases = [
    [publish({ buckets: [{ interval: '1s' }] }), `${PUBLISH}.buckets[0]: rate is missing`],
    [
      publish({ buckets: [{ interval: 1, rate: 1 }] }),
      `${PUBLISH}.buckets[0].interval: 1 has no unit; write "1s" or "1ms"`,
    ],
    [
      publish({ buckets: [{ interval: '9ms', rate: 1 }] }),
      `${PUBLISH}.buckets[0].interval: 9ms is out of range; it must be at least 10ms`,
    ],
    [
      publish({ buckets: [{ interval: '25h', rate: 1 }] }),
      `${PUBLISH}.buckets[0].interval: 25h is out of range; it must be at most 24h`,
    ],
    [
      publish({ buckets: [{ interval: '1s', rate: 0 }] }),
      `${PUBLISH}.buckets[0].rate: 0 is out of range; it must be at least 1`,
    ],
    [
      publish({ buckets: [{ interval: '1s', rate: 1_000_001 }] }),
      `${PUBLISH}.buckets[0].rate: 1000001 is out of range; it must be at most 1000000`,
    ],
    [publish({ buckets: many(9) }), `${PUBLISH}.buckets: 9 entries are too many; at most 8`],
    [
      publish({ namespace_overrides: [{ namespace_name: 'chat', buckets: many(9) }] }, chat),
      `${PUBLISH}.namespace_overrides[0].buckets: 9 entries are too many; at most 8`,
    ],
    [
      publish(
        { namespace_overrides: [{ namespace_name: 'chat', buckets: [{ interval: 'x', rate: 1 }] }] },
        chat,
      ),
      `${PUBLISH}.namespace_overrides[0].buckets[0].interval: "x" is not a duration like "25s", "300ms" or "1h30m"`,
    ],
    [
      rpc({ method_overrides: Array.from({ length: 257 }, (_, i) => ({ method: `m${i}` })) }),
      `${RPC}.method_overrides: 257 entries are too many; at most 256`,
    ],
    [
      rpc({ method_override: Object.fromEntries(Array.from({ length: 257 }, (_, i) => [`m${i}`, {}])) }),
      `${RPC}.method_override: 257 entries are too many; at most 256`,
    ],
    [
      publish({ namespace_overrides: [{ namespace_name: 'news' }] }),
      `${PUBLISH}.namespace_overrides: unknown namespace "news"`,
    ],
    [
      publish({ namespace_overrides: [{ namespace_name: '' }, { namespace_name: '' }] }),
      `${PUBLISH}.namespace_overrides: "" is a duplicate`,
    ],
    [
      rpc({ method_overrides: [{ method: 'a' }, { method: 'a' }] }),
      `${RPC}.method_overrides: "a" is a duplicate`,
    ],
  ]
  for (const [base, fault] of cases) t.same(faultsOf(base), [fault])
})

t.test('blocks that a layer does not have', async t => {
  const block = { enabled: true, buckets }
  const unknown = (/** @type {string} */ path) => new RegExp(`^client\\.rate_limit\\.${path}: unknown key`)
  /** @type {[Record<string, unknown>, RegExp][]} */
  const cases = [
    [tree({ client_command: { connect: block } }), unknown('client_command\\.connect')],
    [tree({ redis_user_command: { total: block } }), unknown('redis_user_command\\.total')],
    [tree({ redis_user_command: { unsubscribe: block } }), unknown('redis_user_command\\.unsubscribe')],
    [tree({ client_error: { publish: block } }), unknown('client_error\\.publish')],
    [
      tree({ client_command: { refresh: { namespace_overrides: [] } } }),
      unknown('client_command\\.refresh\\.namespace_overrides'),
    ],
  ]
  for (const [base, fault] of cases) {
    const faults = faultsOf(base)
    t.equal(faults.length, 1)
    t.match(faults[0], fault)
  }
})

t.test('an enabled block without buckets is a warning', async t => {
  const { warnings } = loadConfig({ base: publish({ enabled: true }) })
  t.same(warnings, [`${PUBLISH}: is enabled, but has no buckets`])
})

t.test('Redis', async t => {
  /** @param {Record<string, unknown>} redis @param {Record<string, unknown>} [more] */
  const inRedis = (redis, more) => tree({ redis_user_command: { enabled: true, redis } }, more)
  const path = 'client.rate_limit.redis_user_command.redis'
  const engine = { engine: { type: 'redis' } }
  t.same(faultsOf(inRedis({ address: ['127.0.0.1:1', 'rediss://:pw@127.0.0.1:2'] })), [])
  t.same(faultsOf(inRedis({ reuse_from_engine: true }, engine)), [])
  t.same(faultsOf(inRedis({ reuse_from_engine: true })), [
    `${path}.reuse_from_engine: true needs engine.type "redis"`,
  ])
  const [fault] = faultsOf(inRedis({ address: 'http://x' }))
  t.ok(fault.startsWith(`${path}.address: has the unknown scheme http://`), fault)
  t.same(faultsOf(inRedis({ prefix: 'a b' })), [`${path}.prefix: "a b" contains a space or a brace`])
  t.same(faultsOf(tree({ redis_user_command: { redis: { address: 'http://x' } } })), [], 'while it is off')
})
