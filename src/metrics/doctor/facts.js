// Facts of a machine, from /proc and /sys. Parsers return null for an unknown format.

import { existsSync, readdirSync, realpathSync } from 'node:fs'
import { basename, join } from 'node:path'
import { cpuQuota, MemoryLimit } from '../control-groups.js'
import {
  columnOf,
  memoryOf,
  pageSize,
  pairsOf,
  parseFiles,
  parseListen,
  parseMemory,
  readText,
} from '../proc-files.js'

const KEYS = /** @type {const} */ ([
  'fs.nr_open',
  'fs.file-max',
  'net.core.netdev_max_backlog',
  'net.core.somaxconn',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.tcp_max_syn_backlog',
  'net.ipv4.tcp_mem',
  'net.ipv4.tcp_migrate_req',
  'net.ipv4.tcp_moderate_rcvbuf',
  'net.ipv4.tcp_rmem',
  'net.ipv4.tcp_syncookies',
  'net.ipv4.tcp_tw_reuse',
  'net.ipv4.tcp_wmem',
  'net.netfilter.nf_conntrack_buckets',
  'net.netfilter.nf_conntrack_count',
  'net.netfilter.nf_conntrack_max',
  'vm.max_map_count',
])

/**
 * null: unknown.
 * @typedef {object} Facts
 * @property {string} kernel release; '' if unknown
 * @property {number} page bytes
 * @property {number | null} cores usable by this process
 * @property {number | null} quota cores; null: no limit
 * @property {{total: number, available: number, limited: boolean} | null} memory bytes; limited: by a control group
 * @property {{total: number, used: number} | null} swap bytes
 * @property {string | null} hugePages always, madvise or never
 * @property {{soft: number, hard: number} | null} files of one process
 * @property {{open: number, limit: number} | null} allFiles of all processes
 * @property {Record<string, number[] | null>} settings by sysctl key
 * @property {number | null} timeWait connections
 * @property {{overflows: number, accepted: number | null} | null} listen since boot
 * @property {{packets: number, dropped: number} | null} packets since boot
 * @property {number | null} addresses IPv4 without loopback
 * @property {Interface[]} interfaces
 * @property {string | null} [uws] why uWebSockets.js does not load; '': it loads; null or absent: unknown
 * @property {string | null} container its kind
 * @property {boolean} readOnly kernel settings
 */

/** @param {string} root */
const groupFiles = root => ({ cgroup: join(root, 'proc/self/cgroup'), mounts: join(root, 'sys/fs/cgroup') })

/** @param {string} root @param {(path: string) => string} text @returns {Facts['memory']} */
function readMemory(root, text) {
  const machine = parseMemory(text('proc/meminfo'))
  if (!(machine.total > 0)) return null
  const limit = MemoryLimit.find(machine.total, groupFiles(root))
  const { total, available } = limit?.bound(machine) ?? machine
  limit?.close()
  return { total, available, limited: limit !== null }
}

/** @param {string} root @param {(path: string) => string} text */
function readContainer(root, text) {
  const exists = (/** @type {string} */ path) => existsSync(join(root, path))
  const first = text('proc/1/cgroup')
  if (exists('.dockerenv')) return 'Docker'
  if (exists('run/.containerenv')) return 'Podman'
  if (first.includes('kubepods') || exists('var/run/secrets/kubernetes.io')) return 'Kubernetes'
  if (/docker|containerd|libpod/.test(first)) return 'Docker'
  return first.includes('lxc') ? 'LXC' : null
}

/** @param {(path: string) => string} text */
function readCores(text) {
  const [, allowed = ''] = /^Cpus_allowed_list:\s*(\S+)/m.exec(text('proc/self/status')) ?? []
  return parseList(allowed)?.length ?? (text('proc/stat').match(/^cpu\d/gm)?.length || null)
}

