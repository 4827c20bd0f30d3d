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
  const [open, clock] = [() => state.open, () => state.now]
  const admission = new Admission({ limit, rate, open, clock, overload, refusals })
  /** How many of them are admitted now. @param {number} count */
  const admitted = count =>
    Array.from({ length: count }, () => admission.admits(CLIENT)).filter(Boolean).length
  return { state, admission, admitted, reasons }
}

t.test('without limits, all clients are admitted', async t => {
  t.equal(setUp({}).admitted(1000), 1000)
})

t.test('the limit counts the connections of all workers', async t => {
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

t.test('the rate allows bursts of one second, even after an idle hour', async t => {
  const { state, admitted, reasons } = setUp({ rate: 20 })
  t.equal(admitted(100), 20)
  t.same(reasons, Array(80).fill('connection_rate_limit'), 'each one is counted')
  state.now += 500
  t.equal(admitted(100), 10)
  state.now += 3_600_000
  t.equal(admitted(100), 20)
})

t.test('a rate below one per second admits a client every few seconds', async t => {
  const { state, admitted } = setUp({ rate: 0.25 })
  t.equal(admitted(10), 1)
  state.now += 3999
  t.equal(admitted(10), 0)
  state.now += 1
  t.equal(admitted(10), 1)
})

t.test('a clock that is set back does not reduce the rate', async t => {
  const { state, admitted } = setUp({ rate: 10 })
  t.equal(admitted(5), 5)
  state.now -= 3_600_000
  t.equal(admitted(10), 5)
})

t.test('overload refuses new clients, but not returning ones', async t => {
  const { state, admission } = setUp({ limit: 10 })
  state.overload.reason = 'event_loop'
  t.equal(admission.admits(CLIENT), false)
  t.equal(admission.admits(CLIENT, true), true)
  state.open = 10
  t.equal(admission.admits(CLIENT, true), false, 'the limit also applies to returning clients')
  Object.assign(state, { open: 0 }).overload.reason = null
  t.equal(admission.admits(CLIENT), true)
})
