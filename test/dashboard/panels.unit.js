import t from 'tap'
import { SPAN, toPoint, workerAt } from '../../dashboard/picture.js'
import { layout, logLine, page, render } from '../../dashboard/screen.js'
import { initialState, reduce } from '../../dashboard/state.js'
import { lineWidth, plain } from '../../dashboard/terminal/line.js'
import { MIN_SIZE } from '../../dashboard/view/screen.js'
import { withPoint } from '../../dashboard/view/state.js'
import { mockSnapshots } from '../metrics/mock.js'

/** @import { State } from '../../dashboard/state.js' */
/** @import { Snapshot } from '../../src/metrics/schema.js' */

const NOW = Date.UTC(2026, 0, 5, 13)
const look = { unicode: true, colors: true }
const MONO = { unicode: false, colors: false }

/** @param {number} columns @param {number} rows */
const sized = (columns, rows) => ({ size: { columns, rows } })

/**
 * @param {Snapshot[]} snapshots
 * @param {Partial<Parameters<typeof initialState>[0]> & {keys?: string[]}} [options] of the state; keys to press
 * @returns {State}
 */
function stateOf(snapshots, { keys = [], ...options } = {}) {
  let state = initialState({
    look,
    size: { columns: 80, rows: 24 },
    source: 'test.sock',
    now: NOW,
    ...options,
  })
  state = reduce(state, { type: 'link', state: 'open', text: '', now: NOW })
  const events = snapshots.flatMap(({ events }) => events)
  const { node } = snapshots[0]
  const hello = { type: /** @type {const} */ ('hello'), schema: 1, node, history: snapshots, events }
  state = reduce(state, { type: 'message', now: NOW, message: hello })
  for (const name of keys) state = reduce(state, { type: 'key', name, now: NOW })
  return state
}

/** @param {State} state */
const texts = state => render(state).map(plain)

/** @param {State} state */
const screen = state => texts(state).join('\n')

/** @param {State} state @param {RegExp} text @returns {string[]} styles of the spans with that text */
const stylesOf = (state, text) =>
  render(state)
    .flat()
    .filter(span => text.test(span[0]))
    .map(([, style]) => style)

/** @param {string} sizes as in `80x24 120x40` */
const sizesOf = sizes => sizes.split(' ').map(size => size.split('x').map(Number))

const calm = mockSnapshots({ workers: 3, seconds: 120, connections: 30_000, csv: true, queues: false })
const queued = mockSnapshots({ seconds: 20, csv: true })
const few = mockSnapshots({ seconds: 5, connections: 10 })
const unlimited = few.map(snapshot => ({
  ...snapshot,
  machine: { ...snapshot.machine, files: { open: 8497, limit: 2 ** 63 } },
}))
const portable = mockSnapshots({ seconds: 5, elsewhere: true })

t.test('fills every size to the last row, and no line is wider than the terminal', async t => {
  const crowd = mockSnapshots({ workers: 24, seconds: 60, connections: 5e5, down: 3, silent: 5, csv: true })
  for (const [columns, rows] of sizesOf('60x15 80x24 100x30 120x40 160x45 220x60 300x90'))
    for (const keys of [[], ['enter'], ['h'], ['e'], ['l'], ['j', 'g'], ['p']])
      for (const snapshots of [calm, crowd]) {
        const lines = render(stateOf(snapshots, { ...sized(columns, rows), keys }))
        t.equal(lines.length, rows, `${columns}x${rows} ${keys}`)
        const widest = Math.max(...lines.slice(0, -1).map(lineWidth))
        // Long texts of events and logs are cut by the screen.
        if (keys[0] !== 'e') t.ok(widest <= columns + 1, `${columns}x${rows} ${keys}: ${widest}`)
        t.match(plain(lines.at(-1) ?? []), /q quit/, 'the footer is at the bottom')
      }
})

