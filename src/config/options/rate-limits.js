// Options of operation rate limits, `client.rate_limit`.

import { bool, duration, live, objects, objectsByName, oneOrMore, string, withFields } from './make.js'
import { redisConnection } from './redis.js'

const MAX_BUCKETS = 8
export const MAX_OVERRIDES = 256

const bucketList = /** @type {const} */ ({
  type: 'array',
  maxItems: MAX_BUCKETS,
  items: {
    type: 'object',
    properties: {
      interval: { type: 'integer', duration: true, minimum: 10, maximum: 86_400_000 },
      rate: { type: 'integer', minimum: 1, maximum: 1_000_000 },
    },
  },
})

const override = /** @type {const} */ ({
  enabled: { type: 'boolean', default: false },
  buckets: { ...bucketList, default: [] },
})

/** Blocks of commands without a channel. */
const limit = {
  enabled: bool('Apply the limit.'),
  buckets: objects(
    'Token buckets, at most 8: `{"interval": "1s", "rate": 10}`. `rate` (1 to 1000000) is the size of the bucket and the number of tokens added in each `interval` (10ms to 24h). A command takes one token of each bucket.',
    bucketList.items.properties,
    { maxItems: MAX_BUCKETS },
  ),
}

const channelLimit = {
  ...limit,
  namespace_overrides: objects(
    'Limits of namespaces that replace that of the command: `{"namespace_name": "chat", "enabled": true, "buckets": [...]}`. An empty name is for channels without a namespace. At most 256. Only for commands with a channel.',
    { namespace_name: { type: 'string' }, ...override },
    { maxItems: MAX_OVERRIDES },
  ),
}

const rpcLimit = {
  ...limit,
  method_overrides: objects(
    'Limits of methods that replace that of `rpc`: `{"method": "ping", "enabled": true, "buckets": [...]}`. At most 256. Only for `rpc`.',
    { method: { type: 'string' }, ...override },
    { maxItems: MAX_OVERRIDES },
  ),
  method_override: objectsByName(
    'Older form of `method_overrides`: `{"ping": {"enabled": true, "buckets": [...]}}`. Excludes it.',
    override,
  ),
}

/** Options of all blocks, for docs. */
export const rateLimitTree = live({ ...channelLimit, ...rpcLimit })

/** Without `unsubscribe` and `untrack`, which are never refused. */
const redisCommands = {
  default: limit,
  connect: limit,
  subscribe: channelLimit,
  publish: channelLimit,
  history: channelLimit,
  presence: channelLimit,
  presence_stats: channelLimit,
  refresh: limit,
  sub_refresh: channelLimit,
  rpc: rpcLimit,
  map_publish: channelLimit,
  map_remove: channelLimit,
  track: channelLimit,
}

const userCommands = { total: limit, ...redisCommands, unsubscribe: channelLimit, untrack: channelLimit }

const { connect: _, ...clientCommands } = userCommands

/** @template {object} T @param {T} tree @returns {T} */
const block = tree => withFields(tree, { block: true })

export const rateLimitOptions = live({
  client: {
    rate_limit: {
      client_command: {
        enabled: bool('Limit the commands of each connection.'),
        ...block(clientCommands),
      },
      user_command: {
        enabled: bool('Limit the commands of each user in each worker. Anonymous users have no limit.'),
        ...block(userCommands),
      },
      redis_user_command: {
        enabled: bool(
          'Limit the commands of each user on all nodes, in Redis. Anonymous users have no limit.',
        ),
        ...block(redisCommands),
        redis: {
          reuse_from_engine: bool(
            'Use the servers and the prefix of `engine.redis`, on separate connections.',
          ),
          ...block({
            address: oneOrMore('Address, or list of addresses; users are distributed over the list.', {
              default: 'redis://127.0.0.1:6379',
              secret: true,
            }),
            ...redisConnection,
            prefix: string('Prefix of all keys.', { default: 'halley' }),
          }),
        },
        timeout: duration('200ms', 'Time after which a command is not checked in Redis. Halley only.', {
          min: 10,
          max: 60_000,
        }),
        fail_closed: bool('Refuse commands that Redis does not check (error 100). Halley only.'),
      },
      client_error: {
        enabled: bool(
          'Limit the error replies to each connection, with the block `total`; one more closes it (3509). Error 100 does not count.',
        ),
        total: block(limit),
      },
    },
  },
})
