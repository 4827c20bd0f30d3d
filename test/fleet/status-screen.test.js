// The real view on a real terminal: what is seen, what keys do, and that the terminal is given back.

import { once } from 'node:events'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { eventually, Tmux } from '../dashboard/tmux.js'
import { mockSnapshots } from './mock-snapshot.js'

const PROGRAM = fileURLToPath(new URL('status-program.js', import.meta.url))
const snapshots = mockSnapshots({ drones: 3, faults: { ECONNREFUSED: 17 } })
const last = /** @type {import('../../fleet/schema.js').FleetSnapshot} */ (snapshots.at(-1))

/**
 * A terminal on which the view runs, and the controller that it sees.
 * @param {import('tap').Test} t
 * @param {object} [options]
 * @param {object} [options.flags]
 * @param {Parameters<typeof Tmux.start>[1]} [options.place]
 * @param {boolean} [options.fed] whether the snapshots are told
 * @param {string} [options.pipe] behind the command
 */
async function open(t, { flags = {}, place = {}, fed = true, pipe = '' } = {}) {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const tmux = await Tmux.start(t, place)
  await tmux.line("clear; echo what was bef''ore")
  await tmux.until('what was before')
  const settings = await tmux.settings()
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  await tmux.line(`${process.execPath} ${PROGRAM} ${port} '${JSON.stringify(flags)}'${pipe}; echo exit $?`)
  const [socket] = await once(server, 'connection')
  t.teardown(() => socket.destroy())
  socket.on('error', () => {})
  /** @type {any[]} */
  const asked = []
  let pid = 0
  const greeted = new Promise(resolve => {
    const lines = createInterface({ input: socket })
    // It says the errors of its socket again.
    lines.on('error', () => {})
    lines.on('line', line => {
      const message = JSON.parse(line)
      if (message.pid === undefined) asked.push(message)
      else {
        pid = message.pid
        resolve(undefined)
      }
    })
  })
  await greeted
  const tell = (/** @type {object} */ message) => socket.write(`${JSON.stringify(message)}\n`)
  const beat = () => tell({ snapshot: { ...last, time: last.time + 1000 } })
  if (fed) {
    for (const snapshot of snapshots) tell({ snapshot })
    const beating = setInterval(beat, 1000)
    t.teardown(() => clearInterval(beating))
  }
  return { tmux, settings, asked, tell, beat, pid }
}

/** @param {import('tap').Test} t @param {Tmux} tmux @param {string} settings @param {RegExp} ended */
async function isAsBefore(t, tmux, settings, ended) {
  t.match(await tmux.until(ended), 'what was before', 'the screen is the one from before')
  t.equal(await tmux.settings(), settings, 'stty says the same')
  t.equal(await tmux.ask('alternate_on'), '0')
  t.equal(await tmux.ask('cursor_flag'), '1')
}

t.test('80x24: everything is there, keys work, q gives the terminal back', async t => {
  const { tmux, settings, asked, tell } = await open(t)
  const screen = await tmux.until(/^ all .*100,000/m)
  t.match(screen, /^ halley fleet {2}r-7f3a90 .*\n open .*\n rates .*\n checked .*lost 0 /)
  t.match(screen, /─ connections ─+ 100,000 .*1\/4 ─/)
  t.match(screen, /q leave, load goes on$/)
  await tmux.keys('Down')
  await tmux.until(/^▸d1 /m)
  await tmux.keys('j', 'Enter')
  t.match(await tmux.until('─ drone d2  up  local'), /wanted +33,333/)
  await tmux.keys('Escape')
  await tmux.until(/^▸d2 /m)
  await tmux.keys('c')
  await tmux.until(/─ latency of all, ms ─+/)
  await tmux.keys('t')
  await tmux.until('latency of the last 5 s')
  await tmux.keys('h')
  await tmux.until('leave; the load goes on')
  await tmux.keys('h', 'e')
  await tmux.until('events, the last 2')
  await tmux.keys('e', 'f')
  await tmux.until(/─ faults of all drones ─+/)
  await tmux.keys('f', 's')
  await tmux.until('by state▲')
  await tmux.keys('p')
  await tmux.until(/paused at \d\d:\d\d:\d\d; p goes on/)
  await tmux.keys('p', 'r')
  await tmux.until('restart d2?')
  await tmux.keys('n', 'r', 'y')
  await tmux.until('d2 is asked to restart')
  tell({ answer: 1 })
  await tmux.until('restart of d2: done')
  await tmux.keys('n')
  await tmux.until('100,000 →')
  await tmux.type('20k')
  await tmux.keys('Enter')
  await tmux.until(/n 100,000 → 20,000/)
  tell({ answer: 2, error: 'd1: too many' })
  await tmux.until('n 100,000 → 20,000: d1: too many')
  await tmux.keys('-')
  await tmux.until('n 100,000 → 90,000')
  t.same(
    asked.map(({ name, params }) => ({ name, params })),
    [
      { name: 'restart', params: { ids: ['d2'] } },
      { name: 'set', params: { n: 20_000 } },
      { name: 'set', params: { n: 90_000 } },
    ],
  )
  await tmux.keys('q')
  await isAsBefore(t, tmux, settings, /the view has ended\nexit 0/)
})

