// Workers with the socket server `node` share a listening socket: a stopped worker holds no new connections.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { connect } from 'node:net'
import t from 'tap'
import { config, healthy } from '../../kit/fleet.js'
import { startGateway } from '../../kit/gateway.js'
import { unless } from '../../kit/needs.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'

const LINUX = { skip: unless(process.platform === 'linux', 'requires /proc') }
/** As with `liveness_timeout: 0`: the stopped worker is not replaced. */
const node = { ...config, http_server: { driver: 'node' }, worker: { liveness_timeout: 0 } }

/** @param {number} pid @param {number} port @returns {number} its established connections on the port */
function connections(pid, port) {
  const place = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const established = new Set()
  for (const line of readFileSync('/proc/net/tcp', 'latin1').split('\n').slice(1)) {
    const [, local, , state, , , , , , inode] = line.trim().split(/\s+/)
    // 01: established, 08: closed by the client.
    if (local?.endsWith(place) && (state === '01' || state === '08')) established.add(`socket:[${inode}]`)
  }
  const folder = `/proc/${pid}/fd`
  return readdirSync(folder).filter(fd => {
    try {
      return established.has(readlinkSync(`${folder}/${fd}`))
    } catch {
      return false
    }
  }).length
}

/** @param {any} gateway @returns {Promise<string>} when it is answered or closed */
function request(gateway) {
  return new Promise(resolve => {
    const socket = connect(gateway.port, '127.0.0.1', () =>
      socket.write('GET /health HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n'),
    )
    socket.on('error', () => {})
    socket.once('data', () => resolve('answered'))
    socket.once('close', () => resolve('closed'))
    socket.resume()
  })
}

const open = (gateway, count) => Promise.all(Array.from({ length: count }, () => RawClient.open(gateway.ws)))

t.test('two workers share a port', LINUX, async t => {
  const gateway = await startGateway(t, node)
  const { port } = gateway
  const primary = /** @type {number} */ (gateway.process.pid)
  await healthy(gateway)
  const [first, second] = gateway.workerPids
  process.kill(second, 'SIGSTOP')
  t.teardown(() => {
    try {
      process.kill(second, 'SIGCONT')
    } catch {}
  })
  const before = connections(second, port)

  await t.test('a stopped worker gets no new connection', async t => {
    const outcomes = await Promise.all(Array.from({ length: 60 }, () => request(gateway)))
    t.same(new Set(outcomes), new Set(['answered']), 'the other worker responds to all')
    t.equal(connections(second, port), before)
    t.equal(connections(primary, port), 0, 'the primary has no connection')
  })

  await t.test('a worker with far more connections leaves new ones to the other', async t => {
    const clients = await open(gateway, 250)
    t.equal(connections(first, port), clients.length)
    process.kill(second, 'SIGCONT')
    // While both accept, either may get all simultaneous connections: for a while it is always the second.
    let unshared = 0
    await until(async () => {
      const own = connections(first, port)
      clients.push(...(await open(gateway, 10)))
      unshared = connections(first, port) === own ? unshared + 1 : 0
      return unshared === 5
    })
    t.ok(connections(second, port) >= 50)
    for (const { socket } of clients) socket.terminate()
  })

  await t.test('a stopped and killed worker leaves no open connection in the primary', async t => {
    process.kill(second, 'SIGSTOP')
    const outcomes = Array.from({ length: 60 }, () => request(gateway))
    process.kill(second, 'SIGKILL')
    for (const outcome of await Promise.all(outcomes)) t.match(outcome, /answered|closed/)
    await gateway.line(({ msg }) => msg === 'worker died')
    await healthy(gateway)
    t.equal(connections(primary, port), 0)
  })
})

t.test('connections to a killed only worker are answered by its replacement', LINUX, async t => {
  const gateway = await startGateway(t, { ...node, workers: 1 })
  await healthy(gateway)
  const [stopped] = gateway.workerPids
  process.kill(stopped, 'SIGSTOP')
  const outcomes = Array.from({ length: 60 }, () => request(gateway))
  process.kill(stopped, 'SIGKILL')
  for (const outcome of await Promise.all(outcomes)) t.match(outcome, /answered|closed/)
  await healthy(gateway)
  t.equal(connections(/** @type {number} */ (gateway.process.pid), gateway.port), 0)
})
