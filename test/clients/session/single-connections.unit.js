// Which connection of a user stays, in every order in which claims, their confirmations and their effects may arrive.

import t from 'tap'
import { SessionExtra } from '../../../src/clients/session/extra.js'
import { SingleConnections } from '../../../src/clients/session/single-connections.js'

/** Deterministic. */
function randomOf(seed) {
  let state = seed
  return (/** @type {number} */ below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state % below
  }
}

/** Sessions of one user, each in a worker of its own. @param {number} count */
function start(count) {
  /** @type {{id: string, at: number, late: boolean, resolve: (times: number[]) => void}[]} */
  const sent = []
  const workers = Array.from({ length: count }, (_, i) => {
    const control = {
      order: (_op, { claim }, { at, late }) =>
        new Promise(resolve => sent.push({ id: claim, at, late, resolve })),
    }
    const singles = new SingleConnections(/** @type {any} */ (control), /** @type {any} */ ({ warn() {} }))
    const session = /** @type {any} */ ({
      ...{ id: `c${i}`, user: 'u', since: i, closed: false, extra: null },
      needExtra: () => (session.extra ??= new SessionExtra()),
      close: () => {
        session.closed = true
      },
    })
    singles.claim(session)
    return { singles, session }
  })
  return { sent, workers }
}

t.test('exactly one connection stays: the one with the latest effect', async t => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = randomOf(seed)
    const count = 2 + random(3)
    const { sent, workers } = start(count)
    // Their places in the log; a late order has an earlier time than its place.
    const log = sent.toSorted(() => random(3) - 1)
    const orders = log.map(({ id, resolve }, place) => ({
      id,
      resolve,
      time: 100 + place - (random(3) === 0 ? 50 : 0),
    }))
    const best = orders.toSorted((a, b) => a.time - b.time || (a.id < b.id ? -1 : 1)).at(-1)?.id
    // Each worker reads the log at its own pace, and gets its confirmation at any time.
    const read = workers.map(() => 0)
    const confirmed = new Set()
    while (read.some(place => place < count) || confirmed.size < count) {
      const i = random(count)
      const { singles, session } = workers[i]
      const own = orders.find(({ id }) => id === session.id)
      if (own && !confirmed.has(i) && random(3) === 0) {
        confirmed.add(i)
        own.resolve([own.time])
        await null
        await null
      } else if (read[i] < count) {
        const { id, time } = orders[read[i]++]
        if (!session.closed && singles.loses(session, id, time, Infinity)) session.close()
      }
    }
    await new Promise(resolve => setImmediate(resolve))
    const left = workers.filter(({ session }) => !session.closed).map(({ session }) => session.id)
    if (left.join() !== best) return t.fail(`seed ${seed}: ${left} instead of ${best}`)
  }
  t.pass('in 300 histories')
})

t.test('a connection without a claim yields to newer ones', t => {
  const { workers } = start(1)
  const session = /** @type {any} */ ({ id: 'old', since: 5, extra: null })
  t.equal(workers[0].singles.loses(session, 'c0', 100, Infinity), true)
  t.equal(workers[0].singles.loses(session, 'c0', 100, 6), true)
  t.equal(workers[0].singles.loses(session, 'c0', 100, 5), false)
  t.end()
})

t.test('a connection whose order was lost after its confirmation yields to newer ones', async t => {
  const { sent, workers } = start(2)
  sent[0].resolve([100])
  await new Promise(resolve => setImmediate(resolve))
  t.equal(workers[0].singles.loses(workers[0].session, 'c1', 101, Infinity), true)
})
