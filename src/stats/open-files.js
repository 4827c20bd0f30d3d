import { readdirSync, readFileSync, statSync } from 'node:fs'

const FOLDER = '/proc/self/fd'
/** Counting one by one may take one part in so many of the time. */
const PATIENCE = 4000
/** Above this it would hold up the event loop for a ms or more. */
const MOST_COUNTED = 4096

/** @returns {number | null} how many files this process may open; null where it is not known */
function softLimit() {
  try {
    const [, limit] =
      /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return limit === undefined || limit === 'unlimited' ? null : Number(limit)
  } catch {
    return null
  }
}

/** The descriptors that this process has open, where there is /proc. */
export class OpenFiles {
  /** Node.js raises it when it starts; later nobody does. */
  limit = softLimit()
  #folder
  /** @type {number | null} */
  #counted = null
  #countAgain = 0

  /** @param {string} [folder] with an entry for each open file */
  constructor(folder = FOLDER) {
    this.#folder = folder
  }

  /** @returns {number | null} null where it is not known */
  count() {
    try {
      // Since Linux 6.2 the folder's size says it.
      return statSync(this.#folder).size || this.#countThem()
    } catch {
      return null
    }
  }

  /** Where the kernel does not say it: rarely, and never among very many. */
  #countThem() {
    const now = performance.now()
    if (now < this.#countAgain) return this.#counted
    const names = readdirSync(this.#folder).length
    const taken = performance.now() - now
    this.#countAgain = names > MOST_COUNTED ? Infinity : now + taken * PATIENCE
    this.#counted = names > MOST_COUNTED ? null : names
    return this.#counted
  }
}