t.test('a terminal that is too small gets a message', async t => {
  for (const [columns, rows] of sizesOf('40x10 59x24 80x14 5x2 1x1')) {
    const state = stateOf(calm, sized(columns, rows))
    t.equal(render(state).length, rows)
    t.ok(render(state).every(line => lineWidth(line) <= columns))
    if (columns > 20)
      t.match(screen(state), `${columns}x${rows}, minimum ${MIN_SIZE.columns}x${MIN_SIZE.rows}`)
  }
})

t.test('80x24 shows machine, workers, totals, one chart, the last event, the file and the keys', async t => {
  const lines = texts(stateOf(calm))
  t.match(
    lines[0],
    /Halley 0\.1\.0 {2}gateway-1_8000 {2}http:\/\/127\.0\.0\.1:8000 .* up 2:01 {2}\d\d:\d\d:\d\d/,
  )
  t.match(lines[1], /cpu +█+░+ +\d+% {2}user +\d+% {2}sys +\d+% {2}steal +\d+% {2}idle +\d+% {2}load/)
  t.match(lines[2], /mem .*gateway [\d.]+ MB {2}others [\d.]+ GB {2}caches 4 GB {2}free [\d.]+ GB/)
  t.match(
    lines[3],
    /net {2}in [\d.]+ MB\/s {2}out [\d.]+ MB\/s {2}sockets 30,200 {2}tcp [\d.]+ MB {2}overflows 0/,
  )
  t.match(lines[4], /capacity about [\d,]+ more connections {2}2\.05 KB each \+ 4\.59 KB kernel/)
  t.match(lines[5], /workers 3 .* heap .* delay, ms .* msg\/s/)
  t.match(lines[6], /# +pid +cpu +rss +clients +used\/total +loop +avg +p90 +max +in +out +gc/)
  t.match(lines[7], /^ +0 +4001 +\d+% +[\d.]+M +10,000 +[\d.]+\/[\d.]+M +\d+% +[\d.]+ +[\d.]+ +[\d.]+ /)
  t.match(lines[10], /^ all +\d+% +[\d.]+M +30,000/)
  t.match(lines[11], /connections ─+ 30,000 {2}1\/6/)
  t.match(lines[21], /slow client disconnected/)
  t.match(lines[22], /csv {2}halley\.csv {2}\d+ KB of 100 MB \(0%\) {2}rotations 0/)
  t.match(lines[23], /h help .*select .*detail .*sort: worker.*q quit/)
})

t.test('the key c cycles through all charts', async t => {
  const titles =
    'connections|messages a second|event-loop delay, ms|memory|bytes a connection|CPU, of one core'.split('|')
  for (const [presses, title] of titles.entries()) {
    const text = screen(stateOf(calm, { keys: new Array(presses).fill('c') }))
    t.match(text, new RegExp(`─ ${title} .*${presses + 1}/6`))
    t.equal([...text.matchAll(/\d\/6 ─/g)].length, 1, 'one at a time')
  }
  t.match(screen(stateOf(calm, { keys: new Array(6).fill('tab') })), /─ connections .*1\/6/)
})

/**
 * What a screen shows; pressed: its size, then keys.
 * @type {[title: string, snapshots: Snapshot[], pressed: string, ...shown: (RegExp | string)[]][]}
 */
const SCREENS = [
  [
    'charts side by side and below, all columns, the primary, the last events',
    calm,
    '220x60',
    /─ connections .*─ messages a second .*─ event-loop delay, ms /,
    /─ memory .*─ bytes a connection .*─ CPU, of one core /,
    /# +pid +up +died +cpu +rss +clients +new\/s +subs +chans .* outbox +largest/,
    /primary 4000 +\d+% [\d.]+ MB/,
    /─ events ─/,
  ],
  ['130 columns: the outbox', calm, '130x24', /outbox/],
  ['80 columns: no outbox', calm, '80x24', /# +pid +cpu(?!.*outbox)/],
  ['60 columns: no pid', calm, '60x24', /#(?!.* pid ).*clients .* avg +p90 +max/],
  ['all series of narrow charts', calm, '100x50 c c c', /─ memory [\s\S]* heap/, / native/, / kernel/],
  [
    'unknown values, not zero',
    portable,
    '80x24',
    /net {2}in -\/s {2}out -\/s {2}sockets - {2}tcp - {2}overflows -/,
  ],
  ['unknown kernel memory, not zero', portable, '80x24 c c c', /kernel - ─|kernel - /],
  ['no estimate from few connections', few, '80x24', /capacity estimate needs 1,000 connections/],
  ['the limit of open files', few, '120x40', /machine [\d,.]+k?\/[\d,.]+[kM]? files/],
  ['no limit of open files', unlimited, '120x40', /machine 8,497 files/],
  [
    'a worker: heap spaces, GC, transports, memory, files and counts',
    calm,
    '220x60 j enter',
    /─ worker 0 {2}up {2}pid 4001 {2}up 2:01 ─[\s\S]*delay p99 +[\d.]+ ms/,
    /old +█* .*[\d.]+M\/[\d.]+M/,
    /minor +\d+\/s +[\d.]+ ms/,
    /websocket protobuf +1,500/,
    ...['large object', 'array buffers', 'subscriptions', 'files', 'close codes', 'commands', 'server API'],
  ],
  ['more of a worker on the next page', calm, '80x24 enter', /page down more/],
  ['other charts of a worker', calm, '60x15 c c enter', /─ connections .*─ messages/],
  [
    'help: keys and limits',
    calm,
    '80x24 h',
    ...['sort', 'restart', 'garbage collection', 'pause', 'log', '20 ms', 'quit; the gateway keeps running'],
  ],
  ['a restart of one', calm, '80x24 j r', /restart worker 0\?[\s\S]*its 10,000 clients [\s\S]* y {2}restart/],
  [
    'a restart of all',
    calm,
    '80x24 r',
    /restart all workers\?[\s\S]*one after another[\s\S]* a {2}restart all/,
  ],
  ['a garbage collection', calm, '80x24 j g', /garbage collection[\s\S]* w {2}worker 0 .* a {2}all workers/],
  ['a pause', calm, '80x24 p', /paused at \d\d:\d\d:\d\d; press p to resume/],
]

for (const [title, snapshots, pressed, ...shown] of SCREENS)
  t.test(`screen: ${title}`, async t => {
    const [size, ...keys] = pressed.split(' ')
    const [[columns, rows]] = sizesOf(size)
    const text = screen(stateOf(snapshots, { ...sized(columns, rows), keys }))
    for (const part of shown) t.match(text, part)
  })

t.test('help without colours explains the marks; q offers to stop an own gateway', async t => {
  t.match(screen(stateOf(calm, { keys: ['h'], look: MONO })), /~ from +! from/)
  const question = /s {2}stop .* l {2}leave it running, close the dashboard .* n {2}cancel/
  t.match(screen(stateOf(calm, { keys: ['q'], owner: true })), question)
})

t.test('a blocked event loop is marked in its row, by colour or sign', async t => {
  const blocked = calm.findIndex(({ workers }) => (workers[0].sample?.loop.ticks.max ?? 0) >= 200)
  const past = calm.slice(0, blocked + 1)
  t.same(stylesOf(stateOf(past), /^200$/), ['warn', 'warn header'], 'the worker, and all')
  const mono = texts(stateOf(past, { look: MONO }))
  t.match(mono[7], / 200~/)
  t.notMatch(mono[8], /~/)
})

t.test('the row of a dead or silent worker shows the state', async t => {
  const bad = mockSnapshots({ workers: 3, seconds: 40, connections: 3000, down: 1, silent: 2 })
  const dead = texts(stateOf(bad.slice(0, 21)))
  t.match(dead[5], /workers 2 of 3 up/)
  t.match(dead[8], /1 down for 1\.0 s, died once/)
  t.match(dead.join('\n'), /worker 1 \(pid 4002\) died: signal SIGKILL/)
  t.match(texts(stateOf(bad.slice(0, 23)))[8], /1 starting, died once/)
  const silent = texts(stateOf(bad))
  t.match(silent[9], /2 no data for 10\.2 s, last [\d,]+ clients, pid 4003/)
})

t.test('the selected worker is marked and stays on the screen', async t => {
  const many = mockSnapshots({ workers: 40, seconds: 5, connections: 4000 })
  for (const presses of [1, 20, 40]) {
    const state = stateOf(many, { keys: new Array(presses).fill('j') })
    t.match(screen(state), new RegExp(`▸ +${presses - 1} +${4000 + presses} `))
    t.ok(stylesOf(state, /▸/).every(style => /selected/.test(style)))
  }
  t.match(screen(stateOf(many)), /workers 40, 1 to \d+/)
})

t.test('a cost of zero bytes per connection is not shown', async t => {
  const snapshots = structuredClone(mockSnapshots({ seconds: 5, connections: 1500 }))
  for (const { capacity } of snapshots)
    Object.assign(capacity, { bytes_per_connection: 0, kernel_per_connection: 0, fits: null, bound: null })
  const line = texts(stateOf(snapshots))[4]
  t.match(line, /capacity not known yet/)
  t.notMatch(line, / each| 0 B/)
})

t.test('the detail has charts of the last minutes of its worker, on every terminal', async t => {
  const died = mockSnapshots({ workers: 3, seconds: 120, connections: 30_000, down: 1 })
  for (const [columns, rows] of sizesOf('60x15 80x24 120x40 220x60')) {
    const delay = columns < 120 ? 'delay, ms' : 'event-loop delay, ms'
    const show = (/** @type {string[]} */ ...keys) => screen(stateOf(died, { ...sized(columns, rows), keys }))
    const text = show('enter')
    t.match(text, new RegExp(`─ ${delay} [\\s\\S]*─ heap `), `${columns}x${rows}`)
    if (columns >= 80) {
      t.match(text, /─ heap ─+ ━ total [\d.]+M {2}━ used [\d.]+M ─/)
      t.match(text, /─ connections ─+ 10,000 ─.*─ messages(?:\/s| a second) ─+ ━ out \d.* ━ in \d+ ─/)
    }
    const ages = text.match(/m ago .*now/g) ?? []
    t.ok(ages.length >= (columns < 80 ? 1 : 2), 'below each other if there are enough rows')
    // The charts differ from those of the worker that died.
    t.not(text, show('j', 'j', 'enter').replace('worker 1', 'worker 0'))
  }
  const gone = died.findIndex(({ workers }) => workers[1].state === 'down')
  const history = stateOf(died).live.history
  t.equal(workerAt(history[gone], 1), null, 'a gap while the worker is down')
  t.match(workerAt(/** @type {any} */ (history.at(-1)), 1), { clients: 10_000 }, 'then its successor')
})

t.test('the history of 256 workers is bounded', async t => {
  const many = mockSnapshots({ workers: 256, seconds: 3, connections: 2560 })
  let { history } = stateOf(many).live
  const last = many[2]
  for (let second = 1; second <= 400; second++) {
    history = withPoint(history, toPoint({ ...last, time: last.time + second * 1000 }), SPAN)
  }
  t.equal(history.length, SPAN)
  const bytes = history.reduce((sum, moment) => sum + (moment?.workers.byteLength ?? 0), 0)
  t.ok(bytes < 2.5 * 1024 ** 2, `${bytes} bytes`)
  t.match(workerAt(history[SPAN - 1], 255), { clients: 10 })
})

t.test('a generated key is on the first screen', async t => {
  const key = '0123456789abcdef0123456789abcdef'
  for (const size of [sized(60, 15), sized(80, 24), sized(220, 60)]) {
    const lines = texts(stateOf(calm, { ...size, key, owner: true }))
    t.match(lines[1], new RegExp(` key {2}${key}`))
    t.match(lines[2], / cpu {2}|capacity/)
    t.notMatch(screen(stateOf(calm, size)), / key {2}/)
  }
})

t.test('the memory chart shows the heap even if its share is small', async t => {
  const state = stateOf(calm, sized(120, 40))
  const moments = state.live.history.map(
    moment => moment && { ...moment, heap: 30e6, native: 400e6, kernel: 9e6 },
  )
  const live = { ...state.live, history: moments, charted: { lines: moments, areas: moments } }
  const shown = { ...state, live }
  t.match(screen(shown), /─ memory ─+ █ heap 28\.6M {2}█ native 381M {2}█ kernel 8\.58M ─/)
  const below = texts(shown).findIndex(line => line.includes('─ memory ─')) + 1
  const areas = render(shown)
    .slice(below)
    .flat()
    .filter(([text]) => /█{20}/.test(text))
  t.same(new Set(areas.map(([, style]) => style)), new Set(['series1', 'series2']))
})

t.test('at 120 columns each worker has a sparkline of its delays', async t => {
  const lines = texts(stateOf(calm, sized(120, 40)))
  t.match(lines[7], /longest delay *$/)
  for (const line of lines.slice(8, 11)) t.match(line, /[▁-█]{12,}$/)
  t.match(texts(stateOf(calm, sized(100, 30)))[6], /longest delay *$/)
})

t.test('stale figures are dimmed, and the reason is shown', async t => {
  let state = stateOf(calm)
  state = reduce(state, { type: 'link', state: 'lost', text: 'no gateway is listening', now: NOW })
  state = reduce(state, { type: 'tick', now: NOW + 12_000 })
  const at = texts(state).findIndex(line => line.includes('gateway unreachable'))
  t.match(texts(state)[at], /, retrying for 12\.0 s \(no gateway is listening\); last update/)
  t.match(screen(state), /30,000/, 'the last picture stays')
  t.same(new Set(stylesOf(state, /30,000/)), new Set(['dim']))
  const silent = reduce(stateOf(calm), { type: 'tick', now: NOW + 9000 })
  t.match(screen(silent), /no data for 9\.0 s/)
})

t.test('before the first snapshot the screen shows the state of the connection', async t => {
  let state = initialState({ look, ...sized(80, 24), source: '/run/8000.sock', now: NOW })
  t.match(screen(state), /Halley[\s\S]*\/run\/8000\.sock[\s\S]*connecting/)
  state = reduce(state, { type: 'link', state: 'lost', text: 'no gateway is listening', now: NOW })
  t.match(screen(state), /no gateway is listening; retrying for 0\.0 s/)
  t.equal(render(state).length, 24)
})

t.test('formats log lines with any content', async t => {
  const line = '{"level":40,"time":"2026-01-05T13:00:00.000Z","pid":7,"msg":"slow client","bytes":9}'
  t.match(plain(logLine(line)), /^ \d\d:\d\d:\d\d WARN {2}slow client {2}pid=7 bytes=9$/)
  t.equal(plain(logLine('no JSON')), ' no JSON')
  t.equal(plain(logLine('null')), ' null')
  t.match(plain(logLine('{"level":35,"msg":{"a":1}}')), /35/)
})

t.test('the layout gives rows to panels by priority', async t => {
  const names = (/** @type {number} */ rows) =>
    layout(stateOf(calm, { ...sized(80, rows), keys: ['l'] })).map(
      ({ panel, rows }) => `${panel.name} ${rows}`,
    )
  t.same(names(24), ['header 5', 'workers 6', 'charts 6', 'log 4', 'event line 1', 'csv 1', 'footer 1'])
  t.same(
    names(15),
    ['header 4', 'workers 4', 'log 4', 'event line 1', 'csv 1', 'footer 1'],
    'the log comes before a chart',
  )
})

t.test('consumers and republishers are a line on a small terminal, a table on a larger one', async t => {
  t.notMatch(screen(stateOf(calm)), /consumers/)
  const small = texts(stateOf(queued)).filter(line => /consumers/.test(line))
  t.same(small, [' consumers 1  skipped 2  lag 5  republishers 1  queue 7  dropped 3'])
  const lines = texts(stateOf(queued, sized(120, 40)))
  const [consumers, orders, republishers, backend] = lines.slice(
    lines.findIndex(line => /─ queues ─/.test(line)) + 1,
  )
  t.match(consumers, /^ consumers .* type +processed +skipped +errors +retries +age, ms +back-off +lag$/)
  t.match(orders, /^ orders +redis_stream +380 +2 +3 +1 +40 +- +5$/)
  t.match(
    republishers,
    /^ republishers +state +sent +confirmed +returned +refused +dropped +queue +bytes +age, ms$/,
  )
  t.match(backend, /^ backend +up +570 +551 +1 +2 +3 +7 +2\.05K +60$/)
})

t.test('maps have a line once there are some', async t => {
  t.notMatch(screen(stateOf(calm)), /^ maps/m)
  const changing = mockSnapshots({ seconds: 20, maps: true })
  t.match(
    screen(stateOf(changing)),
    /^ maps {2}keys 152 {2}publishes 12\/s {2}removals 1\/s {2}expiries 3\/s$/m,
  )
  const removed = structuredClone(changing)
  for (const { totals } of removed) totals.maps.keys = null
  t.match(screen(stateOf(removed)), /^ maps {2}publishes 12/m, 'with Redis')
  t.match(page(stateOf(changing)).map(plain).join('\n'), /^ maps {2}keys 152/m)
})

t.test('shared polls have a line once clients track keys', async t => {
  t.notMatch(screen(stateOf(calm)), /^ polls/m)
  const polling = stateOf(mockSnapshots({ seconds: 20, polls: true }))
  t.match(screen(polling), /^ polls {2}keys 300 {2}calls 2\/s {2}failures 1\/s {2}updates 40\/s$/m)
  t.match(page(polling).map(plain).join('\n'), /^ polls {2}keys 300/m)
})

t.test('failing consumers are shown first among many', async t => {
  const last = structuredClone(/** @type {NonNullable<typeof queued[number]>} */ (queued.at(-1)))
  const [one] = last.consumers?.list ?? []
  last.consumers = {
    list: Array.from({ length: 200 }, (_, i) => ({ ...one, name: `${'long-'.repeat(20)}${i}`, lag: null })),
    api_errors: {},
  }
  last.consumers.list[150] = { ...one, name: 'bad', backoff: 320 }
  for (const republisher of last.republishers ?? []) republisher.up = false
  for (const columns of [60, 80, 200]) {
    const state = stateOf([last], sized(columns, 40))
    t.match(screen(state), /^ bad .*5$/m)
    t.match(screen(state), /^ … \d+ more lines/m)
    t.ok(render(state).every(line => lineWidth(line) <= columns))
    t.same(stylesOf(state, /^320$/), columns === 60 ? [] : ['warn'], 'the back-off')
  }
  t.match(screen(stateOf([last])), / republishers 1 {2}1 down /)
})

t.test('a page of text has no charts and no colours', async t => {
  const state = stateOf(calm, { ...sized(100, 24), look: { unicode: true, colors: false } })
  const text = page(state).map(plain).join('\n')
  t.match(text, /Halley 0\.1\.0/)
  t.match(text, /^ all /m)
  t.notMatch(text, /5m ago/)
})

t.test('the header shows why the slow socket server runs and how to fix that', async t => {
  const command = `npm install uWebSockets.js@https://${'long/'.repeat(20)}end`
  const reason = `uWebSockets.js has no binary for Node.js 26: ${command}`
  const slow = calm.map(snapshot => ({
    ...snapshot,
    node: { ...snapshot.node, driver: 'node', driver_fallback: reason },
  }))
  for (const columns of [80, 120, 200]) {
    const state = stateOf(slow, sized(columns, 40))
    const lines = texts(state).map(line => line.trim())
    const first = lines.findIndex(line => line.startsWith('node driver: '))
    t.equal(first, 1, `${columns} columns`)
    t.ok(
      lines.slice(1, 6).join('').replaceAll(' ', '').startsWith(`node driver: ${reason}`.replaceAll(' ', '')),
    )
    t.match(screen(state), /cpu .*net |cpu .*\n/)
    t.same(stylesOf(state, /^ node driver: /), ['warn'])
  }
  t.notMatch(screen(stateOf(calm, sized(120, 40))), 'node driver:')
  t.notMatch(screen(stateOf(slow, { ...sized(80, 24), keys: ['?'] })), 'node driver:')
})
