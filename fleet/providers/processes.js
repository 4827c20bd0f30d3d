// Processes of this machine, identified by pid and start time, because pids are reused.

import { readdir, readFile } from 'node:fs/promises'
import { basename, dirname } from 'node:path'

/** Clock ticks since boot; '': ended, or a zombie. @param {number} pid */
async function startTimeOf(pid) {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // The second field, the name in parentheses, may contain spaces and parentheses.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return text === '' || fields[0] === 'Z' || fields[0] === 'X' ? '' : fields[19]
}

/** @param {number} pid @returns {Promise<string>} `1234@567890`: pid and start time */
export const handleOf = async pid => `${pid}@${await startTimeOf(pid)}`

/** @param {string} handle @returns {{pid: number, start: string | undefined}} */
const partsOf = handle => {
  const [pid, start] = handle.split('@')
  return { pid: Number(pid), start }
}

/** @param {string} handle @returns {Promise<boolean>} whether this process runs */
export async function isAlive(handle) {
  const { pid, start } = partsOf(handle)
  return pid > 0 && start !== '' && start !== undefined && (await startTimeOf(pid)) === start
}

/** Signals a running process; SIGKILL goes to its group. @param {string} handle @param {NodeJS.Signals} name */
export const signal = async (handle, name) => (await isAlive(handle)) && send(partsOf(handle).pid, name)

/** Kills the rest of a process group without its leader. @param {string} handle of the leader */
export async function killOrphans(handle) {
  const { pid } = partsOf(handle)
  // The kernel does not reuse a pid while its group has processes: a new process means that the group has ended.
  if ((await startTimeOf(pid)) === '') send(pid, 'SIGKILL')
}

/** @param {number} pid of a group leader @param {NodeJS.Signals} name @returns {boolean} whether it was sent */
function send(pid, name) {
  if (!(pid > 1)) return false
  try {
    return process.kill(name === 'SIGKILL' ? -pid : pid, name)
  } catch {
    return false
  }
}

/** Finds running drones by their command line: id -> handle. @param {string} folder of their configuration files */
export async function findDrones(folder) {
  const pids = (await readdir('/proc').catch(() => /** @type {string[]} */ ([]))).filter(name =>
    /^\d+$/.test(name),
  )
  /** @type {Map<string, string>} */
  const found = new Map()
  for (const pid of pids) {
    const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    const args = text.split('\0')
    const config = args.find(arg => arg.endsWith('.json') && dirname(arg) === folder)
    if (config === undefined || !args.some(arg => arg.endsWith('/drone/main.js'))) continue
    const handle = await handleOf(Number(pid))
    if (!handle.endsWith('@')) found.set(basename(config, '.json'), handle)
  }
  return found
}
