// The panels of the fleet's view, from snapshots.

import t from 'tap'
import { lineWidth, plain } from '../../dashboard/terminal/line.js'
import { MIN_SIZE } from '../../dashboard/view/screen.js'
import { withPoint } from '../../dashboard/view/state.js'
import { Distribution } from '../../fleet/statistics/distribution.js'
import { histogram, KEPT, logBuckets, spanOf } from '../../fleet/status/charts.js'
import { orderedDrones, SORTS } from '../../fleet/status/drones.js'
import { renderStatus } from '../../fleet/status/index.js'
import { layout, openedRate, render } from '../../fleet/status/screen.js'
import { initialState, reduce } from '../../fleet/status/state.js'
import { mockSnapshots } from './mock-snapshot.js'

/** @import { FleetSnapshot } from '../../fleet/schema.js' */
/** @import { State } from '../../fleet/status/state.js' */

/** States after their snapshots. @type {Map<FleetSnapshot[], State>} */
const fed = new Map()

/**
 * @param {FleetSnapshot[]} snapshots
 * @param {{columns?: number, rows?: number, keys?: string[], colors?: boolean}} [options] keys: to press
 * @returns {State}
 */
function stateOf(snapshots, { columns = 80, rows = 24, keys = [], colors = true } = {}) {
  let state = fed.get(snapshots)
  if (state === undefined) {
    state = initialState({
      look: { unicode: true, colors: true },
      size: { columns, rows },
      now: 0,
      commands: true,
    })
    for (const snapshot of snapshots)
      state = reduce(state, { type: 'snapshot', snapshot, now: snapshot.time })
    fed.set(snapshots, state)
  }
  const look = { unicode: true, colors }
  return press(reduce({ ...state, look }, { type: 'size', columns, rows }), ...keys)
}

/** @param {State} state @param {...string} keys */
function press(state, ...keys) {
  let pressed = state
  for (const name of keys) pressed = reduce(pressed, { type: 'key', name, now: pressed.now })
  return pressed
}

/** @param {State} state */
const screen = state => render(state).map(plain).join('\n')

/** @param {State} state @param {RegExp} text @returns {string[]} styles of the spans with that text */
const stylesOf = (state, text) =>
  render(state)
    .flat()
    .filter(span => text.test(span[0]))
    .map(([, style]) => style)

const calm = mockSnapshots()
const states = /** @type {const} */ ({ d2: 'silent', d3: 'gone', d5: 'launching', d6: 'restarting' })
const counters = { lost: 17, unrecovered: 3, missed: 5 }
const faults = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`HTTP ${500 + at}`, 1000 - at]))
const crowd = mockSnapshots({
  drones: 1000,
  n: 12e6,
  seconds: 6,
  ramp: 4,
  provider: 'ec2',
  states,
  counters,
  faults,
})

t.test('fills every size to the last row, and no line is wider than the terminal', async t => {
  for (const size of '60x15 80x24 100x30 120x40 220x60 300x90'.split(' ')) {
    const [columns, rows] = size.split('x').map(Number)
    for (const keys of [[], ['enter'], ['h'], ['e'], ['f'], ['j', 'r'], ['n', '5'], ['p'], ['c', 'c']]) {
      for (const snapshots of [calm, crowd, calm.slice(0, 1)]) {
        const lines = render(stateOf(snapshots, { columns, rows, keys }))
        const widest = Math.max(...lines.map(lineWidth))
        if (lines.length !== rows || widest > columns + 1)
          t.fail(`${columns}x${rows} ${keys}: ${lines.length} lines, ${widest} columns`)
        if (columns >= 80 && !plain(lines[rows - 1]).includes('load continues'))
          t.fail(`footer at ${columns}`)
      }
    }
  }
  t.match(screen(stateOf(calm, { columns: MIN_SIZE.columns - 1 })), 'terminal too small')
})

