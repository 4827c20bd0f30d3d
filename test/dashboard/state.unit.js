import t from 'tap'
import { orderedWorkers, SORTS } from '../../dashboard/panels/workers.js'
import { SPAN } from '../../dashboard/picture.js'
import { initialState, isStale, reduce } from '../../dashboard/state.js'
import { shown } from '../../dashboard/view/state.js'
import { mockSnapshots } from '../metrics/mock.js'

/** @import { State } from '../../dashboard/state.js' */

const NOW = Date.UTC(2026, 0, 5, 13)
const snapshots = mockSnapshots({ workers: 3, seconds: 60, connections: 9000 })

/** @param {object} [options] @returns {State} */
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

/** Connected, with the snapshots. @param {object} [options] @returns {State} */
const connected = options => hello(fresh(options), snapshots)

/** @param {State} state @param {any} snapshot @param {number} [now] */
const received = (state, snapshot, now = NOW) =>
  reduce(state, { type: 'message', now, message: { type: 'snapshot', snapshot } })

/** @param {State} state @param {...string} names */
const keys = (state, ...names) =>
  names.reduce((state, name) => reduce(state, { type: 'key', name, now: NOW }), state)

/** @param {State} state */
const order = state => orderedWorkers(state).map(({ index }) => index)

t.test("the history starts with the gateway's history and covers five minutes", async t => {
  let state = hello(fresh(), snapshots.slice(0, 50))
  t.equal(shown(state).history.length, 50)
  t.equal(shown(state).snapshot, snapshots[49])
  state = received(state, snapshots[50])
  t.equal(shown(state).history.at(-1)?.clients, snapshots[50].totals.connections.connected)
  state = received(state, snapshots[53])
  t.same(shown(state).history.slice(-3, -1), [null, null], 'missed seconds are a gap')
  for (let second = 0; second < 400; second++) {
    state = received(state, { ...snapshots[59], time: snapshots[59].time + second * 1000 })
  }
  t.equal(shown(state).history.length, SPAN)
})

t.test('the history of a previous gateway is kept', async t => {
  let state = hello(fresh(), snapshots.slice(0, 20))
  state = hello(state, snapshots.slice(30, 40))
  t.equal(shown(state).history.length, 40)
  t.equal(shown(state).history.filter(moment => moment === null).length, 10)
  state = hello(state, snapshots.slice(30, 41))
  t.equal(shown(state).history.length, 41, 'repeated snapshots count once')
})

t.test('events are kept once, even if received again', async t => {
  const events = snapshots.flatMap(({ events }) => events)
  let state = hello(fresh(), snapshots, { events })
  t.equal(shown(state).events.length, events.length)
  state = hello(state, snapshots, { events: events.slice(2) })
  t.equal(shown(state).events.length, events.length)
  state = received(state, { ...snapshots[59], events: [{ ...events[0], time: NOW, text: 'new' }] })
  t.equal(shown(state).events.at(-1)?.text, 'new')
})

t.test('a pause freezes the figures; later ones are still recorded', async t => {
  let state = keys(hello(fresh(), snapshots.slice(0, 50)), 'p')
  state = received(state, snapshots[50])
  t.equal(shown(state).snapshot, snapshots[49])
  state = keys(state, 'p')
  t.equal(shown(state).snapshot, snapshots[50])
  t.equal(shown(state).history.length, 51)
})

t.test('workers can be sorted by every column in both directions', async t => {
  let state = connected()
  t.same(order(state), [0, 1, 2])
  t.same(order(keys(state, 'S')), [2, 1, 0])
  for (const { name, value } of SORTS.slice(1)) {
    state = keys(state, 's')
    t.equal(state.sort.column, name)
    const values = orderedWorkers(state).map(value)
    t.ok(
      values.every((value, at) => at === 0 || value <= values[at - 1]),
      `${name}: the largest first`,
    )
  }
  t.equal(keys(state, 's').sort.column, 'worker', 'back to the first')
})

t.test('workers without figures come last', async t => {
  const [first, ...rest] = snapshots[59].workers
  const down = { ...first, state: /** @type {const} */ ('down'), sample: null }
  const state = keys(hello(fresh(), [{ ...snapshots[59], workers: [down, ...rest] }]), 's')
  t.equal(order(state).at(-1), 0)
  t.equal(order(keys(state, 'S')).at(-1), 0)
})

t.test('selection follows the displayed order', async t => {
  const state = keys(connected(), 'S')
  t.equal(keys(state, 'down').selected, 2)
  t.equal(keys(state, 'j', 'j').selected, 1)
  t.equal(keys(state, 'j', 'j', 'j', 'j').selected, 0, 'not beyond the end')
  t.equal(keys(state, 'up').selected, 0, 'starts at the bottom')
  t.equal(keys(state, 'j', 'j', 'k').selected, 2)
  t.equal(keys(state, 'j', 'escape').selected, null)
  t.equal(keys(fresh(), 'down').selected, null, 'no workers')
})

t.test('enter opens a worker, escape goes back, other keys open help and events', async t => {
  const state = connected()
  t.equal(keys(state, 'enter').view, 'detail')
  t.equal(keys(state, 'enter').selected, 0)
  t.equal(keys(state, 'enter', 'escape').view, 'main')
  t.equal(keys(state, 'enter', 'j').selected, 1, 'selects the next worker')
  t.equal(keys(state, 'h').view, 'help')
  t.equal(keys(state, '?', '?').view, 'main')
  t.equal(keys(state, 'e', 'e').view, 'main')
  const bottom = keys(state, 'h', 'end').scroll
  t.ok(bottom > 0)
  t.ok(keys(state, 'h', 'end', 'k').scroll < bottom)
  t.equal(keys(state, 'h', 'home', 'k').scroll, 0)
})

