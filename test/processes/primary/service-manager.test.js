// Notifications of systemd, received by a datagram socket of the test.

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

/**
 * Receives the messages for a socket.
 * @param {any} t @param {string} name path, or `@` and the name of an abstract socket
 * @returns {Promise<(wanted?: RegExp) => Promise<string>>} the next message, by default no watchdog message
 */
async function receive(t, name) {
  const messages = []
  const child = spawn('python3', ['-c', RECEIVER, name], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout })
  const ended = once(child, 'exit').then(() => Promise.reject(new Error('the receiver ended')))
  await Promise.race([once(lines, 'line'), ended])
  lines.on('line', line => {
    const message = JSON.parse(line)
    // systemd-notify asks with each message whether it was read.
    if (message !== 'BARRIER=1') messages.push(message)
  })
  return (wanted = /^(?!WATCHDOG)/) =>
    until(() => {
      const at = messages.findIndex(message => wanted.test(message))
      return messages.splice(0, at < 0 ? Infinity : at + 1)[at]
    }, `a message like ${wanted}`)
}

/**
 * @param {any} t @param {string} NOTIFY_SOCKET @param {Record<string, string>} env @param {() => boolean} [healthy]
 * @returns {{service: ServiceManager, faults: string[]}}
 */
function manage(t, NOTIFY_SOCKET, env, healthy = () => true) {
  const faults = []
  const service = new ServiceManager({
    env: { PATH: process.env.PATH, NOTIFY_SOCKET, ...env },
    pid: process.pid,
    log: /** @type {any} */ ({ warn: text => faults.push(text) }),
    healthy,
  })
  t.teardown(() => service.close())
  service.ready()
  return { service, faults }
}

const skip = withoutProgram('systemd-notify', 'systemd') || withoutProgram('python3')
const BUFFERED = { skip, buffered: true }
/** Abstract names are global on the machine. */
const abstract = name => `@halley-test-${process.pid}-${name}`

t.jobs = 3

t.test('systemd is notified of start, reload, failed reload and shutdown', BUFFERED, async t => {
  const path = join(tempDir(t), 's')
  const next = await receive(t, path)
  const env = { NOTIFY_SOCKET: path, WATCHDOG_USEC: '200000', WATCHDOG_PID: '' }
  const gateway = await startGateway(t, config, { env })
  t.equal(await next(), 'READY=1')
  t.equal(await next(/./), 'WATCHDOG=1')

  const file = join(gateway.folder, 'config.json')
  const good = await readFile(file, 'utf8')
  for (const text of [good, '{"workers": "many"}']) {
    const before = process.hrtime.bigint() / 1000n
    await writeFile(file, text)
    gateway.process.kill('SIGHUP')
    const [state, time] = (await next()).split('\n')
    t.equal(state, 'RELOADING=1')
    const at = BigInt(time.replace('MONOTONIC_USEC=', ''))
    t.ok(at >= before && at <= process.hrtime.bigint() / 1000n, 'the time is that of CLOCK_MONOTONIC')
    t.equal(await next(), 'READY=1')
  }
  t.match(
    gateway.lines.map(({ msg }) => msg).filter(msg => /reloaded/.test(msg)),
    ['configuration reloaded', 'configuration not reloaded'],
  )

  gateway.process.kill('SIGTERM')
  t.equal(await next(), 'STOPPING=1')
  t.strictSame(await gateway.exited, { code: 0, signal: null })
})

t.test('no watchdog messages are sent while the gateway is unhealthy', BUFFERED, async t => {
  const name = abstract('health')
  const next = await receive(t, name)
  let checks = 0
  const env = { WATCHDOG_USEC: '80000', WATCHDOG_PID: `${process.pid}` }
  const { service, faults } = manage(t, name, env, () => ++checks === 4)
  t.equal(await next(/./), 'READY=1')
  t.equal(await next(/./), 'WATCHDOG=1')
  await until(() => checks >= 8)
  service.stopping()
  t.equal(await next(/./), 'STOPPING=1', 'no more watchdog messages before')
  t.equal(await next(/./), 'WATCHDOG=1', 'the watchdog waits for the shutdown')
  t.same(faults, [])
})

t.test('no watchdog messages for another process are sent', BUFFERED, async t => {
  const name = abstract('other')
  const next = await receive(t, name)
  const env = { WATCHDOG_USEC: '4000', WATCHDOG_PID: '1' }
  const { service, faults } = manage(t, name, env, () => t.fail('its health is not checked'))
  t.equal(await next(/./), 'READY=1')
  service.stopping()
  t.equal(await next(/./), 'STOPPING=1')
  t.same(faults, [])
})

t.test('a killed notify shell is replaced', BUFFERED, async t => {
  const name = abstract('killed')
  const next = await receive(t, name)
  const { service } = manage(t, name, { WATCHDOG_USEC: '200000' })
  t.equal(await next(/./), 'READY=1')
  const shell = /** @type {number} */ (await shellOf(name))
  process.kill(shell, 'SIGKILL')
  await until(async () => ![null, shell].includes(await shellOf(name)), 'another shell')
  // Only the new one can send this, and what follows it.
  service.stopping()
  t.equal(await next(/^STOPPING/), 'STOPPING=1')
  t.equal(await next(/./), 'WATCHDOG=1')
})

/** @param {string} socket @returns {Promise<number | null>} the shell for it: a child of this process */
async function shellOf(socket) {
  const children = await readFile(`/proc/self/task/${process.pid}/children`, 'utf8')
  for (const pid of children.trim().split(' ')) {
    const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')
    if (environment.includes(`NOTIFY_SOCKET=${socket}`)) return Number(pid)
  }
  return null
}

t.test('a socket without a reader is logged once', BUFFERED, async t => {
  let checks = 0
  const socket = join(tmpdir(), `halley-none-${process.pid}`)
  const { faults } = manage(t, socket, { WATCHDOG_USEC: '40000' }, () => ++checks > 0)
  await until(() => checks >= 10 && faults.length > 0)
  t.match(faults, [/^systemd-notify failed: .*No such file or directory/])
})

t.test('without systemd-notify the gateway logs one line and runs', { buffered: true }, async t => {
  const env = { NOTIFY_SOCKET: abstract('none'), WATCHDOG_USEC: '40000', PATH: testdir(t) }
  const gateway = await startGateway(t, { ...config, workers: 1 }, { env })
  const line = await gateway.line(({ msg }) => /systemd/.test(msg))
  t.match(line, { level: 40, msg: /^systemd-notify is not installed: systemd is not notified/ })
  t.equal((await gateway.stop()).code, 0)
  t.equal(gateway.lines.filter(({ msg }) => /systemd/.test(msg)).length, 1)
})
