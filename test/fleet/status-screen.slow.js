// The real view on real terminals of all kinds, and its ends.

import t from 'tap'
import { assertRestored, needsTmux } from '../kit/tmux.js'
import { open, snapshots } from './status-terminal.js'

needsTmux(t)

// Each test waits for a terminal of its own.
t.jobs = 2

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
  await tmux.until(/no data for .*: controller stuck or stopped/)
})

t.test('another size is another layout, down to one that is too small', async t => {
  const { tmux } = await open(t, { place: { columns: 220, rows: 60 } })
  const wide = [
    /─ events ─+ {2}─ faults ─/,
    /─ connections .*─ latency of all, ms [\s\S]*─ messages a second .*─ latency of 5 s, ms/,
  ]
  await tmux.until(screen => wide.every(text => text.test(screen)))
  await tmux.resize(40, 10)
  await tmux.until('terminal too small')
  await tmux.resize(120, 40)
  t.ok(await tmux.until(/─ connections .*─ latency of all, ms ─[\s\S]*q quit, load continues$/))
})

t.test('signals end it as q does', async t => {
  const terminal = await open(t)
  const { tmux, pid } = terminal
  await tmux.until(/^ all .*100,000/m)
  process.kill(pid, 'SIGTERM')
  await assertRestored(t, terminal, /the view has ended\nexit 0/)
})

t.test('killed, it leaves the terminal as it was, too', async t => {
  const terminal = await open(t)
  const { tmux, pid } = terminal
  await tmux.until(/^ all .*100,000/m)
  process.kill(pid, 'SIGKILL')
  // What the shell prints meanwhile may be lost with the screen.
  await assertRestored(t, terminal)
  await tmux.enter("echo a''gain")
  await assertRestored(t, terminal, /again/)
})

t.test('a terminal of an unknown kind is drawn on as xterm is, and given back', async t => {
  const terminal = await open(t, { place: { term: 'nonsense' } })
  const { tmux } = terminal
  t.match(
    await tmux.until(/^ all .*100,000[\s\S]* q quit, load continues$/m),
    /─ connections ─+ .*open 100,000 /,
  )
  await tmux.keys('Down')
  await tmux.until(/^▸d1 /m)
  await tmux.keys('q')
  await assertRestored(t, terminal, /the view has ended\nexit 0/)
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
  await ascii.tmux.until('this view is read-only')
})