t.test('all counters are shown, non-zero faults in red', async t => {
  for (const columns of [60, 80, 120]) {
    const shown = screen(stateOf(crowd, { columns }))
    for (const text of ['lost 17', 'duplicates 0', 'disordered 0', 'damaged 0', 'unrecovered 3', 'missed 5'])
      t.match(shown, text, `${text} at ${columns} columns`)
  }
  t.same(stylesOf(stateOf(crowd), /^lost $/), ['bad'])
  t.same(stylesOf(stateOf(crowd), /^missed $/), ['warn'])
  t.same(stylesOf(stateOf(crowd), /^damaged $/), ['label'])
  t.match(
    screen(stateOf(crowd, { colors: false })),
    /lost 17! .*[\s\S]*missed 5~/,
    'marks where there are no colours',
  )
})

t.test('the header shows the progress of a ramp, of opening and of a scenario', async t => {
  t.match(screen(stateOf(calm.slice(0, 20))), /50,000 of 100,000 {2}ramp ends in 20\.0 s/)
  const slow = calm.slice(0, 20).map(snapshot => ({ ...snapshot, ramp: null }))
  t.match(screen(stateOf(slow, { columns: 120 })), /all open in 20\.0 s/)
  t.same(stylesOf(stateOf(calm), /^100,000$/)[0], 'good')
  const time = /** @type {FleetSnapshot} */ (calm.at(-1)).time
  const scenario = { name: 'fan-100', step: '3 of 8', began: time - 1000, ends: time + 90_000 }
  const running = calm.map(snapshot => ({ ...snapshot, scenario }))
  t.match(screen(stateOf(running, { columns: 160 })), /fan-100: 3 of 8[\s\S]*step ends in 1:30/)
})

t.test('among a thousand drones the selected one is visible, with its detail and state', async t => {
  const state = stateOf(crowd, { columns: 120, rows: 40 })
  t.match(screen(state), /drones 996 of 1,000 up, 1 to \d+ /)
  t.match(screen(press(state, 'end')), /▸d1000 /)
  t.match(screen(press(state, 'end', 'up')), /▸d999 /)
  t.match(screen(press(state, 'end', 'enter')), /─ drone d1000 {2}up .*[\s\S]*connections {4}/)
  t.match(screen(state), /d5 +launched, not connected yet/)
  t.match(screen(state), /d3 +gone .*last 12,000 connections/)
  t.match(
    screen(stateOf(crowd, { columns: 120, rows: 40, keys: ['s'] })),
    /d3 +gone[\s\S]*d2 .* silent/,
    'by state',
  )
})

t.test('drones can be sorted by every column in both directions', async t => {
  let state = stateOf(crowd)
  for (const { name, down, value } of SORTS) {
    t.equal(state.sort.column, name)
    const rows = orderedDrones(state).filter(({ sample }) => sample !== null)
    const values = rows.map(value)
    t.same(
      values,
      values.toSorted((a, b) => (down ? b - a : a - b)),
      name,
    )
    state = press(state, 's')
  }
  t.same(
    orderedDrones(state)
      .slice(8, 11)
      .map(({ id }) => id),
    ['d9', 'd10', 'd11'],
    'ids sort by their number',
  )
  t.equal(orderedDrones(press(state, 'S'))[0].id, 'd1000')
})

t.test('the selection is cleared when its drone is removed, but not during a pause', async t => {
  const last = /** @type {FleetSnapshot} */ (calm.at(-1))
  const fewer = { ...last, time: last.time + 1000, drones: last.drones.slice(0, 1) }
  const open = stateOf(calm, { keys: ['end', 'enter'] })
  const after = reduce(open, { type: 'snapshot', snapshot: fewer, now: fewer.time })
  t.equal(after.view, 'main')
  t.equal(after.selected, null)
  const paused = press(open, 'p')
  const still = reduce(paused, { type: 'snapshot', snapshot: fewer, now: fewer.time })
  t.equal(still.view, 'detail')
  t.match(screen(still), /paused at/)
})

