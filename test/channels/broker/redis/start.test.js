// Errors of a gateway that is started with an unusable Redis.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import t from 'tap'
import { parseTargets } from '../../../../src/channels/broker/redis/address.js'
import { neededCommands, probeRedis } from '../../../../src/channels/broker/redis/probe.js'
import { loadConfig } from '../../../../src/config/load.js'
import { tempDir, testdir } from '../../../kit/folders.js'
import { bin, startGateway } from '../../../kit/gateway.js'
import { freePort } from '../../../kit/ports.js'
import { startRedis, startSentinels, withoutRedis } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'

const skip = withoutRedis()

const refuses = (/** @type {string} */ user) =>
  `rejects user "${user}" or the password (engine.redis.user, engine.redis.password)`

/**
 * @param {string | string[]} address @param {Record<string, unknown>} [redis] more of `engine.redis`
 * @param {any[]} [lines] get what is logged
 * @returns {Promise<string>} what is wrong, '' if nothing
 */
async function faultOf(address, redis = {}, lines = []) {
  // On a busy machine a server may be slow to accept a connection.
  const base = {
    engine: { type: 'redis', redis: { connect_timeout: '10s', io_timeout: '10s', ...redis, address } },
  }
  const { config } = loadConfig({ base })
  const log = /** @type {any} */ ({ info: (/** @type {any[]} */ ...args) => lines.push(args) })
  try {
    await probeRedis(config.engine.redis, log)
    return ''
  } catch (error) {
    if (error.constructor !== Error) throw error
    return error.message
  }
}

/**
 * Asserts the faults of addresses.
 * @param {any} t @param {string} place in the rows as PLACE
 * @param {[address: string, fault: string, redis?: object][]} rows fault: '' = none; redis: more of `engine.redis`
 */
async function check(t, place, rows) {
  for (const [address, fault, redis] of rows)
    t.equal(
      await faultOf(address.replaceAll('PLACE', place), { ...redis }),
      fault.replaceAll('PLACE', place),
      address,
    )
}

/** Runs `halley serve` until it ends. @param {any} t @param {Record<string, string>} env */
async function serve(t, env) {
  const child = spawn(process.execPath, [bin, 'serve', '--address', '127.0.0.1', '--port', '0'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, HALLEY_ENGINE_TYPE: 'redis', ...env },
  })
  t.teardown(() => child.kill('SIGKILL'))
  const said = { stdout: '', stderr: '' }
  for (const stream of /** @type {const} */ (['stdout', 'stderr'])) {
    child[stream].setEncoding('utf8').on('data', text => {
      said[stream] += text
    })
  }
  const [code] = await once(child, 'close')
  return { code, ...said }
}

/**
 * A server that answers each question with what it is given.
 * @param {any} t @param {(args: string[]) => string} answer RESP; '' = none @returns {Promise<string>} its address
 */
