import { spawn } from 'node:child_process'
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

const child = fileURLToPath(new URL('stats-socket-child.js', import.meta.url))

/** @param {any} t @returns {string} a path that is short enough */
function freePath(t) {
  const folder = tempDir(t)
  return join(folder, 'own', '8000.sock')
}

/**
 * A gateway's stats socket.
 * @param {any} t
 * @param {object} [options]
 * @param {string} [options.path]
 * @param {Partial<import('../../src/metrics/stats-commands.js').StatsActions>} [options.actions]
 */
async function open(t, { path = freePath(t), actions = {} } = {}) {
  const rig = monitorRig({ workers: 2 })
  /** @type {Set<(line: string) => void>} */
  const logs = new Set()
  /** @type {any[]} */
  const done = []
  const socket = await StatsSocket.open({
    path,
    monitor: rig.monitor,
    actions: {
      gc: worker => void done.push(['gc', worker]),
      restart: worker => void done.push(['restart', worker]),
      stop: () => void done.push(['stop']),
      reload: async () => '',
      log(listener) {
        logs.add(listener)
        return () => logs.delete(listener)
      },
      ...actions,
    },
    log: /** @type {any} */ ({ error: (/** @type {string} */ line) => rig.logged.push(line) }),
  })
  t.teardown(() => socket?.close())
  return { ...rig, path, socket, logs, done }
}

/**
 * Somebody who watches.
 * @param {any} t
 * @param {string} path
 */
function watch(t, path) {
  const socket = connect(path)
  t.teardown(() => socket.destroy())
  /** @type {any[]} */
  const messages = []
  /** @type {Set<() => void>} */
  const waiting = new Set()
  const lines = createInterface({ input: socket })
  lines.on('line', line => {
    messages.push(JSON.parse(line))
    for (const check of waiting) check()
  })
  lines.on('error', () => {})
  socket.on('error', () => {})
  return {
    socket,
    messages,
    /** @type {Promise<void>} */
    closed: new Promise(resolve => socket.once('close', () => resolve())),
    /** @param {...any} commands */
    tell(...commands) {
      for (const command of commands) socket.write(`${JSON.stringify(command)}\n`)
    },
    /**
     * @param {number} count
     * @param {string} type
     * @returns {Promise<any[]>} the first messages of a type, past or future
     */
    take(count, type) {
      return new Promise(resolve => {
        const check = () => {
          const found = messages.filter(message => message.type === type)
          if (found.length < count) return
          waiting.delete(check)
          resolve(found.slice(0, count))
        }
        waiting.add(check)
        check()
      })
    },
  }
}

t.test('who comes is greeted with what was, and told what is', async t => {
  const { path, monitor, next } = await open(t)
  monitor.event({ level: 'info', kind: 'started', text: 'it is up' })
  for (let second = 0; second < 45; second++) next()
  const clients = [watch(t, path), watch(t, path)]
  for (const client of clients) {
    const [hello] = await client.take(1, 'hello')
    t.match(hello, { schema: 1, node: { url: 'http://127.0.0.1:8000' } })
    t.match(hello.events[0], { kind: 'started', text: 'it is up' })
    t.same(
      hello.history.map((/** @type {any} */ { seq }) => seq),
      Array.from({ length: 45 }, (_, index) => index + 1),
    )
  }
  const snapshot = next()
  for (const client of clients) {
    t.same(await client.take(1, 'snapshot'), [
      { type: 'snapshot', snapshot: JSON.parse(JSON.stringify(snapshot)) },
    ])
  }
  clients[0].socket.destroy()
  await clients[0].closed
  next()
  await clients[1].take(2, 'snapshot')
})

t.test('a snapshot that is made while somebody is greeted is told once', async t => {
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
  t.same(
    [...history.map((/** @type {any} */ { seq }) => seq), snapshot.seq],
    Array.from({ length: 102 }, (_, index) => index + 1),
  )
})

t.test('a gateway that has just started greets, too', async t => {
  const { path } = await open(t)
  const [hello] = await watch(t, path).take(1, 'hello')
  t.match(hello, { history: [], events: [] })
})

t.test('the socket is for this user only, and gone when the gateway is', async t => {
  const { path, socket } = await open(t)
  t.equal(statSync(path).mode & 0o777, 0o600)
  t.equal(statSync(dirname(path)).mode & 0o777, 0o700)
  const client = watch(t, path)
  await client.take(1, 'hello')
  await socket?.close()
  await client.closed
  t.notOk(existsSync(path))
})

