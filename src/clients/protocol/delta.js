// Fossil deltas (client protocol). One pass over typed arrays. Never splits a UTF-8 sequence, so deltas of texts fit
// JSON strings.

/** Bytes per lookup; common parts shorter than about twice this may be missed. */
const WINDOW = 12
/** Positions tried per hash: limits the cost of malicious payloads. */
const MAX_TRIES = 12
/** Bytes after a copy that also try neighbouring offsets: most changes resize a part. */
const NEAR = 32
const NEIGHBOURS = 4
const MIN_TARGET = 16
/** Bytes per native comparison of heads and tails. */
const CHUNK = 512
/** Larger buffers are released, bytes. */
const KEEP = 1024 * 1024

const DIGITS = Buffer.from('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~')
const [LF, COPY_FROM, COPY_END, LITERAL, END] = Buffer.from('\n@,:;')

/** Factor of the rolling hash, a polynomial of the window modulo 2^32. */
const FACTOR = 0x01000193
const FACTOR_OUT = Array(WINDOW - 1)
  .fill(FACTOR)
  .reduce((product, factor) => Math.imul(product, factor), 1)
/** 2^32 divided by the golden ratio. */
const SPREAD = 0x9e3779b1

/** Continues a UTF-8 sequence. @param {number} byte */
const continues = byte => (byte & 0xc0) === 0x80
const MAX_CONTINUING = 3

/** @param {number} value */
function digitsOf(value) {
  let digits = 1
  for (let rest = value >>> 6; rest > 0; rest >>>= 6) digits++
  return digits
}

/** @param {Uint8Array} bytes @param {number} at */
function hashAt(bytes, at) {
  let hash = 0
  for (let i = at; i < at + WINDOW; i++) hash = (Math.imul(hash, FACTOR) + bytes[i]) | 0
  return hash
}

/** Sum of the big-endian 32-bit words modulo 2^32, the last one padded with zeros. @param {Uint8Array} target */
function checksum(target) {
  const whole = target.length & ~3
  let a = 0
  let b = 0
  let c = 0
  let d = 0
  for (let i = 0; i < whole; i += 4) {
    a += target[i]
    b += target[i + 1]
    c += target[i + 2]
    d += target[i + 3]
  }
  if (whole < target.length) a += target[whole]
  if (whole + 1 < target.length) b += target[whole + 1]
  if (whole + 2 < target.length) c += target[whole + 2]
  return ((a << 24) + (b << 16) + (c << 8) + d) >>> 0
}

/**
 * Extends the checksum of the first `from` bytes. @param {Uint8Array} bytes @param {number} from @param {number} to
 * @param {number} sum
 */
export function extendChecksum(bytes, from, to, sum) {
  for (let at = from; at < to; at++) sum = (sum + (bytes[at] << (24 - 8 * (at & 3)))) | 0
  return sum
}

/** @param {Uint8Array} base @param {Uint8Array} target */
function commonHead(base, target) {
  const max = Math.min(base.length, target.length)
  let length = 0
  while (length + CHUNK <= max && same(base, length, target, length)) length += CHUNK
  while (length < max && base[length] === target[length]) length++
  return length
}

/** @param {Uint8Array} base @param {Uint8Array} target @param {number} max */
function commonTail(base, target, max) {
  const b = base.length
  const t = target.length
  let length = 0
  while (length + CHUNK <= max && same(base, b - length - CHUNK, target, t - length - CHUNK)) length += CHUNK
  while (length < max && base[b - length - 1] === target[t - length - 1]) length++
  return length
}

/** @param {Uint8Array} base @param {number} b @param {Uint8Array} target @param {number} t */
function same(base, b, target, t) {
  return Buffer.compare(base.subarray(b, b + CHUNK), target.subarray(t, t + CHUNK)) === 0
}

/** Encodes deltas in reused buffers, in linear time for any input. */
export class DeltaEncoder {
  #out = Buffer.allocUnsafeSlow(1024)
  #end = 0
  /** Exclusive maximum of the delta's bytes. */
  #limit = 0
  /** hash -> 1 + its last block in the base; 0 = none. */
  #heads = new Int32Array(0)
  /** block -> 1 + the previous block with the same hash. */
  #earlier = new Int32Array(0)
  #from = 0
  #to = 0
  #place = 0

