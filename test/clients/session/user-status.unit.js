// Writes of UserStatus: bounded for each user, worker and second; renewals in batches.

import t from 'tap'
import { errors } from '../../../src/base/errors.js'
import { UserStatus } from '../../../src/clients/session/user-status.js'
import { until } from '../../kit/wait.js'

/** @param {{fails?: boolean}} [store] */
function setUp(store = {}) {
  /** @type {{users: string[], change: any}[]} */
  const writes = []
  /** @type {Set<string>} */
  const users = new Set()
  const counts = { user_status_dropped: 0 }
  const status = new UserStatus({
    store: /** @type {any} */ ({
      async update(/** @type {string[]} */ users, /** @type {object} */ change) {
        writes.push({ users, change })
        if (store.fails) throw errors.internal
      },
    }),
    sessions: /** @type {any} */ ({
      users: () => users.keys(),
      get userCount() {
        return users.size
      },
      hasUser: (/** @type {string} */ user) => users.has(user),
    }),
    traffic: /** @type {any} */ ({ counts }),
    log: { warn() {} },
  })
  return { status, writes, users, counts, store }
}

t.test('requests within a second are one write, and one more for the last state', async t => {
  const { status, writes } = setUp()
  await Promise.all([status.update('a', undefined), status.update('a', undefined)])
  t.strictSame(writes, [{ users: ['a'], change: { active: true, online: true, state: undefined } }])
  const later = ['x', 'y', ''].map(state => status.update('a', state))
  t.equal(writes.length, 1)
  await Promise.all(later)
  t.strictSame(
    writes.map(({ change }) => change.state),
    [undefined, ''],
  )
  await status.update('b', 'z')
  t.equal(writes.length, 3, 'another user')
})

t.test('a failed write fails its requests, and the next one writes again', async t => {
  const { status, writes, store } = setUp({ fails: true })
  const both = await Promise.allSettled([status.update('a', undefined), status.update('a', undefined)])
  t.strictSame(
    both.map(result => /** @type {any} */ (result).reason),
    [errors.internal, errors.internal],
  )
  store.fails = false
  await status.update('a', undefined)
  t.equal(writes.length, 2)
})

t.test('connects are collected, each user once a second', async t => {
  const { status, writes } = setUp()
  for (const user of ['a', 'b', '', 'a', 'x'.repeat(256)]) status.connected(user)
  await until(() => writes.length > 0)
  status.connected('a')
  status.disconnected('b')
  await status.end()
  t.strictSame(writes, [{ users: ['a', 'b'], change: { online: true } }])
})

t.test('a disconnect is written when no other connection of the user is left', async t => {
  const { status, writes, users } = setUp()
  users.add('a')
  status.disconnected('a')
  await status.end()
  t.strictSame(writes, [])
  users.delete('a')
  status.disconnected('a')
  await status.end()
  t.strictSame(writes, [{ users: ['a'], change: { online: true } }])
})

t.test('many users are written in batches of 1,000', async t => {
  const { status, writes } = setUp()
  for (let i = 0; i < 2500; i++) status.connected(`u${i}`)
  await status.end()
  t.strictSame(
    writes.map(({ users }) => users.length),
    [1000, 1000, 500],
  )
})

t.test('all connected users are renewed once a minute', async t => {
  const { status, writes, users } = setUp()
  for (let i = 0; i < 130; i++) users.add(`u${i}`)
  for (let tick = 0; tick < 60; tick++) status.tick()
  t.strictSame(writes.flatMap(write => write.users).length, 3, 'none within the first minute')
  writes.length = 0
  for (let tick = 0; tick < 60; tick++) status.tick()
  const renewed = writes.flatMap(write => write.users)
  t.equal(new Set(renewed).size, renewed.length, 'each once')
  t.equal(Math.max(...writes.map(write => write.users.length)), 3)
  for (let round = 0; round < 3; round++) {
    writes.length = 0
    for (let tick = 0; tick < 60; tick++) status.tick()
    t.equal(new Set(writes.flatMap(write => write.users)).size, 130)
  }
})

t.test('failed updates of online are dropped and counted', async t => {
  const { status, counts } = setUp({ fails: true })
  status.connected('a')
  status.connected('b')
  await status.end()
  t.equal(counts.user_status_dropped, 2)
})
