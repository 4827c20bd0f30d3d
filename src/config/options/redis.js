import { bool, duration, int, oneOrMore, string, strings } from './make.js'

const PEM = 'PEM text, base64 of it, or the path of a file.'

/**
 * @param {string} block `engine.redis.tls` or `engine.redis.sentinel_tls`
 * @param {string} peers servers that it is about @param {string} scheme of addresses that switch it on
 */
const tlsOptions = (block, peers, scheme) => [
  bool(`${block}.enabled`, `Connect to ${peers} with TLS. Addresses with \`${scheme}://\` do so anyway.`),
  string(`${block}.cert_pem`, '', `Certificate that is shown to ${peers}: ${PEM}`),
  string(`${block}.key_pem`, '', `Key of that certificate: ${PEM}`, { secret: true }),
  string(
    `${block}.server_ca_pem`,
    '',
    `Certificates of the authorities that certificates of ${peers} must come from: ${PEM} Empty: those that Node.js knows.`,
  ),
  bool(`${block}.insecure_skip_verify`, 'Take any certificate. Only for a try.'),
  string(
    `${block}.server_name`,
    '',
    'Name that must stand in the certificate. Empty: the host of the address.',
  ),
]

export const redisOptions = [
  oneOrMore(
    'engine.redis.address',
    'redis://127.0.0.1:6379',
    'Address, or a list of them: channels are spread over all, so every node needs the same list in the same order. ' +
      '`host:port`, `redis://[[user]:password@]host:port[/db][?option=value]`, `rediss://` (TLS), `unix:///path`, ' +
      '`redis+sentinel://host:port?sentinel_master_name=name`, `redis+cluster://host:port`; more sentinels or nodes ' +
      'with `addr=host:port`. Options of an address win over the keys below: `connect_timeout`, `io_timeout`, ' +
      '`tls_enabled`, `sentinel_user`, `sentinel_password`, `sentinel_tls_enabled`.',
    { secret: true },
  ),
  strings(
    'engine.redis.cluster_address',
    'Another way to name clusters: each entry is one, its nodes as `host:port,host:port`. Wins over address.',
  ),
  strings(
    'engine.redis.sentinel_address',
    'Another way to name sentinels: each entry is one set, as `host:port,host:port`. Wins over address.',
  ),
  string(
    'engine.redis.sentinel_master_name',
    '',
    'Name that sentinels know the master by, where the address does not say it.',
  ),
  string('engine.redis.user', '', 'User (ACL) to log in as. Empty: the default user.'),
  string('engine.redis.password', '', 'Password. Empty: none.', { secret: true }),
  int('engine.redis.db', 0, 'Number of the database. Publications reach all databases of a server.'),
  string('engine.redis.client_name', '', 'Name of the connections in `CLIENT LIST`. Empty: none.'),
  string('engine.redis.sentinel_user', '', 'User to log in to sentinels as. Empty: the default user.'),
  string('engine.redis.sentinel_password', '', 'Password for sentinels. Empty: none.', { secret: true }),
  string(
    'engine.redis.prefix',
    'halley',
    'What all keys and topics begin with. Gateways with the same prefix are one. Not `centrifugo`: the layout is another.',
  ),
  duration('engine.redis.connect_timeout', '1s', 'Longest time that connecting may take.'),
  duration('engine.redis.io_timeout', '4s', 'A server that does not answer for so long counts as gone.'),
  duration('engine.redis.presence_ttl', '60s', 'How long the clients of a node that died stay in presence.', {
    min: 1000,
  }),
  int(
    'engine.redis.sharded_pub_sub_partitions',
    128,
    'Parts that the channels of a cluster are cut into, each in one slot. The same on every node. Clusters always use ' +
      'sharded pub/sub where the servers have it.',
    { min: 1, max: 16384 },
  ),
  ...tlsOptions('engine.redis.tls', 'Redis', 'rediss'),
  ...tlsOptions('engine.redis.sentinel_tls', 'sentinels', 'rediss+sentinel'),
]
