import { readdir, readFile, readlink } from 'node:fs/promises'

/** Time for the search, ms: a process may have a million open files. */
const TIMEOUT_MS = 300
/** State of a listening socket in /proc/net/tcp. */
const LISTENS = '0A'

/** @param {number} port @returns {Promise<Set<string>>} links of the sockets that listen on it, as in /proc/PID/fd */
async function listenersOf(port) {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const tables = await Promise.all(
    ['/proc/net/tcp', '/proc/net/tcp6'].map(file => readFile(file, 'utf8').catch(() => '')),
  )
  const rows = tables.flatMap(text => text.split('\n').slice(1)).map(line => line.trim().split(/\s+/))
  const listening = rows.filter(([, local = '', , state]) => local.endsWith(suffix) && state === LISTENS)
  return new Set(listening.map(row => `socket:[${row[9]}]`))
}

/** @param {string} pid @param {Set<string>} sockets @param {number} deadline Unix ms */
async function holdsOne(pid, sockets, deadline) {
  const folder = `/proc/${pid}/fd`
  // Those of other users cannot be read.
  for (const fd of await readdir(folder).catch(() => [])) {
    if (Date.now() > deadline) return false
    if (sockets.has(await readlink(`${folder}/${fd}`).catch(() => ''))) return true
  }
  return false
}

/**
 * The process that listens on a TCP port of this machine. Linux only.
 * @param {number} port @param {number} [timeout] ms
 * @returns {Promise<string>} `process 1234 (node)`; '' if it is not found in time, or belongs to another user
 */
export async function portOwner(port, timeout = TIMEOUT_MS) {
  const deadline = Date.now() + timeout
  const sockets = await listenersOf(port)
  if (sockets.size === 0) return ''
  const pids = (await readdir('/proc').catch(() => [])).filter(name => /^\d+$/.test(name))
  for (const pid of pids) {
    if (!(await holdsOne(pid, sockets, deadline))) continue
    const name = (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')).trim()
    return `process ${pid}${name === '' ? '' : ` (${name})`}`
  }
  return ''
}