/** @param {string} [root] contains proc/ and sys/ of a machine @returns {Facts} */
export function readFacts(root = '/') {
  const text = (/** @type {string} */ path) => readText(join(root, path))
  /** @template T @param {string} path @param {(text: string) => T} parse @returns {T | null} */
  const parsed = (path, parse) => {
    const content = text(path)
    return content === '' ? null : parse(content)
  }
  const setting = (/** @type {string} */ key) => parsed(`proc/sys/${key.replaceAll('.', '/')}`, parseNumbers)
  const allFiles = parsed('proc/sys/fs/file-nr', parseFiles)
  const listen = parsed('proc/net/netstat', parseListen)
  return {
    kernel: text('proc/sys/kernel/osrelease').trim(),
    page: root === '/' ? pageSize() : 4096,
    cores: readCores(text),
    quota: cpuQuota(groupFiles(root)),
    memory: readMemory(root, text),
    swap: parseSwap(text('proc/meminfo')),
    // `always [madvise] never`.
    hugePages: /\[(\w+)\]/.exec(text('sys/kernel/mm/transparent_hugepage/enabled'))?.[1] ?? null,
    files: parseLimits(text('proc/self/limits')),
    allFiles: allFiles !== null && allFiles.limit > 0 ? allFiles : null,
    settings: Object.fromEntries(KEYS.map(key => [key, setting(key)])),
    timeWait: pairsOf(text('proc/net/sockstat'), 'TCP:').tw ?? null,
    listen: listen && {
      overflows: listen.overflows,
      accepted: columnOf(text('proc/net/snmp'), 'Tcp:', 'PassiveOpens') ?? null,
    },
    packets: parsed('proc/net/softnet_stat', parsePackets),
    addresses: parsed('proc/net/fib_trie', parseAddresses),
    interfaces: readInterfaces(root),
    container: readContainer(root, text),
    readOnly: isReadOnly(text('proc/self/mountinfo')),
  }
}

/**
 * A network card.
 * @typedef {object} Interface
 * @property {string} name
 * @property {number} receive queues
 * @property {number} send queues
 * @property {number} steered receive queues with software steering (RPS)
 * @property {number} chosen send queues with their own cores (XPS)
 * @property {{number: number, core: number | null}[]} interrupts of its queues; core: the serving one, null: unknown
 */

/** Interrupts without a queue. */
const NO_QUEUE = /config|mgmnt|async|control|cmd|fault|pages|event|misc|-rec\b/i

/** @param {string} folder */
function list(folder) {
  try {
    return readdirSync(folder).sort()
  } catch {
    return []
  }
}

/** Includes the parent: it has a virtio card's interrupts. @param {string} device */
function devices(device) {
  try {
    const real = realpathSync(device)
    return [real, join(real, '..')]
  } catch {
    return []
  }
}

/** Neither loopback nor virtual. @param {string} root @returns {Interface[]} */
function readInterfaces(root) {
  const folder = join(root, 'sys/class/net')
  const text = (/** @type {string[]} */ ...path) => readText(join(root, ...path))
  const interrupts = parseInterrupts(text('proc/interrupts'))
  return list(folder).flatMap(name => {
    const at = join(folder, name)
    if (!existsSync(join(at, 'device')) || readText(join(at, 'operstate')).trim() === 'down') return []
    const folders = devices(join(at, 'device'))
    const numbers = new Set(folders.flatMap(device => list(join(device, 'msi_irqs'))).map(Number))
    // Old kernels and some cards need the names of drivers.
    const names = [name, basename(folders[0] ?? name)]
      .map(word => word.replace(/[^\w-]/g, '\\$&'))
      .map(word => new RegExp(`(?:^|[\\s@-])${word}(?:$|[\\s@-])`))
    const own = interrupts.filter(
      interrupt =>
        (numbers.has(interrupt.number) || names.some(pattern => pattern.test(interrupt.name))) &&
        !NO_QUEUE.test(interrupt.name),
    )
    const queues = list(join(at, 'queues'))
    const receive = queues.filter(queue => queue.startsWith('rx-'))
    const send = queues.filter(queue => queue.startsWith('tx-'))
    const masked = (/** @type {string[]} */ names, /** @type {string} */ file) =>
      names.filter(queue => (parseMask(readText(join(at, 'queues', queue, file))) ?? 0) > 0).length
    return {
      name,
      receive: receive.length,
      send: send.length,
      steered: masked(receive, 'rps_cpus'),
      chosen: masked(send, 'xps_cpus'),
      interrupts: own.map(({ number, counts }) => ({ number, core: coreOf(number, counts, text) })),
    }
  })
}

