// Facts of a machine, from /proc and /sys, and the parsers of files there that only the doctor reads: these return null
// for an unknown format.

import { existsSync, readdirSync, realpathSync } from 'node:fs'
import { basename, join } from 'node:path'
import { cpuQuota } from '../control-groups.js'
import { MemoryLimit } from '../memory-limit.js'
import { parseFiles, parseListen, parseMemory } from '../proc-files.js'
import { pageSize, readText } from '../proc-reader.js'

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
 * Facts of a machine; null: unknown.
 * @typedef {object} Facts
 * @property {string} kernel release; empty if unknown
 * @property {number} page bytes
 * @property {number | null} cores usable by this process
 * @property {number | null} quota cores of its control group; null: no limit
 * @property {{total: number, available: number, limited: boolean} | null} memory bytes; limited: by a control group
 * @property {{total: number, used: number} | null} swap bytes
 * @property {string | null} hugePages always, madvise or never
 * @property {{soft: number, hard: number} | null} files limits of one process
 * @property {{open: number, limit: number} | null} allFiles of all processes
 * @property {Record<string, number[] | null>} settings of the kernel, by sysctl key
 * @property {number | null} timeWait connections
 * @property {{overflows: number, accepted: number | null} | null} listen since boot
 * @property {{packets: number, dropped: number} | null} packets since boot; dropped: the backlog was full
 * @property {number | null} addresses IPv4 without loopback
 * @property {Interface[]} interfaces
 * @property {string | null} [uws] why uWebSockets.js does not load here; empty: it loads; null or absent: unknown
 * @property {string | null} container evidence of a container
 * @property {boolean} readOnly kernel settings cannot be changed from here
 */

/** @param {string} root */
const groupFiles = root => ({
  cgroup: join(root, 'proc/self/cgroup'),
  mounts: join(root, 'sys/fs/cgroup'),
})

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
  if (existsSync(join(root, '.dockerenv'))) return 'Docker'
  if (existsSync(join(root, 'run/.containerenv'))) return 'Podman'
  const first = text('proc/1/cgroup')
  if (first.includes('kubepods') || existsSync(join(root, 'var/run/secrets/kubernetes.io')))
    return 'Kubernetes'
  if (/docker|containerd|libpod/.test(first)) return 'Docker'
  return first.includes('lxc') ? 'LXC' : null
}

/** @param {(path: string) => string} text */
function readCores(text) {
  const allowed = /^Cpus_allowed_list:\s*(\S+)/m.exec(text('proc/self/status'))
  const listed = allowed === null ? null : parseList(allowed[1])
  return listed?.length ?? (text('proc/stat').match(/^cpu\d/gm)?.length || null)
}

/** @param {string} [root] folder that contains proc/ and sys/, to examine another machine @returns {Facts} */
export function readFacts(root = '/') {
  const text = (/** @type {string} */ path) => readText(join(root, path))
  /** @template T @param {string} path @param {(text: string) => T} parse @returns {T | null} */
  const parsed = (path, parse) => {
    const content = text(path)
    return content === '' ? null : parse(content)
  }
  const setting = (/** @type {string} */ key) => parsed(`proc/sys/${key.replaceAll('.', '/')}`, parseNumbers)
  const page = root === '/' ? pageSize() : 4096
  const allFiles = parsed('proc/sys/fs/file-nr', parseFiles)
  const listen = parsed('proc/net/netstat', parseListen)
  return {
    kernel: text('proc/sys/kernel/osrelease').trim(),
    page,
    cores: readCores(text),
    quota: cpuQuota(groupFiles(root)),
    memory: readMemory(root, text),
    swap: parsed('proc/meminfo', parseSwap),
    hugePages: parsed('sys/kernel/mm/transparent_hugepage/enabled', parseChoice),
    files: parsed('proc/self/limits', parseLimits),
    allFiles: allFiles !== null && allFiles.limit > 0 ? allFiles : null,
    settings: Object.fromEntries(KEYS.map(key => [key, setting(key)])),
    timeWait: parsed('proc/net/sockstat', parseTimeWait),
    listen: listen && { overflows: listen.overflows, accepted: parsed('proc/net/snmp', parseAccepted) },
    packets: parsed('proc/net/softnet_stat', parsePackets),
    addresses: parsed('proc/net/fib_trie', parseAddresses),
    interfaces: readInterfaces(root),
    container: readContainer(root, text),
    readOnly: parsed('proc/self/mountinfo', readOnlySettings) ?? false,
  }
}

