import t from 'tap'
import { Admission } from '../../../src/clients/transport/admission.js'

const CLIENT = /** @type {any} */ ({})

/** @param {{limit?: number, rate?: number}} options */
function setUp({ limit = 0, rate = 0 }) {
  const state = { open: 0, now: 1000, overload: { reason: /** @type {any} */ (null) } }
  const { overload } = state
  /** @type {string[]} */
  const reasons = []
  const refusals = { add: (/** @type {string} */ reason) => void reasons.push(reason) }
  const admission = new Admission({
    limit,
    rate,
    open: () => state.open,
    clock: () => state.now,
    overload,
    refusals,
  })
  /** How many of so many get in at this moment. @param {number} count */
  const admitted = count =>
    Array.from({ length: count }, () => admission.admits(CLIENT)).filter(Boolean).length
  return { state, admission, admitted, reasons }
}

t.test('without limits everybody gets in', async t => {
  t.equal(setUp({}).admitted(1000), 1000)
})

t.test('the limit counts the connections of this worker and of the others', async t => {
  const { state, admission, reasons } = setUp({ limit: 10 })
  state.open = 4
  admission.otherConnections = 5
  t.equal(admission.admits(CLIENT), true)
  state.open = 5
  t.equal(admission.admits(CLIENT), false)
  admission.otherConnections = 4
  t.equal(admission.admits(CLIENT), true)
  t.same(reasons, ['connection_limit'], 'counted')
})

t.test('so many a second get in, and no more after a quiet hour', async t => {
  const { state, admitted, reasons } = setUp({ rate: 20 })
  t.equal(admitted(100), 20)
  t.same(reasons, Array(80).fill('connection_rate_limit'), 'each one is counted')
  state.now += 500
  t.equal(admitted(100), 10)
  state.now += 3_600_000
  t.equal(admitted(100), 20)
})

t.test('a share of less than one a second lets one in from time to time', async t => {
  const { state, admitted } = setUp({ rate: 0.25 })
  t.equal(admitted(10), 1)
  state.now += 3999
  t.equal(admitted(10), 0)
  state.now += 1
  t.equal(admitted(10), 1)
})

t.test('a clock that is set back costs nobody anything', async t => {
  const { state, admitted } = setUp({ rate: 10 })
  t.equal(admitted(5), 5)
  state.now -= 3_600_000
  t.equal(admitted(10), 5)
})

t.test('overload turns new clients away, and nobody who may have been here before', async t => {
  const { state, admission } = setUp({ limit: 10 })
  state.overload.reason = 'event_loop'
  t.equal(admission.admits(CLIENT), false)
  t.equal(admission.admits(CLIENT, true), true)
  state.open = 10
  t.equal(admission.admits(CLIENT, true), false, 'the limit is for everybody')
  Object.assign(state, { open: 0 }).overload.reason = null
  t.equal(admission.admits(CLIENT), true)
})
