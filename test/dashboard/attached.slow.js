// The dashboard with a real gateway.

import { execFile } from 'node:child_process'
import t from 'tap'
import { tempDir } from '../kit/folders.js'
import { bin, startGateway } from '../kit/gateway.js'
import { freePort } from '../kit/ports.js'
import { needsTmux, Tmux } from '../kit/tmux.js'
import { eventually } from '../kit/wait.js'

needsTmux(t)

const HALLEY = `${process.execPath} ${bin}`

/** @param {import('tap').Test} t @param {string} args @param {Record<string, string>} [env] */
async function dashboard(t, args, env = {}) {
  const tmux = await Tmux.start(t, { columns: 120, rows: 40, env })
  await tmux.enter(`${HALLEY} dashboard ${args}; echo exit $?`)
  return tmux
}

/** @param {import('../kit/gateway.js').TestGateway} gateway */
const rowsOf = gateway => gateway.workerPids.slice(-2).map(pid => new RegExp(`^[ ▸] *[01] +${pid} `, 'm'))

// Each test has its own gateway and terminal.
t.jobs = 2

t.test('over the Unix socket it shows workers, a death, a restart by key and the log', async t => {
  const runtime = tempDir(t)
  const gateway = await startGateway(t, { stats: { socket: 'auto' } }, { env: { XDG_RUNTIME_DIR: runtime } })
  const tmux = await dashboard(t, `${gateway.port}`, { XDG_RUNTIME_DIR: runtime })
  for (const row of rowsOf(gateway)) await tmux.until(row)
  t.match(await tmux.screen(), new RegExp(`http://127\\.0\\.0\\.1:${gateway.port}`))
  const [first] = gateway.workerPids
  process.kill(first, 'SIGKILL')
  await tmux.until(/worker \d died: .*SIGKILL/)
  await tmux.until(
    screen => /workers 2 ─/.test(screen) && !new RegExp(`^. *[01] +${first} `, 'm').test(screen),
  )
  await tmux.keys('Down', 'r')
  await tmux.until('restart worker 0?')
  await tmux.keys('l')
  await tmux.keys('y')
  await tmux.until('restart: done')
  // `listening` is logged last.
  await eventually(
    () => gateway.workerPids.length,
    count => count === 4,
  )
  await tmux.keys('l')
  await tmux.until('no log lines yet')
  await gateway.api('publish', { channel: 'news', data: {} })
  await tmux.keys('g')
  await tmux.until('all workers')
  await tmux.keys('a')
  await tmux.until('garbage collection: done')
  await tmux.keys('q')
  await tmux.until('exit 0')
  t.equal(gateway.process.exitCode, null, 'the gateway keeps running')
})

t.test('over HTTP it requires the admin key', async t => {
  const config = {
    http_server: { port: await freePort() },
    admin: { enabled: true, password: 'open-sesame-of-tests' },
    stats: { socket: 'none' },
  }
  const gateway = await startGateway(t, config)
  const tmux = await dashboard(t, gateway.url, { HALLEY_ADMIN_KEY: 'open-sesame-of-tests' })
  for (const row of rowsOf(gateway)) await tmux.until(row)
  await tmux.keys('g')
  await tmux.until('all workers')
  await tmux.keys('a')
  await tmux.until('garbage collection: done')
  await tmux.keys('l')
  await tmux.until(/log: (?!done)./)
  gateway.process.kill('SIGKILL')
  await tmux.until(/gateway unreachable, retrying for [\d.]+ s/)
  for (const pid of gateway.workerPids) t.ok(await ended(pid), 'workers do not outlive their primary')
  // Another primary: the session of the dashboard is unknown to it.
  const second = await startGateway(t, config)
  for (const row of rowsOf(second)) await tmux.until(row)
  await tmux.keys('q')
  await tmux.until('exit 0')
  const wrong = await dashboard(t, `${gateway.url} --key wrong`)
  await wrong.until('exit 1')
  t.match(await wrong.screen(), /the gateway rejected the admin key/)
})

/** @param {number} pid @returns {Promise<boolean>} when the process has ended */
const ended = pid =>
  new Promise(resolve => {
    execFile('tail', [`--pid=${pid}`, '-f', '/dev/null', '-s', '0.05'], error => resolve(error === null))
  })