t.test('keys set the number of connections; invalid numbers are refused with the reason', async t => {
  const state = stateOf(calm)
  const set = press(state, 'n', '1', '.', '5', 'k', 'x', 'enter')
  t.same(set.effects, [{ type: 'command', name: 'set', params: { n: 1500 }, what: 'n 100,000 → 1,500' }])
  t.match(press(state, 'n', 'k', 'enter').notice?.text, /"k" is not a number/)
  t.equal(press(state, 'n', '1', 'escape').dialog, null)
  t.same(press(state, 'n', 'enter').effects, [])
  t.match(press(state, '+').effects, [{ params: { n: 110_000 } }])
  t.match(press(state, 'r').notice?.text, 'select a drone first')
  const lost = reduce(state, { type: 'lost', reason: 'x', now: state.now })
  t.match(press(lost, '+').notice?.text, 'no controller')
  t.match(screen(lost), /controller gone for/)
  const over = reduce(state, { type: 'lost', reason: 'no fleet in /x; `halley ...`', now: state.now })
  t.match(screen(over), /the fleet was stopped 0[^;]* ago; figures of [\d:]+/)
})

t.test('the history is bounded and has gaps for missing seconds', async t => {
  const point = (/** @type {number} */ second) => /** @type {any} */ ({ time: second * 1000, opened: 10 })
  let history = withPoint([], point(0), KEPT)
  history = withPoint(history, point(3), KEPT)
  t.same(
    history.map(moment => moment?.time ?? null),
    [0, null, null, 3000],
  )
  t.equal(openedRate(history, 10), 10)
  t.equal(withPoint(history, point(3), KEPT).length, 4, 'a second that comes twice')
  for (let second = 4; second < 2 * KEPT; second++) history = withPoint(history, point(second), KEPT)
  t.equal(history.length, KEPT)
  t.equal(withPoint(history, point(1e6), KEPT).length, KEPT)
  t.equal(spanOf(history), KEPT)
  t.equal(spanOf(history.slice(0, 50)), 60)
})

t.test('the histogram includes every value, on a logarithmic axis', async t => {
  const distribution = new Distribution()
  for (let i = 0; i < 1000; i++) distribution.record(1)
  distribution.record(100)
  const wire = distribution.toWire()
  const { bars, low, high } = logBuckets(wire, 40)
  t.equal(
    bars.reduce((sum, bar) => sum + bar, 0),
    1001,
  )
  t.equal(bars[0], 1000)
  t.equal(bars[39], 1)
  t.same([Math.round(low), Math.round(high)], [1, 100])
  const lines = histogram(wire, 42, 6, true, [{ label: 'p50', at: 1 }]).map(plain)
  t.equal(lines.length, 6)
  t.match(lines[0], /^ █ *$/)
  t.match(lines[3], /^ █ +▁ $/, 'one of a thousand is visible')
  t.match(lines[4], /▲p50.*┴/)
  t.match(lines[5], /1 +10 +100/)
  t.match(histogram(wire, 42, 6, false, []).map(plain).join('\n'), /^[ -~\n]*$/)
})

t.test('the text page lists every drone', async t => {
  const last = /** @type {FleetSnapshot} */ (crowd.at(-1))
  const lines = renderStatus(last, { columns: 120 })
  t.ok(lines.length > 1000, 'all drones')
  t.ok(lines.every(line => line === line.trimEnd() && !line.includes('\x1b')))
  t.match(renderStatus(last, { columns: 120, unicode: false }).join('\n'), /^[ -~\n]*$/)
  const evil = { ...last, run: '\x1b[2Jrun', events: [{ time: 0, level: 'warn', text: '\x1b]0;x\x07text' }] }
  t.notMatch(renderStatus(evil, { columns: 120 }).join('\n'), /[\x00-\x09\x0b-\x1f]/, 'no control characters')
})

t.test('panels keep their order', async t => {
  const names = layout(stateOf(crowd, { columns: 120, rows: 40 })).map(({ panel }) => panel.name)
  t.same(names, ['header', 'accounting', 'statistics', 'drones', 'charts', 'event line', 'footer'])
})
