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

/**
 * `npm start` on a terminal.
 * @param {any} t
 * @param {string} [flags]
 */
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
  t.equal(
    await eventually(
      () => tmux.display('alternate_on'),
      on => on === '0',
    ),
    '0',
  )
  t.equal(
    await eventually(
      () => tmux.display('cursor_flag'),
      on => on === '1',
    ),
    '1',
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
