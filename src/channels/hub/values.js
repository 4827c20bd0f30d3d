import { extendChecksum } from '../../clients/protocol/delta.js'

/** @import { Channel } from './channel.js' */

/** Maximum memory of all values of a worker. */
const MAX_BYTES = 16 * 1024 * 1024
/** Approximate bytes of a value, excluding data and key. */
const OVERHEAD = 320
const QUOTE = 34

/** @param {Uint8Array} data @returns {boolean} whether it is a JSON string; a part with spaces is none */
const isString = data => data.length > 1 && data[0] === QUOTE && data[data.length - 1] === QUOTE

/** The current value of a key: all subscribers of this worker that follow the channel's deltas have it. */
export class Value {
  #memory = Buffer.alloc(0)
  #length = 0
  #sum = 0
  /** Bytes in `#sum`. */
  #summed = 0
  /** Bytes that the last `append` has kept. */
  kept = 0
  json = true

  /** @param {Map<string, Value>} owner @param {string} key */
  constructor(owner, key) {
    this.owner = owner
    this.key = key
  }

  get cost() {
    return this.#memory.length + 2 * this.key.length + OVERHEAD
  }

  /** Valid until the next change. */
  get bytes() {
    return this.#memory.subarray(0, this.#length)
  }

  /** @param {Uint8Array} data copied @param {boolean} json */
  set(data, json) {
    const { length } = data
    if (this.#memory.length < length || this.#memory.length > 2 * length + 64)
      this.#memory = Buffer.allocUnsafeSlow(length + (length >>> 3))
    this.#memory.set(data)
    this.#length = length
    this.#summed = this.#sum = this.kept = 0
    this.json = json
  }

  /**
   * Same result as in the broker: bytes follow bytes, strings are joined inside their quotes.
   * @param {Uint8Array} part @param {boolean} json @returns {boolean} false: unknown result
   */
  append(part, json) {
    if (json !== this.json || (json && !(isString(part) && isString(this.bytes)))) return false
    const kept = json ? this.#length - 1 : this.#length
    if (this.#summed > kept) {
      this.#sum -= extendChecksum(this.#memory, kept, this.#summed, 0)
      this.#summed = kept
    }
    const tail = json ? part.subarray(1) : part
    const length = kept + tail.length
    if (length > this.#memory.length) {
      const grown = Buffer.allocUnsafeSlow(length + (length >>> 1))
      this.#memory.copy(grown, 0, 0, kept)
      this.#memory = grown
    }
    this.#memory.set(tail, kept)
    this.#length = length
    this.kept = kept
    return true
  }

  /** Of a delta: costs only the bytes since the last call. */
  checksum() {
    this.#sum = extendChecksum(this.#memory, this.#summed, this.#length, this.#sum)
    this.#summed = this.#length
    return this.#sum
  }
}

/** Values of maps in this worker, limited in bytes: the least recently used are dropped. */
export class Values {
  /** @type {Set<Value>} least recently used first */
  #all = new Set()
  #bytes = 0
  #maxBytes

  /** @param {number} [maxBytes] */
  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes
  }

  get bytes() {
    return this.#bytes
  }

  /** @param {Map<string, Value>} owner @param {string} key @param {Uint8Array} data copied @param {boolean} json */
  set(owner, key, data, json) {
    let value = owner.get(key)
    if (value === undefined) owner.set(key, (value = new Value(owner, key)))
    else this.#remove(value)
    value.set(data, json)
    this.#add(value)
  }

  /** As `set`, for a new key and without dropping others. @param {Parameters<Values['set']>} args @returns {boolean} */
  learn(...[owner, key, data, json]) {
    if (owner.has(key)) return true
    if (this.#bytes + data.length * 1.125 + 2 * key.length + OVERHEAD > this.#maxBytes) return false
    this.set(owner, key, data, json)
    return true
  }

  /** @param {Value} value @param {Uint8Array} part @param {boolean} json @returns {boolean} false: dropped */
  append(value, part, json) {
    this.#remove(value)
    if (!value.append(part, json)) {
      value.owner.delete(value.key)
      return false
    }
    this.#add(value)
    return value.owner.get(value.key) === value
  }

  /** @param {Map<string, Value>} owner @param {string} key */
  delete(owner, key) {
    const value = owner.get(key)
    if (value === undefined) return
    this.#remove(value)
    owner.delete(key)
  }

  /** @param {Map<string, Value>} owner */
  clear(owner) {
    for (const value of owner.values()) this.#remove(value)
    owner.clear()
  }

  /** @param {Value} value */
  #remove(value) {
    this.#all.delete(value)
    this.#bytes -= value.cost
  }

  /** @param {Value} value */
  #add(value) {
    this.#all.add(value)
    this.#bytes += value.cost
    for (const oldest of this.#all) {
      if (this.#bytes <= this.#maxBytes) break
      this.delete(oldest.owner, oldest.key)
    }
  }
}
