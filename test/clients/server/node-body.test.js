// Memory of unfinished request bodies, on the `node` driver.

import { once } from 'node:events'
import http from 'node:http'
import t from 'tap'
import { Body, createBodies, NodeExchange } from '../../../src/clients/server/node-exchange.js'
import { until } from '../../kit/wait.js'
import { post, RawClient } from './conformance/rig.js'

const BLOCK = 16_384

t.test('a body in packets of any size uses about its own size of memory', async t => {
  for (const sizes of [[1], [1, 5000], [BLOCK], [1, BLOCK], [BLOCK - 1, 2], [70_000, 3]]) {
    const bodies = createBodies()
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
  t.equal(new Body(createBodies()).take().length, 0)
})

t.test('the memory of all bodies is limited; further requests get 503', async t => {
  const bodies = createBodies(100_000)
  const host = /** @type {any} */ ({ bodies, unanswered: 0, closing: false, done() {} })
  const server = http.createServer((req, res) => {
    const exchange = new NodeExchange(req, res, host)
    exchange.body(80_000, body => exchange.reply(body === null ? 413 : 200, null, ''))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const begin = async () => {
    const client = await RawClient.connect(t, port)
    client.write(post('/', 'x'.repeat(70_000)).slice(0, -10_000))
    return client
  }
  const first = await begin()
  await until(() => bodies.bytes >= 60_000)
  const second = await begin()
  t.match(await second.until('\r\n\r\n'), /^HTTP\/1.1 503 .*Retry-After: \d/s)
  t.equal(bodies.bytes, 60_000)
  first.write('x'.repeat(10_000))
  t.match(await first.until('\r\n\r\n'), /^HTTP\/1.1 200 /)
  t.equal(bodies.bytes, 0)
  const third = await begin()
  await until(() => bodies.bytes >= 60_000)
  third.socket.destroy()
  await until(() => bodies.bytes === 0)
  for (const { socket } of [first, second]) socket.destroy()
})
