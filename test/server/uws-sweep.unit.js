// The sweep of the uws server over its connections, which is done in slices: connections that come and go between two
// slices. The library's part is played here, so that a look at a connection takes long.

import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { UwsWebSockets } from '../../src/server/uws-websockets.js'

const MAX_BUFFERED = 1000

class Handle {
  visits = 0
  unread = 0
  /** Result of `send`: 1, all has been written, or seems so. */
  sent = 0
  getBufferedAmount() {
    this.visits++
    for (const end = performance.now() + 0.02; performance.now() < end; );
    return this.unread
  }
  getTopics() {
    return []
  }
  send() {
    return this.sent
  }
  end() {}
}

function setUp() {
  /** @type {any} */
  let library
  const app = {
    ws: (/** @type {string} */ _path, /** @type {any} */ behavior) => {
      library = behavior
    },
    publish() {},
  }
  const server = new UwsWebSockets(/** @type {any} */ ({}), /** @type {any} */ (app), /** @type {any} */ ({}))
  /** @type {Handle[]} */
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
      overflowed.push(/** @type {any} */ (connection))
      server.close(connection, 3008, 'slow')
    },
  })
  const open = () => {
    const handle = new Handle()
    library.open(handle)
    return handle
  }
  const leave = (/** @type {Handle} */ handle) => library.close(handle, 1006, new ArrayBuffer(0))
  const receive = (/** @type {Handle} */ handle) => library.message(handle, new ArrayBuffer(1), false)
  return { server, overflowed, open, leave, receive }
}

t.test('a sweep gives way, skips no connection, and finds the slow ones, whoever comes and goes', async t => {
  const { server, overflowed, open, leave } = setUp()
  const stay = Array.from({ length: 3000 }, open)
  const leaving = Array.from({ length: 200 }, open)
  const slow = stay.filter((_, i) => i % 300 === 0)
  for (const handle of slow) handle.unread = MAX_BUFFERED + 1
  server.publish('x', Buffer.alloc(10), false)
  server.sweep()
  t.equal(stay.filter(({ visits }) => visits > 0).length, 0, 'nothing within the call')
  let turns = 0
  for (; stay.some(({ visits }) => visits === 0); turns++) {
    if (turns > 1000) break
    for (let i = 0; i < 3; i++) {
      const gone = leaving.pop()
      if (gone) leave(gone)
      open()
    }
    await nextTurn()
  }
  t.ok(turns > 5 && turns < 1000, `${turns} turns`)
  t.equal(new Set(overflowed).size, slow.length)
  t.equal(overflowed.length, slow.length, 'each one time')
  await nextTurn()
  t.ok(server.backlog().bytes >= slow.length * (MAX_BUFFERED + 1))
})

t.test('what is published during a sweep leads to the next one', async t => {
  const { server, overflowed, open } = setUp()
  const handles = Array.from({ length: 2000 }, open)
  server.publish('x', Buffer.alloc(MAX_BUFFERED), false)
  while (handles[1999].visits === 0) await nextTurn()
  t.equal(handles[0].visits, 0, 'under way')
  handles[1999].unread = MAX_BUFFERED + 1
  server.publish('x', Buffer.alloc(MAX_BUFFERED), false)
  while (overflowed.length === 0) await nextTurn()
  t.equal(overflowed[0], handles[1999])
})

t.test('a message that does not fit into the limit of its client: only that one is looked at', async t => {
  const { server, overflowed, open } = setUp()
  const handles = Array.from({ length: 100 }, open)
  handles[50].unread = MAX_BUFFERED + 1
  server.send(handles[50], Buffer.alloc(10), false)
  server.send(handles[50], Buffer.alloc(10), false)
  t.same(overflowed, [], 'not within the call')
  await nextTurn()
  await nextTurn()
  t.same(overflowed.length, 1)
  t.equal(handles.filter(({ visits }) => visits > 0).length, 1)
})

t.test(
  'replies, which leave after their callback: a sweep looks at their receivers, at others if one is slow',
  async t => {
    const { server, overflowed, open, leave, receive } = setUp()
    const handles = Array.from({ length: 100 }, open)
    for (const handle of handles) handle.sent = 1
    for (const handle of handles.slice(0, 3)) {
      receive(handle)
      receive(handle)
    }
    leave(handles[2])
    server.sweep()
    await nextTurn()
    await nextTurn()
    t.same(
      handles.flatMap(({ visits }, i) => (visits > 0 ? [[i, visits]] : [])),
      [
        [0, 1],
        [1, 1],
      ],
    )
    handles[50].unread = MAX_BUFFERED + 1
    receive(handles[50])
    server.sweep()
    while (overflowed.length === 0) await nextTurn()
    t.same(overflowed, [handles[50]])
  },
)

t.test('replies to more connections than a sweep looks at alone: it looks at all', async t => {
  const { server, overflowed, open, receive } = setUp()
  const handles = Array.from({ length: 1100 }, open)
  for (const handle of handles) {
    handle.sent = 1
    receive(handle)
  }
  handles[1090].unread = MAX_BUFFERED + 1
  server.sweep()
  while (overflowed.length === 0) await nextTurn()
  t.same(overflowed, [handles[1090]])
})
