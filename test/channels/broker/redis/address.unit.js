// Parsing of Redis addresses.

import { join } from 'node:path'
import t from 'tap'
import { parseTargets } from '../../../../src/channels/broker/redis/address.js'
import { loadConfig } from '../../../../src/config/load.js'
import { faultsOf } from '../../../config/support.js'
import { makeAuthority } from './certificates.js'

/** @param {Record<string, unknown>} redis @param {Record<string, string>} [env] */
function targetsOf(redis, env) {
  const { config } = loadConfig({ base: { engine: { type: 'redis', redis } }, env })
  return parseTargets(config.engine.redis)
}

/** @param {string} address */
const target = address => {
  const targets = targetsOf({ address })
  return targets[0]
}

/** @param {Record<string, unknown>} redis */
const faults = redis => faultsOf({ engine: { type: 'redis', redis } })

t.test('the default address is Redis on this machine', async t => {
  const [only, ...others] = targetsOf({})
  t.same(others, [])
  t.match(only, {
    kind: 'single',
    name: '127.0.0.1:6379',
    options: { host: '127.0.0.1', port: 6379, db: 0, protocol: 3, connectTimeout: 1000, socketTimeout: 4000 },
  })
  for (const option of ['username', 'password', 'tls', 'connectionName'])
    t.equal(/** @type {any} */ (only.options)[option], undefined, option)
})

t.test('accepts one server: host and port, URL, TLS, Unix socket, IPv6', async t => {
  for (const [address, name, options] of /** @type {[string, string, object][]} */ ([
    ['redis.example:7000', 'redis.example:7000', { host: 'redis.example', port: 7000 }],
    ['redis.example', 'redis.example:6379', { host: 'redis.example', port: 6379 }],
    ['[::1]:7000', '[::1]:7000', { host: '::1', port: 7000 }],
    ['redis://[2001:db8::1]', '[2001:db8::1]:6379', { host: '2001:db8::1', port: 6379 }],
    ['redis://h:1', 'h:1', { host: 'h', port: 1 }],
    ['tcp://h:1', 'h:1', { host: 'h', port: 1 }],
    ['REDIS://h:1/', 'h:1', { host: 'h', port: 1, db: 0 }],
    ['redis://h:1/15', 'h:1', { db: 15 }],
    ['redis://app:secret@h:1', 'h:1', { username: 'app', password: 'secret' }],
    ['redis://:secret@h:1', 'h:1', { username: undefined, password: 'secret' }],
    ['redis://app@h:1', 'h:1', { username: 'app', password: undefined }],
    ['redis://a%40b:s%2F%3A%25@h:1', 'h:1', { username: 'a@b', password: 's/:%' }],
    ['redis://:a@b:c@h:1', 'h:1', { host: 'h', port: 1, password: 'a@b:c' }],
    ['redis://h:1?connect_timeout=300ms&io_timeout=2s', 'h:1', { connectTimeout: 300, socketTimeout: 2000 }],
    ['rediss://h:1', 'h:1', { tls: {} }],
    ['redis://h:1?tls_enabled=true', 'h:1', { tls: {} }],
    ['rediss://h:1?tls_enabled=false', 'h:1', { tls: undefined }],
    ['unix:///run/redis.sock', '/run/redis.sock', { path: '/run/redis.sock', host: undefined }],
    ['unix://app:secret@/run/a%20b', '/run/a b', { path: '/run/a b', username: 'app', password: 'secret' }],
  ])) {
    const found = target(address)
    t.match(found, { kind: 'single', name, options }, address)
    t.notMatch(found.name, 'secret')
  }
})

