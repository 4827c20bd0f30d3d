// Limits of a container or service: its control groups, of version 2 or 1, and their parents, whose limits all apply.

import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { readText } from './proc-reader.js'

/** @typedef {{folder: string, version: 1 | 2}} ControlGroup */

/** Files to read, for tests and other machines. @typedef {{cgroup?: string, mounts?: string}} GroupFiles */

/** @type {Required<GroupFiles>} */
const OWN = Object.freeze({ cgroup: '/proc/self/cgroup', mounts: '/sys/fs/cgroup' })
/** Usual mount points of a controller of version 1. */
const MOUNTS = /** @type {const} */ ({ memory: ['memory'], cpu: ['cpu', 'cpu,cpuacct'] })

/**
 * The control groups of this process that a controller may limit, the innermost first.
 * @param {keyof typeof MOUNTS} controller @param {GroupFiles} [files]
 * @returns {ControlGroup[]}
 */
export function groupsOf(controller, { cgroup = OWN.cgroup, mounts = OWN.mounts } = {}) {
  /** @type {ControlGroup[]} */
  const groups = []
  for (const line of readText(cgroup).split('\n')) {
    // A path may contain colons.
    const [, number, controllers, path] = /^(\d+):([^:]*):(\/.*)$/.exec(line) ?? []
    if (path === undefined) continue
    const version = number === '0' && controllers === '' ? 2 : 1
    if (version === 1 && !controllers.split(',').includes(controller)) continue
    const roots = version === 2 ? [mounts] : MOUNTS[controller].map(name => join(mounts, name))
    for (const root of roots) {
      // In a container the path may be the host's: then the root is the container's own group.
      for (let at = path; ; at = dirname(at)) {
        groups.push({ folder: join(root, at), version })
        if (at === '/') break
      }
    }
  }
  return groups
}

/** @param {ControlGroup} group @returns {number} cores; Infinity: no limit */
function quotaOf({ folder, version }) {
  const [quota, period] =
    version === 2
      ? readText(join(folder, 'cpu.max')).split(' ').map(Number)
      : ['quota', 'period'].map(name => Number(readText(join(folder, `cpu.cfs_${name}_us`)) || Number.NaN))
  // Without a limit the quota is `max`, with version 1 it is -1.
  return quota > 0 && period > 0 ? quota / period : Infinity
}

/** @param {GroupFiles} [files] @returns {number | null} cores that this process may use; null: no limit */
export function cpuQuota(files) {
  const lowest = Math.min(...groupsOf('cpu', files).map(quotaOf))
  return Number.isFinite(lowest) ? lowest : null
}

/**
 * Number of workers: one for each core or, below that, for each whole core of the quota, one at least. A part of a core
 * is left to the primary and to garbage collections: with more busy processes than cores the kernel stops all of them
 * for the rest of its period, which every client feels.
 * @param {number} cores of the machine @param {number | null} quota null: no limit
 */
export const workersFor = (cores, quota) => Math.max(1, Math.min(cores, Math.floor(quota ?? cores)))

/** @returns {number} workers for the cores that this process may use */
export function defaultWorkers() {
  return workersFor(availableParallelism(), cpuQuota())
}
