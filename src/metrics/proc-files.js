// Readers and parsers for /proc and /sys; null: unknown format.

import { closeSync, openSync, readFileSync, readSync } from 'node:fs'
import { endianness } from 'node:os'

/** @import { MachineSample, Network } from './schema.js' */

const BUFFER_BYTES = 64 * 1024
const buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES)

/** Stays open: halves the cost of a read. */
export class ProcFile {
  #fd

  /** @param {number} fd */
  constructor(fd) {
    this.#fd = fd
  }

  /** @param {string} path @returns null: missing or unreadable */
  static open(path) {
    try {
      const file = new ProcFile(openSync(path, 'r'))
      file.read()
      return file
    } catch {
      return null
    }
  }

  readTable() {
    let text = ''
    for (let position = 0; ; ) {
      // The kernel returns at most a page.
      const length = readSync(this.#fd, buffer, 0, BUFFER_BYTES, position)
      if (length === 0) return text
      text += buffer.toString('latin1', 0, length)
      position += length
    }
  }

  /** The first page, usually the whole file. @param {number} [bytes] */
  read(bytes = BUFFER_BYTES) {
    return buffer.toString('latin1', 0, readSync(this.#fd, buffer, 0, bytes, 0))
  }

  close() {
    closeSync(this.#fd)
  }
}

/** '' if unreadable. @param {string} path */
export function readText(path) {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

const AT_NULL = 0n
const AT_PAGESZ = 6n

/** Bytes, from the auxiliary vector. */
export function pageSize() {
  try {
    const vector = readFileSync('/proc/self/auxv')
    const word = (/** @type {number} */ at) =>
      endianness() === 'LE' ? vector.readBigUInt64LE(at) : vector.readBigUInt64BE(at)
    for (let at = 0; word(at) !== AT_NULL; at += 16) if (word(at) === AT_PAGESZ) return Number(word(at + 8))
  } catch {
    // Unreadable or 32-bit.
  }
  return 4096
}

/** @typedef {{user: number, system: number, idle: number, iowait: number, steal: number}} CpuTicks since boot */

/** Nice counts as user, interrupts as system. @param {string} text of /proc/stat @returns {CpuTicks} */
export function parseCpu(text) {
  // Old kernels have fewer columns. Guest time is part of user.
  const [user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0] = text
    .split('\n', 1)[0]
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number)
  return { user: user + nice, system: system + irq + softirq, idle, iowait, steal }
}

/** @param {string} text of /proc/meminfo @param {string} name @returns bytes */
export function memoryOf(text, name) {
  const [, kilobytes] = new RegExp(`^${name}:\\s*(\\d+)`, 'm').exec(text) ?? []
  return kilobytes === undefined ? null : Number(kilobytes) * 1024
}

/** @param {string} text of /proc/meminfo @returns {MachineSample['memory']} */
export function parseMemory(text) {
  const bytes = (/** @type {string} */ name) => memoryOf(text, name) ?? 0
  const total = bytes('MemTotal')
  const free = bytes('MemFree')
  const caches = bytes('Buffers') + bytes('Cached') + bytes('SReclaimable')
  return {
    total,
    used: Math.max(0, total - free - caches),
    free,
    // Since Linux 3.14.
    available: memoryOf(text, 'MemAvailable') ?? Math.min(total, free + caches),
    caches,
    slab: memoryOf(text, 'Slab'),
  }
}

/** @param {string} text @param {string} label of the line @returns {Record<string, number>} */
export function pairsOf(text, label) {
  const [, line = ''] = new RegExp(`^${label} (.*)$`, 'm').exec(text) ?? []
  return Object.fromEntries(
    [...line.matchAll(/(\S+) (\d+)/g)].map(([, name, value]) => [name, Number(value)]),
  )
}

/** Of a line of names, then one of values. @param {string} text @param {string} label @param {string} name */
export function columnOf(text, label, name) {
  const [, names = '', values = ''] = new RegExp(`^${label} (.*)\\n${label} (.*)$`, 'm').exec(text) ?? []
  const value = Number(values.split(' ')[names.split(' ').indexOf(name)])
  return Number.isFinite(value) ? value : undefined
}

/**
 * @param {string} text of /proc/net/sockstat
 * @param {string} text6 of /proc/net/sockstat6, '' without IPv6
 * @param {number} pageSize bytes
 */
export function parseSockets(text, text6, pageSize) {
  const { used = 0 } = pairsOf(text, 'sockets:')
  // Only `inuse` is per address family.
  const { inuse = 0, orphan = 0, tw = 0, alloc = 0, mem = 0 } = pairsOf(text, 'TCP:')
  const { inuse: inuse6 = 0 } = pairsOf(text6, 'TCP6:')
  return { used, tcp: { inuse: inuse + inuse6, orphan, time_wait: tw, alloc, memory: mem * pageSize } }
}

/** Skips unused interfaces. @param {string} text of /proc/net/dev */
export function parseInterfaces(text) {
  /** @type {Record<string, Network>} */
  const interfaces = {}
  for (const line of text.split('\n')) {
    const [name, row] = line.split(':')
    if (row === undefined) continue
    const [rx_bytes, rx_packets, , , , , , , tx_bytes, tx_packets] = row.trim().split(/\s+/).map(Number)
    if (rx_packets + tx_packets > 0) interfaces[name.trim()] = { rx_bytes, tx_bytes, rx_packets, tx_packets }
  }
  return interfaces
}

/** @param {string} text of /proc/net/netstat */
export function parseListen(text) {
  const overflows = columnOf(text, 'TcpExt:', 'ListenOverflows')
  const drops = columnOf(text, 'TcpExt:', 'ListenDrops')
  return overflows === undefined || drops === undefined ? null : { overflows, drops }
}

/** @param {string} text of /proc/sys/fs/file-nr: allocated, unused, limit */
export function parseFiles(text) {
  const [allocated, unused, limit] = text.trim().split(/\s+/).map(Number)
  return { open: allocated - unused, limit }
}
