// Processes of this machine, identified by pid and start time, because pids are reused.

import { readdir, readFile } from 'node:fs/promises'
import { basename, dirname } from 'node:path'

/**
 * @param {number} pid
 * @returns {Promise<string>} its start, in ticks since the machine's; '': it has ended, though its parent may not have
 *   noticed
 */
async function startOf(pid) {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // The name, in parentheses, may contain anything.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return text === '' || fields[0] === 'Z' || fields[0] === 'X' ? '' : fields[19]
}

/** @param {number} pid @returns {Promise<string>} `1234@567890`: pid and start */
export const handleOf = async pid => `${pid}@${await startOf(pid)}`

/** @param {string} handle */
const partsOf = handle => {
  const [pid, start] = handle.split('@')
  return { pid: Number(pid), start }
}

/** @param {string} handle @returns {Promise<boolean>} */
export async function isAlive(handle) {
  const { pid, start } = partsOf(handle)
  return pid > 0 && start !== '' && start !== undefined && (await startOf(pid)) === start
}

/**
 * @param {string} handle @param {NodeJS.Signals} name
 * @param {boolean} [orphans] signal its group, when the process itself has ended
 * @returns {Promise<boolean>} whether it existed
 */
export async function signal(handle, name, orphans = false) {
  const { pid } = partsOf(handle)
  if (!(pid > 1)) return false
  const alive = await isAlive(handle)
  // If another process has the pid now, so it has the group.
  if (alive === orphans || (orphans && (await startOf(pid)) !== '')) return false
  try {
    process.kill(name === 'SIGKILL' ? -pid : pid, name)
    return true
  } catch {
    return false
  }
}

/**
 * Running drones, whoever started them: those with their configuration in a folder.
 * @param {string} folder @returns {Promise<Map<string, string>>} id -> handle
 */
export async function processesOf(folder) {
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
