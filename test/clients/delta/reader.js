import { applyDelta } from 'fossil-delta'

/** Reads publications of a delta-negotiated subscription in JSON; throws where they break the client protocol. */
export class DeltaReader {
  /** The last payload. @type {Buffer | null} */
  #base = null
  /** `full` or `delta`. */
  kinds = []

  /** @param {any} publication as received @returns {string} its payload */
  read({ data, delta }) {
    if (typeof data !== 'string') throw new Error(`data is no string: ${JSON.stringify(data)}`)
    if (delta !== undefined && delta !== true) throw new Error(`delta is ${delta}`)
    this.kinds.push(delta ? 'delta' : 'full')
    const bytes = Buffer.from(data)
    if (delta && !this.#base) throw new Error('a delta, but there is no base')
    this.#base = delta ? Buffer.from(applyDelta(this.#base, bytes)) : bytes
    return this.#base.toString()
  }

  /** Kinds since the last call. */
  taken() {
    return this.kinds.splice(0)
  }
}