t.test('a sentinel address names some sentinels and the master', async t => {
  const { kind, name, options } = target(
    'redis+sentinel://app:secret@one:1?sentinel_master_name=main&addr=two:2&addr=three&sentinel_user=s&sentinel_password=hush',
  )
  t.equal(kind, 'sentinel')
  t.equal(name, 'main@one:1,two:2,three:26379')
  t.match(options, {
    sentinels: [
      { host: 'one', port: 1 },
      { host: 'two', port: 2 },
      { host: 'three', port: 26379 },
    ],
    name: 'main',
    role: 'master',
    username: 'app',
    password: 'secret',
    sentinelUsername: 's',
    sentinelPassword: 'hush',
    tls: undefined,
    sentinelTLS: undefined,
    enableTLSForSentinelMode: false,
  })
  t.match(target('rediss+sentinel://h?sentinel_master_name=m').options, {
    tls: {},
    sentinelTLS: {},
    enableTLSForSentinelMode: true,
  })
  t.match(target('redis+sentinel://h?sentinel_master_name=m&sentinel_tls_enabled=1').options, {
    tls: undefined,
    sentinelTLS: {},
  })
  t.equal(target('redis://h?sentinel_master_name=m').kind, 'sentinel', 'as Centrifugo takes it')
  t.equal(
    targetsOf({ address: 'redis+sentinel://h', sentinel_master_name: 'm' })[0].options.name,
    'm',
    'the name may be given beside the address',
  )
})

t.test('a cluster address names some nodes', async t => {
  const { kind, name, nodes, options } = target('redis+cluster://:secret@one:1?addr=two:2&addr=[::1]')
  t.equal(kind, 'cluster')
  t.equal(name, 'one:1,two:2,[::1]:6379')
  t.same(nodes, [
    { host: 'one', port: 1 },
    { host: 'two', port: 2 },
    { host: '::1', port: 6379 },
  ])
  t.equal(options.password, 'secret')
  t.notOk('host' in options)
  t.match(target('rediss+cluster://h').options, { tls: {} })
  t.equal(target('redis://one:1?addr=two:2').kind, 'cluster', 'as Centrifugo takes it')
})

t.test('each address of a list is a shard with its own options', async t => {
  const common = { user: 'u', password: 'p', db: 3, connect_timeout: '2s', client_name: 'gateway' }
  const targets = targetsOf({ ...common, address: ['a:1', 'redis://x:y@b:2/4?connect_timeout=1s'] })
  t.match(targets, [
    {
      key: 'engine.redis.address[0]',
      options: { username: 'u', password: 'p', db: 3, connectTimeout: 2000 },
    },
    {
      key: 'engine.redis.address[1]',
      options: { username: 'x', password: 'y', db: 4, connectTimeout: 1000 },
    },
  ])
  for (const { options } of targets) t.equal(options.connectionName, 'gateway')
  const fromVariables = targetsOf({}, { HALLEY_ENGINE_REDIS_ADDRESS: 'redis://a:1  b:2' })
  const names = fromVariables.map(({ name }) => name)
  t.same(names, ['a:1', 'b:2'])
})

t.test('accepts cluster_address and sentinel_address like Centrifugo', async t => {
  t.match(targetsOf({ cluster_address: ['a:1,b:2', 'c:3'] }), [
    { kind: 'cluster', name: 'a:1,b:2', key: 'engine.redis.cluster_address[0]' },
    { kind: 'cluster', name: 'c:3' },
  ])
  t.match(targetsOf({ sentinel_address: ['a,b'], sentinel_master_name: 'm', sentinel_password: 'x' }), [
    { kind: 'sentinel', name: 'm@a:26379,b:26379', options: { sentinelPassword: 'x' } },
  ])
  t.match(faults({ sentinel_address: ['a'] }), ['engine.redis.sentinel_address: has sentinels but no master'])
  t.match(faults({ cluster_address: ['redis://a'] }), [
    'engine.redis.cluster_address: must have the form host:port',
  ])
})

