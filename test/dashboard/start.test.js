import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { freePort } from '../gateway.js'
import { eventually, Tmux } from './tmux.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

/**
 * `npm start` on a terminal.
 * @param {any} t
 * @param {string} [flags]
 */
async function start(t, flags = '') {
  const port = await freePort()
  const folder = await mkdtemp(join(tmpdir(), 'halley-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const env = { HALLEY_STATS_SOCKET: join(folder, 's'), HALLEY_WORKERS: '2' }
  const tmux = await Tmux.start(t, { columns: 100, rows: 30, env })
  const settings = await tmux.settings()
  await tmux.line(`cd ${root} && npm start -- --port ${port} ${flags}; echo ended with $?`)
  return { tmux, settings, port }
}

/** @param {number} port */
async function answers(port) {
  const answer = await fetch(`http://127.0.0.1:${port}/health`).catch(() => null)
  await answer?.body?.cancel()
  return answer?.status === 200
}

/**
 * The screen is the shell's again, whether or not something goes on.
 * @param {any} t
 * @param {{tmux: Tmux}} terminal
 */
async function isLeft(t, { tmux }) {
  t.equal(
    await eventually(
      () => tmux.ask('alternate_on'),
      on => on === '0',
    ),
    '0',
  )
  t.equal(
    await eventually(
      () => tmux.ask('cursor_flag'),
      on => on === '1',
    ),
    '1',
  )
}

/**
 * @param {any} t
 * @param {{tmux: Tmux, settings: string}} terminal
 */
async function isFree(t, terminal) {
  const { tmux, settings } = terminal
  await isLeft(t, terminal)
  t.equal(
    await eventually(
      () => tmux.settings(),
      now => now === settings,
    ),
    settings,
  )
}

/**
 * @param {number} parent
 * @returns {Promise<{pid: number, command: string}[]>} those that it has started, and so on
 */
async function descendants(parent) {
  const children = await readFile(`/proc/${parent}/task/${parent}/children`, 'utf8').catch(() => '')
  const pids = children.split(' ').filter(Boolean).map(Number)
  const found = []
  for (const pid of pids) {
    const command = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).replaceAll('\0', ' ')
    found.push({ pid, command }, ...(await descendants(pid)))
  }
  return found
}

/**
 * @param {Tmux} tmux
 * @param {RegExp} command
 * @returns {Promise<number>}
 */
async function pidOf(tmux, command) {
  const shell = Number(await tmux.ask('pane_pid'))
  const all = await eventually(
    () => descendants(shell),
    all => all.some(process => command.test(process.command)),
  )
  // npm and its shell have the words of the gateway in theirs.
  return /** @type {{pid: number}} */ (all.find(process => command.test(process.command))).pid
}

const DASHBOARD = /^\S*node .*halley\.js dashboard/
const GATEWAY = /^node .*bin\/halley\.js serve/

t.test('npm start shows the dashboard, which may stop the gateway', async t => {
  const terminal = await start(t)
  const { tmux, port } = terminal
  await tmux.until(screen => screen.includes('Halley') && /workers 2/.test(screen))
  t.ok(await answers(port))
  await tmux.keys('h')
  const [key] = /[0-9a-f]{32}/.exec(await tmux.until('API key')) ?? []
  const info = { method: 'POST', body: '{}', headers: { 'X-API-Key': `${key}` } }
  t.equal((await fetch(`http://127.0.0.1:${port}/api/info`, info)).status, 200, 'the help shows the key')
  await tmux.keys('Escape')
  await tmux.until('workers 2')
  await tmux.keys('q')
  await tmux.until('what is to become of the gateway?')
  await tmux.keys('n')
  await tmux.until(screen => !screen.includes('what is to become'))
  await tmux.keys('q')
  await tmux.keys('s')
  const screen = await tmux.until('ended with 0')
  t.match(screen, `http://127.0.0.1:${port}`, 'address and key stand in the terminal that is left')
  t.match(screen, 'bye')
  t.notOk(await answers(port))
  await isFree(t, terminal)
})

t.test('the gateway may run on without dashboard: its log lines go on in the terminal', async t => {
  const terminal = await start(t)
  const { tmux, port } = terminal
  await tmux.until('workers 2')
  await tmux.keys('q')
  await tmux.keys('l')
  await tmux.until('the gateway runs on')
  t.ok(await answers(port))
  const shell = Number(await tmux.ask('pane_pid'))
  const worker = (await descendants(shell)).find(({ command }) => command.includes('src/worker.js'))
  process.kill(/** @type {{pid: number}} */ (worker).pid, 'SIGKILL')
  await tmux.until('worker died')
  await tmux.keys('C-c')
  await tmux.until('bye')
  await isFree(t, terminal)
})

t.test('a dashboard that is killed leaves terminal and gateway as they were', async t => {
  const terminal = await start(t)
  const { tmux, port } = terminal
  await tmux.until('workers 2')
  process.kill(await pidOf(tmux, DASHBOARD), 'SIGKILL')
  await tmux.until('the dashboard ended: SIGKILL')
  t.ok(await answers(port))
  await isLeft(t, terminal)
  await tmux.keys('C-c')
  await tmux.until('bye')
  await isFree(t, terminal)
})

t.test('a gateway that is killed takes the dashboard with it, and leaves the terminal as it was', async t => {
  const terminal = await start(t)
  const { tmux } = terminal
  await tmux.until('workers 2')
  process.kill(await pidOf(tmux, GATEWAY), 'SIGKILL')
  await tmux.until(/ended with \d/)
  await isFree(t, terminal)
})

t.test('a terminal that is closed ends both', async t => {
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
  t.notOk(await answers(port))
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

t.test('a dashboard that hangs does not hold up the end of the gateway', async t => {
  const terminal = await start(t)
  const { tmux } = terminal
  await tmux.until('workers 2')
  process.kill(await pidOf(tmux, DASHBOARD), 'SIGSTOP')
  process.kill(await pidOf(tmux, GATEWAY), 'SIGTERM')
  await tmux.until(/ended with \d/)
  t.match(await tmux.screen(), 'bye')
  await isFree(t, terminal)
})

t.test('--no-dashboard is for log lines', async t => {
  const { tmux, port } = await start(t, '--no-dashboard')
  await tmux.until('halley listens')
  t.equal(await tmux.ask('alternate_on'), '0')
  t.ok(await answers(port))
  await tmux.keys('C-c')
  await tmux.until('bye')
})
