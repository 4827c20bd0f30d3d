// Capabilities: rights of one connection (`caps`) or subscription (`allow`) beside the channel options, from a token, a
// hook or a proxy (docs/access.md). They only add rights: an invalid list is an error, never a smaller one.

import { compilePattern } from '../../config/pattern.js'
import { isObject } from '../protocol/raw-json.js'

/** Operations on a channel, as bits. */
export const Operation = Object.freeze({ SUBSCRIBE: 1, PUBLISH: 2, PRESENCE: 4, HISTORY: 8 })

/** @type {ReadonlyMap<any, number>} */
const OPERATIONS = new Map([
  ['sub', Operation.SUBSCRIBE],
  ['pub', Operation.PUBLISH],
  ['prs', Operation.PRESENCE],
  ['hst', Operation.HISTORY],
])

const MAX_ENTRIES = 64
/** Maximum names of all entries. */
const MAX_NAMES = 1024
/** Maximum characters of a name. */
const MAX_NAME_LENGTH = 256
/** Maximum bytes of the entries as JSON. */
const MAX_BYTES = 16 * 1024
/** Maximum instructions of all expressions: a check takes time in proportion, and a repetition has up to 1,000. */
const MAX_INSTRUCTIONS = 10_000

/** @param {any} value @returns {string} for messages */
const show = value => String(JSON.stringify(value) ?? typeof value).slice(0, 100)

/**
 * Reads `allow`.
 * @param {any} value a list of operations; undefined and null: none @param {string} [name] for messages
 * @returns {number} bits of Operation
 * @throws {Error} one line
 */
export function readAllow(value, name = 'allow') {
  if (value === undefined || value === null) return 0
  if (!Array.isArray(value)) throw new Error(`${name} is not a list`)
  let operations = 0
  for (const text of value) {
    const operation = OPERATIONS.get(text)
    if (operation === undefined)
      throw new Error(`${name} has ${show(text)}; operations are ${[...OPERATIONS.keys()].join(', ')}`)
    operations |= operation
  }
  return operations
}

/** Takes time linear in the name: text between stars is searched once, at its first place. @param {string} pattern */
function wildcard(pattern) {
  const [head, ...others] = pattern.split('*')
  const tail = others.pop()
  if (tail === undefined) return (/** @type {string} */ channel) => channel === pattern
  return (/** @type {string} */ channel) => {
    if (!channel.startsWith(head)) return false
    let at = head.length
    for (const part of others) {
      at = channel.indexOf(part, at)
      if (at === -1) return false
      at += part.length
    }
    return channel.length - at >= tail.length && channel.endsWith(tail)
  }
}

const MATCHES = Object.freeze(['', 'exact', 'wildcard', 'regex'])

/** @typedef {{channels: string[], match: string, operations: number}} Entry `match`: '' = exact */

/** Immutable: connections with equal capabilities share one object. */
export class Capabilities {
  /** Name -> bits of Operation. @type {Map<string, number>} */
  #exact = new Map()
  /** @type {{matches: (channel: string) => boolean, operations: number}[]} */
  #patterns = []

  /** @param {Entry[]} entries @throws {Error} one line: an invalid or too large pattern */
  constructor(entries) {
    let instructions = 0
    for (const { channels, match, operations } of entries)
      for (const name of channels) {
        if (match === '') this.#exact.set(name, (this.#exact.get(name) ?? 0) | operations)
        else if (match === 'wildcard') this.#patterns.push({ matches: wildcard(name), operations })
        else {
          const pattern = compilePattern(name)
          instructions += pattern.programSize()
          if (instructions > MAX_INSTRUCTIONS)
            throw new Error(`the expressions of caps have more than ${MAX_INSTRUCTIONS} instructions`)
          this.#patterns.push({ matches: channel => pattern.test(channel), operations })
        }
      }
  }

  /** @param {string} channel of bounded length @returns {number} bits of Operation, of all entries */
  of(channel) {
    let granted = this.#exact.get(channel) ?? 0
    for (const { matches, operations } of this.#patterns)
      if ((granted & operations) !== operations && matches(channel)) granted |= operations
    return granted
  }
}

/** @param {any} value @returns {Entry[]} @throws {Error} one line */
function readEntries(value) {
  if (!Array.isArray(value)) throw new Error('caps is not a list')
  if (value.length > MAX_ENTRIES) throw new Error(`caps has more than ${MAX_ENTRIES} entries`)
  let names = 0
  return value.map((entry, i) => {
    const at = `caps[${i}]`
    if (!isObject(entry)) throw new Error(`${at} is not an object`)
    const channels = entry.channels ?? []
    if (!Array.isArray(channels)) throw new Error(`${at}.channels is not a list`)
    names += channels.length
    if (names > MAX_NAMES) throw new Error(`caps has more than ${MAX_NAMES} channels`)
    for (const name of channels)
      if (typeof name !== 'string' || name === '' || name.length > MAX_NAME_LENGTH)
        throw new Error(
          `${at}.channels has ${show(name)}: must be a text of 1 to ${MAX_NAME_LENGTH} characters`,
        )
    const match = entry.match ?? ''
    if (!MATCHES.includes(match))
      throw new Error(`${at}.match is ${show(match)}; known are ${MATCHES.slice(1).join(', ')}`)
    const operations = readAllow(entry.allow, `${at}.allow`)
    return { channels, match: match === 'exact' ? '' : match, operations }
  })
}

/** The capabilities of all connections of a worker. */
export class CapabilitySets {
  /** Entries as JSON -> their capabilities, while a connection has them. @type {Map<string, WeakRef<Capabilities>>} */
  #known = new Map()
  #unused = new FinalizationRegistry((/** @type {string} */ text) => {
    // Equal ones may have followed.
    if (this.#known.get(text)?.deref() === undefined) this.#known.delete(text)
  })

  /** Different capabilities in memory. */
  get size() {
    return this.#known.size
  }

  /**
   * Reads `caps`.
   * @param {any} value a list of `{channels, allow, match}`; undefined and null: none
   * @returns {Capabilities | null} the same object for equal lists; null: none
   * @throws {Error} one line: the list is invalid or too large
   */
  read(value) {
    if (value === undefined || value === null) return null
    const entries = readEntries(value)
    if (entries.length === 0) return null
    const text = JSON.stringify(entries)
    if (Buffer.byteLength(text) > MAX_BYTES) throw new Error(`caps is larger than ${MAX_BYTES} bytes`)
    const known = this.#known.get(text)?.deref()
    if (known !== undefined) return known
    const made = new Capabilities(entries)
    this.#known.set(text, new WeakRef(made))
    this.#unused.register(made, text)
    return made
  }
}
