import { existsSync } from 'node:fs'
import { cpus, freemem, loadavg, totalmem } from 'node:os'
import { MemoryLimit } from './control-groups.js'
import { add, tenThousandths } from './merge.js'
import {
  ProcFile,
  pageSize,
  parseCpu,
  parseFiles,
  parseInterfaces,
  parseListen,
  parseMemory,
  parseSockets,
} from './proc-files.js'

/** @import { CpuInfo } from 'node:os' */
/** @import { CpuTicks } from './proc-files.js' */
/** @import { MachineCpu, MachineSample, Network } from './schema.js' */

const FILES = /** @type {const} */ ({
  cpu: 'stat',
  memory: 'meminfo',
  sockets: 'net/sockstat',
  sockets6: 'net/sockstat6',
  interfaces: 'net/dev',
  listen: 'net/netstat',
  files: 'sys/fs/file-nr',
})
/** Bytes: first line of /proc/stat. */
const FIRST_LINE = 256
/** Container hosts have hundreds. */
const MAX_INTERFACES = 32

/** Without /proc. @param {CpuInfo[]} cores @returns {CpuTicks} */
function ticksOf(cores) {
  const sum = (/** @type {(keyof CpuInfo['times'])[]} */ ...kinds) =>
    cores.reduce((all, { times }) => all + kinds.reduce((ticks, kind) => ticks + times[kind], 0), 0)
  return { user: sum('user', 'nice'), system: sum('sys', 'irq'), idle: sum('idle'), iowait: 0, steal: 0 }
}

/** @template {object} T @param {T} values @param {(value: number, key: keyof T) => number} change @returns {T} */
const mapValues = (values, change) =>
  /** @type {any} */ (
    Object.fromEntries(
      Object.entries(values).map(([key, value]) => [key, change(value, /** @type {any} */ (key))]),
    )
  )

/** @returns {Network} */
const noTraffic = () => ({ rx_bytes: 0, tx_bytes: 0, rx_packets: 0, tx_packets: 0 })

/** From /proc, or Node.js on other systems. Rates cover the time since the previous sample. */
export class MachineSampler {
  /** @type {{[name in keyof typeof FILES]: ProcFile | null}} */
  #files
  #net
  #limit
  #cores
  #readCores
  #page = pageSize()
  #ticks
  /** @type {Record<string, Network>} */
  #traffic = {}
  /** Interfaces with a device: bridges count packets twice. @type {Map<string, boolean>} */
  #devices = new Map()
  /** @type {MachineSample['listen']} */
  #listen
  #clock
  #at

  /**
   * @param {object} [options]
   * @param {string} [options.proc] a missing folder simulates another platform
   * @param {string} [options.net]
   * @param {{cgroup?: string, mounts?: string}} [options.groups]
   * @param {() => CpuInfo[]} [options.readCores]
   * @param {() => number} [options.clock] ms
   */
  constructor({
    proc = '/proc',
    net = '/sys/class/net',
    groups,
    readCores = cpus,
    clock = () => performance.now(),
  } = {}) {
    this.#files = /** @type {any} */ (
      Object.fromEntries(
        Object.entries(FILES).map(([name, path]) => [name, ProcFile.open(`${proc}/${path}`)]),
      )
    )
    const { memory, interfaces, listen } = this.#files
    this.#net = net
    this.#readCores = readCores
    this.#cores = readCores().length
    this.#clock = clock
    this.#limit = memory ? MemoryLimit.find(this.#memory().total, groups) : null
    this.#at = clock()
    this.#ticks = this.#readTicks()
    if (interfaces) this.#traffic = parseInterfaces(interfaces.readTable())
    this.#listen = listen && parseListen(listen.read())
  }

  /** @returns {MachineSample} */
  sample() {
    const now = this.#clock()
    const seconds = (now - this.#at) / 1000
    this.#at = now
    const { sockets, sockets6, files } = this.#files
    const memory = this.#memory()
    return {
      cores: this.#cores,
      cpu: this.#shares(),
      memory: this.#limit?.bound(memory) ?? memory,
      load: process.platform === 'win32' ? null : loadavg(),
      sockets: sockets && parseSockets(sockets.read(), sockets6?.read() ?? '', this.#page),
      network: this.#network(seconds),
      listen: this.#overflows(),
      files: files && parseFiles(files.read()),
    }
  }

  #readTicks() {
    const { cpu } = this.#files
    return cpu ? parseCpu(cpu.read(FIRST_LINE)) : ticksOf(this.#readCores())
  }

  /** @returns {MachineCpu | null} */
  #shares() {
    const before = this.#ticks
    this.#ticks = this.#readTicks()
    // Sums fall when a core goes offline, and idle time does on some kernels.
    const gains = mapValues(this.#ticks, (ticks, kind) => Math.max(0, ticks - before[kind]))
    const passed = Object.values(gains).reduce((sum, ticks) => sum + ticks, 0)
    return passed === 0 ? null : mapValues(gains, ticks => tenThousandths(ticks / passed))
  }

  /** @returns {MachineSample['memory']} */
  #memory() {
    const { memory } = this.#files
    if (memory) return parseMemory(memory.read())
    const total = totalmem()
    const free = freemem()
    return { total, used: total - free, free, available: free, caches: 0, slab: null }
  }

  /** @param {number} seconds @returns {MachineSample['network']} */
  #network(seconds) {
    if (!this.#files.interfaces) return null
    const now = parseInterfaces(this.#files.interfaces.readTable())
    const before = this.#traffic
    this.#traffic = now
    const names = Object.keys(now)
    const devices = names.filter(name => this.#isDevice(name))
    // Containers bring new names.
    for (const name of this.#devices.keys()) if (!Object.hasOwn(now, name)) this.#devices.delete(name)
    const loopback = noTraffic()
    const others = noTraffic()
    /** @type {Record<string, Network>} */
    const interfaces = {}
    for (const [i, name] of names.entries()) {
      const last = before[name] ?? noTraffic()
      const rate = mapValues(now[name], (value, key) =>
        seconds > 0 ? Math.round(Math.max(0, value - last[key]) / seconds) : 0,
      )
      if (i < MAX_INTERFACES) interfaces[name] = rate
      if (name === 'lo') add(loopback, rate)
      else if (devices.length === 0 || devices.includes(name)) add(others, rate)
    }
    const quiet = others.rx_packets + others.tx_packets === 0
    return { ...(quiet ? loopback : others), interfaces }
  }

  /** @param {string} name */
  #isDevice(name) {
    let device = this.#devices.get(name)
    if (device === undefined) this.#devices.set(name, (device = existsSync(`${this.#net}/${name}/device`)))
    return device
  }

  /** @returns {MachineSample['listen']} */
  #overflows() {
    const before = this.#listen
    this.#listen = this.#files.listen && parseListen(this.#files.listen.read())
    if (!this.#listen || !before) return null
    return mapValues(this.#listen, (value, key) => Math.max(0, value - before[key]))
  }

  close() {
    for (const file of Object.values(this.#files)) file?.close()
    this.#limit?.close()
  }
}
