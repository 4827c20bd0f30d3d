import t from 'tap'
import { logLine } from '../../dashboard/panels/log.js'
import { SPAN, toPoint, workerAt } from '../../dashboard/picture.js'
import { layout, page, render } from '../../dashboard/screen.js'
import { initialState, reduce } from '../../dashboard/state.js'
import { lineWidth, plain } from '../../dashboard/terminal/line.js'
import { MIN_SIZE } from '../../dashboard/view/screen.js'
import { withPoint } from '../../dashboard/view/state.js'
import { mockSnapshots } from '../metrics/mock.js'

/** @typedef {import('../../dashboard/state.js').State} State */

const NOW = Date.UTC(2026, 0, 5, 13)
const look = { unicode: true, colors: true }

/**
 * @param {import('../../src/metrics/schema.js').Snapshot[]} snapshots
 * @param {object} [options]
 * @param {{columns: number, rows: number}} [options.size]
 * @param {{unicode: boolean, colors: boolean}} [options.look]
 * @param {string[]} [options.keys]
 * @param {boolean} [options.owner]
 * @param {string} [options.key] of the API
 * @returns {State}
 */
function stateOf(
  snapshots,
  { size = { columns: 80, rows: 24 }, look: shows = look, keys = [], owner = false, key = '' } = {},
) {
  let state = initialState({ look: shows, size, source: 'test.sock', now: NOW, owner, key })
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

/**
 * @param {State} state
 * @param {RegExp} text
 * @returns {string[]} styles of the spans with that text
 */
const stylesOf = (state, text) =>
  render(state)
    .flat()
    .filter(span => text.test(span[0]))
    .map(([, style]) => style)

const calm = mockSnapshots({ workers: 3, seconds: 120, connections: 30_000, csv: true, queues: false })

t.test('every size is filled to its last row, and nothing is wider than the terminal', async t => {
  const crowd = mockSnapshots({
    workers: 24,
    seconds: 60,
    connections: 500_000,
    down: 3,
    silent: 5,
    csv: true,
  })
  for (const [columns, rows] of [
    [60, 15],
    [80, 24],
    [100, 30],
    [120, 40],
    [160, 45],
    [220, 60],
    [300, 90],
  ]) {
    for (const keys of [[], ['enter'], ['h'], ['e'], ['l'], ['j', 'g'], ['p']]) {
      for (const snapshots of [calm, crowd]) {
        const state = stateOf(snapshots, { size: { columns, rows }, keys })
        const lines = render(state)
        t.equal(lines.length, rows, `${columns}x${rows} ${keys}`)
        const widest = Math.max(...lines.slice(0, -1).map(lineWidth))
        // Long texts of events and logs are cut by the screen.
        if (keys[0] !== 'e') t.ok(widest <= columns + 1, `${columns}x${rows} ${keys}: ${widest}`)
        t.match(plain(lines.at(-1) ?? []), /q quit/, 'the footer is at the bottom')
      }
    }
  }
})

t.test('a terminal that is too small gets a message', async t => {
  for (const [columns, rows] of [
    [40, 10],
    [59, 24],
    [80, 14],
    [5, 2],
    [1, 1],
  ]) {
    const state = stateOf(calm, { size: { columns, rows } })
    const lines = render(state)
    t.equal(lines.length, rows)
    t.ok(lines.every(line => lineWidth(line) <= columns))
    if (columns > 20) t.match(screen(state), `${columns}x${rows}, needs ${MIN_SIZE.columns}x${MIN_SIZE.rows}`)
  }
})

t.test('80x24: machine, workers, totals, one chart, the last event, the file, the keys', async t => {
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
  const titles = [
    'connections',
    'messages a second',
    'event-loop delay, ms',
    'memory',
    'bytes a connection',
    'CPU, of one core',
  ]
  for (const [presses, title] of titles.entries()) {
    const text = screen(stateOf(calm, { keys: new Array(presses).fill('c') }))
    t.match(text, new RegExp(`─ ${title} .*${presses + 1}/6`))
    t.equal([...text.matchAll(/\d\/6 ─/g)].length, 1, 'one at a time')
  }
  t.match(screen(stateOf(calm, { keys: new Array(6).fill('tab') })), /─ connections .*1\/6/)
})

t.test('220x60: all columns, all charts side by side, the last events', async t => {
  const text = screen(stateOf(calm, { size: { columns: 220, rows: 60 } }))
  t.match(text, /─ connections .*─ messages a second .*─ event-loop delay, ms /)
  t.match(text, /─ memory .*─ bytes a connection .*─ CPU, of one core /)
  t.match(text, /# +pid +up +died +cpu +rss +clients +new\/s +subs +chans .* outbox +largest +longest delay/)
  t.match(text, /primary 4000 +\d+% [\d.]+ MB/)
  t.match(text, /─ events ─/)
})

t.test('a blocked event loop is marked in its row, by colour or without colours by a sign', async t => {
  const blocked = calm.findIndex(({ workers }) => (workers[0].sample?.loop.ticks.max ?? 0) >= 200)
  const past = calm.slice(0, blocked + 1)
  t.same(stylesOf(stateOf(past), /^200$/), ['warn', 'warn header'], 'the worker, and all')
  const mono = texts(stateOf(past, { look: { unicode: false, colors: false } }))
  t.match(mono[7], / 200~/)
  t.notMatch(mono[8], /~/)
})

t.test('the row of a dead or silent worker says so', async t => {
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

t.test('narrow terminals omit the least important columns', async t => {
  const heads = (/** @type {number} */ columns) => texts(stateOf(calm, { size: { columns, rows: 24 } }))[6]
  t.match(heads(130), /outbox/)
  t.notMatch(heads(80), /outbox/)
  t.match(heads(80), /pid/)
  t.notMatch(texts(stateOf(calm, { size: { columns: 60, rows: 24 } })).join('\n'), / pid /)
  t.match(texts(stateOf(calm, { size: { columns: 60, rows: 24 } })).join('\n'), /clients .* avg +p90 +max/)
})

t.test('values unknown outside Linux are not shown as zero', async t => {
  const text = screen(stateOf(mockSnapshots({ seconds: 5, elsewhere: true })))
  t.match(text, /net {2}in -\/s {2}out -\/s {2}sockets - {2}tcp - {2}overflows -/)
  t.match(
    screen(stateOf(mockSnapshots({ seconds: 5, elsewhere: true }), { keys: ['c', 'c', 'c'] })),
    /kernel - ─|kernel - /,
  )
})

t.test('no capacity is estimated from few connections', async t => {
  t.match(
    screen(stateOf(mockSnapshots({ seconds: 5, connections: 10 }))),
    /capacity known from 1,000 connections on/,
  )
})

t.test('a cost per connection of zero bytes is not shown', async t => {
  const snapshots = structuredClone(mockSnapshots({ seconds: 5, connections: 1500 }))
  for (const { capacity } of snapshots)
    Object.assign(capacity, { bytes_per_connection: 0, kernel_per_connection: 0, fits: null, bound: null })
  const line = texts(stateOf(snapshots))[4]
  t.match(line, /capacity not known yet/)
  t.notMatch(line, / each| 0 B/)
})

t.test('charts side by side on 100 columns name all their series', async t => {
  const text = screen(stateOf(calm, { size: { columns: 100, rows: 50 }, keys: ['c', 'c', 'c'] }))
  for (const name of ['heap', 'native', 'kernel']) t.match(text, new RegExp(`─ memory [^]* ${name}`))
})

t.test('a machine without a limit of open files shows no limit', async t => {
  const snapshots = mockSnapshots({ seconds: 5, connections: 10 })
  t.match(
    screen(stateOf(snapshots, { size: { columns: 120, rows: 40 } })),
    /machine [\d,.]+k?\/[\d,.]+[kM]? files/,
  )
  for (const { machine } of snapshots) machine.files = { open: 8497, limit: 2 ** 63 }
  t.match(screen(stateOf(snapshots, { size: { columns: 120, rows: 40 } })), /machine 8,497 files/)
})

t.test('the detail of a worker: loop, heap spaces, GC, transports, close codes', async t => {
  const text = screen(stateOf(calm, { keys: ['j', 'enter'], size: { columns: 220, rows: 60 } }))
  t.match(text, /─ worker 0 {2}up {2}pid 4001 {2}up 2:01 ─/)
  for (const what of [
    /delay p99 +[\d.]+ ms/,
    /old +█* .*[\d.]+M\/[\d.]+M/,
    /large object/,
    /minor +\d+\/s +[\d.]+ ms/,
    /websocket protobuf +1,500/,
  ])
    t.match(text, what)
  for (const what of ['array buffers', 'close codes', 'commands', 'server API', 'subscriptions', 'files'])
    t.match(text, what)
  t.match(
    screen(stateOf(calm, { keys: ['enter'] })),
    /page down more/,
    'where it does not fit, there is more',
  )
})

t.test("the detail has charts of that worker's last minutes, on every terminal", async t => {
  const died = mockSnapshots({ workers: 3, seconds: 120, connections: 30_000, down: 1 })
  for (const [columns, rows, delay] of /** @type {const} */ ([
    [60, 15, 'delay, ms'],
    [80, 24, 'delay, ms'],
    [120, 40, 'event-loop delay, ms'],
    [220, 60, 'event-loop delay, ms'],
  ])) {
    const show = (/** @type {string[]} */ ...keys) => screen(stateOf(died, { size: { columns, rows }, keys }))
    const text = show('enter')
    t.match(text, new RegExp(`─ ${delay} [^]*─ heap `), `${columns}x${rows}`)
    if (columns >= 80) {
      t.match(text, /─ heap ─+ ━ total [\d.]+M {2}━ used [\d.]+M ─/)
      t.match(text, /─ connections ─+ 10,000 ─.*─ messages(?:\/s| a second) ─+ ━ out \d.* ━ in \d+ ─/)
    }
    const ages = text.match(/m ago .*now/g) ?? []
    t.ok(ages.length >= (columns < 80 ? 1 : 2), 'one below the other where the rows are there')
    // The worker that died is another one's neighbour: their charts are not the same.
    t.not(text, show('j', 'j', 'enter').replace('worker 1', 'worker 0'))
  }
  t.match(
    screen(stateOf(calm, { size: { columns: 60, rows: 15 }, keys: ['c', 'c', 'enter'] })),
    /─ connections .*─ messages/,
    'where not all fit, c goes through them',
  )
  const gone = died.findIndex(({ workers }) => workers[1].state === 'down')
  const history = stateOf(died).live.history
  t.equal(workerAt(history[gone], 1), null, 'while nobody is there, there is a gap')
  t.match(workerAt(/** @type {any} */ (history.at(-1)), 1), { clients: 10_000 }, 'and then its successor')
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
  for (const size of [
    { columns: 60, rows: 15 },
    { columns: 80, rows: 24 },
    { columns: 220, rows: 60 },
  ]) {
    const lines = texts(stateOf(calm, { size, key, owner: true }))
    t.match(lines[1], new RegExp(` key {2}${key}`))
    t.match(lines[2], / cpu {2}|capacity/)
    t.notMatch(texts(stateOf(calm, { size })).join('\n'), / key {2}/)
  }
})

t.test('the memory chart shows the heap however small its share', async t => {
  const state = stateOf(calm, { size: { columns: 120, rows: 40 } })
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
  const lines = texts(stateOf(calm, { size: { columns: 120, rows: 40 } }))
  t.match(lines[7], /longest delay *$/)
  for (const line of lines.slice(8, 11)) t.match(line, /[▁-█]{12,}$/)
  t.match(texts(stateOf(calm, { size: { columns: 100, rows: 30 } }))[6], /longest delay *$/)
})

t.test('help names every key and every limit', async t => {
  const text = screen(stateOf(calm, { keys: ['h'] }))
  for (const what of [
    'sort',
    'restart',
    'garbage collection',
    'pause',
    'log',
    'quit; the gateway keeps running',
    '20 ms',
  ])
    t.match(text, what)
  t.match(screen(stateOf(calm, { keys: ['h'], look: { unicode: false, colors: false } })), /~ from +! from/)
})

t.test('questions are shown in front of the screen with their context', async t => {
  t.match(
    screen(stateOf(calm, { keys: ['j', 'r'] })),
    /restart worker 0\?[\s\S]*its 10,000 clients will have to connect again[\s\S]* y {2}restart/,
  )
  t.match(
    screen(stateOf(calm, { keys: ['r'] })),
    /restart all workers\?[\s\S]*one after another[\s\S]* a {2}restart all/,
  )
  t.match(
    screen(stateOf(calm, { keys: ['j', 'g'] })),
    /garbage collection[\s\S]* w {2}worker 0 .* a {2}all workers/,
  )
  t.match(
    screen(stateOf(calm, { keys: ['q'], owner: true })),
    /s {2}stop it .* l {2}leave it running, without dashboard .* n {2}stay/,
  )
  for (const line of render(stateOf(calm, { keys: ['j', 'r'] }))) t.ok(lineWidth(line) <= 81)
})

t.test('stale figures are dimmed, with the reason', async t => {
  let state = stateOf(calm)
  state = reduce(state, { type: 'link', state: 'lost', text: 'there is no gateway', now: NOW })
  state = reduce(state, { type: 'tick', now: NOW + 12_000 })
  const at = texts(state).findIndex(line => line.includes('gateway gone'))
  t.match(texts(state)[at], /gateway gone, retrying for 12\.0 s \(there is no gateway\); figures of/)
  t.match(screen(state), /30,000/, 'the last picture stays')
  t.same(new Set(stylesOf(state, /30,000/)), new Set(['dim']))
  const silent = reduce(stateOf(calm), { type: 'tick', now: NOW + 9000 })
  t.match(screen(silent), /no data for 9\.0 s/)
  t.match(screen(stateOf(calm, { keys: ['p'] })), /paused at \d\d:\d\d:\d\d; p continues/)
})

t.test('before the first figures it says what it waits for', async t => {
  let state = initialState({ look, size: { columns: 80, rows: 24 }, source: '/run/8000.sock', now: NOW })
  t.match(screen(state), /Halley[\s\S]*\/run\/8000\.sock[\s\S]*connecting/)
  state = reduce(state, { type: 'link', state: 'lost', text: 'there is no gateway', now: NOW })
  t.match(screen(state), /there is no gateway; retrying for 0\.0 s/)
  t.equal(render(state).length, 24)
})

t.test('log lines are formatted for people, whatever their content', async t => {
  const line = JSON.stringify({
    level: 40,
    time: '2026-01-05T13:00:00.000Z',
    pid: 7,
    msg: 'slow client',
    bytes: 9,
  })
  t.match(plain(logLine(line)), /^ \d\d:\d\d:\d\d WARN {2}slow client {2}pid=7 bytes=9$/)
  t.equal(plain(logLine('no JSON')), ' no JSON')
  t.equal(plain(logLine('null')), ' null')
  t.match(plain(logLine('{"level":35,"msg":{"a":1}}')), /35/)
})

t.test('the layout gives rows to panels by priority', async t => {
  const names = (/** @type {number} */ rows) =>
    layout(stateOf(calm, { size: { columns: 80, rows }, keys: ['l'] })).map(
      ({ panel, rows }) => `${panel.name} ${rows}`,
    )
  t.same(names(24), ['header 5', 'workers 6', 'charts 6', 'log 4', 'event line 1', 'csv 1', 'footer 1'])
  t.same(
    names(15),
    ['header 4', 'workers 4', 'log 4', 'event line 1', 'csv 1', 'footer 1'],
    'what was asked for has its place before a chart',
  )
})

const queued = mockSnapshots({ seconds: 20, csv: true })

t.test('consumers and republishers have a line on a small terminal, and a table on a larger one', async t => {
  t.notMatch(screen(stateOf(calm)), /consumers/)
  const small = texts(stateOf(queued)).filter(line => /consumers/.test(line))
  t.same(small, [' consumers 1  skipped 2  lag 5  republishers 1  queue 7  dropped 3'])
  const [title, consumers, orders, republishers, backend] = texts(
    stateOf(queued, { size: { columns: 120, rows: 40 } }),
  ).slice(
    texts(stateOf(queued, { size: { columns: 120, rows: 40 } })).findIndex(line => /─ queues/.test(line)),
  )
  t.match(title, /─ queues ─/)
  t.match(consumers, /^ consumers .* type +processed +skipped +errors +retries +age, ms +back-off +lag$/)
  t.match(orders, /^ orders +redis_stream +380 +2 +3 +1 +40 +- +5$/)
  t.match(
    republishers,
    /^ republishers +state +sent +confirmed +returned +refused +dropped +queue +bytes +age, ms$/,
  )
  t.match(backend, /^ backend +up +570 +551 +1 +2 +3 +7 +2\.05K +60$/)
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
    const state = stateOf([last], { size: { columns, rows: 40 } })
    t.match(screen(state), /^ bad .*5$/m)
    t.match(screen(state), /^ … \d+ more lines/m)
    t.ok(render(state).every(line => lineWidth(line) <= columns))
    t.same(stylesOf(state, /^320$/), columns === 60 ? [] : ['warn'], 'the back-off')
  }
  t.match(screen(stateOf([last])), / republishers 1 {2}1 down /)
})

t.test('a page of text has no charts and no colours', async t => {
  const state = stateOf(calm, { size: { columns: 100, rows: 24 }, look: { unicode: true, colors: false } })
  const text = page(state).map(plain).join('\n')
  t.match(text, /Halley 0\.1\.0/)
  t.match(text, /^ all /m)
  t.notMatch(text, /5m ago/)
})

t.test('the header says why the slow socket server runs and how to change that', async t => {
  const command = `npm install uWebSockets.js@https://${'long/'.repeat(20)}end`
  const reason = `uWebSockets.js has no binary for Node.js 26: ${command}`
  const slow = calm.map(snapshot => ({
    ...snapshot,
    node: { ...snapshot.node, driver: 'node', driver_fallback: reason },
  }))
  for (const columns of [80, 120, 200]) {
    const state = stateOf(slow, { size: { columns, rows: 40 } })
    const lines = texts(state).map(line => line.trim())
    const first = lines.findIndex(line => line.startsWith('node driver: '))
    t.equal(first, 1, `${columns} columns`)
    t.ok(
      lines.slice(1, 6).join('').replaceAll(' ', '').startsWith(`node driver: ${reason}`.replaceAll(' ', '')),
    )
    t.match(screen(state), /cpu .*net |cpu .*\n/)
    t.same(stylesOf(state, /^ node driver: /), ['warn'])
  }
  t.notMatch(screen(stateOf(calm, { size: { columns: 120, rows: 40 } })), 'node driver:')
  t.notMatch(screen(stateOf(slow, { size: { columns: 80, rows: 24 }, keys: ['?'] })), 'node driver:')
})
