// The memory limit of a container or service.

import { join } from 'node:path'
import { groupsOf } from './control-groups.js'
import { parseBytes, parseMemoryStat } from './proc-files.js'
import { ProcFile, readText } from './proc-reader.js'

/** @import { GroupFiles } from './control-groups.js' */
/** @import { MachineSample } from './schema.js' */

const FILES = /** @type {const} */ ({
  2: { max: 'memory.max', current: 'memory.current' },
  1: { max: 'memory.limit_in_bytes', current: 'memory.usage_in_bytes' },
})

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
   * @param {number} total bytes of the machine @param {GroupFiles} [files]
   * @returns {MemoryLimit | null} null if the machine is the tightest limit
   */
  static find(total, files) {
    let lowest = total
    let found = null
    for (const { folder, version } of groupsOf('memory', files)) {
      const limit = parseBytes(readText(join(folder, FILES[version].max)))
      if (limit >= lowest) continue
      lowest = limit
      found = { folder, version }
    }
    if (!found) return null
    const { max, current } = FILES[found.version]
    const open = [max, current, 'memory.stat'].map(name => ProcFile.open(join(found.folder, name)))
    if (open.every(file => file !== null)) return new MemoryLimit(open[0], open[1], open[2])
    for (const file of open) file?.close()
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

  /** @returns {number} share of the limit in use, without what the kernel would free; 0: no limit, or unknown */
  share() {
    try {
      const total = parseBytes(this.#max.read())
      const taken = parseBytes(this.#current.read())
      if (!Number.isFinite(total) || !Number.isFinite(taken)) return 0
      return Math.max(0, taken - parseMemoryStat(this.#stat.read()).reclaimable) / total
    } catch {
      return 0
    }
  }

  close() {
    this.#max.close()
    this.#current.close()
    this.#stat.close()
  }
}
