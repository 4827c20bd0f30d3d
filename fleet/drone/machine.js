// What the machine says, of which nothing but Linux says much.

import { readFileSync } from 'node:fs'
import { availableParallelism, freemem, hostname, release, totalmem, type } from 'node:os'

/** Bytes of memory, kernel's included, that a connection may take, so that a capacity can be told. */
const CONNECTION = 10_000
/** Bytes of a process without connections. */
const PROCESS = 40e6
/** Processes for each core that are of use: most connections are idle most of the time. */
const PER_CORE = 8
/** Files that a process has open beside its connections. */
const OTHER_FILES = 100
/** ms of processor time that /proc counts in. */
const JIFFY = 10
const PAGE = 4096
/** Looks at a process's time from one look at its memory to the next. */
const WEIGHED = 5

/** @param {string} file @returns {string} '' where there is none */
function read(file) {
  try {
    return readFileSync(`/proc/${file}`, 'utf8')
  } catch {
    return ''
  }
}

/** @param {string} text @param {RegExp} pattern @returns {number} its group; 0 where there is none */
const find = (text, pattern) => Number(pattern.exec(text)?.[1] ?? 0)

/** @returns {number} bytes that this process alone uses: not the pages of programs that others have too; 0: unknown */
const privateBytes = () => find(read('self/smaps_rollup'), /^Private_Dirty: +(\d+)/m) * 1024

/** What this process takes of the machine. */
export class Usage {
  #looks = 0
  #base = privateBytes()
  #private = this.#base

  /** @returns {{pid: number, cpu: number, rss: number, private: number, base: number}} `base`: when this was made */
  now() {
    const { user, system } = process.cpuUsage()
    const rss = process.memoryUsage.rss()
    // Not each time: the kernel goes through all pages for it.
    if (this.#looks++ % WEIGHED === 0) this.#private = privateBytes()
    return {
      pid: process.pid,
      cpu: (user + system) / 1000,
      rss,
      private: this.#private || rss,
      base: this.#base || rss,
    }
  }
}

/** @returns {number} bytes */
const available = () => find(read('meminfo'), /MemAvailable: +(\d+)/) * 1024 || freemem()

/**
 * @param {number} [wanted] connections of one process
 * @returns {{facts: import('../schema.js').DroneFacts, perProcess: number}} `perProcess`: connections
 */
export function lookAround(wanted = 18_000) {
  const files = find(read('self/limits'), /^Max open files +(\d+)/m) || 10_000
  const cores = availableParallelism()
  const perProcess = Math.max(1, Math.min(wanted, files - OTHER_FILES))
  const processes = PER_CORE * cores
  const room = Math.floor(available() / (CONNECTION + PROCESS / perProcess))
  return {
    perProcess,
    facts: {
      hostname: hostname(),
      bootId: read('sys/kernel/random/boot_id').trim() || hostname(),
      node: process.version,
      system: `${type()} ${release()} ${process.arch}`,
      cores,
      memory: totalmem(),
      files,
      capacity: Math.max(1, Math.min(processes * perProcess, room)),
      pid: process.pid,
    },
  }
}

/** @returns {import('../schema.js').DroneMachine | null} null: this machine does not say */
export function machineNow() {
  const cpu = /^cpu +(.*)/.exec(read('stat'))?.[1].split(' ').map(Number)
  if (!cpu) return null
  let netIn = 0
  let netOut = 0
  for (const line of read('net/dev').split('\n').slice(2)) {
    const fields = line.split(/[:\s]+/).filter(Boolean)
    netIn += Number(fields[1] ?? 0)
    netOut += Number(fields[9] ?? 0)
  }
  const tcp = read('net/sockstat')
  return {
    cores: availableParallelism(),
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user.
    cpuBusy: (cpu[0] + cpu[1] + cpu[2] + cpu[5] + cpu[6] + cpu[7]) * JIFFY,
    memory: totalmem(),
    memoryFree: available(),
    netIn,
    netOut,
    tcpMemory: find(tcp, /^TCP:.* mem (\d+)/m) * PAGE,
    sockets: find(tcp, /^TCP: inuse (\d+)/m) + find(read('net/sockstat6'), /^TCP6: inuse (\d+)/m),
    timeWait: find(tcp, /^TCP:.* tw (\d+)/m),
  }
}
