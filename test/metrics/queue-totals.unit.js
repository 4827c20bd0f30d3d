import t from 'tap'
import { QueueTotals } from '../../src/metrics/queue-totals.js'

const orders = {
  name: 'orders',
  type: 'kafka',
  processed: 10,
  skipped: { malformed: 1 },
  errors: 2,
  retries: 2,
  age: 40,
  backoff: 20,
  lag: 7,
}
const backend = {
  name: 'backend',
  sent: 5,
  confirmed: 3,
  returned: 1,
  refused: 1,
  dropped: 4,
  queued: 6,
  queued_bytes: 600,
  age: 50,
  up: false,
}

t.test('without consumers and republishers there are no values', async t => {
  const totals = new QueueTotals(() => ({ unreached: [], handedBefore: [] }))
  t.equal(totals.consumers, null)
  t.equal(totals.republishers, null)
  totals.update(1, { consumers: [], republish: [backend] }, {})
  t.equal(totals.consumers, null, 'only republishers')
  t.same(totals.republishers, [{ ...backend, unreached: 0, abandoned: 0 }])
})

t.test('while the queue process is replaced, counts stay and its old state is not shown', async t => {
  const totals = new QueueTotals(() => ({ unreached: [], handedBefore: [] }))
  totals.update(1, { consumers: [orders], republish: [{ ...backend, up: true }] }, {})
  totals.ended()
  t.same(totals.consumers?.list, [{ ...orders, age: 0, backoff: 0, lag: null }])
  t.match(totals.republishers, [{ ...backend, queued: 0, queued_bytes: 0, age: 0, up: false }])
})

t.test('counts continue across processes, states are those of the new one', async t => {
  const totals = new QueueTotals(() => ({ unreached: [], handedBefore: [] }))
  totals.update(1, { consumers: [{ ...orders, processed: 4 }], republish: [backend] }, { 107: 1 })
  totals.update(1, { consumers: [orders], republish: [backend] }, { 107: 1 })
  const fresh = { ...orders, processed: 1, skipped: { unknown_method: 3 }, errors: 0, retries: 0 }
  const rest = { age: 0, backoff: 0, lag: null }
  const idle = { queued: 0, queued_bytes: 0, age: 0, up: true }
  totals.update(2, { consumers: [{ ...fresh, ...rest }], republish: [{ ...backend, ...idle }] }, {})
  const skipped = { malformed: 1, unknown_method: 3 }
  t.same(totals.consumers, { list: [{ ...orders, processed: 11, skipped, ...rest }], api_errors: { 107: 2 } })
  const twice = { sent: 10, confirmed: 6, returned: 2, refused: 2, dropped: 8 }
  t.same(totals.republishers, [{ ...backend, ...twice, unreached: 0, abandoned: 0, ...idle }])
})

t.test('publications dropped by the primary or lost with a process count as lost', async t => {
  const counts = { unreached: [0, 2], handedBefore: /** @type {number[]} */ ([]) }
  const totals = new QueueTotals(() => counts)
  const other = { ...backend, name: 'other' }
  totals.update(1, { consumers: [], republish: [backend, other] }, {})
  t.match(totals.republishers, [
    { unreached: 0, abandoned: 0 },
    { unreached: 2, abandoned: 0 },
  ])
  // 9 of each have an outcome.
  counts.handedBefore = [9, 20]
  totals.update(2, { consumers: [], republish: [backend, other] }, {})
  t.match(totals.republishers, [{ abandoned: 0 }, { abandoned: 11 }])
})
