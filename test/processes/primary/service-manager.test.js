// What systemd is told, with a datagram socket in its place.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import { ServiceManager } from '../../../src/processes/primary/service-manager.js'
import { config } from '../../kit/fleet.js'
import { tempDir, testdir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { withoutProgram } from '../../kit/needs.js'
import { until } from '../../kit/wait.js'

/** Prints each datagram as a line of JSON. */
const RECEIVER = `
import json, socket, sys
name = sys.argv[1]
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind('\\0' + name[1:] if name[0] == '@' else name)
print('"bound"', flush=True)
while True:
    print(json.dumps(receiver.recv(4096).decode()), flush=True)
`

/** The socket of a service manager. */
class Receiver {
  /** @type {string[]} */
  messages = []

  /** @param {any} t @param {string} name path, or `@` and the name of an abstract socket */
  static async start(t, name) {
    const receiver = new Receiver()
    const child = spawn('python3', ['-c', RECEIVER, name], { stdio: ['ignore', 'pipe', 'inherit'] })
    t.teardown(() => child.kill('SIGKILL'))
    const lines = createInterface({ input: child.stdout })
    const ended = once(child, 'exit').then(() => Promise.reject(new Error('the receiver ended')))
    await Promise.race([once(lines, 'line'), ended])
    lines.on('line', line => {
      const message = JSON.parse(line)
      // systemd-notify asks with each message whether it was read.
      if (message === 'BARRIER=1') return
      receiver.messages.push(message)
    })
    return receiver
  }

  /** @returns {Promise<string>} the next message; watchdog messages are left out unless they are `wanted` */
  next(wanted = /^(?!WATCHDOG)/) {
    return until(() => {
      const at = this.messages.findIndex(message => wanted.test(message))
      return this.messages.splice(0, at < 0 ? Infinity : at + 1)[at]
    }, `a message like ${wanted}`)
  }
}

/** @param {string[]} texts that are logged @returns {any} */
const logTo = texts => ({ warn: (/** @type {string} */ text) => texts.push(text) })

const _WATCHDOG = /^WATCHDOG=1$/
const skip = withoutProgram('systemd-notify', 'systemd') || withoutProgram('python3')
/** Of this test's process: abstract names are the machine's. */
const abstract = (/** @type {string} */ name) => `@halley-test-${process.pid}-${name}`

t.jobs = 3

t.test('a start, a reload, a reload that fails, and the end', { skip, buffered: true }, async t => {
  const folder = tempDir(t)
  const path = join(folder, 's')
  const receiver = await Receiver.start(t, path)
  const env = { NOTIFY_SOCKET: path, WATCHDOG_USEC: '200000', WATCHDOG_PID: '' }
  const gateway = await startGateway(t, config, { env })
  t.equal(await receiver.next(), 'READY=1')
  t.equal(await receiver.next(/./), 'WATCHDOG=1')

  const file = join(gateway.folder, 'config.json')
  const good = await readFile(file, 'utf8')
  for (const text of [good, '{"workers": "many"}']) {
    const before = process.hrtime.bigint() / 1000n
    await writeFile(file, text)
    gateway.process.kill('SIGHUP')
    const [state, time] = (await receiver.next()).split('\n')
    t.equal(state, 'RELOADING=1')
    const at = BigInt(time.replace('MONOTONIC_USEC=', ''))
    t.ok(at >= before && at <= process.hrtime.bigint() / 1000n, 'the time is that of CLOCK_MONOTONIC')
    t.equal(await receiver.next(), 'READY=1')
  }
  t.match(
    gateway.lines.map(({ msg }) => msg).filter(msg => /reloaded/.test(msg)),
    ['configuration reloaded', 'configuration not reloaded'],
  )

  gateway.process.kill('SIGTERM')
  t.equal(await receiver.next(), 'STOPPING=1')
  t.strictSame(await gateway.exited, { code: 0, signal: null })
})

t.test('no watchdog messages while the gateway is not healthy', { skip, buffered: true }, async t => {
  const name = abstract('health')
  const receiver = await Receiver.start(t, name)
  /** @type {string[]} */
  const faults = []
  let asked = 0
  const service = new ServiceManager({
    env: {
      PATH: process.env.PATH,
      NOTIFY_SOCKET: name,
      WATCHDOG_USEC: '80000',
      WATCHDOG_PID: `${process.pid}`,
    },
    pid: process.pid,
    log: logTo(faults),
    // After the fourth look nothing more may be sent but the end.
    healthy: () => ++asked === 4,
  })
  t.teardown(() => service.close())
  service.ready()
  t.equal(await receiver.next(/./), 'READY=1')
  t.equal(await receiver.next(/./), 'WATCHDOG=1')
  await until(() => asked >= 8)
  service.stopping()
  t.equal(await receiver.next(/./), 'STOPPING=1', 'no more watchdog messages while it is not healthy')
  t.equal(await receiver.next(/./), 'WATCHDOG=1', 'workers end: the watchdog waits for it')
  t.same(faults, [])
})

t.test('a watchdog of another process is not fed', { skip, buffered: true }, async t => {
  const name = abstract('other')
  const receiver = await Receiver.start(t, name)
  /** @type {string[]} */
  const faults = []
  const service = new ServiceManager({
    env: { PATH: process.env.PATH, NOTIFY_SOCKET: name, WATCHDOG_USEC: '4000', WATCHDOG_PID: '1' },
    pid: process.pid,
    log: logTo(faults),
    healthy: () => t.fail('nobody asked'),
  })
  t.teardown(() => service.close())
  service.ready()
  t.equal(await receiver.next(/./), 'READY=1')
  service.stopping()
  t.equal(await receiver.next(/./), 'STOPPING=1')
  t.same(faults, [])
})

t.test('a shell that was killed is replaced', { skip, buffered: true }, async t => {
  const name = abstract('killed')
  const receiver = await Receiver.start(t, name)
  const service = new ServiceManager({
    env: { PATH: process.env.PATH, NOTIFY_SOCKET: name, WATCHDOG_USEC: '200000' },
    pid: process.pid,
    log: logTo([]),
    healthy: () => true,
  })
  t.teardown(() => service.close())
  service.ready()
  t.equal(await receiver.next(/./), 'READY=1')
  const shell = /** @type {number} */ (await shellOf(name))
  process.kill(shell, 'SIGKILL')
  await until(async () => ![null, shell].includes(await shellOf(name)), 'another shell')
  // Only the new one can say this, and what follows it.
  service.stopping()
  t.equal(await receiver.next(/^STOPPING/), 'STOPPING=1')
  t.equal(await receiver.next(/./), 'WATCHDOG=1')
})

/** @param {string} socket @returns {Promise<number | null>} the shell that notifies it: a child of this process */
async function shellOf(socket) {
  const children = await readFile(`/proc/self/task/${process.pid}/children`, 'utf8')
  for (const pid of children.trim().split(' ')) {
    const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')
    if (environment.includes(`NOTIFY_SOCKET=${socket}`)) return Number(pid)
  }
  return null
}

t.test('a socket that nobody reads is one line', { skip, buffered: true }, async t => {
  /** @type {string[]} */
  const faults = []
  let asked = 0
  const service = new ServiceManager({
    env: {
      PATH: process.env.PATH,
      NOTIFY_SOCKET: join(tmpdir(), `halley-none-${process.pid}`),
      WATCHDOG_USEC: '40000',
    },
    pid: process.pid,
    log: logTo(faults),
    healthy: () => ++asked > 0,
  })
  t.teardown(() => service.close())
  service.ready()
  await until(() => asked >= 10 && faults.length > 0)
  t.match(faults, [/^systemd-notify failed: .*No such file or directory/])
})

t.test('without systemd-notify one line says so, and the gateway runs', { buffered: true }, async t => {
  const env = { NOTIFY_SOCKET: abstract('none'), WATCHDOG_USEC: '40000', PATH: testdir(t) }
  const gateway = await startGateway(t, { ...config, workers: 1 }, { env })
  const line = await gateway.line(({ msg }) => /systemd/.test(msg))
  t.match(line, { level: 40, msg: /^systemd-notify is not installed: systemd gets no notifications/ })
  t.equal((await gateway.stop()).code, 0)
  t.equal(gateway.lines.filter(({ msg }) => /systemd/.test(msg)).length, 1)
})
