// Bodies of requests that arrive, on the `node` driver: what they hold.

import { once } from 'node:events'
import http from 'node:http'
import t from 'tap'
import { Bodies, Body, NodeExchange } from '../../../src/clients/server/node-exchange.js'
import { until } from '../../kit/wait.js'
import { RawClient } from './conformance/rig.js'

const BLOCK = 16_384

t.test('pieces of any size make the same body, in hardly more memory', async t => {
  for (const sizes of [[1], [1, 5000], [BLOCK], [1, BLOCK], [BLOCK - 1, 2], [70_000, 3]]) {
    const bodies = new Bodies()
    const body = new Body(bodies)
    const pieces = []
    for (let n = 0, sum = 0; sum < 60_000; n++) {
      const piece = Buffer.alloc(sizes[n % sizes.length], String(n % 10))
      pieces.push(piece)
      sum += piece.length
      body.add(piece)
    }
    const whole = Buffer.concat(pieces)
    t.equal(bodies.bytes, whole.length)
    t.ok(body.capacity < whole.length + BLOCK, `${body.capacity} bytes for ${whole.length}`)
    t.ok(body.take().equals(whole), `pieces of ${sizes}`)
    t.equal(bodies.bytes, 0)
  }
  t.equal(new Body(new Bodies()).take().length, 0)
})

t.test('bodies of all requests are bounded: one too many is answered with 503', async t => {
  const bodies = new Bodies(100_000)
  const host = /** @type {any} */ ({ bodies, unanswered: 0, closing: false, done() {} })
  const server = http.createServer((req, res) => {
    const exchange = new NodeExchange(req, res, host)
    exchange.body(80_000, body => exchange.reply(body === null ? 413 : 200, null, ''))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const head = 'POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 70000\r\n\r\n'
  const first = await RawClient.connect(t, port)
  first.write(head + 'x'.repeat(60_000))
  await until(() => bodies.bytes >= 60_000)
  const second = await RawClient.connect(t, port)
  second.write(head + 'x'.repeat(60_000))
  t.match(await second.until('\r\n\r\n'), /^HTTP\/1.1 503 .*Retry-After: \d/s)
  t.equal(bodies.bytes, 60_000)
  first.write('x'.repeat(10_000))
  t.match(await first.until('\r\n\r\n'), /^HTTP\/1.1 200 /)
  t.equal(bodies.bytes, 0)
  const third = await RawClient.connect(t, port)
  third.write(head + 'x'.repeat(60_000))
  await until(() => bodies.bytes >= 60_000)
  third.socket.destroy()
  await until(() => bodies.bytes === 0)
  for (const { socket } of [first, second]) socket.destroy()
})
