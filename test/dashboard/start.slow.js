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

t.test('the gateway can continue without the dashboard, and logs to the terminal', async t => {
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
  await tmux.until('gateway stopped')
  await isFree(t, terminal)
})

t.test('a killed dashboard leaves the gateway running, and no log line is lost', async t => {
  const terminal = await start(t)
  const { tmux, port } = terminal
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
  t.ok(await tmux.until('dashboard failed; the gateway keeps running'))
  t.ok(await becomesHealthy(port))
  await tmux.keys('C-c')
  await tmux.until('gateway stopped')
  await isFree(t, terminal)
})

t.test('a killed gateway ends the dashboard and the terminal is restored', async t => {
  const terminal = await start(t)
  const { tmux } = terminal
  await tmux.until('workers 2')
  process.kill(await pidOf(tmux, GATEWAY), 'SIGKILL')
  // The shell does not wait for the dashboard: its first output may still be on the dashboard's screen.
  await isLeft(t, terminal)
  await tmux.enter("echo shell is h''ere")
  await tmux.until('shell is here')
  await isFree(t, terminal)
})

t.test('closing the terminal ends dashboard and gateway', async t => {
  const { tmux, port } = await start(t)
  await tmux.until('workers 2')
  const gateway = await pidOf(tmux, GATEWAY)
  await tmux.end()
  const processes = async () => [
    ...(await descendants(gateway)),
    ...(existsSync(`/proc/${gateway}`) ? [gateway] : []),
  ]
  t.same(await eventually(processes, found => found.length === 0), [])
  t.equal(await health(port), null)
})

for (const state of ['running', 'hanging'])
  t.test(`SIGTERM ends dashboard and gateway, without waiting for a ${state} dashboard`, async t => {
    const terminal = await start(t)
    const { tmux } = terminal
    await tmux.until('workers 2')
    if (state === 'hanging') process.kill(await pidOf(tmux, DASHBOARD), 'SIGSTOP')
    process.kill(await pidOf(tmux, GATEWAY), 'SIGTERM')
    await tmux.until(/ended with \d/)
    t.match(await tmux.screen(), 'gateway stopped')
    await isFree(t, terminal)
  })

t.test('--no-dashboard prints log lines', async t => {
  const { tmux, port } = await start(t, '--no-dashboard')
  await tmux.until('halley is listening')
  t.equal(await tmux.display('alternate_on'), '0')
  t.ok(await becomesHealthy(port))
  await tmux.keys('C-c')
  await tmux.until('gateway stopped')
})
