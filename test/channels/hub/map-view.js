import { applyDelta } from 'fossil-delta'

/** A value with a part: a JSON string. @param {string} value @param {string} part */
export const withPart = (value, part) => value.slice(0, -1) + part.slice(1)

/** The state of a client after the pushes of a map, like the JavaScript SDK. Throws on protocol errors. */
export class MapView {
  /** Values by key. @type {Map<string, string>} */
  values
  /** Fossil bases by key. @type {Map<string, Buffer>} */
  #bases
  offset
  #delta
  /** `full`, `delta`, `part` or `removed` of each push. */
  kinds = []

  /** @param {Map<string, string>} state @param {number} offset @param {{delta?: boolean}} [options] */
  constructor(state, offset, { delta = false } = {}) {
    this.values = new Map(state)
    this.offset = offset
    this.#delta = delta
    this.#bases = new Map([...state].map(([key, value]) => [key, Buffer.from(value)]))
  }

  /** @param {any} pub */
  apply(pub) {
    const { key } = pub
    if (typeof key !== 'string') throw new Error(`no key: ${JSON.stringify(pub)}`)
    if (pub.offset > 0) this.offset = pub.offset
    if (pub.removed) {
      if ('data' in pub) throw new Error('a removal has data')
      this.values.delete(key)
      this.#bases.delete(key)
      this.kinds.push('removed')
      return
    }
    this.kinds.push(pub.append ? 'part' : pub.delta ? 'delta' : 'full')
    this.values.set(key, this.#value(pub))
  }

  /** @param {any} pub */
  #value({ key, data, delta, append }) {
    if (append) {
      const before = this.values.get(key)
      if (before === undefined) throw new Error(`a part of ${key}, which is unknown`)
      return withPart(before, JSON.stringify(data))
    }
    if (!this.#delta) return JSON.stringify(data)
    const bytes = Buffer.from(data)
    const base = this.#bases.get(key)
    if (delta && base === undefined) throw new Error(`a delta of ${key}, which has no base`)
    const value = delta ? Buffer.from(applyDelta(base, bytes)) : bytes
    this.#bases.set(key, value)
    return value.toString()
  }

  /** Kinds since the last call. */
  taken() {
    return this.kinds.splice(0)
  }
}
