// Sweeps of the uws server over its connections. Fake sockets make each visit slow: a sweep needs many slices, and
// connections open and close between them.

import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { UwsWebSockets } from '../../../src/clients/server/uws-websockets.js'
import { until } from '../../kit/wait.js'

const MAX_BUFFERED = 1000

class FakeSocket {
  /** Calls of `getBufferedAmount`. */
  visits = 0
  unread = 0
  /** Of `send`: 0, some bytes wait; 1, all are written, or the socket is corked. */
  sendResult = 0
  getBufferedAmount() {
    this.visits++
    // 20 µs.
    for (const end = performance.now() + 0.02; performance.now() < end; );
    return this.unread
  }
  getTopics() {
    return []
  }
  send() {
    return this.sendResult
  }
  end() {}
}

function setUp() {
  let behavior
  const app = {
    ws: (_path, given) => {
      behavior = given
    },
    publish() {},
  }
  const server = new UwsWebSockets(/** @type {any} */ ({}), /** @type {any} */ (app), /** @type {any} */ ({}))
  const overflowed = []
  server.websocket('/', {
    maxMessage: 1000,
    maxBuffered: MAX_BUFFERED,
    compression: null,
    protocols: [],
    upgrade: () => ({}),
    open() {},
    message: connection => server.send(connection, Buffer.alloc(10), false),
    close() {},
    pong() {},
    overflow(connection) {
      overflowed.push(connection)
      server.close(connection, 3008, 'slow')
    },
  })
  const open = () => {
    const socket = new FakeSocket()
    behavior.open(socket)
    return socket
  }
  const close = socket => behavior.close(socket, 1006, new ArrayBuffer(0))
  const receive = socket => behavior.message(socket, new ArrayBuffer(1), false)
  return { server, overflowed, open, close, receive }
}

t.test('a sweep yields, visits all connections and finds slow ones while others open and close', async t => {
  const { server, overflowed, open, close } = setUp()
  const stay = Array.from({ length: 3000 }, open)
  const closing = Array.from({ length: 200 }, open)
  const slow = stay.filter((_, i) => i % 300 === 0)
  for (const socket of slow) socket.unread = MAX_BUFFERED + 1
  server.publish('x', Buffer.alloc(10), false)
  server.sweep()
  t.equal(stay.filter(({ visits }) => visits > 0).length, 0, 'none within the call')
  let turns = 0
  for (; turns <= 1000 && stay.some(({ visits }) => visits === 0); turns++) {
    for (let i = 0; i < 3; i++) {
      const gone = closing.pop()
      if (gone) close(gone)
      open()
    }
    await nextTurn()
  }
  t.ok(turns > 5 && turns < 1000, `${turns} turns`)
  t.equal(new Set(overflowed).size, slow.length)
  t.equal(overflowed.length, slow.length, 'each one once')
  await nextTurn()
  t.ok(server.backlog().bytes >= slow.length * (MAX_BUFFERED + 1))
})

t.test('a publish during a sweep starts another sweep', async t => {
  const { server, overflowed, open } = setUp()
  const sockets = Array.from({ length: 2000 }, open)
  server.publish('x', Buffer.alloc(MAX_BUFFERED), false)
  await until(() => sockets[1999].visits > 0)
  t.equal(sockets[0].visits, 0, 'the sweep has not ended')
  sockets[1999].unread = MAX_BUFFERED + 1
  server.publish('x', Buffer.alloc(MAX_BUFFERED), false)
  await until(() => overflowed.length > 0)
  t.equal(overflowed[0], sockets[1999])
})

t.test('a send beyond maxBuffered checks only its own connection', async t => {
  const { server, overflowed, open } = setUp()
  const sockets = Array.from({ length: 100 }, open)
  sockets[50].unread = MAX_BUFFERED + 1
  server.send(sockets[50], Buffer.alloc(10), false)
  server.send(sockets[50], Buffer.alloc(10), false)
  t.same(overflowed, [], 'not inside the call')
  await nextTurn()
  await nextTurn()
  t.equal(overflowed.length, 1)
  t.equal(sockets.filter(({ visits }) => visits > 0).length, 1)
})

t.test('after corked replies a sweep visits their receivers, or all if one of them is slow', async t => {
  const { server, overflowed, open, close, receive } = setUp()
  const sockets = Array.from({ length: 100 }, open)
  for (const socket of sockets) socket.sendResult = 1
  for (const socket of sockets.slice(0, 3)) {
    receive(socket)
    receive(socket)
  }
  close(sockets[2])
  server.sweep()
  await nextTurn()
  await nextTurn()
  t.same(
    sockets.map(({ visits }) => visits),
    sockets.map((_, i) => Number(i < 2)),
  )
  sockets[50].unread = MAX_BUFFERED + 1
  receive(sockets[50])
  server.sweep()
  await until(() => overflowed.length > 0)
  t.same(overflowed, [sockets[50]])
})

t.test('after corked replies to more than 1024 connections a sweep visits all', async t => {
  const { server, overflowed, open, receive } = setUp()
  const sockets = Array.from({ length: 1100 }, open)
  for (const socket of sockets) {
    socket.sendResult = 1
    receive(socket)
  }
  sockets[1090].unread = MAX_BUFFERED + 1
  server.sweep()
  await until(() => overflowed.length > 0)
  t.same(overflowed, [sockets[1090]])
})
