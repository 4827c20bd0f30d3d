import t from 'tap'
import { isStale, orderedWorkers, SORTS, SPAN } from '../../dashboard/picture.js'
import { initialState, reduce } from '../../dashboard/state.js'
import { shown } from '../../dashboard/view/state.js'
import { mockSnapshots } from '../metrics/mock.js'

/** @typedef {import('../../dashboard/state.js').State} State */

const NOW = Date.UTC(2026, 0, 5, 13)
const snapshots = mockSnapshots({ workers: 3, seconds: 60, connections: 9000 })

/**
 * @param {object} [options]
 * @returns {State}
 */
const fresh = (options = {}) =>
  initialState({
    look: { unicode: true, colors: true },
    size: { columns: 80, rows: 24 },
    source: '/run/8000.sock',
    now: NOW,
    ...options,
  })

/** @param {State} state @param {any[]} history @param {any} [more] */
const hello = (state, history, more = {}) =>
  reduce(reduce(state, { type: 'link', state: 'open', text: '', now: NOW }), {
    type: 'message',
    now: NOW,
    message: { type: 'hello', schema: 1, node: snapshots[0].node, history, events: [], ...more },
  })

/** @param {State} state @param {any} snapshot @param {number} [now] */
const told = (state, snapshot, now = NOW) =>
  reduce(state, { type: 'message', now, message: { type: 'snapshot', snapshot } })

/** @param {State} state @param {...string} names */
const keys = (state, ...names) =>
  names.reduce((state, name) => reduce(state, { type: 'key', name, now: NOW }), state)

/** @param {State} state */
const order = state => orderedWorkers(state).map(({ index }) => index)

t.test("the history starts with the gateway's and keeps five minutes of snapshots", async t => {
  let state = hello(fresh(), snapshots.slice(0, 50))
  t.equal(shown(state).history.length, 50)
  t.equal(shown(state).snapshot, snapshots[49])
  state = told(state, snapshots[50])
  t.equal(shown(state).history.at(-1)?.connections, snapshots[50].totals.connections.connected)
  state = told(state, snapshots[53])
  t.same(shown(state).history.slice(-3, -1), [null, null], 'seconds that were missed are a gap')
  for (let second = 0; second < 400; second++) {
    state = told(state, { ...snapshots[59], time: snapshots[59].time + second * 1000 })
  }
  t.equal(shown(state).history.length, SPAN)
})

t.test('the history of a previous gateway is kept', async t => {
  let state = hello(fresh(), snapshots.slice(0, 20))
  state = hello(state, snapshots.slice(30, 40))
  t.equal(shown(state).history.length, 40)
  t.equal(shown(state).history.filter(moment => moment === null).length, 10)
  state = hello(state, snapshots.slice(30, 41))
  t.equal(shown(state).history.length, 41, 'what is told twice is there once')
})

t.test('events are kept once, even if received again', async t => {
  const events = snapshots.flatMap(({ events }) => events)
  let state = hello(fresh(), snapshots, { events })
  t.equal(shown(state).events.length, events.length)
  state = hello(state, snapshots, { events: events.slice(2) })
  t.equal(shown(state).events.length, events.length)
  state = told(state, { ...snapshots[59], events: [{ ...events[0], time: NOW, text: 'new' }] })
  t.equal(shown(state).events.at(-1)?.text, 'new')
})

t.test('a pause freezes the figures, and nothing is missing after it', async t => {
  let state = keys(hello(fresh(), snapshots.slice(0, 50)), 'p')
  state = told(state, snapshots[50])
  t.equal(shown(state).snapshot, snapshots[49])
  state = keys(state, 'p')
  t.equal(shown(state).snapshot, snapshots[50])
  t.equal(shown(state).history.length, 51)
})

t.test('workers can be sorted by every column in both directions', async t => {
  let state = hello(fresh(), snapshots)
  t.same(order(state), [0, 1, 2])
  t.same(order(keys(state, 'S')), [2, 1, 0])
  for (const { name, value } of SORTS.slice(1)) {
    state = keys(state, 's')
    t.equal(state.sort.column, name)
    const values = orderedWorkers(state).map(({ sample }) => (sample ? value(sample) : Number.NaN))
    t.same(
      values,
      values.toSorted((a, b) => b - a),
      `${name}: the largest first`,
    )
  }
  t.equal(keys(state, 's').sort.column, 'worker', 'and round again')
})

