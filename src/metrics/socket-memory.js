// Kernel memory of connections. Linux has no figures per process: slab and `mem` of /proc/net/sockstat cover all
// network namespaces. Only each socket's queued bytes are known.

import { open } from 'node:fs/promises'

/** @import { FileHandle } from 'node:fs/promises' */

/** With empty queues: TCP, inode, dentry, file, epoll entry. */
export const SOCKET_BYTES = 4500
const TABLES = ['net/tcp', 'net/tcp6']
/** About 1,700 sockets, 10 ms of a core. */
const PART_BYTES = 256 * 1024
/** The kernel returns whole rows, at most a page of up to 64 KB. */
const PAGE_BYTES = 64 * 1024
const PAUSE_FACTOR = 200
/** Local port, remote address, state (ESTABLISHED or CLOSE_WAIT), unacknowledged and unread bytes. */
const ROW = /:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} (?:01|08) ([0-9A-F]{8}):([0-9A-F]{8}) /g

/** @param {string} text of /proc/net/tcp or tcp6 @param {Set<number>} ports local */
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

/** Reads in parts: exact for up to about 2,000 sockets, a sample above. */
export class SocketMemory {
  /** Bytes per connection; null: unreadable tables. @type {number | null} */
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
   * @param {number[]} ports of the gateway
   * @param {object} [options]
   * @param {string} [options.proc]
   * @param {number} [options.pauseFactor] reading uses at most 1/pauseFactor of the time
   */
  constructor(ports, { proc = '/proc', pauseFactor = PAUSE_FACTOR } = {}) {
    this.#ports = new Set(ports)
    this.#pauseFactor = pauseFactor
    this.#opened = this.#open(proc)
  }

  /** Kernel bytes per connection, from the last read; null unless on Linux. Starts the next read when it is due. */
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
      // Closed while reading.
    }
    if (sockets > 0) this.#queued = bytes / sockets
    // The whole table was read.
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