/**
 * A network card.
 * @typedef {object} Interface
 * @property {string} name
 * @property {number} receive queues
 * @property {number} send queues
 * @property {number} steered receive queues with software steering (RPS)
 * @property {number} chosen send queues with cores of their own (XPS)
 * @property {{number: number, core: number | null}[]} interrupts of its queues, with the core that serves each;
 *   null: unknown
 */

/** Interrupts of a network card that do not belong to queues. */
const NO_QUEUE = /config|mgmnt|async|control|cmd|fault|pages|event|misc|-rec\b/i

/** @param {string} folder @returns {string[]} empty if unreadable */
function list(folder) {
  try {
    return readdirSync(folder).sort()
  } catch {
    return []
  }
}

/**
 * The folder of a card's device, and its parent, which has the interrupts of a virtio card.
 * @param {string} device @returns {string[]}
 */
function devices(device) {
  try {
    const real = realpathSync(device)
    return [real, join(real, '..')]
  } catch {
    return []
  }
}

/**
 * Interfaces that are up and have a device: neither loopback nor virtual.
 * @param {string} root @returns {Interface[]}
 */
function readInterfaces(root) {
  const folder = join(root, 'sys/class/net')
  const interrupts = parseInterrupts(readText(join(root, 'proc/interrupts')))
  const text = (/** @type {string[]} */ ...path) => readText(join(root, ...path))
  /** @type {Interface[]} */
  const found = []
  for (const name of list(folder)) {
    const at = join(folder, name)
    if (!existsSync(join(at, 'device')) || text('sys/class/net', name, 'operstate').trim() === 'down')
      continue
    const folders = devices(join(at, 'device'))
    const numbers = new Set(folders.flatMap(device => list(join(device, 'msi_irqs'))).map(Number))
    // Old kernels and some cards: match the names that drivers use.
    const names = [name, basename(folders[0] ?? name)]
    const own = interrupts.filter(interrupt => {
      const called = names.some(word =>
        new RegExp(`(?:^|[\\s@-])${escapeRegExp(word)}(?:$|[\\s@-])`).test(interrupt.name),
      )
      return (numbers.has(interrupt.number) || called) && !NO_QUEUE.test(interrupt.name)
    })
    const queues = list(join(at, 'queues'))
    const receive = queues.filter(queue => queue.startsWith('rx-'))
    const send = queues.filter(queue => queue.startsWith('tx-'))
    const masked = (/** @type {string} */ queue, /** @type {string} */ file) =>
      (parseMask(text('sys/class/net', name, 'queues', queue, file)) ?? 0) > 0
    found.push({
      name,
      receive: receive.length,
      send: send.length,
      steered: receive.filter(queue => masked(queue, 'rps_cpus')).length,
      chosen: send.filter(queue => masked(queue, 'xps_cpus')).length,
      interrupts: own.map(({ number, counts }) => ({ number, core: coreOf(number, counts, text) })),
    })
  }
  return found
}

/** @param {string} word */
const escapeRegExp = word => word.replace(/[^\w-]/g, '\\$&')

/**
 * @param {number} number @param {number[]} counts @param {(...path: string[]) => string} text
 * @returns {number | null}
 */
function coreOf(number, counts, text) {
  for (const file of ['effective_affinity_list', 'smp_affinity_list']) {
    const cores = parseList(text('proc/irq', String(number), file))
    if (cores?.length === 1) return cores[0]
  }
  // Allowed on several cores: the one with the most interrupts.
  const most = Math.max(0, ...counts)
  return most > 0 ? counts.indexOf(most) : null
}

/** @param {string} text @returns {number[] | null} null if there are none, or other text */
function parseNumbers(text) {
  const words = text.trim().split(/\s+/)
  return words.every(word => /^-?\d+$/.test(word)) ? words.map(Number) : null
}

/**
 * /proc/PID/limits.
 * @param {string} text @returns {{soft: number, hard: number} | null} open files; Infinity: no limit
 */
