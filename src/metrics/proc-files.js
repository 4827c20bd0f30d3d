// Parsers of /proc files and of control-group files. They take text; proc-reader.js reads it.

/** @import { MachineSample } from './schema.js' */

const KB = 1024

/**
 * @typedef {{user: number, system: number, idle: number, iowait: number, steal: number}} CpuTicks since boot, all cores
 */

/**
 * @param {string} text of /proc/stat; its first line will do
 * @returns {CpuTicks} nice counts as user, interrupts as system
 */
export function parseCpu(text) {
  const end = text.indexOf('\n')
  const line = end < 0 ? text : text.slice(0, end)
  // Old kernels have fewer columns. Guest time, in later columns, is part of user.
  const [user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0] = line
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number)
  return { user: user + nice, system: system + irq + softirq, idle, iowait, steal }
}

/** @param {string} text of /proc/meminfo @returns {MachineSample['memory']} */
export function parseMemory(text) {
  /** @param {string} name */
  const find = name => {
    const at = text.startsWith(`${name}:`) ? 0 : text.indexOf(`\n${name}:`) + 1
    if (at === 0 && !text.startsWith(`${name}:`)) return null
    return Number.parseInt(text.slice(at + name.length + 1, at + name.length + 32), 10) * KB
  }
  const bytes = (/** @type {string} */ name) => find(name) ?? 0
  const total = bytes('MemTotal')
  const free = bytes('MemFree')
  const caches = bytes('Buffers') + bytes('Cached') + bytes('SReclaimable')
  return {
    total,
    used: Math.max(0, total - free - caches),
    free,
    // Missing before Linux 3.14.
    available: find('MemAvailable') ?? Math.min(total, free + caches),
    caches,
    slab: find('Slab'),
  }
}

/**
 * @param {string} text
 * @param {string} label at the beginning of a line
 * @returns {Record<string, number>} the name-value pairs after it
 */
function pairs(text, label) {
  const at = text.startsWith(label) ? 0 : text.indexOf(`\n${label}`) + 1
  /** @type {Record<string, number>} */
  const found = {}
  if (at === 0 && !text.startsWith(label)) return found
  const end = text.indexOf('\n', at)
  const words = text.slice(at + label.length, end < 0 ? undefined : end).split(' ')
  for (let i = 1; i + 1 < words.length; i += 2) found[words[i]] = Number(words[i + 1])
  return found
}

/**
 * @param {string} text of /proc/net/sockstat @param {string} text6 of /proc/net/sockstat6; empty without IPv6
 * @param {number} pageSize bytes
 * @returns {NonNullable<MachineSample['sockets']>}
 */
export function parseSockets(text, text6, pageSize) {
  const { used = 0 } = pairs(text, 'sockets:')
  // Only `inuse` is counted per address family.
  const { inuse = 0, orphan = 0, tw = 0, alloc = 0, mem = 0 } = pairs(text, 'TCP:')
  return {
    used,
    tcp: {
      inuse: inuse + (pairs(text6, 'TCP6:').inuse ?? 0),
      orphan,
      time_wait: tw,
      alloc,
      memory: mem * pageSize,
    },
  }
}

/** @typedef {{rx_bytes: number, tx_bytes: number, rx_packets: number, tx_packets: number}} Traffic */

/**
 * @param {string} text of /proc/net/dev
 * @returns {Record<string, Traffic>} by interface since it was created, without those that had no packets
 */
export function parseInterfaces(text) {
  /** @type {Record<string, Traffic>} */
  const interfaces = {}
  for (const line of text.split('\n')) {
    const colon = line.indexOf(':')
    if (colon < 0) continue
    const columns = line
      .slice(colon + 1)
      .trim()
      .split(/\s+/)
    const traffic = {
      rx_bytes: Number(columns[0]),
      tx_bytes: Number(columns[8]),
      rx_packets: Number(columns[1]),
      tx_packets: Number(columns[9]),
    }
    if (traffic.rx_packets + traffic.tx_packets > 0) interfaces[line.slice(0, colon).trim()] = traffic
  }
  return interfaces
}

/**
 * @param {string} text of /proc/net/netstat: lines of names, each followed by one of values
 * @returns {{overflows: number, drops: number} | null} since boot; null if missing
 */
export function parseListen(text) {
  const names = text.indexOf('TcpExt:')
  const values = text.indexOf('\nTcpExt:', names)
  if (names < 0 || values < 0) return null
  const columns = text.slice(names, values).split(' ')
  const row = text.slice(values + 1, text.indexOf('\n', values + 1)).split(' ')
  const overflows = Number(row[columns.indexOf('ListenOverflows')])
  const drops = Number(row[columns.indexOf('ListenDrops')])
  return Number.isFinite(overflows) && Number.isFinite(drops) ? { overflows, drops } : null
}

/** @param {string} text of /proc/sys/fs/file-nr: allocated, unused, limit @returns {{open: number, limit: number}} */
export function parseFiles(text) {
  const [allocated, unused, limit] = text.trim().split(/\s+/).map(Number)
  return { open: allocated - unused, limit }
}

/** @param {string} text of a file with one number, or `max` @returns {number} Infinity for `max` */
export function parseBytes(text) {
  const number = Number.parseInt(text, 10)
  return Number.isNaN(number) ? Number.POSITIVE_INFINITY : number
}

/**
 * @param {string} text of a control group's memory.stat
 * @returns {{caches: number, reclaimable: number, slab: number | null}} of the group and its children; caches: page
 *   cache and reclaimable slab; reclaimable: the part the kernel would free; slab: unknown with version 1
 */
export function parseMemoryStat(text) {
  /** @type {Record<string, number>} */
  const stat = {}
  for (const line of text.split('\n')) {
    const space = line.indexOf(' ')
    if (space > 0) stat[line.slice(0, space)] = Number(line.slice(space + 1))
  }
  const { slab_reclaimable = 0 } = stat
  const value = (/** @type {string} */ name) => stat[`total_${name}`] ?? stat[name] ?? 0
  return {
    caches: (stat.file ?? value('cache')) + slab_reclaimable,
    reclaimable: value('inactive_file') + value('active_file') + slab_reclaimable,
    slab: stat.slab ?? null,
  }
}