/** @param {number} number @param {number[]} counts @param {(...path: string[]) => string} text */
function coreOf(number, counts, text) {
  for (const file of ['effective_affinity_list', 'smp_affinity_list']) {
    const cores = parseList(text('proc/irq', String(number), file))
    if (cores?.length === 1) return cores[0]
  }
  // With several allowed cores, the one with the most interrupts.
  const max = Math.max(0, ...counts)
  return max > 0 ? counts.indexOf(max) : null
}

/** @param {string} text */
function parseNumbers(text) {
  const words = text.trim().split(/\s+/)
  return words.every(word => /^-?\d+$/.test(word)) ? words.map(Number) : null
}

/** /proc/PID/limits. @param {string} text @returns {Facts['files']} Infinity: no limit */
function parseLimits(text) {
  const found = /^Max open files\s+(\d+|unlimited)\s+(\d+|unlimited)/m.exec(text)
  if (found === null) return null
  const [soft, hard] = found.slice(1).map(word => (word === 'unlimited' ? Infinity : Number(word)))
  return { soft, hard }
}

/** 0-3,8. @param {string} text */
export function parseList(text) {
  const numbers = []
  for (const part of text.trim().split(',')) {
    const [, from, to = from] = /^(\d+)(?:-(\d+))?$/.exec(part) ?? []
    // More than any machine has.
    if (from === undefined || Number(to) > 65_535) return null
    for (let i = Number(from); i <= Number(to); i++) numbers.push(i)
  }
  return numbers
}

/** Bits set in 00000000,0000000f. @param {string} text */
export function parseMask(text) {
  const digits = text.trim().replaceAll(',', '')
  if (!/^[0-9a-f]+$/i.test(digits)) return null
  return BigInt(`0x${digits}`).toString(2).replaceAll('0', '').length
}

/** Counts by core since boot. @param {string} text */
function parseInterrupts(text) {
  const [head = '', ...lines] = text.split('\n')
  const cores = head.match(/CPU\d+/g)?.length ?? 0
  return lines.flatMap(line => {
    const [label, ...words] = line.trim().split(/\s+/)
    const counts = words.slice(0, cores).map(Number)
    if (!/^\d+:$/.test(label) || counts.length < cores || counts.some(Number.isNaN)) return []
    return { number: Number.parseInt(label, 10), name: words.slice(cores).join(' '), counts }
  })
}

/** Hexadecimal, one line per core. @param {string} text @returns {Facts['packets']} */
function parsePackets(text) {
  const sum = { packets: 0, dropped: 0 }
  for (const row of text.trim().split('\n')) {
    const [packets, dropped] = row.split(' ').map(word => Number.parseInt(word, 16))
    sum.packets += packets
    sum.dropped += dropped
  }
  return Number.isFinite(sum.packets + sum.dropped) ? sum : null
}

/** Local IPv4 addresses without loopback. @param {string} text */
export function parseAddresses(text) {
  /** @type {Set<string>} */
  const own = new Set()
  let at = ''
  for (const line of text.split('\n')) {
    at = /-- (\d+\.\d+\.\d+\.\d+)/.exec(line)?.[1] ?? at
    if (/\/32 host LOCAL/.test(line) && !at.startsWith('127.')) own.add(at)
  }
  return text.includes('Local:') || own.size > 0 ? own.size : null
}

/** @param {string} text @returns {Facts['swap']} */
function parseSwap(text) {
  const total = memoryOf(text, 'SwapTotal')
  const free = memoryOf(text, 'SwapFree')
  return total === null || free === null ? null : { total, used: total - free }
}

/** @param {string} text of mountinfo */
const isReadOnly = text =>
  text.split('\n').some(line => {
    const [, , , , point, options] = line.split(' ')
    return (point === '/proc/sys' || point === '/proc') && options?.split(',').includes('ro')
  })