function parseLimits(text) {
  const found = /^Max open files\s+(\d+|unlimited)\s+(\d+|unlimited)/m.exec(text)
  if (found === null) return null
  const [soft, hard] = found
    .slice(1)
    .map(word => (word === 'unlimited' ? Number.POSITIVE_INFINITY : Number(word)))
  return { soft, hard }
}

/** A kernel list: 0-3,8. @param {string} text @returns {number[] | null} */
export function parseList(text) {
  const numbers = []
  for (const part of text.trim().split(',')) {
    const found = /^(\d+)(?:-(\d+))?$/.exec(part)
    if (found === null) return null
    const [from, to = from] = found.slice(1).filter(word => word !== undefined)
    // More than any machine has.
    if (Number(to) > 65_535) return null
    for (let i = Number(from); i <= Number(to); i++) numbers.push(i)
  }
  return numbers
}

/** Bits set in a kernel mask, 32 bits a group: 00000000,0000000f. @param {string} text @returns {number | null} */
export function parseMask(text) {
  const digits = text.trim().replaceAll(',', '')
  if (!/^[0-9a-f]+$/i.test(digits)) return null
  return [...BigInt(`0x${digits}`).toString(2)].filter(bit => bit === '1').length
}

/**
 * @typedef {object} Interrupt
 * @property {number} number
 * @property {string} name text after the counts: chip, pin and device
 * @property {number[]} counts since boot, by core
 */

/** /proc/interrupts, devices only. @param {string} text @returns {Interrupt[]} */
function parseInterrupts(text) {
  const [head = '', ...lines] = text.split('\n')
  const cores = head.match(/CPU\d+/g)?.length ?? 0
  const found = []
  for (const line of lines) {
    const [label, ...words] = line.trim().split(/\s+/)
    const counts = words.slice(0, cores).map(Number)
    if (!/^\d+:$/.test(label ?? '') || counts.length < cores || counts.some(Number.isNaN)) continue
    found.push({ number: Number.parseInt(label, 10), name: words.slice(cores).join(' '), counts })
  }
  return found
}

/**
 * /proc/net/softnet_stat: one line per core, hexadecimal.
 * @param {string} text
 * @returns {{packets: number, dropped: number} | null} since boot; dropped: the backlog was full
 */
function parsePackets(text) {
  const sum = { packets: 0, dropped: 0 }
  for (const row of text.trim().split('\n')) {
    const [packets, dropped] = row.split(' ').map(word => Number.parseInt(word, 16))
    sum.packets += packets
    sum.dropped += dropped
  }
  return Number.isFinite(sum.packets + sum.dropped) ? sum : null
}

/** /proc/net/sockstat. @param {string} text @returns {number | null} connections closed within the last minute */
function parseTimeWait(text) {
  const found = /^TCP:.* tw (\d+)/m.exec(text)
  return found === null ? null : Number(found[1])
}

/** /proc/net/snmp. @param {string} text @returns {number | null} connections accepted since boot */
function parseAccepted(text) {
  const [names, values] = text.split('\n').filter(line => line.startsWith('Tcp:'))
  const at = names?.split(' ').indexOf('PassiveOpens') ?? -1
  const count = Number(values?.split(' ')[at])
  return at > 0 && Number.isFinite(count) ? count : null
}

/**
 * /proc/net/fib_trie.
 * @param {string} text @returns {number | null} local IPv4 addresses without loopback; null if unknown
 */
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

/** The chosen one of `always [madvise] never`. @param {string} text @returns {string | null} */
const parseChoice = text => /\[(\w+)\]/.exec(text)?.[1] ?? null

/** /proc/meminfo. @param {string} text @returns {{total: number, used: number} | null} bytes of swap */
function parseSwap(text) {
  const total = /^SwapTotal:\s+(\d+)/m.exec(text)
  const free = /^SwapFree:\s+(\d+)/m.exec(text)
  if (total === null || free === null) return null
  return { total: Number(total[1]) * 1024, used: (Number(total[1]) - Number(free[1])) * 1024 }
}

/**
 * /proc/self/mountinfo: whether kernel settings cannot be written from here.
 * @param {string} text @returns {boolean}
 */
const readOnlySettings = text =>
  text.split('\n').some(line => {
    const [, , , , point, options] = line.split(' ')
    return (point === '/proc/sys' || point === '/proc') && options?.split(',').includes('ro')
  })