t.test('the selection is cleared when its worker is removed', async t => {
  const state = keys(connected(), 'up', 'enter', 'r')
  t.equal(state.selected, 2)
  const fewer = received(state, { ...snapshots[59], workers: snapshots[59].workers.slice(0, 2) })
  t.match(fewer, { selected: null, view: 'main', dialog: null })
})

t.test('restarts and garbage collections are requested only after confirmation', async t => {
  const state = connected()
  for (const [pressed, type, worker] of /** @type {[string, string, number | null][]} */ ([
    ['r a', 'restart', null],
    ['j r a', 'restart', null],
    ['j r y', 'restart', 0],
    ['g a', 'gc', null],
    ['j g w', 'gc', 0],
  ]))
    t.same(keys(state, ...pressed.split(' ')).effects, [{ type: 'send', command: { type, worker } }], pressed)
  // `y` and `w` require a selection; other keys are ignored.
  for (const pressed of ['r', 'r y', 'j r', 'j r x', 'g', 'g w'])
    t.match(keys(state, ...pressed.split(' ')), { dialog: { kind: /restart|gc/ }, effects: [] }, pressed)
  for (const pressed of ['j r n', 'j r escape', 'g n'])
    t.match(keys(state, ...pressed.split(' ')), { dialog: null, effects: [] }, pressed)
})

t.test('the result of a command is shown for a while', async t => {
  const state = connected()
  const done = (/** @type {string} */ command, /** @type {string | null} */ error) =>
    reduce(state, { type: 'message', now: NOW, message: { type: 'done', command, error } })
  t.match(done('gc', null).notice, { text: 'garbage collection: done', style: 'good' })
  const failed = done('restart', 'worker 7 is not there')
  t.match(failed.notice, { text: 'restart: worker 7 is not there', style: 'bad' })
  t.equal(reduce(failed, { type: 'tick', now: NOW + 1000 }), failed)
  t.equal(reduce(failed, { type: 'tick', now: NOW + 10_000 }).notice, null)
})

t.test('the log is requested when switched on and after a reconnect, and its size is limited', async t => {
  let state = keys(connected(), 'l')
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
  t.equal(line(state, 'late').log.lines.at(-1)?.startsWith('1999'), true, 'late lines are ignored')
  const message = { type: /** @type {const} */ ('done'), command: 'log', error: 'not from here' }
  const refused = reduce(keys(state, 'l'), { type: 'message', now: NOW, message })
  t.match(refused, { log: { on: false }, notice: { text: 'log: not from here' } })
})

t.test('after a lost connection, the last figures are shown with the time since the loss', async t => {
  let state = connected()
  t.notOk(isStale(state))
  const lost = (/** @type {State} */ state, /** @type {number} */ now) =>
    reduce(state, { type: 'link', state: 'lost', text: 'no gateway is listening', now })
  state = lost(state, NOW + 1000)
  state = lost(state, NOW + 5000)
  t.ok(isStale(state))
  t.equal(state.link.since, NOW + 1000)
  t.equal(shown(state).snapshot, snapshots[59])
  t.not(reduce(state, { type: 'tick', now: NOW + 6000 }), state, 'the time is updated')
  t.notOk(isStale(hello(state, snapshots)))
})

t.test('figures become stale when the gateway sends nothing', async t => {
  const state = connected()
  t.equal(reduce(state, { type: 'tick', now: NOW + 1000 }), state, 'nothing to draw')
  t.ok(isStale(reduce(state, { type: 'tick', now: NOW + 4000 })))
})

t.test('a refusal ends the dashboard only before its first figures', async t => {
  const effects = (/** @type {State} */ state) =>
    reduce(state, { type: 'link', state: 'refused', text: 'wrong key', now: NOW }).effects
  t.same(effects(fresh()), [{ type: 'finish', reason: 'refused', text: 'wrong key' }])
  t.same(effects(connected()), [])
})

t.test('quitting asks for confirmation only if the dashboard owns the gateway', async t => {
  const state = connected()
  t.same(keys(state, 'q').effects, [{ type: 'finish', reason: 'quit' }])
  t.same(keys(state, 'C-c').effects, [{ type: 'finish', reason: 'quit' }])
  t.same(keys(state, 'j', 'r', 'C-c').effects, [{ type: 'finish', reason: 'quit' }], 'also in a dialog')
  const own = keys(connected({ owner: true }), 'q')
  t.match(own, { dialog: { kind: 'quit' }, effects: [] })
  t.same(keys(own, 's').effects, [{ type: 'finish', reason: 'stop' }])
  t.same(keys(own, 'l').effects, [{ type: 'finish', reason: 'leave' }])
  t.match(keys(own, 'n'), { dialog: null, effects: [] })
  t.same(keys(own, 'C-c').effects, [{ type: 'finish', reason: 'stop' }], 'Ctrl-C twice')
})

t.test('unknown keys change nothing', async t => {
  const state = connected()
  for (const name of ['x', 'f1', 'constructor', '__proto__', 'M-q'])
    t.same({ ...keys(state, name), now: 0 }, { ...state, now: 0 }, name)
})
