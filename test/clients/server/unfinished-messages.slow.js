// Memory of a worker whose clients send unfinished WebSocket messages before they connect.

import { readFileSync } from 'node:fs'
import net from 'node:net'
import t from 'tap'
import { skipDriver } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { memory } from '../../kit/memory.js'
import { unless } from '../../kit/needs.js'
import { until } from '../../kit/wait.js'
import { upgradeRequest } from './conformance/rig.js'

/** Clients of the first attack, and of the others. */
const MANY = 500
const SOME = 150
const MB = 1_000_000
const LIMIT = 65536
/** Of the worker, MB. The first attack warms it up, and leaves garbage of 500 MB. */
const MAX_GROWTH = 100
const MAX_FIRST_GROWTH = 200

/** @param {number} first byte */
function header(first, length) {
  const short = length < 126
  const head = Buffer.alloc(short ? 6 : 14)
  head[0] = first
  head[1] = 0x80 | (short ? length : 127)
  if (!short) head.writeBigUInt64BE(BigInt(length), 2)
  return head
}

const FIN = 0x80
const TEXT = 1
const CONTINUATION = 0
const PONG = 0xa

/** Copies of the bytes. */
const times = (count, ...bytes) => Array(count).fill(Buffer.concat(bytes))

const fragment = Buffer.concat([header(CONTINUATION, 1), Buffer.from('x')])
const begin = Buffer.concat([header(TEXT, 1), Buffer.from('x')])
/** A fragment of one byte, and control frames that fill a read of the server. */
const padded = [fragment, ...times(490, header(FIN | PONG, 125), Buffer.alloc(125))]

const FIRST = 'a message of 1 MB, far above the limit'

/** Data of a client. @type {Record<string, Buffer[]>} */
const attacks = {
  [FIRST]: [header(FIN | TEXT, MB), Buffer.alloc(MB - 1)],
  'a message of four times the limit': [header(FIN | TEXT, 4 * LIMIT), Buffer.alloc(4 * LIMIT - 1)],
  'fragments of 1 MB in all': [begin, ...times(100, header(CONTINUATION, 10_000), Buffer.alloc(10_000))],
  'fragments of one byte': [begin, ...times(60, ...times(1000, fragment))],
  'fragments of one byte between control frames': [begin, ...times(16, ...padded)],
}

/** Resolves when all is sent, or the server has closed the connection. */
async function attack(t, port, pieces) {
  const socket = net.connect(port, '127.0.0.1')
  socket.on('error', () => {})
  t.teardown(() => socket.destroy())
  const gone = new Promise(resolve => socket.once('close', resolve))
  socket.write(upgradeRequest('/connection/websocket'))
  await new Promise(resolve => socket.once('data', resolve))
  socket.resume()
  for (const piece of pieces) {
    if (socket.destroyed) return
    if (!socket.write(piece))
      await Promise.race([new Promise(resolve => socket.once('drain', resolve)), gone])
  }
}

/** Bytes in the kernel that the server of a port has not read. */
function unreadBytes(port) {
  const place = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  let bytes = 0
  for (const line of readFileSync('/proc/net/tcp', 'latin1').split('\n').slice(1)) {
    const [, local, , state, queues] = line.trim().split(/\s+/)
    // 01: established. Queues of sending and receiving, in hexadecimal.
    if (local?.endsWith(place) && state === '01') bytes += Number.parseInt(queues.slice(9), 16)
  }
  return bytes
}

const skip = unless(process.platform === 'linux', 'memory and queues are those of /proc')

for (const driver of /** @type {const} */ (['uws', 'node'])) {
  t.test(`${driver}: clients with unfinished messages`, { skip: skip || skipDriver(driver) }, async t => {
    const gateway = await startGateway(t, {
      workers: 1,
      http_server: { driver },
      client: { stale_close_delay: '1m' },
      websocket: { message_size_limit: LIMIT },
    })
    const [pid] = gateway.workerPids
    for (const [name, pieces] of Object.entries(attacks)) {
      const [clients, most] = name === FIRST ? [MANY, MAX_FIRST_GROWTH] : [SOME, MAX_GROWTH]
      await t.test(`${clients} of ${name}`, async t => {
        const before = memory(pid)
        for (let i = 0; i < clients; i += 50)
          await Promise.all(Array.from({ length: 50 }, () => attack(t, gateway.port, pieces)))
        await until(() => unreadBytes(gateway.port) === 0)
        // 503 while a worker is too busy for its samples.
        await until(async () => (await fetch(`${gateway.url}/health`)).status === 200)
        const growth = Math.round(memory(pid) - before)
        t.ok(growth < most, `the worker has grown by ${growth} MB`)
      })
    }
  })
}