  /**
   * @param {Uint8Array} base @param {Uint8Array} target
   * @returns {Buffer | null} UTF-8 if `target` is; null if not shorter
   */
  encode(base, target) {
    const { length } = target
    if (length < MIN_TARGET || base.length < WINDOW) return null
    if (this.#out.length < length) this.#out = Buffer.allocUnsafeSlow(length)
    this.#limit = length - 1
    this.#end = 0
    this.#integer(length, LF)
    let head = commonHead(base, target)
    while (head > 0 && head < length && continues(target[head])) head--
    if (head < WINDOW) head = 0
    let tail = commonTail(base, target, Math.min(base.length, length) - head)
    while (tail > 0 && continues(target[length - tail])) tail--
    if (tail < WINDOW) tail = 0
    if (head > 0) this.#copy(0, head)
    if (head + tail < length) this.#middle(base, target, head, length - tail)
    if (tail > 0) this.#copy(base.length - tail, tail)
    this.#integer(checksum(target), END)
    const delta = this.#end > this.#limit ? null : Buffer.from(this.#out.subarray(0, this.#end))
    if (this.#out.length > KEEP) this.#out = Buffer.allocUnsafeSlow(1024)
    if (this.#heads.byteLength > KEEP) this.#heads = this.#earlier = new Int32Array(0)
    return delta
  }

  /**
   * Delta of a target that continues the first `kept` bytes of its base.
   * @param {number} kept @param {Uint8Array} target @param {number} sum checksum of the target
   * @returns {Buffer | null} null if not shorter
   */
  encodeTail(kept, target, sum) {
    const { length } = target
    if (this.#out.length < length - kept + 64) this.#out = Buffer.allocUnsafeSlow(length - kept + 64)
    this.#limit = length - 1
    this.#end = 0
    this.#integer(length, LF)
    if (kept > 0) this.#copy(0, kept)
    this.#literal(target, kept, length)
    this.#integer(sum >>> 0, END)
    return this.#end > this.#limit ? null : Buffer.from(this.#out.subarray(0, this.#end))
  }

  /** @param {Uint8Array} base @param {Uint8Array} target @param {number} start @param {number} end */
  #middle(base, target, start, end) {
    let pending = start
    if (end - start > 2 * WINDOW) {
      const shift = this.#index(base)
      const heads = this.#heads
      const earlier = this.#earlier
      let moved = 0
      let at = start
      let hash = hashAt(target, at)
      while (this.#end <= this.#limit) {
        this.#from = this.#to = 0
        const first = target[at]
        const reach = at - pending < NEAR ? NEIGHBOURS : 0
        const last = Math.min(at + moved + reach, base.length - 1)
        for (let place = Math.max(0, at + moved - reach); place <= last; place++) {
          if (base[place] === first) this.#try(base, target, pending, at, end, place)
        }
        let block = heads[Math.imul(hash, SPREAD) >>> shift]
        for (let tries = MAX_TRIES; block > 0 && tries > 0; tries--) {
          const place = (block - 1) * WINDOW
          if (base[place] === first) this.#try(base, target, pending, at, end, place)
          block = earlier[block - 1]
        }
        if (this.#to > 0) {
          this.#literal(target, pending, this.#from)
          this.#copy(this.#place, this.#to - this.#from)
          moved = this.#place - this.#from
          at = pending = this.#to
          if (at + WINDOW > end) break
          hash = hashAt(target, at)
        } else {
          if (at + WINDOW >= end) break
          hash = (Math.imul(hash - Math.imul(target[at], FACTOR_OUT), FACTOR) + target[at + WINDOW]) | 0
          at++
        }
      }
    }
    this.#literal(target, pending, end)
  }

  /** Indexes the blocks of the base. @param {Uint8Array} base @returns {number} hash shift for its index */
  #index(base) {
    const blocks = Math.floor(base.length / WINDOW)
    const bits = Math.max(4, 33 - Math.clz32(blocks))
    const size = 1 << bits
    if (this.#heads.length < size) {
      this.#heads = new Int32Array(size)
      this.#earlier = new Int32Array(size)
    } else {
      this.#heads.fill(0, 0, size)
    }
    const heads = this.#heads
    const earlier = this.#earlier
    const shift = 32 - bits
    for (let block = 0; block < blocks; block++) {
      const slot = Math.imul(hashAt(base, block * WINDOW), SPREAD) >>> shift
      earlier[block] = heads[slot]
      heads[slot] = block + 1
    }
    return shift
  }

  /**
   * Keeps the match of `target` at `at` with `base` at `place` if it is the longest so far and saves bytes.
   * @param {Uint8Array} base @param {Uint8Array} target @param {number} pending start of the unwritten part
   * @param {number} at @param {number} end @param {number} place
   */
  #try(base, target, pending, at, end, place) {
    const max = Math.min(end, at + base.length - place)
    const offset = place - at
    let to = at + 1
    while (to < max && base[to + offset] === target[to]) to++
    if (to - at < WINDOW) return
    let from = at
    const min = Math.max(pending, -offset)
    while (from > min && base[from - 1 + offset] === target[from - 1]) from--
    // Trims to character borders in few steps: trimming long matches takes quadratic time.
    for (let steps = MAX_CONTINUING; steps > 0 && from < to && continues(target[from]); steps--) from++
    if (to < target.length) {
      for (let steps = MAX_CONTINUING; steps > 0 && to > from && continues(target[to]); steps--) to--
    }
    if (to - from <= this.#to - this.#from) return
    // Cost of the copy and the next literal header.
    if (to - from <= digitsOf(to - from) + digitsOf(from + offset) + 5) return
    this.#from = from
    this.#to = to
    this.#place = from + offset
  }

  /** @param {number} place in the base @param {number} length */
  #copy(place, length) {
    this.#integer(length, COPY_FROM)
    this.#integer(place, COPY_END)
  }

  /** @param {Uint8Array} target @param {number} from @param {number} to */
  #literal(target, from, to) {
    if (from === to) return
    this.#integer(to - from, LITERAL)
    if (this.#end + to - from <= this.#limit) this.#out.set(target.subarray(from, to), this.#end)
    this.#end += to - from
  }

  /** @param {number} value below 2^32 @param {number} mark the byte after it */
  #integer(value, mark) {
    const digits = digitsOf(value)
    this.#end += digits + 1
    if (this.#end > this.#limit) return
    let at = this.#end - 1
    this.#out[at] = mark
    for (let rest = value; at > this.#end - 1 - digits; rest >>>= 6) this.#out[--at] = DIGITS[rest & 63]
  }
}
