// What tests of the whole program share.

import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fetch } from '../kit/fetch.js'
import { freePort } from '../kit/gateway.js'
import { eventually, Tmux } from '../kit/tmux.js'
import { MockGateway, recentSnapshots } from './mock-gateway.js'

export const BIN = fileURLToPath(new URL('../../bin/halley.js', import.meta.url))

/** @param {import('tap').Test} t */
export async function folder(t) {
  const folder = await mkdtemp(join(tmpdir(), 'halley-test-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/**
 * @param {import('tap').Test} t
 * @param {any} [options]
 * @param {string} [path]
 */
export async function mock(t, options = {}, path = '') {
  const snapshots = recentSnapshots({ workers: 2, seconds: 60, connections: 20_000, csv: true, ...options })
  const gateway = await new MockGateway(path || join(await folder(t), 's.sock'), snapshots).listen()
  t.teardown(() => gateway.close())
  return Object.assign(gateway.beat(), { snapshots })
}

/**
 * A terminal with a shell in which the dashboard runs.
 * @param {import('tap').Test} t
 * @param {string} args
 * @param {Parameters<typeof Tmux.start>[1]} [place]
 */
export async function open(t, args, place = {}) {
  const terminal = await Tmux.shell(t, place)
  await terminal.tmux.enter(`${process.execPath} ${BIN} dashboard ${args}; echo exit $?`)
  return terminal
}

/**
 * @param {string[]} args
 * @param {Record<string, string>} [env]
 * @returns {Promise<{code: number, out: string, err: string}>}
 */
export const run = (args, env = {}) =>
  new Promise(resolve => {
    execFile(
      process.execPath,
      [BIN, 'dashboard', ...args],
      { env: { ...process.env, ...env } },
      (error, out, err) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err })
      },
    )
  })

const root = fileURLToPath(new URL('../..', import.meta.url))

/**
 * `npm start` on a terminal.
 * @param {any} t
 * @param {string} [flags]
 */
export async function start(t, flags = '') {
  const port = await freePort()
  const folder = await mkdtemp(join(tmpdir(), 'halley-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const env = { HALLEY_STATS_SOCKET: join(folder, 's'), HALLEY_WORKERS: '2' }
  const tmux = await Tmux.start(t, { columns: 100, rows: 30, env })
  const settings = await tmux.settings()
  await tmux.enter(`cd ${root} && npm start -- --port ${port} ${flags}; echo ended with $?`)
  return { tmux, settings, port }
}

/**
 * Workers learn a moment after the dashboard that all of them listen, and miss samples on a busy machine: until then
 * their health is 503.
 * @param {number} port
 * @returns {Promise<boolean>} whether the gateway becomes healthy
 */
export const becomesHealthy = port =>
  eventually(
    async () => (await health(port)) === 200,
    healthy => healthy,
  )

/** @param {number} port @returns {Promise<number | null>} status; null: nothing listens there */
export async function health(port) {
  const answer = await fetch(`http://127.0.0.1:${port}/health`).catch(() => null)
  return answer?.status ?? null
}

/**
 * The screen is the shell's again, whether or not something goes on.
 * @param {any} t
 * @param {{tmux: Tmux}} terminal
 */
export async function isLeft(t, { tmux }) {
  for (const [what, wanted] of [
    ['alternate_on', '0'],
    ['cursor_flag', '1'],
  ])
    t.equal(
      await eventually(
        () => tmux.display(what),
        shown => shown === wanted,
      ),
      wanted,
      what,
    )
}

/**
 * @param {any} t
 * @param {{tmux: Tmux, settings: string}} terminal
 */
export async function isFree(t, terminal) {
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
export async function descendants(parent) {
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
export async function pidOf(tmux, command) {
  const shell = Number(await tmux.display('pane_pid'))
  const all = await eventually(
    () => descendants(shell),
    all => all.some(process => command.test(process.command)),
  )
  // npm and its shell have the words of the gateway in theirs.
  return /** @type {{pid: number}} */ (all.find(process => command.test(process.command))).pid
}

export const DASHBOARD = /^\S*node .*halley\.js dashboard/
export const GATEWAY = /^node .*bin\/halley\.js serve/
