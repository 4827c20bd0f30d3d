import { clientTls, duration, int, newWorkers, oneOrMore, string, strings, under } from './make.js'

/**
 * @template {string} B
 * @param {B} block `tls` or `sentinel_tls`
 * @param {string} peers servers that it is about
 * @param {string} scheme of addresses that switch it on
 */
const tlsOptions = (block, peers, scheme) =>
  clientTls(
    block,
    `Connect to ${peers} with TLS. Addresses with \`${scheme}://\` always use TLS.`,
    peers,
    'address',
  )

/** Connection to Redis, without its address; of the engine, and of consumers. */
export const redisConnection = [
  strings(
    'cluster_address',
    'Redis Clusters, one an entry, with their nodes as `host:port,host:port`. Overrides address.',
  ),
  strings(
    'sentinel_address',
    'Sets of sentinels, one an entry, as `host:port,host:port`. Overrides address.',
  ),
  string(
    'sentinel_master_name',
    '',
    'Name of the master that the sentinels monitor, unless the address has it.',
  ),
  string('user', '', 'ACL user. Empty: the default user.'),
  string('password', '', 'Password. Empty: none.', { secret: true }),
  int('db', 0, 'Database number. Redis pub/sub ignores it: gateways on one server need different prefixes.'),
  string('client_name', '', 'Name of the connections in `CLIENT LIST`. Empty: none.'),
  string('sentinel_user', '', 'ACL user of the sentinels. Empty: the default user.'),
  string('sentinel_password', '', 'Password of the sentinels. Empty: none.', { secret: true }),
  duration('connect_timeout', '1s', 'Maximum time to connect.'),
  duration('io_timeout', '4s', 'A server that does not answer within this time is considered down.'),
  ...tlsOptions('tls', 'Redis', 'rediss'),
  ...tlsOptions('sentinel_tls', 'sentinels', 'rediss+sentinel'),
]

export const redisOptions = newWorkers([
  oneOrMore(
    'engine.redis.address',
    'redis://127.0.0.1:6379',
    'Address, or list of addresses. Channels are distributed over the list, so every node needs the same list in ' +
      'the same order. Forms: `host:port`, `redis://[[user]:password@]host:port[/db][?option=value]`, `rediss://` (TLS), `unix:///path`, ' +
      '`redis+sentinel://host:port?sentinel_master_name=name`, `redis+cluster://host:port`; `addr=host:port` ' +
      'adds a sentinel or cluster node. Options in an address override the keys below: `connect_timeout`, `io_timeout`, ' +
      '`tls_enabled`, `sentinel_user`, `sentinel_password`, `sentinel_tls_enabled`.',
    { secret: true },
  ),
  ...under('engine.redis', redisConnection),
  string(
    'engine.redis.prefix',
    'halley',
    'Prefix of all keys and pub/sub topics. Nodes with the same prefix form one cluster. Do not use `centrifugo`: its key layout differs.',
  ),
  duration(
    'engine.redis.presence_ttl',
    '60s',
    'Time after which the clients of a dead node leave presence.',
    { min: 1000 },
  ),
  int(
    'engine.redis.sharded_pub_sub_partitions',
    128,
    'Partitions of the channels of a Redis Cluster, one slot each. Must be the same on every node. Sharded pub/sub is ' +
      'used whenever the servers support it.',
    { min: 1, max: 16384 },
  ),
])
