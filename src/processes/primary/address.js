import { once } from 'node:events'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { createServer } from 'node:net'

/** @import { Config } from '../../config/options.js' */
/** @import { AddressInfo } from 'node:net' */

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

/**
 * Why a port cannot be listened on, and what to do.
 * @param {NodeJS.ErrnoException} error @param {number} port @param {string} key option of the port
 */
async function hint({ code }, port, key) {
  if (code === 'EADDRINUSE') {
    const owner = await portOwner(port)
    const cure =
      key === 'http_server.port'
        ? '`npm run dashboard` shows a gateway that is running already, --port or http_server.port sets another port'
        : `${key} sets another port`
    return `: the port is taken${owner === '' ? '' : ` by ${owner}`}; ${cure}`
  }
  if (code === 'EACCES') return `: a port below 1024 needs a privilege; ${key} sets another one`
  return code === 'EADDRNOTAVAIL' ? ': the address is not one of this machine' : ''
}

/**
 * Checks that the port is free, and resolves port 0, before workers start. Workers bind with SO_REUSEPORT: without
 * this check two gateways could share a port by mistake.
 * @param {string} address @param {number} port @param {string} [key] its option
 * @returns {Promise<number>} @throws {Error} with address, reason and what to do
 */
export async function probe(address, port, key = 'http_server.port') {
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

/**
 * Checks the ports of a gateway.
 * @param {Config['http_server']} server `http_server` of the configuration @returns {Promise<number>} the public one @throws {Error}
 */
export async function probePorts({ address, port, internal_address, internal_port }) {
  const found = await probe(address, port)
  if (internal_port !== 0)
    await probe(internal_address || address, internal_port, 'http_server.internal_port')
  return found
}

/**
 * @param {{address: string, port: number, tls: {enabled: boolean}}} server `http_server` of the configuration
 * @returns {string} its URL
 */
export function urlOf({ address, port, tls }) {
  const host = address || '0.0.0.0'
  return `${tls.enabled ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`
}
