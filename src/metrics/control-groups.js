// Limits of control groups (version 1 or 2) and of all their parents.

import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { ProcFile, readText } from './proc-files.js'

/** @import { MachineSample } from './schema.js' */

/** @typedef {{folder: string, version: 1 | 2}} ControlGroup */

/** @typedef {{cgroup?: string, mounts?: string}} GroupFiles for tests and other machines */

/** @type {Required<GroupFiles>} */
const OWN = Object.freeze({ cgroup: '/proc/self/cgroup', mounts: '/sys/fs/cgroup' })
/** Usual mount points of version 1. */
const MOUNTS = /** @type {const} */ ({ memory: ['memory'], cpu: ['cpu', 'cpu,cpuacct'] })

/** Innermost first. @param {keyof typeof MOUNTS} controller @param {GroupFiles} [files] */
function groupsOf(controller, { cgroup = OWN.cgroup, mounts = OWN.mounts } = {}) {
  /** @type {ControlGroup[]} */
  const groups = []
  for (const line of readText(cgroup).split('\n')) {
    const [, number, controllers, path] = /^(\d+):([^:]*):(\/.*)$/.exec(line) ?? []
    if (path === undefined) continue
    const version = number === '0' && controllers === '' ? 2 : 1
    if (version === 1 && !controllers.split(',').includes(controller)) continue
    const roots = version === 2 ? [mounts] : MOUNTS[controller].map(name => join(mounts, name))
    for (const root of roots) {
      // In a container the path may be the host's; then the root is its group.
      for (let at = path; ; at = dirname(at)) {
        groups.push({ folder: join(root, at), version })
        if (at === '/') break
      }
    }
  }
  return groups
}

/** @param {ControlGroup} group @returns cores; Infinity: no limit */
function quotaOf({ folder, version }) {
  const [quota, period] =
    version === 2
      ? readText(join(folder, 'cpu.max')).split(' ').map(Number)
      : ['quota', 'period'].map(name => Number(readText(join(folder, `cpu.cfs_${name}_us`)) || Number.NaN))
  // Without a limit: `max`, with version 1 -1.
  return quota > 0 && period > 0 ? quota / period : Infinity
}

/** @param {GroupFiles} [files] @returns {number | null} cores; null: no limit */
export function cpuQuota(files) {
  const lowest = Math.min(...groupsOf('cpu', files).map(quotaOf))
  return Number.isFinite(lowest) ? lowest : null
}

/**
 * One worker per whole core of the machine or the quota, at least one. The rest is for the primary and garbage
 * collection: with more busy processes than cores, the kernel throttles all of them.
 * @param {number} cores @param {number | null} quota null: no limit
 */
export const workersFor = (cores, quota) => Math.max(1, Math.min(cores, Math.floor(quota ?? cores)))

export const defaultWorkers = () => workersFor(availableParallelism(), cpuQuota())

/** @param {string} text a number, or `max` (Infinity) */
export function parseBytes(text) {
  const number = Number.parseInt(text, 10)
  return Number.isNaN(number) ? Infinity : number
}

/**
 * @param {string} text of memory.stat
 * @returns {{caches: number, reclaimable: number, slab: number | null}} caches: page cache and reclaimable slab;
 *   reclaimable: bytes the kernel can free; slab: null with version 1
 */
export function parseMemoryStat(text) {
  /** @type {Record<string, number>} */
  const stat = Object.fromEntries(
    [...text.matchAll(/^(\w+) (\d+)$/gm)].map(([, name, n]) => [name, Number(n)]),
  )
  const { slab_reclaimable = 0 } = stat
  const value = (/** @type {string} */ name) => stat[`total_${name}`] ?? stat[name] ?? 0
  return {
    caches: (stat.file ?? value('cache')) + slab_reclaimable,
    reclaimable: value('inactive_file') + value('active_file') + slab_reclaimable,
    slab: stat.slab ?? null,
  }
}

const MEMORY_FILES = /** @type {const} */ ({
  2: ['memory.max', 'memory.current', 'memory.stat'],
  1: ['memory.limit_in_bytes', 'memory.usage_in_bytes', 'memory.stat'],
})

export class MemoryLimit {
  #files

  /** @param {ProcFile[]} files limit, use, and memory.stat */
  constructor(files) {
    this.#files = files
  }

  /** Null: the machine is the tightest limit. @param {number} total bytes @param {GroupFiles} [files] */
  static find(total, files) {
    const limitOf = (/** @type {ControlGroup} */ { folder, version }) =>
      parseBytes(readText(join(folder, MEMORY_FILES[version][0])))
    const [tightest] = groupsOf('memory', files).sort((a, b) => limitOf(a) - limitOf(b))
    if (tightest === undefined || limitOf(tightest) >= total) return null
    const { folder, version } = tightest
    const open = MEMORY_FILES[version].map(name => ProcFile.open(join(folder, name)))
    if (open.every(file => file !== null)) return new MemoryLimit(open)
    for (const file of open) file?.close()
    return null
  }

  #read() {
    const [max, current, stat] = this.#files.map(file => file.read())
    return { total: parseBytes(max), taken: parseBytes(current), stat: parseMemoryStat(stat) }
  }

  /** @param {MachineSample['memory']} machine @returns {MachineSample['memory']} */
  bound(machine) {
    const { total, taken, stat } = this.#read()
    if (total >= machine.total) return machine
    const free = Math.max(0, total - taken)
    return {
      total,
      used: Math.max(0, taken - stat.caches),
      free,
      available: Math.min(machine.available, total, free + stat.reclaimable),
      caches: stat.caches,
      slab: stat.slab ?? machine.slab,
    }
  }

  /** Used share of the limit, without reclaimable memory; 0: no limit, or unknown. */
  share() {
    try {
      const { total, taken, stat } = this.#read()
      if (!Number.isFinite(total) || !Number.isFinite(taken)) return 0
      return Math.max(0, taken - stat.reclaimable) / total
    } catch {
      return 0
    }
  }

  close() {
    for (const file of this.#files) file.close()
  }
}
