// What a gateway says when it is started with a Redis that it cannot work with.

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
import { testdir } from '../../../kit/folders.js'
import { bin, startGateway } from '../../../kit/gateway.js'
import { freePort } from '../../../kit/ports.js'
import { startRedis, startSentinels, withoutRedis } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'

const skip = withoutRedis()

/**
 * @param {string | string[]} address
 * @param {Record<string, unknown>} [redis] more of `engine.redis`
 * @param {any[]} [lines] get what is logged @param {AbortSignal} [signal] ends a wait
 * @returns {Promise<string>} what is wrong, '' if nothing
 */
async function faultOf(address, redis = {}, lines = [], signal) {
  // On a busy machine a server may need its time to accept a connection.
  const base = {
    engine: { type: 'redis', redis: { connect_timeout: '10s', io_timeout: '10s', ...redis, address } },
  }
  const { config } = loadConfig({ base })
  const log = /** @type {any} */ ({ info: (/** @type {any[]} */ ...args) => lines.push(args) })
  try {
    await probeRedis(config.engine.redis, log, signal)
    return ''
  } catch (error) {
    if (error.constructor !== Error) throw error
    return error.message
  }
}

/**
 * Runs `halley serve` until it ends.
 * @param {any} t
 * @param {Record<string, string>} env
 */
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
 * @param {any} t
 * @param {(args: string[]) => string} answer RESP; '' = none
 * @returns {Promise<string>} its address
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

