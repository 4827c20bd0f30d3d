import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { execPath } from 'node:process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { StatsSocket } from '../../src/metrics/stats-socket.js'
import { tempDir } from '../kit/folders.js'
import { until } from '../kit/wait.js'
import { mockSnapshots } from './mock.js'
import { monitorRig } from './monitor-rig.js'
import { Messages, recordedActions } from './stats-rig.js'

const child = fileURLToPath(new URL('stats-socket-child.js', import.meta.url))

/** @param {any} t @returns {string} short enough for a socket */
const freePath = t => join(tempDir(t), 'own', '8000.sock')

/**
 * @param {any} t @param {object} [options] @param {string} [options.path] @param {boolean} [options.own]
 * @param {Partial<import('./stats-rig.js').StatsActions>} [options.actions]
 */
async function open(t, { path = freePath(t), own, actions: more } = {}) {
  const rig = monitorRig({ workers: 2 })
  const { actions, calls } = recordedActions(more)
  const log = /** @type {any} */ ({ error: (/** @type {string} */ line) => rig.logged.push(line) })
  const socket = await StatsSocket.open({ path, own, monitor: rig.monitor, actions, log })
  t.teardown(() => socket?.close())
  return { ...rig, path, socket, calls }
}

/** A client of the stats socket. @param {any} t @param {string} path */
function watch(t, path) {
  const socket = connect(path).on('error', () => {})
  t.teardown(() => socket.destroy())
  const messages = new Messages()
  const lines = createInterface({ input: socket })
  lines.on('line', line => messages.all.push(JSON.parse(line))).on('error', () => {})
  return {
    socket,
    messages,
    closed: new Promise(resolve => socket.once('close', resolve)),
    take: messages.take.bind(messages),
    send: (/** @type {any[]} */ ...commands) =>
      commands.map(command => socket.write(`${JSON.stringify(command)}\n`)),
  }
}

/** @param {number} count */
const upTo = count => Array.from({ length: count }, (_, i) => i + 1)
const seqOf = (/** @type {any} */ { seq }) => seq

t.test('a client gets the history, then each snapshot', async t => {
  const { path, monitor, next } = await open(t)
  t.match(await watch(t, path).take(1, 'hello'), [{ history: [], events: [] }], 'before the first snapshot')
  monitor.event({ level: 'info', kind: 'started', text: 'it is up' })
  for (let second = 0; second < 45; second++) next()
  const clients = [watch(t, path), watch(t, path)]
  for (const client of clients) {
    const [hello] = await client.take(1, 'hello')
    t.match(hello, { schema: 1, node: { url: 'http://127.0.0.1:8000' } })
    t.match(hello.events[0], { kind: 'started', text: 'it is up' })
    t.same(hello.history.map(seqOf), upTo(45))
  }
  const snapshot = JSON.parse(JSON.stringify(next()))
  for (const client of clients) t.same(await client.take(1, 'snapshot'), [{ type: 'snapshot', snapshot }])
  clients[0].socket.destroy()
  await clients[0].closed
  next()
  await clients[1].take(2, 'snapshot')
})

t.test('a snapshot made while the history is written is sent once', async t => {
  const { path, next, monitor } = await open(t)
  for (let second = 0; second < 100; second++) next()
  const { after } = monitor.history
  let reads = 0
  monitor.history.after = (...args) => {
    if (++reads === 3) next()
    return after.apply(monitor.history, args)
  }
  const client = watch(t, path)
  const [{ history }] = await client.take(1, 'hello')
  next()
  const [{ snapshot }] = await client.take(1, 'snapshot')
  t.same([...history, snapshot].map(seqOf), upTo(102))
})

t.test('only the user can open the socket file, which is removed at the end', async t => {
  const { path, socket } = await open(t)
  t.equal(statSync(path).mode & 0o777, 0o600)
  t.equal(statSync(dirname(path)).mode & 0o777, 0o700)
  const client = watch(t, path)
  await client.take(1, 'hello')
  await socket?.close()
  await client.closed
  t.notOk(existsSync(path))
})

