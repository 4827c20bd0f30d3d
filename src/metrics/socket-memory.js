// Kernel memory of the gateway's connections. Linux does not report it per process: slab and `mem` of
// /proc/net/sockstat cover the whole machine, in all network namespaces. Only each socket's queued bytes are known.

import { open } from 'node:fs/promises'

/** @import { FileHandle } from 'node:fs/promises' */

/** Kernel bytes of a socket with empty queues: TCP, inode, dentry, file, epoll entry. */
export const SOCKET_BYTES = 4500
/** Of IPv4 and IPv6, in this network namespace. */
const TABLES = ['net/tcp', 'net/tcp6']
/** Bytes of a read: about 1,700 sockets, 10 ms of a core. */
const PART_BYTES = 256 * 1024
/** The kernel returns whole rows, at most a memory page of up to 64 KB. */
const PAGE_BYTES = 64 * 1024
const PAUSE_FACTOR = 200
/** Local port, remote address, state (ESTABLISHED or CLOSE_WAIT), bytes not acknowledged, bytes not read. */
const ROW = /:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} (?:01|08) ([0-9A-F]{8}):([0-9A-F]{8}) /g

/**
 * @param {string} text rows of /proc/net/tcp or tcp6 @param {Set<number>} ports local
 * @returns {{sockets: number, bytes: number}} connections to these ports, and their queued bytes
 */
export function parseQueues(text, ports) {
  let sockets = 0
  let bytes = 0
  for (const [, port, sent, received] of text.matchAll(ROW)) {
    if (!ports.has(Number.parseInt(port, 16))) continue
    sockets++
    bytes += Number.parseInt(sent, 16) + Number.parseInt(received, 16)
  }
  return { sockets, bytes }
}

/**
 * Average queued bytes per connection. The tables are read in parts, so a million sockets cost no more than two
 * thousand: up to that number the figure is exact, above it is an estimate from a sample.
 */
export class SocketMemory {
  /** @type {number | null} queued bytes per connection; null if the tables are unreadable */
  #queued = null
  #ports
  #pauseFactor
  #opened
  /** @type {FileHandle[]} */
  #tables = []
  #table = 0
  #position = 0
  #buffer = Buffer.allocUnsafeSlow(PAGE_BYTES)
  #next = 0
  #reading = Promise.resolve()

  /**
   * @param {number[]} ports that the gateway listens on
   * @param {object} [options]
   * @param {string} [options.proc] the /proc folder
   * @param {number} [options.pauseFactor] reading uses at most 1/pauseFactor of the time
   */
  constructor(ports, { proc = '/proc', pauseFactor = PAUSE_FACTOR } = {}) {
    this.#ports = new Set(ports)
    this.#pauseFactor = pauseFactor
    this.#opened = this.#open(proc)
  }

  /**
   * Starts the next read when it is due, without blocking the event loop.
   * @returns {number | null} kernel bytes per connection, from the last read; null on systems other than Linux
   */
  read() {
    if (performance.now() >= this.#next) {
      this.#next = Number.POSITIVE_INFINITY
      this.#reading = this.#opened.then(() => this.#readPart())
    }
    return this.#queued === null ? null : SOCKET_BYTES + this.#queued
  }

  /** @param {string} proc */
  async #open(proc) {
    for (const name of TABLES) {
      try {
        this.#tables.push(await open(`${proc}/${name}`))
      } catch {
        // Not Linux, or no IPv6.
      }
    }
    if (this.#tables.length > 0) this.#queued = 0
  }

  async #readPart() {
    const began = performance.now()
    let sockets = 0
    let bytes = 0
    let left = PART_BYTES
    let ends = 0
    try {
      while (left > 0 && ends < this.#tables.length) {
        const table = this.#tables[this.#table]
        const { bytesRead } = await table.read(this.#buffer, 0, PAGE_BYTES, this.#position)
        if (bytesRead === 0) {
          this.#table = (this.#table + 1) % this.#tables.length
          this.#position = 0
          ends++
          continue
        }
        this.#position += bytesRead
        left -= bytesRead
        const found = parseQueues(this.#buffer.toString('latin1', 0, bytesRead), this.#ports)
        sockets += found.sockets
        bytes += found.bytes
      }
    } catch {
      // Closed while reading: keep the last value.
    }
    if (sockets > 0) this.#queued = bytes / sockets
    // The whole table was read: no connections.
    else if (left > 0 && this.#queued !== null) this.#queued = 0
    const now = performance.now()
    this.#next = now + (now - began) * this.#pauseFactor
  }

  async close() {
    this.#next = Number.POSITIVE_INFINITY
    await this.#opened
    const tables = this.#tables
    this.#tables = []
    await Promise.all([this.#reading, ...tables.map(table => table.close())])
  }
}
