import { errors } from '../../../base/errors.js'
import { Journal } from './journal.js'

/** @import { Denial, DenialStore, StoreParts } from './contract.js' */
/** @import { Denylist } from '../denylist.js' */

/** Maximum changes that wait for the journal. */
const MAX_WAITING = 10_000
/** Changes in one record of the journal. */
const MAX_BATCH = 500

/** @typedef {{denial: Denial, done: (error: Error | null, denial: Denial) => void}} Waiting */

/**
 * Denials in the primary's memory, and in a journal if there is a file. Changes that arrive during a write are written
 * together.
 * @implements {DenialStore}
 */
export class MemoryStore {
  #list
  #limits
  #apply
  #log
  #journal
  #seq = 0
  /** @type {Waiting[]} */
  #waiting = []
  #writing = false
  #warned = false
  #idle = () => {}

  /** @param {StoreParts & {list: Denylist}} parts @param {string} file of the journal, '' = none */
  constructor({ list, limits, apply, log }, file) {
    this.#list = list
    this.#limits = limits
    this.#apply = apply
    this.#log = log
    this.#journal = file === '' ? null : new Journal(file, log)
  }

  async open() {
    const found = await this.#journal?.open(denial => {
      this.#seq = Math.max(this.#seq, denial.seq)
      if (denial.removed) this.#list.forget(denial)
      else this.#list.apply(denial)
    })
    this.#list.sweep()
    // Also makes the file that of this run.
    if (found) await this.#journal?.rewrite(this.#list)
  }

  /** @type {DenialStore['change']} */
  change(denial) {
    if (this.#journal === null && !this.#warned) {
      this.#warned = true
      this.#log.warn(
        {},
        'blocked users and revoked tokens are forgotten when the gateway ends: engine.memory.snapshot_file is not set',
      )
    }
    return new Promise((resolve, reject) => {
      if (this.#waiting.length >= MAX_WAITING) return reject(errors.internal)
      this.#waiting.push({ denial, done: (error, kept) => (error ? reject(error) : resolve(kept)) })
      if (!this.#writing) this.#write()
    })
  }

  async #write() {
    this.#writing = true
    while (this.#waiting.length > 0) await this.#writeBatch(this.#waiting.splice(0, MAX_BATCH))
    this.#writing = false
    this.#idle()
  }

  /** @param {Waiting[]} batch */
  async #writeBatch(batch) {
    const accepted = this.#accepted(batch)
    if (accepted.length === 0) return
    const denials = accepted.map(({ denial }) => denial)
    try {
      await this.#journal?.append(denials, this.#list)
    } catch {
      for (const { denial, done } of accepted) done(errors.internal, denial)
      return
    }
    this.#apply(denials)
    for (const { denial, done } of accepted) done(null, denial)
  }

  /** Numbers the changes, and refuses those above the limits. @param {Waiting[]} batch @returns {Waiting[]} */
  #accepted(batch) {
    /** New entries of the batch. @type {Record<string, number>} */
    const added = { user_block: 0, token_revoke: 0, user_tokens_invalidate: 0 }
    return batch.filter(waiting => {
      const { denial, done } = waiting
      const { kind } = denial
      if (!denial.removed && !this.#list.has(denial)) {
        const full = () => this.#list.count(kind) + added[kind] >= this.#limits[kind]
        if (full()) this.#list.sweep()
        if (full()) {
          done(errors.limitExceeded, denial)
          return false
        }
        added[kind]++
      }
      waiting.denial = { ...denial, seq: ++this.#seq }
      return true
    })
  }

  async close() {
    if (this.#writing) await new Promise(resolve => (this.#idle = () => resolve(undefined)))
    await this.#journal?.close()
  }
}
