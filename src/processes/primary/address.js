import { once } from 'node:events'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { createServer } from 'node:net'

/** @import { Config } from '../../config/options.js' */
/** @import { AddressInfo } from 'node:net' */

/** Timeout of the search, ms: a process may have a million open files. */
const TIMEOUT_MS = 300
/** State of a listening socket in /proc/net/tcp. */
const LISTENS = '0A'

/** @param {number} port @returns {Promise<Set<string>>} its listening sockets, as in /proc/PID/fd */
async function listenersOf(port) {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const tables = await Promise.all(
    ['/proc/net/tcp', '/proc/net/tcp6'].map(file => readFile(file, 'utf8').catch(() => '')),
  )
  const rows = tables.flatMap(text => text.split('\n').slice(1)).map(line => line.trim().split(/\s+/))
  const listening = rows.filter(([, local = '', , state]) => local.endsWith(suffix) && state === LISTENS)
  return new Set(listening.map(row => `socket:[${row[9]}]`))
}

/**
 * Finds the process listening on a local TCP port. Linux only.
 * @param {number} port
 * @param {number} [timeout] ms
 * @returns {Promise<string>} `process 1234 (node)`; '': not found in time, or a process of another user
 */
export async function portOwner(port, timeout = TIMEOUT_MS) {
  const deadline = Date.now() + timeout
  const sockets = await listenersOf(port)
  if (sockets.size === 0) return ''
  for (const pid of await readdir('/proc').catch(() => [])) {
    if (!/^\d+$/.test(pid)) continue
    for (const fd of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
      if (Date.now() > deadline) return ''
      if (!sockets.has(await readlink(`/proc/${pid}/fd/${fd}`).catch(() => ''))) continue
      const name = (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')).trim()
      return `process ${pid}${name === '' ? '' : ` (${name})`}`
    }
  }
  return ''
}

/**
 * Reason of a listen error and what to do.
 * @param {NodeJS.ErrnoException} error @param {number} port @param {string} key option of the port
 */
async function hint({ code }, port, key) {
  if (code === 'EADDRINUSE') {
    const owner = await portOwner(port)
    const fix =
      key === 'http_server.port'
        ? 'set another port with --port or http_server.port, or watch a running gateway with `npm run dashboard`'
        : `set another port with ${key}`
    return `: port in use${owner === '' ? '' : ` by ${owner}`}; ${fix}`
  }
  if (code === 'EACCES') return `: ports below 1024 require privileges; set another port with ${key}`
  return code === 'EADDRNOTAVAIL' ? ': not an address of this machine' : ''
}

/**
 * Checks that a port is free, and resolves port 0. Workers bind with SO_REUSEPORT, so without this check two gateways
 * could share a port by mistake.
 * @param {string} address @param {number} port @param {string} key its option
 * @returns {Promise<number>}
 * @throws {Error} with address, reason and what to do
 */
async function probe(address, port, key) {
  const host = address || '0.0.0.0'
  try {
    const server = createServer().listen({ host, port, exclusive: true })
    await once(server, 'listening')
    const { port: found } = /** @type {AddressInfo} */ (server.address())
    await once(server.close(), 'close')
    return found
  } catch (error) {
    throw new Error(
      `cannot listen on ${host}:${port}: ${error.code ?? error.message}${await hint(error, port, key)}`,
    )
  }
}

/** @param {Config['http_server']} options @returns {Promise<number>} the public port @throws {Error} a port is in use */
export async function probePorts({ address, port, internal_address, internal_port }) {
  const found = await probe(address, port, 'http_server.port')
  if (internal_port !== 0)
    await probe(internal_address || address, internal_port, 'http_server.internal_port')
  return found
}

/** @param {{address: string, port: number, tls: {enabled: boolean}}} options `http_server` @returns {string} URL */
export function urlOf({ address, port, tls }) {
  const host = address || '0.0.0.0'
  return `${tls.enabled ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`
}
