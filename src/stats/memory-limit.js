// The memory limit of a container or service: control groups of version 2 or 1.

import { dirname, join } from 'node:path'
import { parseBytes, parseMemoryStat } from './proc-files.js'
import { ProcFile, readText } from './proc-reader.js'

/** @import { MachineSample } from './schema.js' */

const FILES = /** @type {const} */ ({
  2: { max: 'memory.max', current: 'memory.current' },
  1: { max: 'memory.limit_in_bytes', current: 'memory.usage_in_bytes' },
})

/**
 * This process's control group and its parents, whose limits all apply.
 * @param {string} text of /proc/self/cgroup @param {string} mounts mount point of the groups
 * @returns {{folder: string, version: 1 | 2}[]}
 */
export function groupsOf(text, mounts) {
  /** @type {{folder: string, version: 1 | 2}[]} */
  const groups = []
  for (const line of text.split('\n')) {
    const [number, controllers, path] = line.split(':')
    if (!path?.startsWith('/')) continue
    const version = number === '0' && controllers === '' ? 2 : 1
    if (version === 1 && !controllers.split(',').includes('memory')) continue
    const root = version === 2 ? mounts : join(mounts, 'memory')
    // In a container the path may be the host's: then the root is the container's own group.
    for (let at = path; ; at = dirname(at)) {
      groups.push({ folder: join(root, at), version })
      if (at === '/') break
    }
  }
  return groups
}

/** The lowest memory limit of this process, and its use. */
export class MemoryLimit {
  #max
  #current
  #stat

  /** @param {ProcFile} max @param {ProcFile} current @param {ProcFile} stat */
  constructor(max, current, stat) {
    this.#max = max
    this.#current = current
    this.#stat = stat
  }

  /**
   * @param {number} total bytes of the machine @param {{cgroup?: string, mounts?: string}} [where]
   * @returns {MemoryLimit | null} null if the machine is the tightest limit
   */
  static find(total, { cgroup = '/proc/self/cgroup', mounts = '/sys/fs/cgroup' } = {}) {
    let lowest = total
    let found = null
    for (const { folder, version } of groupsOf(readText(cgroup), mounts)) {
      const limit = parseBytes(readText(join(folder, FILES[version].max)))
      if (limit >= lowest) continue
      lowest = limit
      found = { folder, version }
    }
    if (!found) return null
    const { max, current } = FILES[found.version]
    const files = [max, current, 'memory.stat'].map(name => ProcFile.open(join(found.folder, name)))
    if (files.every(file => file !== null)) return new MemoryLimit(files[0], files[1], files[2])
    for (const file of files) file?.close()
    return null
  }

  /** @param {MachineSample['memory']} machine @returns {MachineSample['memory']} within the limit */
  bound(machine) {
    // Limits can change at run time.
    const total = parseBytes(this.#max.read())
    if (total >= machine.total) return machine
    const taken = parseBytes(this.#current.read())
    const { caches, reclaimable, slab } = parseMemoryStat(this.#stat.read())
    const free = Math.max(0, total - taken)
    return {
      total,
      used: Math.max(0, taken - caches),
      free,
      available: Math.min(machine.available, total, free + reclaimable),
      caches,
      slab: slab ?? machine.slab,
    }
  }

  close() {
    this.#max.close()
    this.#current.close()
    this.#stat.close()
  }
}
