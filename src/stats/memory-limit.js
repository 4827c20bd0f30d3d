// The limit that a container or a service has on its memory: a control group's, of version 2 or 1.

import { dirname, join } from 'node:path'
import { parseBytes, parseMemoryStat } from './proc-files.js'
import { ProcFile, readText } from './proc-reader.js'

const FILES = /** @type {const} */ ({
  2: { max: 'memory.max', current: 'memory.current' },
  1: { max: 'memory.limit_in_bytes', current: 'memory.usage_in_bytes' },
})

/**
 * Folders whose limits bound this process: its own group, and those above it.
 * @param {string} text of /proc/self/cgroup
 * @param {string} mounts where groups are
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
    // Inside of a container the path may be that of the world outside: then the root is the container's own group.
    for (let at = path; ; at = dirname(at)) {
      groups.push({ folder: join(root, at), version })
      if (at === '/') break
    }
  }
  return groups
}

/**
 * The tightest limit on this process's memory, and how much of it is taken.
 */
export class MemoryLimit {
  #max
  #current
  #stat

  /**
   * @param {ProcFile} max
   * @param {ProcFile} current
   * @param {ProcFile} stat
   */
  constructor(max, current, stat) {
    this.#max = max
    this.#current = current
    this.#stat = stat
  }

  /**
   * @param {number} total bytes of the machine
   * @param {{cgroup?: string, mounts?: string}} [where]
   * @returns {MemoryLimit | null} null when nothing bounds this process more than the machine does
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

  /**
   * @param {import('./schema.js').MachineSample['memory']} machine
   * @returns {import('./schema.js').MachineSample['memory']} as far as it is ours
   */
  bound(machine) {
    // A limit can be changed while we run.
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
