import { existsSync } from 'node:fs'
import { cpus, freemem, loadavg, totalmem } from 'node:os'
import { MemoryLimit } from './memory-limit.js'
import { tenThousandths } from './merge.js'
import {
  parseCpu,
  parseFiles,
  parseInterfaces,
  parseListen,
  parseMemory,
  parseSockets,
} from './proc-files.js'
import { ProcFile, pageSize } from './proc-reader.js'

/** @import { CpuInfo } from 'node:os' */
/** @import { CpuTicks, Traffic } from './proc-files.js' */
/** @import { MachineSample } from './schema.js' */

const FILES = {
  cpu: 'stat',
  memory: 'meminfo',
  sockets: 'net/sockstat',
  sockets6: 'net/sockstat6',
  interfaces: 'net/dev',
  listen: 'net/netstat',
  files: 'sys/fs/file-nr',
}
/** They contain the first line of /proc/stat. */
const FIRST_LINE = 256
/** Interfaces listed in a sample: container hosts have hundreds. */
const MAX_INTERFACES = 32

/** Ticks from Node.js, for systems without /proc. @param {CpuInfo[]} cores @returns {CpuTicks} */
function ticksOf(cores) {
  const ticks = { user: 0, system: 0, idle: 0, iowait: 0, steal: 0 }
  for (const { times } of cores) {
    ticks.user += times.user + times.nice
    ticks.system += times.sys + times.irq
    ticks.idle += times.idle
  }
  return ticks
}

/** @returns {Traffic} */
const noTraffic = () => ({ rx_bytes: 0, tx_bytes: 0, rx_packets: 0, tx_packets: 0 })

/** @param {Traffic} sum @param {Traffic} traffic */
function add(sum, traffic) {
  sum.rx_bytes += traffic.rx_bytes
  sum.tx_bytes += traffic.tx_bytes
  sum.rx_packets += traffic.rx_packets
  sum.tx_packets += traffic.tx_packets
}

/** Samples the machine from /proc, or from Node.js elsewhere. Rates cover the time since the previous sample. */
export class MachineSampler {
  /** @type {{[name in keyof FILES]: ProcFile | null}} */
  #files
  #net
  #limit
  #cores
  #readCores
  #page = pageSize()
  #ticks
  /** @type {Record<string, Traffic>} */
  #traffic = {}
  /** @type {Map<string, boolean>} interfaces with a device: bridges would count packets twice */
  #devices = new Map()
  /** @type {{overflows: number, drops: number} | null} */
  #listen
  #clock
  #at

  /**
   * @param {object} [options]
   * @param {string} [options.proc] a missing folder simulates another platform
   * @param {string} [options.net] folder of the interfaces
   * @param {{cgroup?: string, mounts?: string}} [options.groups] paths of the control groups
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
    const open = (/** @type {keyof FILES} */ name) => ProcFile.open(`${proc}/${FILES[name]}`)
    this.#files = {
      cpu: open('cpu'),
      memory: open('memory'),
      sockets: open('sockets'),
      sockets6: open('sockets6'),
      interfaces: open('interfaces'),
      listen: open('listen'),
      files: open('files'),
    }
    this.#net = net
    this.#readCores = readCores
    this.#cores = readCores().length
    this.#clock = clock
    this.#limit = this.#files.memory ? MemoryLimit.find(this.#memory().total, groups) : null
    this.#at = clock()
    this.#ticks = this.#readTicks()
    if (this.#files.interfaces) this.#traffic = parseInterfaces(this.#files.interfaces.readTable())
    this.#listen = this.#files.listen ? parseListen(this.#files.listen.read()) : null
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
      memory: this.#limit ? this.#limit.bound(memory) : memory,
      load: process.platform === 'win32' ? null : loadavg(),
      sockets: sockets && parseSockets(sockets.read(), sockets6 ? sockets6.read() : '', this.#page),
      network: this.#network(seconds),
      listen: this.#overflows(),
      files: files && parseFiles(files.read()),
    }
  }

  #readTicks() {
    const { cpu } = this.#files
    return cpu ? parseCpu(cpu.read(FIRST_LINE)) : ticksOf(this.#readCores())
  }

  /** @returns {MachineSample['cpu']} */
  #shares() {
    const before = this.#ticks
    const now = this.#readTicks()
    this.#ticks = now
    // A core that goes offline lowers the sums, and on some kernels idle time can decrease.
    const gain = (/** @type {keyof CpuTicks} */ kind) => Math.max(0, now[kind] - before[kind])
    const passed = gain('user') + gain('system') + gain('idle') + gain('iowait') + gain('steal')
    if (passed === 0) return null
    const share = (/** @type {keyof CpuTicks} */ kind) => tenThousandths(gain(kind) / passed)
    return {
      user: share('user'),
      system: share('system'),
      idle: share('idle'),
      iowait: share('iowait'),
      steal: share('steal'),
    }
  }

  /** @returns {MachineSample['memory']} without limits of this process */
  #memory() {
    const { memory } = this.#files
    if (memory) return parseMemory(memory.read())
    const total = totalmem()
    const free = freemem()
    return { total, used: total - free, free, available: free, caches: 0, slab: null }
  }

  /** @param {number} seconds since the previous sample @returns {MachineSample['network']} */
  #network(seconds) {
    if (!this.#files.interfaces) return null
    const now = parseInterfaces(this.#files.interfaces.readTable())
    const before = this.#traffic
    this.#traffic = now
    const names = Object.keys(now)
    const devices = names.filter(name => this.#isDevice(name))
    // Forget removed interfaces: each container brings new names.
    for (const name of this.#devices.keys()) if (!Object.hasOwn(now, name)) this.#devices.delete(name)
    const loopback = noTraffic()
    const others = noTraffic()
    /** @type {Record<string, Traffic>} */
    const interfaces = {}
    let named = 0
    for (const name of names) {
      const rate = noTraffic()
      // A new interface counts from zero.
      const last = before[name] ?? rate
      for (const key of /** @type {(keyof Traffic)[]} */ (Object.keys(rate)))
        rate[key] = seconds > 0 ? Math.round(Math.max(0, now[name][key] - last[key]) / seconds) : 0
      if (named++ < MAX_INTERFACES) interfaces[name] = rate
      if (name === 'lo') add(loopback, rate)
      else if (devices.length === 0 || devices.includes(name)) add(others, rate)
    }
    const quiet = others.rx_packets + others.tx_packets === 0
    return { ...(quiet ? loopback : others), interfaces }
  }

  /** @param {string} name of an interface */
  #isDevice(name) {
    let device = this.#devices.get(name)
    if (device === undefined) this.#devices.set(name, (device = existsSync(`${this.#net}/${name}/device`)))
    return device
  }

  /** @returns {MachineSample['listen']} */
  #overflows() {
    if (!this.#files.listen) return null
    const now = parseListen(this.#files.listen.read())
    const before = this.#listen
    this.#listen = now
    if (!now || !before) return null
    return {
      overflows: Math.max(0, now.overflows - before.overflows),
      drops: Math.max(0, now.drops - before.drops),
    }
  }

  close() {
    for (const file of Object.values(this.#files)) file?.close()
    this.#limit?.close()
  }
}