t.test('commands are carried out and answered', async t => {
  const { path, done } = await open(t, {
    actions: {
      restart() {
        throw new Error('worker 1 is not up')
      },
    },
  })
  const client = watch(t, path)
  client.tell({ type: 'gc', worker: null }, { type: 'gc', worker: 1 }, { type: 'gc' })
  client.tell({ type: 'restart', worker: 1 }, { type: 'stop' })
  const answers = await client.take(5, 'done')
  t.same(answers.map(({ command, error }) => [command, error]).sort(), [
    ['gc', null],
    ['gc', null],
    ['gc', null],
    ['restart', 'worker 1 is not up'],
    ['stop', null],
  ])
  t.same(done, [['gc', null], ['gc', 1], ['gc', null], ['stop']])
})

t.test('a command is answered when it is done', async t => {
  /** @type {() => void} */
  let finish = () => {}
  const { path } = await open(t, {
    actions: { gc: () => new Promise(resolve => (finish = () => resolve(undefined))) },
  })
  const client = watch(t, path)
  client.tell({ type: 'gc' })
  client.tell({ type: 'log', on: true })
  t.match(await client.take(1, 'done'), [{ command: 'log' }])
  finish()
  t.match(await client.take(2, 'done'), [{}, { command: 'gc', error: null }])
})

t.test('that the gateway will end is answered at once', async t => {
  const { path } = await open(t, { actions: { stop: () => new Promise(() => {}) } })
  const client = watch(t, path)
  client.tell({ type: 'stop' })
  t.match(await client.take(1, 'done'), [{ command: 'stop', error: null }])
})

t.test('log lines go to those who ask for them, as long as they do', async t => {
  const { path, logs, next } = await open(t)
  const [reader, other] = [watch(t, path), watch(t, path)]
  await other.take(1, 'hello')
  t.equal(logs.size, 0, 'nobody has asked')
  reader.tell({ type: 'log', on: true }, { type: 'log', on: true })
  await reader.take(2, 'done')
  t.equal(logs.size, 1)
  for (const log of logs) log('{"level":30,"msg":"one"}\n')
  t.same(await reader.take(1, 'log'), [{ type: 'log', line: '{"level":30,"msg":"one"}' }])
  reader.tell({ type: 'log', on: false })
  await reader.take(3, 'done')
  t.equal(logs.size, 0)
  reader.tell({ type: 'log', on: true })
  await reader.take(4, 'done')
  reader.socket.destroy()
  await reader.closed
  // That it has left shows when it is written to.
  await until(() => {
    next()
    return logs.size === 0
  })
  t.equal(other.messages.filter(({ type }) => type === 'log').length, 0)
})

t.test('whoever only asks may close its half, and reads on', async t => {
  const { path, next } = await open(t)
  const client = watch(t, path)
  client.socket.end('{"type":"gc"}\n')
  t.equal((await client.take(1, 'done')).length, 1)
  next()
  t.equal((await client.take(1, 'snapshot')).length, 1)
})

t.test('what is no command is answered, and does no harm', async t => {
  const { path, next, done } = await open(t)
  const client = watch(t, path)
  await client.take(1, 'hello')
  const lines = [
    'garbage',
    '{"type":"gc"',
    'null',
    '[]',
    '7',
    '"stop"',
    '{}',
    '{"type":"__proto__"}',
    '{"type":{"toString":1}}',
    '{"type":"restart"}',
    '{"type":"restart","worker":2}',
    '{"type":"restart","worker":-1}',
    '{"type":"restart","worker":"0"}',
    '{"type":"restart","worker":0.5}',
    '{"type":"gc","worker":99}',
    '{"type":"log"}',
    '{"type":"log","on":"yes"}',
    '\u0000\u0001',
    '\ud800',
  ]
  client.socket.write(`\n \r\n${lines.join('\n')}\n`)
  const answers = await client.take(lines.length, 'done')
  for (const { error } of answers) t.type(error, 'string')
  client.socket.write(Buffer.from([0xff, 0xfe, 0x0a]))
  await client.take(lines.length + 1, 'done')
  t.same(done, [])
  next()
  await client.take(1, 'snapshot')
})

t.test('a line without an end is cut off', async t => {
  const { path, next } = await open(t)
  for (const text of [
    'x'.repeat(1024 * 1024),
    `${'y'.repeat(1024 * 1024)}\n`,
    `{"type":"${'z'.repeat(5000)}"}\n`,
  ]) {
    const client = watch(t, path)
    await client.take(1, 'hello')
    client.socket.write(text)
    await client.closed
  }
  const client = watch(t, path)
  await client.take(1, 'hello')
  next()
  t.equal((await client.take(1, 'snapshot')).length, 1, 'whoever comes afterwards is served')
})