t.test('workers without figures come last', async t => {
  const [first, ...rest] = snapshots[59].workers
  const down = { ...first, state: /** @type {const} */ ('down'), sample: null }
  const state = keys(hello(fresh(), [{ ...snapshots[59], workers: [down, ...rest] }]), 's')
  t.equal(order(state).at(-1), 0)
  t.equal(order(keys(state, 'S')).at(-1), 0)
})

t.test('selection follows the displayed order', async t => {
  const state = keys(hello(fresh(), snapshots), 'S')
  t.equal(keys(state, 'down').selected, 2)
  t.equal(keys(state, 'j', 'j').selected, 1)
  t.equal(keys(state, 'j', 'j', 'j', 'j').selected, 0, 'to the end and not beyond')
  t.equal(keys(state, 'up').selected, 0, 'from below')
  t.equal(keys(state, 'j', 'j', 'k').selected, 2)
  t.equal(keys(state, 'j', 'escape').selected, null)
  t.equal(keys(fresh(), 'down').selected, null, 'without any there is nothing to select')
})

t.test('enter opens a worker, escape goes back, other keys open help and events', async t => {
  const state = hello(fresh(), snapshots)
  t.equal(keys(state, 'enter').view, 'detail')
  t.equal(keys(state, 'enter').selected, 0)
  t.equal(keys(state, 'enter', 'escape').view, 'main')
  t.equal(keys(state, 'enter', 'j').selected, 1, 'another one, without going back')
  t.equal(keys(state, 'h').view, 'help')
  t.equal(keys(state, '?', '?').view, 'main')
  t.equal(keys(state, 'e', 'e').view, 'main')
  const bottom = keys(state, 'h', 'end').scroll
  t.ok(bottom > 0)
  t.ok(keys(state, 'h', 'end', 'k').scroll < bottom)
  t.equal(keys(state, 'h', 'home', 'k').scroll, 0)
})

t.test('the selection is cleared when its worker is removed', async t => {
  const state = keys(hello(fresh(), snapshots), 'up', 'enter', 'r')
  t.equal(state.selected, 2)
  const fewer = told(state, { ...snapshots[59], workers: snapshots[59].workers.slice(0, 2) })
  t.match(fewer, { selected: null, view: 'main', dialog: null })
})

t.test('a worker is restarted only after confirmation', async t => {
  const state = hello(fresh(), snapshots)
  t.match(keys(state, 'r'), { dialog: { kind: 'restart', worker: null }, effects: [] })
  t.match(keys(state, 'r', 'y'), { dialog: { kind: 'restart' }, effects: [] }, 'none is selected')
  t.same(keys(state, 'r', 'a').effects, [{ type: 'send', command: { type: 'restart', worker: null } }])
  const asked = keys(state, 'j', 'r')
  t.match(asked, { dialog: { kind: 'restart', worker: 0 }, effects: [] })
  t.match(keys(asked, 'x'), { dialog: { kind: 'restart' }, effects: [] }, 'another key is no answer')
  t.match(keys(asked, 'n'), { dialog: null, effects: [] })
  t.match(keys(asked, 'escape'), { dialog: null, effects: [] })
  t.same(keys(asked, 'y').effects, [{ type: 'send', command: { type: 'restart', worker: 0 } }])
})

t.test('a garbage collection is requested for the selected worker or all', async t => {
  const state = hello(fresh(), snapshots)
  t.same(keys(state, 'g', 'a').effects, [{ type: 'send', command: { type: 'gc', worker: null } }])
  t.same(keys(state, 'g', 'w').effects, [], 'none is selected')
  t.same(keys(state, 'j', 'g', 'w').effects, [{ type: 'send', command: { type: 'gc', worker: 0 } }])
  t.match(keys(state, 'g', 'n'), { dialog: null, effects: [] })
})

t.test('the result of a command is shown for a while', async t => {
  const state = hello(fresh(), snapshots)
  const done = (/** @type {string} */ command, /** @type {string | null} */ error) =>
    reduce(state, { type: 'message', now: NOW, message: { type: 'done', command, error } })
  t.match(done('gc', null).notice, { text: 'garbage collection: done', style: 'good' })
  const failed = done('restart', 'worker 7 is not there')
  t.match(failed.notice, { text: 'restart: worker 7 is not there', style: 'bad' })
  t.equal(reduce(failed, { type: 'tick', now: NOW + 1000 }), failed)
  t.equal(reduce(failed, { type: 'tick', now: NOW + 10_000 }).notice, null)
})

