import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { cpuQuota } from '../control-groups.js'
import { MemoryLimit } from '../memory-limit.js'
import { parseFiles, parseListen, parseMemory } from '../proc-files.js'
import { pageSize, readText } from '../proc-reader.js'
import { readInterfaces } from './interfaces.js'
import {
  parseAccepted,
  parseAddresses,
  parseChoice,
  parseLimits,
  parseList,
  parseNumbers,
  parsePackets,
  parseSwap,
  parseTimeWait,
  readOnlySettings,
} from './texts.js'

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
 * @property {import('./interfaces.js').Interface[]} interfaces
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
