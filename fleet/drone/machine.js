// Limits and usage of the machine and of this process, from /proc; few are available outside Linux.

import { readFileSync } from 'node:fs'
import { availableParallelism, freemem, hostname, release, totalmem, type } from 'node:os'

/** Bytes of a connection, kernel included, for the estimate of capacity. */
const CONNECTION = 10_000
const PROCESS = 40e6
/** Useful processes per core: most connections are idle most of the time. */
const PER_CORE = 16
const OTHER_FILES = 100
/** Unit of CPU time in /proc, ms. */
const JIFFY = 10
const PAGE = 4096

/** @param {string} file @returns {string} '' if it does not exist */
function read(file) {
  try {
    return readFileSync(`/proc/${file}`, 'utf8')
  } catch {
    return ''
  }
}

/** @param {string} file @param {RegExp} pattern global @returns {number} sum of the groups of all matches */
function sum(file, pattern) {
  let all = 0
  for (const [, ...groups] of read(file).matchAll(pattern)) for (const group of groups) all += Number(group)
  return all
}

/** @returns {number} bytes of this process without pages shared with others */
const privateBytes = () =>
  sum('self/smaps_rollup', /Private_Dirty: +(\d+)/g) * 1024 || process.memoryUsage.rss()

/** Maximum share of the time for reading private bytes: the kernel visits each page of the process. */
const MAX_READING_SHARE = 1 / 5000

export class ProcessUsage {
  #private = 0
  /** Time of the next reading, ms of performance.now(). */
  #nextReading = 0
  #base = this.#privateBytes()

  #privateBytes() {
    const start = performance.now()
    if (start < this.#nextReading) return this.#private
    this.#private = privateBytes()
    const end = performance.now()
    this.#nextReading = end + (end - start) / MAX_READING_SHARE
    return this.#private
  }

  /**
   * @param {import('../schema.js').DroneProcess['role']} role @param {number} connections
   * @returns {import('../schema.js').DroneProcess} `private` may be half a minute old in a large process
   */
  now(role, connections) {
    const { user, system } = process.cpuUsage()
    return {
      role,
      connections,
      pid: process.pid,
      cpu: (user + system) / 1000,
      rss: process.memoryUsage.rss(),
      private: this.#privateBytes(),
      base: this.#base,
    }
  }
}

/**
 * @param {number} wanted connections per process
 * @returns {import('../schema.js').DroneFacts & {perProcess: number}} `perProcess`: connections per process
 */
export function machineFacts(wanted) {
  const files = sum('self/limits', /Max open files +(\d+)/g) || 10_000
  const cores = availableParallelism()
  const perProcess = Math.max(1, Math.min(wanted, files - OTHER_FILES))
  const room = freemem() / (CONNECTION + PROCESS / perProcess)
  return {
    hostname: hostname(),
    bootId: read('sys/kernel/random/boot_id').trim() || hostname(),
    node: process.version,
    system: `${type()} ${release()} ${process.arch}`,
    cores,
    memory: totalmem(),
    files,
    perProcess,
    capacity: Math.ceil(Math.min(PER_CORE * cores * perProcess, room)),
    pid: process.pid,
  }
}

/** @returns {import('../schema.js').DroneMachine | null} null: no /proc */
export function machineUsage() {
  // user, nice, system, not idle and iowait, irq, softirq, steal; guests are in user.
  const cpuBusy = sum('stat', /^cpu +(\d+) (\d+) (\d+) \d+ \d+ (\d+) (\d+) (\d+)/g) * JIFFY
  if (!cpuBusy) return null
  return {
    cores: availableParallelism(),
    cpuBusy,
    memory: totalmem(),
    memoryFree: freemem(),
    netIn: sum('net/dev', /: *(\d+)/g),
    netOut: sum('net/dev', /:(?: *\d+){8} +(\d+)/g),
    tcpMemory: sum('net/sockstat', /TCP:.* mem (\d+)/g) * PAGE,
    sockets: sum('net/sockstat', /TCP: inuse (\d+)/g) + sum('net/sockstat6', /TCP6: inuse (\d+)/g),
    timeWait: sum('net/sockstat', / tw (\d+)/g),
  }
}