t.test('commands run and get a reply', async t => {
  const restart = () => {
    throw new Error('worker 1 is not running')
  }
  const { path, calls } = await open(t, { actions: { restart } })
  const client = watch(t, path)
  client.send({ type: 'gc', worker: null }, { type: 'gc', worker: 1 }, { type: 'gc' })
  client.send({ type: 'restart', worker: 1 }, { type: 'stop' })
  const answers = await client.take(5, 'done')
  t.same(answers.map(({ command, error }) => [command, error]).sort(), [
    ['gc', null],
    ['gc', null],
    ['gc', null],
    ['restart', 'worker 1 is not running'],
    ['stop', null],
  ])
  t.same(calls, [['gc', null], ['gc', 1], ['gc', null], ['stop']])
})

t.test('a command is answered when it has finished, `stop` immediately', async t => {
  let finish = () => {}
  const { path } = await open(t, {
    actions: {
      gc: () => new Promise(resolve => (finish = () => resolve(undefined))),
      stop: () => new Promise(() => {}),
    },
  })
  const client = watch(t, path)
  client.send({ type: 'gc' }, { type: 'log', on: true }, { type: 'stop' })
  t.match(await client.take(2, 'done'), [{ command: 'log' }, { command: 'stop', error: null }])
  finish()
  t.match(await client.take(3, 'done'), [{}, {}, { command: 'gc', error: null }])
})

t.test('log lines are sent to clients that request them', async t => {
  /** @type {Set<(line: string) => void>} */
  const logs = new Set()
  const log = (/** @type {(line: string) => void} */ listener) => {
    logs.add(listener)
    return () => logs.delete(listener)
  }
  const { path, next } = await open(t, { actions: { log } })
  const [reader, other] = [watch(t, path), watch(t, path)]
  await other.take(1, 'hello')
  t.equal(logs.size, 0)
  reader.send({ type: 'log', on: true }, { type: 'log', on: true })
  await reader.take(2, 'done')
  t.equal(logs.size, 1)
  for (const listener of logs) listener('{"level":30,"msg":"one"}\n')
  t.same(await reader.take(1, 'log'), [{ type: 'log', line: '{"level":30,"msg":"one"}' }])
  reader.send({ type: 'log', on: false })
  await reader.take(3, 'done')
  t.equal(logs.size, 0)
  reader.send({ type: 'log', on: true })
  await reader.take(4, 'done')
  reader.socket.destroy()
  await reader.closed
  // A write shows that the client has left.
  await until(() => {
    next()
    return logs.size === 0
  })
  t.same(other.messages.of('log'), [])
})

t.test('a client that has half-closed its connection still receives', async t => {
  const { path, next } = await open(t)
  const client = watch(t, path)
  client.socket.end('{"type":"gc"}\n')
  t.equal((await client.take(1, 'done')).length, 1)
  next()
  t.equal((await client.take(1, 'snapshot')).length, 1)
})

t.test('an invalid command gets an error', async t => {
  const { path, next, calls } = await open(t)
  const client = watch(t, path)
  await client.take(1, 'hello')
  const commands = [
    ...['garbage', '{"type":"gc"', 'null', '[]', '7', '"stop"', '{}', '\u0000\u0001', '\ud800'],
    ...['__proto__', { toString: 1 }, 'restart', 'log'].map(type => JSON.stringify({ type })),
    ...[2, -1, '0', 0.5].map(worker => JSON.stringify({ type: 'restart', worker })),
    '{"type":"gc","worker":99}',
    '{"type":"log","on":"yes"}',
  ]
  client.socket.write(`\n \r\n${commands.join('\n')}\n`)
  for (const { error } of await client.take(commands.length, 'done')) t.type(error, 'string')
  client.socket.write(Buffer.from([0xff, 0xfe, 0x0a]))
  await client.take(commands.length + 1, 'done')
  t.same(calls, [])
  next()
  await client.take(1, 'snapshot')
})

t.test('a client that sends an overlong line is disconnected', async t => {
  const { path, next } = await open(t)
  const mega = 1024 * 1024
  for (const text of ['x'.repeat(mega), `${'y'.repeat(mega)}\n`, `{"type":"${'z'.repeat(5000)}"}\n`]) {
    const client = watch(t, path)
    await client.take(1, 'hello')
    client.socket.write(text)
    await client.closed
  }
  const client = watch(t, path)
  await client.take(1, 'hello')
  next()
  t.equal((await client.take(1, 'snapshot')).length, 1, 'others are served')
})

