import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import WebSocket from 'ws'
import { SOCKET_BYTES } from '../../src/metrics/socket-memory.js'
import { startGateway } from '../kit/gateway.js'
import { StatsWatcher, socketPath } from './watcher.js'

const CLIENTS = 1010
const MB = 1024 * 1024
const options = process.platform === 'linux' ? { timeout: 60_000 } : { skip: 'this machine has no /proc' }

t.test('what another program takes of the kernel is no memory of ours', options, async t => {
  const socket = socketPath()
  const gateway = await startGateway(t, { workers: 1, stats: { socket }, client: { insecure: true } })
  const watcher = await StatsWatcher.open(t, socket)
  /** @type {WebSocket[]} */
  const clients = []
  t.teardown(() => {
    for (const client of clients) client.terminate()
  })
  while (clients.length < CLIENTS) {
    const some = Array.from({ length: 101 }, () => new WebSocket(gateway.ws))
    clients.push(...some)
    await Promise.all(some.map(client => once(client, 'open')))
    // The time for connect is over before the test is.
    for (const client of some) client.send('{"id":1,"connect":{}}')
  }
  const known = (/** @type {any} */ { capacity, totals }) =>
    capacity.kernel_per_connection !== null && totals.connections.open === CLIENTS
  const before = await watcher.until(known)
  const neighbour = fork(fileURLToPath(new URL('./neighbour.js', import.meta.url)))
  // It takes its files away when it is let go.
  t.teardown(() => {
    neighbour.disconnect()
    return once(neighbour, 'exit')
  })
  await once(neighbour, 'message')
  const from = before.seq
  const after = await watcher.until(
    snapshot => known(snapshot) && snapshot.seq > from + 2 && slab(snapshot) - slab(before) > 20 * MB,
  )
  const grown = slab(after) - slab(before)
  t.comment(`slab and TCP memory grew by ${Math.round(grown / MB)} MB,`)
  t.comment(`${Math.round(grown / CLIENTS)} bytes for each of ${CLIENTS} connections that stood still`)
  t.comment(`told: ${before.capacity.kernel_per_connection}, ${after.capacity.kernel_per_connection}`)
  for (const { capacity, totals } of [before, after]) {
    const each = Number(capacity.kernel_per_connection)
    t.ok(each >= SOCKET_BYTES && each < SOCKET_BYTES + 1000, `${each} bytes`)
    t.ok(Number(totals.memory.kernel) < CLIENTS * (SOCKET_BYTES + 1000), `${totals.memory.kernel} bytes`)
  }
})

/** @param {import('../../src/metrics/schema.js').Snapshot} snapshot what used to be told as ours */
function slab({ machine }) {
  return Number(machine.memory.slab) + Number(machine.sockets?.tcp.memory)
}