t.test('a reader that stops reading misses snapshots, and is cut off in the end', async t => {
  const { path, next, monitor } = await open(t)
  const [reader, slow] = [watch(t, path), connect(path)]
  t.teardown(() => slow.destroy())
  await Promise.all([reader.take(1, 'hello'), new Promise(resolve => slow.once('connect', resolve))])
  // Nothing is read from a socket that nobody listens to.
  const [{ workers }] = mockSnapshots({ seconds: 1 })
  const fat = `worker ${'x'.repeat(50_000)}`
  const before = process.memoryUsage().rss
  for (let second = 1; second <= 200; second++) {
    for (const { index, sample } of workers) if (sample) monitor.addSample(index, sample)
    monitor.event({ level: 'info', kind: 'gc', text: fat })
    next()
    await reader.take(second, 'snapshot')
  }
  t.equal(reader.messages.filter(({ type }) => type === 'snapshot').length, 200, 'the other one has them all')
  t.ok(process.memoryUsage().rss - before < 200 * 1024 * 1024)
  let bytes = 0
  slow.on('data', chunk => {
    bytes += chunk.length
  })
  slow.on('error', () => {})
  await new Promise(resolve => slow.once('close', resolve))
  t.ok(bytes < 3 * 1024 * 1024, `${bytes} bytes were kept for it`)
})

t.test('one that only asks and never reads is cut off, too', { timeout: 60_000 }, async t => {
  const { path } = await open(t, {
    actions: {
      gc() {
        throw new Error('x'.repeat(60_000))
      },
    },
  })
  const client = connect(path)
  t.teardown(() => client.destroy())
  client.on('error', () => {})
  const closed = new Promise(resolve => client.once('close', resolve))
  const commands = '{"type":"gc"}\n'.repeat(500)
  const write = () => {
    if (!client.destroyed) client.write(commands, () => setImmediate(write))
  }
  write()
  await closed
  t.pass('it has not filled the memory')
})

t.test('not everybody can watch at once', async t => {
  const { path, next } = await open(t)
  const clients = Array.from({ length: 64 }, () => watch(t, path))
  await Promise.all(clients.map(client => client.take(1, 'hello')))
  const refused = watch(t, path)
  t.match(await refused.take(1, 'done'), [{ error: /too many/ }])
  await refused.closed
  clients[0].socket.destroy()
  await clients[0].closed
  await until(() => {
    // That one has left shows when it is written to.
    next()
    const client = watch(t, path)
    return Promise.race([client.take(1, 'hello'), client.closed])
  })
})

t.test('a gateway that was killed leaves a file, and the next one takes its place', async t => {
  const path = freePath(t)
  const start = () => {
    const process = spawn(execPath, [child, path], { stdio: ['ignore', 'pipe', 'inherit'] })
    t.teardown(() => process.kill('SIGKILL'))
    return process
  }
  const said = (/** @type {import('node:child_process').ChildProcess} */ process) =>
    new Promise(resolve =>
      createInterface({ input: /** @type {any} */ (process.stdout) }).once('line', resolve),
    )
  const first = start()
  t.equal(await said(first), 'listens')
  const client = watch(t, path)
  await client.take(1, 'hello')

  const second = start()
  t.match(await said(second), /^no stats socket.*another gateway listens at/)
  t.ok(existsSync(path), 'which is not taken away from the one that lives')
  const other = watch(t, path)
  await other.take(1, 'hello')

  first.kill('SIGKILL')
  await client.closed
  t.ok(existsSync(path))
  const third = start()
  t.equal(await said(third), 'listens')
  await watch(t, path).take(1, 'hello')
  third.kill('SIGKILL')
  await new Promise(resolve => third.once('exit', resolve))
})

t.test('what cannot be had is one line in the log, and the gateway goes on', async t => {
  const path = freePath(t)
  const long = await open(t, { path: join(dirname(path), 'x'.repeat(120)) })
  t.equal(long.socket, null)
  t.match(long.logged, [/^no stats socket, .*at most 107 bytes/])

  mkdirSync(dirname(path), { mode: 0o755 })
  const loose = await open(t, { path })
  t.match([loose.socket, loose.logged], [null, [/open to other users/]])

  rmSync(dirname(path), { recursive: true })
  mkdirSync(dirname(path), { mode: 0o700 })
  writeFileSync(path, 'precious')
  const taken = await open(t, { path })
  t.match([taken.socket, taken.logged], [null, [/is not a socket/]])
  t.equal(statSync(path).size, 8)
})

t.test('a socket that somebody has named may be where it likes', async t => {
  const path = freePath(t)
  mkdirSync(dirname(path), { mode: 0o755 })
  const rig = monitorRig()
  const socket = await StatsSocket.open({
    path,
    own: false,
    monitor: rig.monitor,
    actions: { gc() {}, restart() {}, stop() {}, log: () => () => {}, reload: async () => '' },
    log: /** @type {any} */ ({ error: t.fail }),
  })
  t.equal(statSync(path).mode & 0o777, 0o600)
  await socket?.close()
  // The mask of the process is what it was.
  const server = createServer()
  await new Promise(resolve => server.listen(path, () => resolve(undefined)))
  t.equal(statSync(path).mode & 0o777, 0o777 & ~process.umask())
  server.close()
})