t.test('halley serve ends with one line and exit code 1', async t => {
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

t.test('a gateway starts, and prints nothing odd, with a password that nobody wants', { skip }, async t => {
  const redis = await startRedis(t)
  const address = `redis://:unwanted@127.0.0.1:${redis.port}`
  const gateway = await startGateway(t, { workers: 1, engine: { type: 'redis', redis: { address } } })
  t.same(await gateway.stop(), { code: 0, signal: null })
  t.same(
    gateway.lines.filter(({ level }) => !level),
    [],
    'what is printed is a line of the log',
  )
})

t.test('one server: what is wrong is said in one line', { skip }, async t => {
  const redis = await startRedis(t)
  const place = `127.0.0.1:${redis.port}`
  t.equal(await faultOf(place), '')
  t.equal(await faultOf(`redis://${place}/15`), '')
  t.equal(await faultOf(`redis://${place}/16`), `redis at ${place} has no database 16 (engine.redis.db)`)
  t.equal(
    await faultOf(`redis+cluster://${place}`),
    `redis at ${place} is not a Redis Cluster: use the address redis://`,
  )
  t.equal(
    await faultOf(`redis+sentinel://${place}?sentinel_master_name=m`),
    `redis at ${place} is not a sentinel: use the address redis://`,
  )
  t.equal(
    await faultOf(`redis://nobody:x@${place}`),
    `redis at ${place} refuses user "nobody" or the password (engine.redis.user, engine.redis.password)`,
  )
  // The empty label is refused without asking a name server: there may be none.
  t.equal(await faultOf('redis://no..host'), 'cannot reach redis at no..host:6379: host not found')
  t.equal(await faultOf('unix:///no/such.sock'), 'cannot reach redis at /no/such.sock: no such socket')
})

t.test('all shards are looked at', { skip }, async t => {
  const redis = await startRedis(t)
  const away = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`]
  t.equal(
    await faultOf([away[0], redis.address, away[1]]),
    away.map(place => `cannot reach redis at ${place}: connection refused`).join('; '),
  )
})

t.test('a Unix socket', { skip }, async t => {
  const dir = testdir(t)
  await startRedis(t, { args: ['--unixsocket', `${dir}/redis.sock`] })
  t.equal(await faultOf(`unix://${dir}/redis.sock`), '')
})

t.test('passwords and users', { skip }, async t => {
  const redis = await startRedis(t, { password: 'secret' })
  const place = `127.0.0.1:${redis.port}`
  t.equal(await faultOf(place), `redis at ${place} requires a password: set engine.redis.password`)
  t.equal(await faultOf(place, { password: 'secret' }), '')
  t.equal(await faultOf(`redis://default:secret@${place}`), '')
  t.equal(
    await faultOf(place, { password: 'wrong' }),
    `redis at ${place} refuses the password (engine.redis.password)`,
  )
  await redis.call(
    'ACL',
    'SETUSER',
    'app',
    'on',
    '>pw',
    '~halley.*',
    '&halley.*',
    '+@all',
    '-@dangerous',
    '+info',
  )
  t.equal(await faultOf(`redis://app:pw@${place}`), '')
  t.equal(await faultOf(`redis://app:pw@${place}`, { prefix: 'halley.two' }), '')
  t.equal(
    await faultOf(`redis://app:no@${place}`),
    `redis at ${place} refuses user "app" or the password (engine.redis.user, engine.redis.password)`,
  )
  await redis.call('ACL', 'SETUSER', 'app', '-publish', '-xadd')
  t.equal(
    await faultOf(`redis://app:pw@${place}`),
    `user "app" of redis at ${place} lacks permissions: publish, xadd (keys ~halley.*, topics &halley.*)`,
  )
  t.match(
    await faultOf(`redis://app:pw@${place}`, { prefix: 'other' }),
    /lacks permissions: .*\bset\b.* \(keys ~other/,
  )
  for (const command of ['info', 'evalsha', 'script|load']) {
    await redis.call('ACL', 'SETUSER', 'app', '+@all', `-${command}`)
    t.equal(
      await faultOf(`redis://app:pw@${place}`),
      `user "app" of redis at ${place} lacks permissions: ${command}`,
    )
  }
  await redis.call('ACL', 'SETUSER', 'guest', 'on', 'nopass', '~*', '&*', '+@all')
  t.equal(await faultOf(`redis://guest@${place}`), '')
})

t.test('permissions are asked for every command that the engine sends', { skip }, async t => {
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

t.test('a replica', { skip }, async t => {
  const master = await startRedis(t)
  const replica = await startRedis(t, { args: ['--replicaof', '127.0.0.1', `${master.port}`] })
  t.equal(
    await faultOf(replica.address),
    `redis at 127.0.0.1:${replica.port} is a replica of 127.0.0.1:${master.port}, and takes no writes`,
  )
})

t.test('clusters', { skip }, async t => {
  const node = await startRedis(t, {
    args: ['--cluster-enabled', 'yes', '--cluster-port', `${await freePort()}`],
  })
  const place = `127.0.0.1:${node.port}`
  t.equal(
    await faultOf(place),
    `redis at ${place} is a node of a Redis Cluster: use the address redis+cluster://`,
  )
  t.equal(
    await faultOf(`redis+cluster://${place}`),
    `the Redis Cluster at ${place} is down: not all of its slots are served`,
  )
  await node.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16383)
  await until(async () => String(await node.call('CLUSTER', 'INFO')).includes('cluster_state:ok'))
  t.equal(await faultOf(`redis+cluster://${place}`), '')
  const away = `127.0.0.1:${await freePort()}`
  t.equal(await faultOf(`redis+cluster://${away}?addr=${place}`), '', 'one node that answers is enough')
  t.equal(await faultOf(`redis+cluster://${away}`), `cannot reach redis at ${away}: connection refused`)
  await node.call('ACL', 'SETUSER', 'app', 'on', '>pw', '~*', '&*', '+@all', '-spublish')
  t.equal(
    await faultOf(`redis+cluster://app:pw@${place}`),
    `user "app" of redis at ${place} (cluster at ${place}) lacks permissions: spublish (keys ~halley.{0}.*, topics &halley.{0}.*)`,
  )
})

t.test('sentinels', { skip }, async t => {
  const set = await startSentinels(t, { replicas: 1, sentinels: 1, password: 'secret' })
  const [sentinel] = set.sentinels
  const place = `127.0.0.1:${sentinel.port}`
  const master = `127.0.0.1:${(await set.master()).port}`
  t.equal(await faultOf(set.address), '')
  const away = `127.0.0.1:${await freePort()}`
  const rest = `sentinel_master_name=mymaster`
  t.equal(
    await faultOf(`redis+sentinel://:secret@${away}?${rest}&addr=${place}`),
    '',
    'one that answers is enough',
  )
  t.equal(
    await faultOf(`redis+sentinel://:secret@${place}?sentinel_master_name=other`),
    `sentinel at ${place} knows no master "other"`,
  )
  t.equal(
    await faultOf(`redis+sentinel://${away}?${rest}`),
    `cannot reach sentinel at ${away}: connection refused`,
  )
  t.equal(
    await faultOf(`redis+sentinel://:wrong@${place}?${rest}`),
    `redis at ${master} (master of mymaster@${place}) refuses the password (engine.redis.password)`,
  )
  t.equal(await faultOf(place), `redis at ${place} is a sentinel: use the address redis+sentinel://`)
  await sentinel.call('CONFIG', 'SET', 'requirepass', 'hush').catch(() => {})
  await sentinel.call('ACL', 'SETUSER', 'default', 'resetpass', '>hush')
  t.equal(
    await faultOf(set.address),
    `sentinel at ${place} requires a password: set engine.redis.sentinel_password`,
  )
  t.equal(
    await faultOf(set.address, { sentinel_password: 'wrong' }),
    `sentinel at ${place} refuses the password (engine.redis.sentinel_password)`,
  )
  t.equal(await faultOf(`${set.address}&sentinel_password=hush`), '')
})

t.test('a sentinel that is away is not worth a word while another one answers', { skip }, async t => {
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
  // By then the connection that is to hear of failovers from the dead one has failed as well.
  for (let i = 0; i < 20; i++) await redis.ping()
  t.same(
    printed.flatMap(calls => calls()),
    [],
  )
})

t.test('a server that accepts connections, but does not answer', { skip }, async t => {
  const redis = await startRedis(t)
  redis.stop()
  t.teardown(() => redis.cont())
  t.equal(
    await faultOf(redis.address, { io_timeout: '300ms' }),
    `cannot reach redis at 127.0.0.1:${redis.port}: it accepts connections, but did not answer within 300ms (io_timeout)`,
  )
})

t.test('old servers, and others', async t => {
  const version = (/** @type {string} */ number) => (/** @type {string[]} */ args) => {
    const info = `redis_version:${number}\r\nredis_mode:standalone\r\nrole:master\r\n`
    return args[0] === 'INFO' ? `$${info.length}\r\n${info}\r\n` : '+OK\r\n'
  }
  for (const number of ['6.0.16', '6.1.9', '5.9.0']) {
    const place = await fakeRedis(t, version(number))
    t.equal(await faultOf(place), `redis at ${place} is version ${number}: 6.2 or newer is needed`)
  }
  for (const number of ['6.2.0', '7.4.1', '255.255.255']) {
    const place = await fakeRedis(t, args => (args[0] === 'EVALSHA' ? '*0\r\n' : version(number)(args)))
    t.equal(await faultOf(place), '', number)
  }
  for (const [answer, fault] of [
    [
      '-ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `default`, `secret`\r\n',
      'redis at PLACE is too old: Redis 6.2 or newer is needed',
    ],
    ['-NOPROTO unsupported\r\n', 'redis at PLACE does not speak RESP3: Redis 6.2 or newer is needed'],
    ['-ERR what is `secret`?\r\n', 'redis at PLACE refuses the connection: ERR what is `***`?'],
    ['HTTP/1.1 400 Bad Request\r\n\r\n', 'cannot reach redis at PLACE: it is not a Redis server'],
    [
      '-ERR max number of clients reached\r\n',
      'redis at PLACE refuses the connection: ERR max number of clients reached',
    ],
  ]) {
    const place = await fakeRedis(t, () => answer)
    t.equal(await faultOf(`redis://:secret@${place}`), fault.replace('PLACE', place))
  }
})

t.test('signals while it waits for Redis: SIGHUP and SIGUSR2 change nothing, SIGTERM ends it', async t => {
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
    // Each line is looked at: several may come at once.
    await new Promise((resolve, reject) => {
      createInterface({ input: child.stdout })
        .on('line', line => line.includes('redis is loading its data') && resolve(undefined))
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

t.test('while Redis is loading its data, a check waits until its signal is aborted', async t => {
  const hello = '%1\r\n+server\r\n+redis\r\n'
  const place = await fakeRedis(t, ([command]) =>
    command === 'HELLO' ? hello : '-LOADING Redis is loading\r\n',
  )
  const late = new AbortController()
  const lines = /** @type {any[]} */ ([])
  const fault = faultOf(place, {}, lines, late.signal)
  await until(() => lines.length > 0)
  late.abort(new Error('too late'))
  t.equal(await fault, 'too late')
})

t.test('while Redis is loading its data, a start waits and says so', { skip }, async t => {
  const dir = testdir(t)
  const first = await startRedis(t, { dir, args: ['--dbfilename', 'dump.rdb'] })
  await first.call('EVAL', "for i = 1, 600 do redis.call('set', 'key' .. i, string.rep('x', 2000)) end", 0)
  await first.call('SAVE')
  await first.shutdown()
  // It goes on loading until it is told to be quick.
  const slow = ['--key-load-delay', '20000', '--loading-process-events-interval-bytes', '1024']
  const { port } = first
  const loaded = startRedis(t, { dir, port, args: ['--dbfilename', 'dump.rdb', ...slow] })
  await until(() => first.call('PING').catch(error => error.message.startsWith('LOADING')))
  const lines = /** @type {any[]} */ ([])
  const fault = faultOf(`127.0.0.1:${port}`, {}, lines)
  await until(() => lines.length > 0)
  await first.call('CONFIG', 'SET', 'key-load-delay', 0)
  t.equal(await fault, '')
  t.same(lines, [[{ waiting_for: [`redis at 127.0.0.1:${port}`] }, 'redis is loading its data']])
  t.equal(await first.call('PING'), 'PONG', 'it had loaded its data')
  await loaded
})
