// `npm start` on a real terminal.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fetch } from '../kit/fetch.js'
import { tempDir } from '../kit/folders.js'
import { freePort } from '../kit/ports.js'
import { Tmux } from '../kit/tmux.js'
import { eventually } from '../kit/wait.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** @param {any} t @param {string} [flags] */
export async function start(t, flags = '') {
  const port = await freePort()
  const folder = tempDir(t)
  const env = { HALLEY_STATS_SOCKET: join(folder, 's'), HALLEY_WORKERS: '2' }
  const tmux = await Tmux.start(t, { columns: 100, rows: 30, env })
  const settings = await tmux.settings()
  await tmux.enter(`cd ${root} && npm start -- --port ${port} ${flags}; echo ended with $?`)
  return { tmux, settings, port }
}

/**
 * /health returns 503 until all workers listen, and after a missed sample on a busy machine.
 * @param {number} port @returns {Promise<boolean>} whether the gateway becomes healthy
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

/** The shell has its screen back, although the program may run. @param {any} t @param {{tmux: Tmux}} terminal */
export async function isLeft(t, { tmux }) {
  const state = () => tmux.display('alternate_on', 'cursor_flag')
  t.equal(await eventually(state, now => now === '0 1'), '0 1', 'main screen and cursor')
}

/** The shell has its terminal back. @param {any} t @param {{tmux: Tmux, settings: string}} terminal */
export async function isFree(t, terminal) {
  await isLeft(t, terminal)
  const { tmux, settings } = terminal
  const stty = await eventually(
    () => tmux.settings(),
    now => now === settings,
  )
  t.equal(stty, settings, 'stty -a')
}

/** @param {number} parent @returns {Promise<{pid: number, command: string}[]>} its children, their children ... */
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

/** @param {Tmux} tmux @param {RegExp} command @returns {Promise<number>} */
export async function pidOf(tmux, command) {
  const shell = Number(await tmux.display('pane_pid'))
  const all = await eventually(
    () => descendants(shell),
    all => all.some(process => command.test(process.command)),
  )
  // The command lines of npm and its shell contain that of the gateway.
  return /** @type {{pid: number}} */ (all.find(process => command.test(process.command))).pid
}

export const DASHBOARD = /^\S*node .*halley\.js dashboard/
export const GATEWAY = /^node .*bin\/halley\.js serve/