async function fakeRedis(t, answer) {
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.setEncoding('utf8').on('data', text => {
      for (const question of String(text).split(/(?=\*\d+\r\n)/)) {
        const args = question.split('\r\n').filter((_, i) => i > 0 && i % 2 === 0)
        socket.write(answer(args))
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return `127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`
}

t.test('halley serve prints one line and exits with code 1', async t => {
  const port = await freePort()
  t.same(await serve(t, { HALLEY_ENGINE_REDIS_ADDRESS: `127.0.0.1:${port}` }), {
    code: 1,
    stdout: '',
    stderr: `halley: cannot reach redis at 127.0.0.1:${port}: connection refused\n`,
  })
  t.same(await serve(t, { HALLEY_ENGINE_REDIS_ADDRESS: 'redis://:secret/x@h' }), {
    code: 1,
    stdout: '',
    stderr:
      'halley: engine.redis.address: is not an address like host:port or redis://user:password@host:port/db (in a password, write special characters as %XX)\n',
  })
})

t.test('a password that Redis does not need prints no warning outside the log', { skip }, async t => {
  const redis = await startRedis(t)
  const address = `redis://:unwanted@127.0.0.1:${redis.port}`
  const gateway = await startGateway(t, { workers: 1, engine: { type: 'redis', redis: { address } } })
  t.same(await gateway.stop(), { code: 0, signal: null })
  const unstructured = gateway.lines.filter(({ level }) => !level)
  t.same(unstructured, [], 'what is printed is a line of the log')
})

t.test('each fault of a server is a one-line error', { skip }, async t => {
  const redis = await startRedis(t)
  await check(t, `127.0.0.1:${redis.port}`, [
    ['PLACE', ''],
    ['redis://PLACE/15', ''],
    ['redis://PLACE/16', 'redis at PLACE has no database 16 (engine.redis.db)'],
    ['redis+cluster://PLACE', 'redis at PLACE is not a Redis Cluster: use the address redis://'],
    [
      'redis+sentinel://PLACE?sentinel_master_name=m',
      'redis at PLACE is not a sentinel: use the address redis://',
    ],
    ['redis://nobody:x@PLACE', `redis at PLACE ${refuses('nobody')}`],
    // The empty label is refused without asking a name server: there may be none.
    ['redis://no..host', 'cannot reach redis at no..host:6379: host not found'],
    ['unix:///no/such.sock', 'cannot reach redis at /no/such.sock: no such socket'],
  ])
})

t.test('all shards are checked', { skip }, async t => {
  const redis = await startRedis(t)
  const away = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`]
  const faults = away.map(place => `cannot reach redis at ${place}: connection refused`)
  t.equal(await faultOf([away[0], redis.address, away[1]]), faults.join('; '))
})

t.test('connects over a Unix socket', { skip }, async t => {
  const dir = tempDir(t)
  await startRedis(t, { args: ['--unixsocket', `${dir}/redis.sock`] })
  t.equal(await faultOf(`unix://${dir}/redis.sock`), '')
})

t.test('wrong passwords and users are errors', { skip }, async t => {
  const redis = await startRedis(t, { password: 'secret' })
  const place = `127.0.0.1:${redis.port}`
  const setUser = (/** @type {string[]} */ ...rules) => redis.call('ACL', 'SETUSER', ...rules)
  await setUser('app', 'on', '>pw', '~halley.*', '&halley.*', '+@all', '-@dangerous', '+info')
  await setUser('guest', 'on', 'nopass', '~*', '&*', '+@all')
  await check(t, place, [
    ['PLACE', 'redis at PLACE requires a password: set engine.redis.password'],
    ['PLACE', '', { password: 'secret' }],
    ['redis://default:secret@PLACE', ''],
    ['PLACE', 'redis at PLACE rejects the password (engine.redis.password)', { password: 'wrong' }],
    ['redis://app:pw@PLACE', ''],
    ['redis://app:pw@PLACE', '', { prefix: 'halley.two' }],
    ['redis://app:no@PLACE', `redis at PLACE ${refuses('app')}`],
    ['redis://guest@PLACE', ''],
  ])
  const lacks = 'user "app" of redis at PLACE lacks permissions:'
  await setUser('app', '-publish', '-xadd')
  await check(t, place, [
    ['redis://app:pw@PLACE', `${lacks} publish, xadd (keys ~halley.*, topics &halley.*)`],
  ])
  t.match(
    await faultOf(`redis://app:pw@${place}`, { prefix: 'other' }),
    /lacks permissions: .*\bset\b.* \(keys ~other/,
  )
  for (const command of ['info', 'evalsha', 'script|load']) {
    await setUser('app', '+@all', `-${command}`)
    await check(t, place, [['redis://app:pw@PLACE', `${lacks} ${command}`]])
  }
})

t.test('permissions are checked for every command of the engine', { skip }, async t => {
  const folder = fileURLToPath(new URL('../../../../src/channels/broker/redis/', import.meta.url))
  const files = readdirSync(folder, { recursive: true }).map(file => String(file))
  const needed = new Set(neededCommands(true, false).concat(neededCommands(true, true)))
  const names = new Set([...needed].map(name => name.split('|')[0]))
  let found = 0
  const missing = []
  for (const file of files.filter(name => /\.(?:js|lua)$/.test(name))) {
    const text = readFileSync(`${folder}${file}`, 'utf8')
    for (const [, name] of text.matchAll(/\b(?:(?:send|issue)\(\s*'|redis\.p?call\(\s*['"])(\w+)['"]/g)) {
      found++
      if (name === 'hello' || name === 'evalsha') continue
      if (!names.has(name.toLowerCase())) missing.push(`${name} of ${file}`)
    }
  }
  t.same(missing, [])
  t.ok(found > 20, `${found} found`)
})

t.test('a replica is an error', { skip }, async t => {
  const master = await startRedis(t)
  const replica = await startRedis(t, { args: ['--replicaof', '127.0.0.1', `${master.port}`] })
  await check(t, `127.0.0.1:${replica.port}`, [
    ['PLACE', `redis at PLACE is a read-only replica of 127.0.0.1:${master.port}`],
  ])
})

t.test('errors of clusters name the fix', { skip }, async t => {
  const args = ['--cluster-enabled', 'yes', '--cluster-port', `${await freePort()}`]
  const node = await startRedis(t, { args })
  const place = `127.0.0.1:${node.port}`
  await check(t, place, [
    ['PLACE', 'redis at PLACE is a node of a Redis Cluster: use the address redis+cluster://'],
    ['redis+cluster://PLACE', 'the Redis Cluster at PLACE is down: not all of its slots are served'],
  ])
  await node.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16383)
  await until(async () => String(await node.call('CLUSTER', 'INFO')).includes('cluster_state:ok'))
  await node.call('ACL', 'SETUSER', 'app', 'on', '>pw', '~*', '&*', '+@all', '-spublish')
  const away = `127.0.0.1:${await freePort()}`
  const names = 'keys ~halley.{0}.*, topics &halley.{0}.*'
  await check(t, place, [
    ['redis+cluster://PLACE', ''],
    [`redis+cluster://${away}?addr=PLACE`, ''],
    [`redis+cluster://${away}`, `cannot reach redis at ${away}: connection refused`],
    [
      'redis+cluster://app:pw@PLACE',
      `user "app" of redis at PLACE (cluster at PLACE) lacks permissions: spublish (${names})`,
    ],
  ])
})

t.test('errors of sentinels name the fix', { skip }, async t => {
  const set = await startSentinels(t, { replicas: 1, sentinels: 1, password: 'secret' })
  const [sentinel] = set.sentinels
  const place = `127.0.0.1:${sentinel.port}`
  const master = `127.0.0.1:${(await set.master()).port}`
  const away = `127.0.0.1:${await freePort()}`
  const name = 'sentinel_master_name'
  await check(t, place, [
    [set.address, ''],
    [`redis+sentinel://:secret@${away}?${name}=mymaster&addr=PLACE`, ''],
    [`redis+sentinel://:secret@PLACE?${name}=other`, 'sentinel at PLACE does not monitor master "other"'],
    [`redis+sentinel://${away}?${name}=mymaster`, `cannot reach sentinel at ${away}: connection refused`],
    [
      `redis+sentinel://:wrong@PLACE?${name}=mymaster`,
      `redis at ${master} (master of mymaster@PLACE) rejects the password (engine.redis.password)`,
    ],
    ['PLACE', 'redis at PLACE is a sentinel: use the address redis+sentinel://'],
  ])
  await sentinel.call('CONFIG', 'SET', 'requirepass', 'hush').catch(() => {})
  await sentinel.call('ACL', 'SETUSER', 'default', 'resetpass', '>hush')
  const wrong = { sentinel_password: 'wrong' }
  await check(t, place, [
    [set.address, 'sentinel at PLACE requires a password: set engine.redis.sentinel_password'],
    [set.address, 'sentinel at PLACE rejects the password (engine.redis.sentinel_password)', wrong],
    [`${set.address}&sentinel_password=hush`, ''],
  ])
})

t.test('an unreachable sentinel prints nothing while another one responds', { skip }, async t => {
  const set = await startSentinels(t, { replicas: 0, sentinels: 1 })
  const gone = await freePort()
  const address = set.address.replace('://', `://127.0.0.1:${gone}?addr=`).replace('?sentinel', '&sentinel')
  const { config } = loadConfig({ base: { engine: { redis: { address } } } })
  const printed = ['log', 'warn', 'error'].map(name => t.capture(console, /** @type {'log'} */ (name)))
  const [{ options }] = parseTargets(config.engine.redis)
  const redis = new Redis({ ...options, lazyConnect: true })
  t.teardown(() => redis.disconnect())
  const failed = once(redis, 'sentinelError')
  await redis.connect()
  t.match(String(await failed), 'ECONNREFUSED')
  // By then the subscription at the dead sentinel has also failed.
  for (let i = 0; i < 20; i++) await redis.ping()
  const output = printed.flatMap(calls => calls())
  t.same(output, [])
})

t.test('a server that does not respond is an error', { skip }, async t => {
  const redis = await startRedis(t)
  redis.stop()
  t.teardown(() => redis.cont())
  const fault = 'it accepts connections but did not respond within 300ms (io_timeout)'
  await check(t, `127.0.0.1:${redis.port}`, [
    ['PLACE', `cannot reach redis at PLACE: ${fault}`, { io_timeout: '300ms' }],
  ])
})

t.test('old Redis versions and other servers are errors', async t => {
  const version = (/** @type {string} */ number) => (/** @type {string[]} */ args) => {
    const info = `redis_version:${number}\r\nredis_mode:standalone\r\nrole:master\r\n`
    if (args[0] === 'EVALSHA') return '*0\r\n'
    return args[0] === 'INFO' ? `$${info.length}\r\n${info}\r\n` : '+OK\r\n'
  }
  const unknown =
    '-ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `default`, `secret`\r\n'
  const needed = '6.2 or newer is required'
  /** @type {any[][]} answer of the server, fault */
  const rows = [
    ...['6.0.16', '6.1.9', '5.9.0'].map(number => [
      version(number),
      `redis at PLACE is version ${number}: ${needed}`,
    ]),
    ...['6.2.0', '7.4.1', '255.255.255'].map(number => [version(number), '']),
    [() => unknown, `redis at PLACE is too old: Redis ${needed}`],
    [() => '-NOPROTO unsupported\r\n', `redis at PLACE does not support RESP3: Redis ${needed}`],
    [() => '-ERR what is `secret`?\r\n', 'redis at PLACE rejects the connection: ERR what is `***`?'],
    [() => 'HTTP/1.1 400 Bad Request\r\n\r\n', 'cannot reach redis at PLACE: it is not a Redis server'],
    [
      () => '-ERR max number of clients reached\r\n',
      'redis at PLACE rejects the connection: ERR max number of clients reached',
    ],
  ]
  for (const [answer, fault] of rows)
    await check(t, await fakeRedis(t, answer), [['redis://:secret@PLACE', fault]])
})

t.test('SIGTERM stops a gateway that waits for Redis to load', async t => {
  const hello = '%1\r\n+server\r\n+redis\r\n'
  let fault = 'LOADING Redis is loading the dataset in memory'
  const place = await fakeRedis(t, ([command]) =>
    command === 'HELLO' && fault.startsWith('LOADING') ? hello : `-${fault}\r\n`,
  )
  const start = async () => {
    const child = spawn(process.execPath, [bin, 'serve', '--port', '0'], {
      env: { ...process.env, HALLEY_ENGINE_TYPE: 'redis', HALLEY_ENGINE_REDIS_ADDRESS: place },
    })
    t.teardown(() => child.kill('SIGKILL'))
    // Each line is checked: several may arrive together.
    await new Promise((resolve, reject) => {
      createInterface({ input: child.stdout })
        .on('line', line => line.includes('redis is loading its dataset') && resolve(undefined))
        .once('close', () => reject(new Error('it ended before it said that it waits')))
    })
    return child
  }
  const [first, second] = await Promise.all([start(), start()])
  first.kill('SIGTERM')
  t.strictSame(await once(first, 'exit'), [0, null])
  second.kill('SIGHUP')
  second.kill('SIGUSR2')
  fault = 'ERR max number of clients reached'
  t.strictSame(await once(second, 'exit'), [1, null], 'it has gone on')
})

t.test('a gateway waits and logs while Redis is loading', { skip }, async t => {
  const dir = testdir(t)
  const first = await startRedis(t, { dir, args: ['--dbfilename', 'dump.rdb'] })
  await first.call('EVAL', "for i = 1, 600 do redis.call('set', 'key' .. i, string.rep('x', 2000)) end", 0)
  await first.call('SAVE')
  await first.shutdown()
  // It continues loading until the delay is removed.
  const slow = ['--key-load-delay', '20000', '--loading-process-events-interval-bytes', '1024']
  const { port } = first
  const loaded = startRedis(t, { dir, port, args: ['--dbfilename', 'dump.rdb', ...slow] })
  await until(() => first.call('PING').catch(error => error.message.startsWith('LOADING')))
  const lines = /** @type {any[]} */ ([])
  const fault = faultOf(`127.0.0.1:${port}`, {}, lines)
  await until(() => lines.length > 0)
  await first.call('CONFIG', 'SET', 'key-load-delay', 0)
  t.equal(await fault, '')
  t.same(lines, [[{ waiting_for: [`redis at 127.0.0.1:${port}`] }, 'redis is loading its dataset']])
  t.equal(await first.call('PING'), 'PONG', 'it had loaded its data')
  await loaded
})