t.test('an invalid address is a one-line error that names the key', async t => {
  for (const [address, line] of /** @type {[any, string][]} */ ([
    ['', 'is empty'],
    [[], 'the list is empty'],
    [6379, 'is not text or a list'],
    ['a:1,b:2', 'contains several addresses; use a list'],
    ['a:1 b:2', 'is not an address like'],
    ['::1:6379', 'is an IPv6 address without brackets'],
    ['h:0', 'has a port that is not between 1 and 65535'],
    ['h:65536', 'has a port that is not between 1 and 65535'],
    ['h:port', 'is not an address like'],
    ['http://h', 'has the unknown scheme http://; known schemes: redis://'],
    ['redis://', 'is not an address like'],
    ['redis://h/x', 'not a database number'],
    ['redis://h?foo=1', 'has an unknown option "foo"; known options: addr'],
    ['redis://h?io_timeout=5', 'option io_timeout: "5" has no unit'],
    ['redis://h?io_timeout=0s', 'option io_timeout: "0s" is too short'],
    ['redis://h?tls_enabled=yes', 'option tls_enabled: "yes" is not true or false'],
    ['redis://:%zz@h', 'has a % in user or password'],
    ['redis://h#1', 'is not an address like'],
    ['unix://run/redis.sock', 'must have the form unix:///path'],
    ['unix:///run/redis.sock?tls_enabled=true', 'is a Unix socket, which cannot use TLS'],
    ['redis+sentinel://h', 'has sentinels but no master'],
    ['redis+sentinel://h?sentinel_master_name=', 'option sentinel_master_name is empty'],
    ['redis+cluster://h/1', 'a Redis Cluster has only database 0'],
    ['redis+cluster://h?addr=a:b', 'has an addr that is not host:port'],
    ['redis+cluster://h:1?addr=h:1', 'contains h:1, which is also in engine.redis.address'],
  ])) {
    const found = faults({ address })
    t.equal(found.length, 1, JSON.stringify(address))
    t.ok(found[0].startsWith('engine.redis.address: '), found[0])
    t.match(found[0], line)
    t.notMatch(found[0], '\n')
  }
  t.same(faults({ address: ['a', ''] }), ['engine.redis.address[1]: is empty'])
  t.match(faults({ address: ['a:1', 'b:1', 'redis://a:1/2'] }), [
    'engine.redis.address[2]: contains a:1, which is also in engine.redis.address[0]',
  ])
  t.match(faults({ address: ['x y', 'b:1', 'ftp://z'] }), [
    /^engine.redis.address\[0\]: is not/,
    /^engine.redis.address\[2\]: has the unknown scheme/,
  ])
})

t.test('errors never show a password', async t => {
  for (const address of [
    'redis://:hush/x@h:1',
    'redis://:hush#x@h:1',
    'redis://:hush?x@h:1',
    'redis://user:1?hush@h:1',
    'redis://user:1?hush=1@h:1',
    'redis://user:1/hush@h:1',
    'redis://:hush%zz@h:1',
    'redis://:hush@h:port',
    'redis://:hush@h:1/x',
    'redis://:hush@h:99999',
    'redis+sentinel://:hush@h:1?sentinel_password=hush',
    'redis+cluster://:hush@h:1/5',
    'user:hush@h:1',
    ':hush@h:1',
    'http://:hush@h:1',
    ['redis://:hush@h:1', 'redis://:hush@h:1'],
  ]) {
    const found = faults({ address })
    t.equal(found.length, 1, JSON.stringify(address))
    t.notMatch(found[0], 'hush', found[0])
  }
})

t.test('addresses are checked only with the redis engine', async t => {
  t.same(faultsOf({ engine: { redis: { address: 'http://x', prefix: '' } } }), [])
})

t.test('unsupported Centrifugo options are warnings', async t => {
  const base = {
    engine: { type: 'redis', redis: { address: 'redis://h?force_resp2=true', force_resp2: true } },
  }
  t.match(loadConfig({ base }).warnings, [
    'engine.redis.force_resp2: Centrifugo key that Halley does not support yet',
    'engine.redis.address: Centrifugo option force_resp2, which Halley does not support yet',
  ])
})

