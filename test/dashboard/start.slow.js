import { existsSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { needsTmux } from '../kit/tmux.js'
import { eventually } from '../kit/wait.js'
import {
  becomesHealthy,
  DASHBOARD,
  descendants,
  GATEWAY,
  health,
  isFree,
  isLeft,
  pidOf,
  start,
} from './npm-start.js'

needsTmux(t)

t.test('the gateway can continue without dashboard and logs to the terminal', async t => {
  const terminal = await start(t)
  const { tmux, port } = terminal
  await tmux.until('workers 2')
  await tmux.keys('q')
  await tmux.keys('l')
  await tmux.until('the gateway keeps running')
  t.ok(await becomesHealthy(port))
  const shell = Number(await tmux.display('pane_pid'))
  const worker = (await descendants(shell)).find(({ command }) =>
    command.includes('src/processes/worker/main.js'),
  )
  process.kill(/** @type {{pid: number}} */ (worker).pid, 'SIGKILL')
  await tmux.until('worker died')
  await tmux.keys('C-c')
  await tmux.until('bye')
  await isFree(t, terminal)
})

t.test('a killed dashboard leaves the terminal restored and the gateway running', async t => {
  const terminal = await start(t)
  const { tmux, port } = terminal
  await tmux.until('workers 2')
  process.kill(await pidOf(tmux, DASHBOARD), 'SIGKILL')
  await tmux.until('the dashboard failed: SIGKILL')
  t.ok(await becomesHealthy(port))
  await isLeft(t, terminal)
  await tmux.keys('C-c')
  await tmux.until('bye')
  await isFree(t, terminal)
})

t.test('log lines after a killed dashboard are not lost with its screen, however late that ends', async t => {
  const terminal = await start(t)
  const { tmux } = terminal
  await tmux.until('workers 2')
  const dashboard = await pidOf(tmux, DASHBOARD)
  const [guard] = await eventually(
    () => descendants(dashboard),
    found => found.length === 1,
  )
  process.kill(guard.pid, 'SIGSTOP')
  process.kill(dashboard, 'SIGKILL')
  await wait(1500)
  process.kill(guard.pid, 'SIGCONT')
  await isLeft(t, terminal)
  t.ok(await tmux.until('the dashboard failed: SIGKILL'))
  await tmux.keys('C-c')
  await tmux.until('bye')
  await isFree(t, terminal)
})

t.test('a killed gateway ends the dashboard and the terminal is restored', async t => {
  const terminal = await start(t)
  const { tmux } = terminal
  await tmux.until('workers 2')
  process.kill(await pidOf(tmux, GATEWAY), 'SIGKILL')
  // The shell does not wait for the dashboard: what it says first may still be on the dashboard's screen.
  await isLeft(t, terminal)
  await tmux.enter("echo shell is h''ere")
  await tmux.until('shell is here')
  await isFree(t, terminal)
})

t.test('closing the terminal ends both', async t => {
  const { tmux, port } = await start(t)
  await tmux.until('workers 2')
  const gateway = await pidOf(tmux, GATEWAY)
  await tmux.end()
  t.equal(
    await eventually(
      () => descendants(gateway),
      found => found.length === 0,
    ).then(found => found.length),
    0,
  )
  t.equal(
    await eventually(
      () => existsSync(`/proc/${gateway}`),
      there => !there,
    ),
    false,
  )
  t.equal(await health(port), null)
})

t.test('SIGTERM ends both', async t => {
  const terminal = await start(t)
  const { tmux } = terminal
  await tmux.until('workers 2')
  process.kill(await pidOf(tmux, GATEWAY), 'SIGTERM')
  await tmux.until(/ended with \d/)
  t.match(await tmux.screen(), 'bye')
  await isFree(t, terminal)
})

t.test('a hanging dashboard does not delay the end of the gateway', async t => {
  const terminal = await start(t)
  const { tmux } = terminal
  await tmux.until('workers 2')
  process.kill(await pidOf(tmux, DASHBOARD), 'SIGSTOP')
  process.kill(await pidOf(tmux, GATEWAY), 'SIGTERM')
  await tmux.until(/ended with \d/)
  t.match(await tmux.screen(), 'bye')
  await isFree(t, terminal)
})

t.test('--no-dashboard prints log lines', async t => {
  const { tmux, port } = await start(t, '--no-dashboard')
  await tmux.until('halley listens')
  t.equal(await tmux.display('alternate_on'), '0')
  t.ok(await becomesHealthy(port))
  await tmux.keys('C-c')
  await tmux.until('bye')
})