t.test('the log is requested while it is on and again after a reconnect, and is bounded', async t => {
  let state = keys(hello(fresh(), snapshots), 'l')
  t.same(state.effects, [{ type: 'send', command: { type: 'log', on: true } }])
  const line = (/** @type {State} */ state, /** @type {string} */ line) =>
    reduce(state, { type: 'message', now: NOW, message: { type: 'log', line } })
  for (let i = 0; i < 2000; i++) state = line(state, `${i} ${'x'.repeat(5000)}`)
  t.equal(state.log.lines.length, 500)
  t.ok(state.log.lines.every(({ length }) => length <= 2000))
  state = reduce(state, { type: 'link', state: 'lost', text: 'gone', now: NOW })
  state = reduce(state, { type: 'link', state: 'open', text: '', now: NOW })
  t.same(state.effects, [{ type: 'send', command: { type: 'log', on: true } }])
  state = keys(state, 'l')
  t.same(state.effects, [{ type: 'send', command: { type: 'log', on: false } }])
  t.equal(line(state, 'late').log.lines.at(-1)?.startsWith('1999'), true, 'what comes late is left out')
  const refused = reduce(keys(state, 'l'), {
    type: 'message',
    now: NOW,
    message: { type: 'done', command: 'log', error: 'not from here' },
  })
  t.match(refused, { log: { on: false }, notice: { text: 'log: not from here' } })
})

t.test('a lost gateway leaves its last figures, and the wait counts from the loss', async t => {
  let state = hello(fresh(), snapshots)
  t.notOk(isStale(state))
  const lost = (/** @type {State} */ state, /** @type {number} */ now) =>
    reduce(state, { type: 'link', state: 'lost', text: 'there is no gateway', now })
  state = lost(state, NOW + 1000)
  state = lost(state, NOW + 5000)
  t.ok(isStale(state))
  t.equal(state.link.since, NOW + 1000)
  t.equal(shown(state).snapshot, snapshots[59])
  t.not(reduce(state, { type: 'tick', now: NOW + 6000 }), state, 'the seconds are counted')
  t.notOk(isStale(hello(state, snapshots)))
})

t.test('figures become stale when the gateway sends nothing', async t => {
  const state = hello(fresh(), snapshots)
  t.equal(reduce(state, { type: 'tick', now: NOW + 1000 }), state, 'nothing new: nothing to draw')
  t.ok(isStale(reduce(state, { type: 'tick', now: NOW + 4000 })))
})

t.test('a refusal ends the dashboard only before its first figures', async t => {
  const refused = {
    type: /** @type {const} */ ('link'),
    state: /** @type {const} */ ('refused'),
    text: 'wrong key',
    now: NOW,
  }
  t.same(reduce(fresh(), refused).effects, [{ type: 'finish', reason: 'refused', text: 'wrong key' }])
  t.same(reduce(hello(fresh(), snapshots), refused).effects, [])
})

t.test('quitting asks only about a gateway that the dashboard owns', async t => {
  const state = hello(fresh(), snapshots)
  t.same(keys(state, 'q').effects, [{ type: 'finish', reason: 'quit' }])
  t.same(keys(state, 'C-c').effects, [{ type: 'finish', reason: 'quit' }])
  t.same(keys(state, 'j', 'r', 'C-c').effects, [{ type: 'finish', reason: 'quit' }], 'in a question, too')
  const own = keys(hello(fresh({ owner: true }), snapshots), 'q')
  t.match(own, { dialog: { kind: 'quit' }, effects: [] })
  t.same(keys(own, 's').effects, [{ type: 'finish', reason: 'stop' }])
  t.same(keys(own, 'l').effects, [{ type: 'finish', reason: 'leave' }])
  t.match(keys(own, 'n'), { dialog: null, effects: [] })
  t.same(keys(own, 'C-c').effects, [{ type: 'finish', reason: 'stop' }], 'twice means it')
})

t.test('unknown keys change nothing', async t => {
  const state = hello(fresh(), snapshots)
  for (const name of ['x', 'f1', 'constructor', '__proto__', 'M-q'])
    t.same({ ...keys(state, name), now: 0 }, { ...state, now: 0 }, name)
})