t.test('a client that stops reading misses snapshots, and is finally disconnected', async t => {
  const { path, next, monitor } = await open(t)
  const reader = watch(t, path)
  // Without a listener nothing is read from a socket.
  const slow = connect(path).on('error', () => {})
  t.teardown(() => slow.destroy())
  await Promise.all([reader.take(1, 'hello'), once(slow, 'connect')])
  const [{ workers }] = mockSnapshots({ seconds: 1 })
  const text = `worker ${'x'.repeat(50_000)}`
  const before = process.memoryUsage().rss
  for (let second = 1; second <= 200; second++) {
    for (const { index, sample } of workers) if (sample) monitor.addSample(index, sample)
    monitor.event({ level: 'info', kind: 'gc', text })
    next()
    await reader.take(second, 'snapshot')
  }
  t.ok(process.memoryUsage().rss - before < 200 * 1024 * 1024)
  let bytes = 0
  slow.on('data', chunk => {
    bytes += chunk.length
  })
  await new Promise(resolve => slow.once('close', resolve))
  t.ok(bytes < 3 * 1024 * 1024, `${bytes} bytes were kept for it`)
})

t.test('a client that sends commands and reads no replies is disconnected', { timeout: 60_000 }, async t => {
  const gc = () => {
    throw new Error('x'.repeat(60_000))
  }
  const { path } = await open(t, { actions: { gc } })
  const client = connect(path).on('error', () => {})
  t.teardown(() => client.destroy())
  const closed = new Promise(resolve => client.once('close', resolve))
  const commands = '{"type":"gc"}\n'.repeat(500)
  const write = () => {
    if (!client.destroyed) client.write(commands, () => setImmediate(write))
  }
  write()
  await closed
  t.pass('disconnected')
})

t.test('the number of clients is limited', async t => {
  const { path, next } = await open(t)
  const clients = Array.from({ length: 64 }, () => watch(t, path))
  await Promise.all(clients.map(client => client.take(1, 'hello')))
  const refused = watch(t, path)
  t.match(await refused.take(1, 'done'), [{ error: /too many/ }])
  await refused.closed
  clients[0].socket.destroy()
  await clients[0].closed
  await until(async () => {
    // A write shows that the client has left.
    next()
    const { messages } = watch(t, path)
    await until(() => messages.all.length > 0)
    return messages.of('hello').length > 0
  })
})

t.test('a gateway replaces the socket of a killed gateway, not of a running one', async t => {
  const path = freePath(t)
  const start = async () => {
    const process = spawn(execPath, [child, path], { stdio: ['ignore', 'pipe', 'inherit'] })
    t.teardown(() => process.kill('SIGKILL'))
    const [line] = await once(createInterface({ input: process.stdout }), 'line')
    return { process, line }
  }
  const first = await start()
  t.equal(first.line, 'listens')
  const client = watch(t, path)
  await client.take(1, 'hello')
  t.match((await start()).line, /^no stats socket.*another gateway listens at/)
  await watch(t, path).take(1, 'hello')
  first.process.kill('SIGKILL')
  await client.closed
  t.ok(existsSync(path))
  const third = await start()
  t.equal(third.line, 'listens')
  await watch(t, path).take(1, 'hello')
  third.process.kill('SIGKILL')
  await once(third.process, 'exit')
})

t.test('a socket that cannot be opened is one log line', async t => {
  const path = freePath(t)
  const long = await open(t, { path: join(dirname(path), 'x'.repeat(120)) })
  t.match([long.socket, long.logged], [null, [/^no stats socket, .*at most 107 bytes/]])
  mkdirSync(dirname(path), { mode: 0o755 })
  const loose = await open(t, { path })
  t.match([loose.socket, loose.logged], [null, [/accessible to other users/]])
  rmSync(dirname(path), { recursive: true })
  mkdirSync(dirname(path), { mode: 0o700 })
  writeFileSync(path, 'precious')
  const taken = await open(t, { path })
  t.match([taken.socket, taken.logged], [null, [/is not a socket/]])
  t.equal(statSync(path).size, 8)
})

t.test('a configured socket may be in any folder', async t => {
  const path = freePath(t)
  mkdirSync(dirname(path), { mode: 0o755 })
  const { socket } = await open(t, { path, own: false })
  t.equal(statSync(path).mode & 0o777, 0o600)
  await socket?.close()
  // The mask of the process is unchanged.
  const server = createServer().listen(path)
  await once(server, 'listening')
  t.equal(statSync(path).mode & 0o777, 0o777 & ~process.umask())
  server.close()
})