t.test('a controller that goes leaves its last picture, and is there again', async t => {
  const { tmux, tell, beat } = await open(t, { fed: false })
  await tmux.until('the first figures come within a second')
  tell({ lost: 'ECONNREFUSED' })
  await tmux.until(/no controller for .*ECONNREFUSED/)
  for (const snapshot of snapshots) tell({ snapshot })
  await tmux.until(/^ all .*100,000/m)
  tell({ lost: 'it has ended' })
  t.match(await tmux.until(/controller gone for .*it has ended/), /^ all .*100,000/m)
  beat()
  await tmux.until(screen => !screen.includes('controller gone'))
  await tmux.until(/nothing has come for .*: controller stuck or stopped/)
})

t.test('another size is another layout, down to one that is too small', async t => {
  const { tmux } = await open(t, { place: { columns: 220, rows: 60 } })
  const wide = await tmux.until(
    /─ connections .*─ latency of all, ms .*─ messages a second .*─ latency of 5 s/,
  )
  t.match(wide, /─ events ─+ {2}─ faults ─/)
  await tmux.resize(40, 10)
  await tmux.until('terminal too small')
  await tmux.resize(120, 40)
  t.match(await tmux.until(/─ connections .*─ latency of all, ms ─/), /q leave, load goes on$/)
})

t.test('signals end it as q does', async t => {
  const { tmux, settings, pid } = await open(t)
  await tmux.until(/^ all .*100,000/m)
  process.kill(pid, 'SIGTERM')
  await isAsBefore(t, tmux, settings, /the view has ended\nexit 0/)
})

t.test('killed, it leaves the terminal as it was, too', async t => {
  const { tmux, settings, pid } = await open(t)
  await tmux.until(/^ all .*100,000/m)
  process.kill(pid, 'SIGKILL')
  const away = await eventually(
    () => tmux.ask('alternate_on'),
    on => on === '0',
  )
  t.equal(away, '0')
  // What the shell says meanwhile may be lost with the screen.
  const after = await eventually(
    () => tmux.settings(),
    now => now === settings,
  )
  t.equal(after, settings)
  await tmux.line("echo a''gain")
  await isAsBefore(t, tmux, settings, /again/)
})

t.test('without a screen it is one page of text: dumb terminals, pipes, no colours, ASCII', async t => {
  const dumb = await open(t, { place: { term: 'dumb', rows: 50 } })
  t.match(await dumb.tmux.until('exit 0'), /halley fleet {2}r-7f3a90[\s\S]*\n all /)
  const piped = await open(t, { pipe: ' | cat', place: { columns: 130, rows: 50, env: { LC_ALL: 'C' } } })
  const page = await piped.tmux.until('exit 0')
  t.match(page, /halley fleet {2}r-7f3a90[\s\S]*\n all /)
  t.match(page, /^[ -~\n]*$/)
  const ascii = await open(t, { flags: { ascii: true, noColor: true, mute: true } })
  t.match(await ascii.tmux.until(/^ all .*100,000/m), /^[ -~\n]*$/)
  t.notMatch(await ascii.tmux.styled(), /\x1b\[[0-9;]*3[0-8]/, 'no colours')
  await ascii.tmux.keys('+')
  await ascii.tmux.until('this view only shows')
})
