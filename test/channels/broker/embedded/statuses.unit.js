// Status of users in the primary: expiry, eviction, snapshot.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { Snapshot } from '../../../../src/channels/broker/embedded/snapshot.js'
import { Statuses } from '../../../../src/channels/broker/embedded/statuses.js'
import { Store } from '../../../../src/channels/broker/embedded/store.js'
import { tempDir } from '../../../kit/folders.js'
import { createTestLog } from './rig.js'

const ACTIVE = { active: true }
const ONLINE = { online: true }

t.test('each update renews the expiry', async t => {
  const statuses = new Statuses()
  statuses.update('a', ACTIVE, 100, 110)
  statuses.update('b', ONLINE, 101, 111)
  statuses.update('a', ONLINE, 105, 115)
  t.match(statuses.get('a', 114), { active: 100, online: 105, state: '' })
  t.equal(statuses.get('b', 111), undefined)
  statuses.sweep(111)
  t.equal(statuses.size, 1)
  statuses.update('a', ONLINE, 120, 130)
  t.match(statuses.get('a', 120), { active: 0, online: 120 }, 'nothing of an expired one is left')
})

t.test('the least recently updated user is dropped for a new one', async t => {
  let dropped = 0
  const statuses = new Statuses(() => dropped++, 3)
  for (const [i, user] of ['a', 'b', 'c', 'a'].entries()) statuses.update(user, ONLINE, 100 + i, 1000)
  t.equal(dropped, 0)
  statuses.update('d', { active: true, state: 'x' }, 110, 1000)
  t.equal(dropped, 1)
  t.strictSame(
    [...statuses].map(({ user }) => user),
    ['c', 'a', 'd'],
  )
  statuses.remove('c')
  statuses.remove('never')
  t.equal(statuses.size, 2)
})

t.test('a snapshot keeps unexpired ones in their order', async t => {
  const file = join(tempDir(t), 'snapshot')
  let now = 1_700_000_000
  const clock = () => now * 1000
  const newStore = () => new Store({ maxBytes: 1e6, clock, onFull() {}, onLeave() {} })
  const log = /** @type {any} */ (createTestLog())
  const store = newStore()
  store.statuses.update('ü 🎈', { active: true, online: true, state: 'busy' }, now, now + 100)
  store.statuses.update('short', ONLINE, now, now + 10)
  store.statuses.update('b', ONLINE, now + 1, now + 100)
  await rm(file, { force: true })
  const first = new Snapshot(file, 1e6, log)
  await first.take(newStore)
  await first.write(store)
  now += 50
  const restored = await new Snapshot(file, 1e6, log).take(newStore)
  const fields = [...(restored?.statuses ?? [])].map(({ user, active, online, state, expireAt }) => ({
    ...{ user, active, online, state, expireAt },
  }))
  t.strictSame(fields, [
    { user: 'ü 🎈', active: now - 50, online: now - 50, state: 'busy', expireAt: now + 50 },
    { user: 'b', active: 0, online: now - 49, state: '', expireAt: now + 50 },
  ])
})
