import { clientTls, duration, int, newWorkers, oneOrMore, string, strings } from './make.js'

/** @param {string} peers the servers @param {string} scheme that enables TLS */
const tlsOptions = (peers, scheme) =>
  clientTls(`Connect to ${peers} with TLS. Addresses with \`${scheme}://\` always use TLS.`, peers)

/** Redis connection of the engine or a consumer, except its address. */
export const redisConnection = {
  cluster_address: strings(
    'Redis Clusters, one an entry, with their nodes as `host:port,host:port`. Overrides address.',
  ),
  sentinel_address: strings('Sets of sentinels, one an entry, as `host:port,host:port`. Overrides address.'),
  sentinel_master_name: string('Name of the master that the sentinels monitor, unless the address has it.'),
  user: string('ACL user. Empty: the default user.'),
  password: string('Password. Empty: none.', { secret: true }),
  db: int(0, 'Database number. Redis pub/sub ignores it: gateways on one server need different prefixes.'),
  client_name: string('Name of the connections in `CLIENT LIST`. Empty: none.'),
  sentinel_user: string('ACL user of the sentinels. Empty: the default user.'),
  sentinel_password: string('Password of the sentinels. Empty: none.', { secret: true }),
  connect_timeout: duration('1s', 'Maximum time to connect.'),
  io_timeout: duration('4s', 'A server that does not answer within this time is considered down.'),
  tls: tlsOptions('Redis', 'rediss'),
  sentinel_tls: tlsOptions('sentinels', 'rediss+sentinel'),
}

export const redisOptions = newWorkers({
  engine: {
    redis: {
      address: oneOrMore(
        'Address, or list of addresses. Channels are distributed over the list, so every node needs the same list in ' +
          'the same order. Forms: `host:port`, `redis://[[user]:password@]host:port[/db][?option=value]`, `rediss://` (TLS), `unix:///path`, ' +
          '`redis+sentinel://host:port?sentinel_master_name=name`, `redis+cluster://host:port`; `addr=host:port` ' +
          'adds a sentinel or cluster node. Options in an address override the keys below: `connect_timeout`, `io_timeout`, ' +
          '`tls_enabled`, `sentinel_user`, `sentinel_password`, `sentinel_tls_enabled`.',
        { default: 'redis://127.0.0.1:6379', secret: true },
      ),
      ...redisConnection,
      prefix: string(
        'Prefix of all keys and pub/sub topics. Nodes with the same prefix form one cluster. Do not use `centrifugo`: its key layout differs.',
        { default: 'halley' },
      ),
      presence_ttl: duration('60s', 'Time after which the clients of a dead node leave presence.', {
        min: 1000,
      }),
      sharded_pub_sub_partitions: int(
        128,
        'Partitions of the channels of a Redis Cluster, one slot each. Must be the same on every node. Sharded pub/sub is ' +
          'used whenever the servers support it.',
        { min: 1, max: 16384 },
      ),
      channel_state: {
        vacated_event_delay: duration(
          '5s',
          'Time after the last subscriber left until a channel is reported as vacated, unless a subscriber comes.',
          { min: 0, max: 3_600_000 },
        ),
        num_partitions: int(
          128,
          'Queues of events about occupied and vacated channels, each with one call of the backend at a time. Rounded up to a ' +
            'multiple of the partitions of the channels. Must be the same on every node.',
          { min: 1, max: 16384 },
        ),
      },
    },
  },
})
