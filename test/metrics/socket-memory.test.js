import { connect, createServer } from 'node:net'
import t from 'tap'
import { parseQueues, SOCKET_BYTES, SocketMemory } from '../../src/metrics/socket-memory.js'
import { until } from '../kit/wait.js'

const linux = process.platform === 'linux' ? {} : { skip: 'this machine has no /proc' }
const MB = 1024 * 1024

const ROWS = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F40 00000000:0000 0A 00000000:00000003 00:00000000 00000000     0        0 1 1 000 100 0 0 10 0
   1: 0100007F:1F40 0100007F:A001 01 00000100:00000010 01:00000014 00000000     0        0 2 2 000 20 4 30 10 -1
   2: 0100007F:A001 0100007F:1F40 01 00000000:00100000 00:00000000 00000000     0        0 3 1 000 20 4 1 10 -1
   3: 0100007F:1F40 0100007F:A002 08 00000000:00000000 00:00000000 00000000     0        0 4 1 000 20 4 1 10 -1
   4: 0100007F:1F40 0100007F:A003 06 00000000:00000000 03:00000014 00000000     0        0 0 3 000
`
const ROWS6 = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt
   0: 0000000000000000FFFF00000100007F:1F41 0000000000000000FFFF00000100007F:A001 01 00000200:00000000 01:00000014 00000000
`

/** A server that reads nothing, and clients of it. @param {any} t @param {number} count of clients */
async function listening(t, count) {
  /** @type {import('node:net').Socket[]} */
  const accepted = []
  const server = createServer(socket => accepted.push(socket.pause().on('error', () => {})))
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(null)))
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const clients = await Promise.all(
    Array.from({ length: count }, async () => {
      const socket = connect(port, '127.0.0.1').on('error', () => {})
      await new Promise(resolve => socket.once('connect', resolve))
      return socket.pause()
    }),
  )
  await until(() => accepted.length >= count)
  t.teardown(() => {
    for (const socket of [...accepted, ...clients]) socket.destroy()
    server.close()
  })
  return { port, accepted, clients }
}

/** @param {SocketMemory} memory @param {(bytes: number) => boolean} matches */
async function reads(memory, matches) {
  let bytes = null
  await until(() => (bytes = memory.read()) !== null && matches(bytes))
  return bytes
}

t.test('counts connections to our ports, without listeners, peers and TIME_WAIT', async t => {
  t.same(parseQueues(ROWS, new Set([8000])), { sockets: 2, bytes: 0x110 })
  t.same(parseQueues(ROWS6, new Set([8000, 8001])), { sockets: 1, bytes: 0x200 })
  t.same(parseQueues(ROWS, new Set([9000])), { sockets: 0, bytes: 0 })
})

t.test('outside Linux, all values are null', async t => {
  const memory = new SocketMemory([8000], { proc: t.testdir() })
  t.equal(memory.read(), null)
  await memory.close()
  t.equal(memory.read(), null)
})

t.test('queued bytes for clients of the gateway count, those of other programs do not', linux, async t => {
  const other = await listening(t, 4)
  const { port, accepted } = await listening(t, 4)
  const memory = new SocketMemory([port], { pauseFactor: 0 })
  t.teardown(() => memory.close())
  t.equal(await reads(memory, () => true), SOCKET_BYTES, 'nothing is queued')
  for (const socket of other.accepted) socket.write(Buffer.alloc(8 * MB))
  accepted[0].write(Buffer.alloc(MB / 2))
  const bytes = await reads(memory, bytes => bytes > SOCKET_BYTES)
  // With thousands of other sockets, one read covers only some of ours.
  t.ok(bytes <= SOCKET_BYTES + MB / 2, `${bytes} bytes`)
  accepted[0].destroy()
  await reads(memory, bytes => bytes === SOCKET_BYTES)
})
