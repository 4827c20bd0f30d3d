// singleflight: which reads share a call of the engine.

import t from 'tap'
import { shareReads } from '../../../src/channels/broker/shared-reads.js'

/** An engine whose calls wait until the test settles them. */
function setUp() {
  /** @type {{args: any[], resolve: (value: any) => void, reject: (error: Error) => void}[]} */
  const calls = []
  const call = (/** @type {any[]} */ ...args) =>
    new Promise((resolve, reject) => void calls.push({ args, resolve, reject }))
  const pubsub = /** @type {any} */ ({ history: call })
  const presence = /** @type {any} */ ({ list: call, stats: call })
  shareReads(pubsub, presence)
  return { calls, pubsub, presence }
}

const filter = { limit: 10 }
const turn = () => new Promise(resolve => setImmediate(resolve))

t.test('100 equal reads at once are two calls', async t => {
  const { calls, pubsub } = setUp()
  const reads = Array.from({ length: 100 }, () => pubsub.history('a', { ...filter }, 1))
  t.equal(calls.length, 1)
  calls[0].resolve('first')
  await turn()
  t.equal(calls.length, 2)
  calls[1].resolve('second')
  t.strictSame(await Promise.all(reads), ['first', ...Array(99).fill('second')])
  pubsub.history('a', filter, 1)
  t.equal(calls.length, 3, 'nothing is kept')
})

t.test('a read never joins a call that has begun before it', async t => {
  const { calls, pubsub } = setUp()
  const reads = [pubsub.history('a', filter, 1)]
  for (let i = 0; i < 3; i++) {
    reads.push(pubsub.history('a', filter, 1))
    calls[i].resolve(i)
    await turn()
    t.equal(calls.length, i + 2)
  }
  calls[3].resolve(3)
  t.strictSame(await Promise.all(reads), [0, 1, 2, 3])
})

t.test('different reads do not share', async t => {
  const { calls, pubsub, presence } = setUp()
  const filters = [
    { limit: 10 },
    { limit: 11 },
    { limit: 10, sinceOffset: 0 },
    { limit: 10, sinceOffset: 0, sinceEpoch: 'e' },
    { limit: 10, reverse: true },
    { limit: 10, maxBytes: 5 },
  ]
  for (const one of filters) pubsub.history('a', one, 1)
  pubsub.history('a', filter, 2)
  pubsub.history('b', filter, 1)
  presence.list('a')
  presence.stats('a')
  presence.list('b')
  t.equal(calls.length, filters.length + 5)
})

t.test('an error is that of all who share the call', async t => {
  const { calls, presence } = setUp()
  const [first, ...others] = [presence.list('a'), presence.list('a'), presence.list('a')]
  calls[0].reject(new Error('down'))
  await t.rejects(first, { message: 'down' })
  await turn()
  calls[1].reject(new Error('still down'))
  for (const read of others) await t.rejects(read, { message: 'still down' })
  presence.list('a')
  t.equal(calls.length, 3)
})