t.test('checks prefix, client_name and numbers', async t => {
  t.same(faults({ prefix: 'my-app:live_1', client_name: 'a-b.c', presence_ttl: '1s' }), [])
  for (const [redis, line] of /** @type {[Record<string, any>, string][]} */ ([
    [{ prefix: '' }, 'engine.redis.prefix: is empty'],
    [{ prefix: 'a b' }, 'engine.redis.prefix: "a b" contains a space or a brace'],
    [{ prefix: 'a{b}' }, 'engine.redis.prefix: "a{b}" contains a space or a brace'],
    [{ client_name: 'a b' }, 'engine.redis.client_name: "a b" contains a space or a character outside ASCII'],
    [{ presence_ttl: '500ms' }, 'engine.redis.presence_ttl: 500ms is out of range'],
    [{ sharded_pub_sub_partitions: 0 }, 'engine.redis.sharded_pub_sub_partitions: 0 is out of range'],
    [{ db: -1 }, 'engine.redis.db: -1 is out of range'],
  ])) {
    const found = faults(redis)
    t.equal(found.length, 1, line)
    t.ok(found[0].startsWith(line), found[0])
  }
})

t.test('certificates and keys may be PEM, base64 of PEM, or a file', async t => {
  const folder = t.testdir({ 'empty.pem': '' })
  const one = makeAuthority(folder, 'one')
  const two = makeAuthority(folder, 'two')
  const { pem: cert, key } = one
  const base64 = (/** @type {string} */ text) => Buffer.from(text).toString('base64')
  const ways = [
    { server_ca_pem: cert, cert_pem: cert, key_pem: key },
    { server_ca_pem: base64(cert), cert_pem: base64(cert), key_pem: base64(key) },
    { server_ca_pem: one.file, cert_pem: one.file, key_pem: one.keyFile },
  ]
  for (const tls of ways) {
    const [{ options }] = targetsOf({ tls: { enabled: true, server_name: 'redis.example', ...tls } })
    t.same(options.tls, { ca: cert, cert, key, servername: 'redis.example' })
  }
  t.same(targetsOf({ tls: { enabled: true, insecure_skip_verify: true } })[0].options.tls, {
    rejectUnauthorized: false,
  })
  t.same(
    targetsOf({ tls: ways[0], address: 'rediss://h' })[0].options.tls,
    { ca: cert, cert, key },
    'rediss://',
  )
  t.equal(targetsOf({ tls: ways[0] })[0].options.tls, undefined, 'not enabled')
  t.equal(targetsOf({ tls: { enabled: true }, address: 'unix:///x' })[0].options.tls, undefined)

  for (const [tls, line] of /** @type {[Record<string, string>, string][]} */ ([
    [
      { server_ca_pem: '/nowhere/ca.pem' },
      'server_ca_pem: is neither PEM, base64 of PEM, nor the path of a file',
    ],
    [{ server_ca_pem: folder }, 'server_ca_pem: is a directory'],
    [{ server_ca_pem: join(folder, 'empty.pem') }, 'server_ca_pem: is a file that contains no PEM'],
    [{ server_ca_pem: key }, 'server_ca_pem: is not a certificate'],
    [{ cert_pem: cert }, 'cert_pem: needs key_pem too'],
    [{ key_pem: key }, 'key_pem: needs cert_pem too'],
    [{ cert_pem: cert, key_pem: cert }, 'key_pem: is not a private key'],
    [{ cert_pem: cert, key_pem: two.keyFile }, 'key_pem: is not the key of cert_pem'],
  ])) {
    t.same(faults({ tls: { enabled: true, ...tls } }), [`engine.redis.tls.${line}`])
    t.same(faults({ address: 'rediss+sentinel://h?sentinel_master_name=m', sentinel_tls: tls }), [
      `engine.redis.sentinel_tls.${line}`,
    ])
  }
})
