// The real program on a real terminal: what is seen, and what keys do.

import { join } from 'node:path'
import t from 'tap'
import { EXIT_CODES } from '../../src/base/dashboard-exit.js'
import { tempDir } from '../kit/folders.js'
import { needsTmux } from '../kit/tmux.js'
import { mock, open } from './support.js'

needsTmux(t)

// Each test waits for a terminal of its own.
t.jobs = 2

t.test('keys: select, detail, help, events, charts, sort, pause', async t => {
  const gateway = await mock(t, { workers: 3 })
  const { tmux } = await open(t, gateway.path)
  await tmux.until(/^ all /m)
  await tmux.keys('Down')
  await tmux.until(/^▸ +0 /m)
  await tmux.keys('j')
  await tmux.until(/^▸ +1 /m)
  await tmux.keys('Enter')
  t.ok(await tmux.until(/─ worker 1 {2}up {2}pid 4002[\s\S]*heap[\s\S]*old .*M\/.*M/))
  await tmux.keys('Up')
  await tmux.until('─ worker 0  up')
  await tmux.keys('Escape')
  await tmux.until(/^▸ +0 /m)
  await tmux.keys('h')
  await tmux.until('quit; the gateway keeps running')
  await tmux.keys('Escape')
  await tmux.until(/^▸ +0 /m)
  await tmux.keys('e')
  await tmux.until(/─ events, \d+, newest first/)
  await tmux.keys('e')
  await tmux.keys('c')
  await tmux.until('messages a second')
  await tmux.keys('Tab')
  await tmux.until(/─ event-loop delay, ms ─+ .*p90/)
  await tmux.keys('s')
  await tmux.until('sort: clients▼')
  await tmux.keys('S')
  await tmux.until('sort: clients▲')
  await tmux.keys('p')
  await tmux.until(/paused at \d\d:\d\d:\d\d; p continues/)
  await tmux.keys('p')
  await tmux.until(screen => !screen.includes('paused'))
  await tmux.keys('C-c')
  await tmux.until(`exit ${EXIT_CODES.quit}`)
})

t.test('commands reach the gateway, a restart only after confirmation', async t => {
  const gateway = await mock(t)
  const { tmux } = await open(t, gateway.path)
  await tmux.until(/^ all /m)
  await tmux.keys('g')
  await tmux.until('it blocks a worker for some milliseconds')
  await tmux.keys('a')
  await tmux.until('garbage collection: done')
  await tmux.keys('Down', 'r')
  await tmux.until('restart worker 0?')
  await tmux.keys('n')
  await tmux.until(screen => !screen.includes('restart worker 0?'))
  await tmux.keys('r')
  await tmux.until('restart worker 0?')
  await tmux.keys('y')
  await tmux.until('restart: done')
  await tmux.keys('l')
  await tmux.until('no log lines yet')
  gateway.say(
    `${JSON.stringify({ type: 'log', line: '{"level":30,"msg":"a word \\u001b[31mof the log"}' })}\n`,
  )
  await tmux.until('INFO  a word of the log')
  t.same(gateway.commands, [
    { type: 'gc', worker: null },
    { type: 'restart', worker: 0 },
    { type: 'log', on: true },
  ])
})

t.test('the layout follows the terminal size, down to one that is too small', async t => {
  const gateway = await mock(t)
  const { tmux } = await open(t, gateway.path, { columns: 220, rows: 60 })
  const wide = [
    /─ CPU, of one core ─/,
    /─ connections .*─ messages a second .*─ event-loop delay, ms /,
    /largest +longest delay/,
  ]
  await tmux.until(screen => wide.every(text => text.test(screen)))
  await tmux.resize(80, 24)
  await tmux.until(/1\/6[\s\S]*q quit$/)
  await tmux.resize(40, 10)
  await tmux.until('terminal too small')
  await tmux.resize(120, 50)
  t.ok(await tmux.until(/─ event-loop delay, ms ─+ .*p90[\s\S]*q quit$/))
})

t.test('without UTF-8 and colours it prints only ASCII and marks health with signs', async t => {
  const gateway = await mock(t)
  const block = gateway.snapshots.findIndex(({ workers }) => (workers[0].sample?.loop.ticks.max ?? 0) >= 200)
  const { tmux } = await open(t, `${gateway.path} --ascii --no-color`)
  await tmux.until(/^ all /m)
  gateway.send({ ...gateway.snapshots[block], time: Date.now() })
  const screen = await tmux.until(/^ +0 .* 200~/m)
  t.match(screen, /^[ -~\n]*$/)
  t.notMatch(await tmux.styled(), /\x1b\[[0-9;]*3[0-8]/, 'no colours')
  await tmux.keys('q')
  await tmux.until('exit 0')
})

t.test('sends only what locale and terminal can show', async t => {
  const gateway = await mock(t)
  const { tmux } = await open(t, gateway.path, { env: { LC_ALL: 'C', NO_COLOR: '1' } })
  t.match(await tmux.until(/^ all /m), /^[ -~\n]*$/)
  t.notMatch(await tmux.styled(), /\x1b\[[0-9;]*3[0-8]/)
})

t.test('a lost gateway leaves its last figures on the screen and is found again', async t => {
  const gateway = await mock(t)
  const { tmux } = await open(t, gateway.path)
  await tmux.until(/^ all .*20,000/m)
  await gateway.close()
  const gone = await tmux.until(/gateway gone, retrying for [\d.]+ s/)
  t.match(gone, /^ all .*20,000/m)
  const again = await mock(t, { connections: 12_345 }, gateway.path)
  t.notMatch(await tmux.until(/─ connections ─+ 12,34\d /), 'gateway gone')
  t.ok(again.connections > 0)
})

t.test('a dashboard can start before its gateway', async t => {
  const path = join(tempDir(t), 'later.sock')
  const { tmux } = await open(t, path)
  await tmux.until('there is no gateway')
  await mock(t, {}, path)
  t.ok(await tmux.until(/^ all .*20,000[\s\S]*q quit$/m))
})
