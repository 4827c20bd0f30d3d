import { applyDelta } from 'fossil-delta'

/**
 * Reads the publications of a delta-negotiated subscription in JSON as a client does. It throws where they break the
 * rules of the client protocol.
 */
export class DeltaReader {
  /** @type {Buffer | null} the last payload */
  #base = null
  /** What came, `full` or `delta`. */
  kinds = []

  /**
   * @param {any} publication as it came
   * @returns {string} its payload's text
   */
  read({ data, delta }) {
    if (typeof data !== 'string') throw new Error(`data is no string: ${JSON.stringify(data)}`)
    if (delta !== undefined && delta !== true) throw new Error(`delta is ${delta}`)
    this.kinds.push(delta ? 'delta' : 'full')
    const bytes = Buffer.from(data)
    if (delta && !this.#base) throw new Error('a delta, but there is no base')
    this.#base = delta ? Buffer.from(applyDelta(this.#base, bytes)) : bytes
    return this.#base.toString()
  }

  /** What came since the last time. */
  taken() {
    return this.kinds.splice(0)
  }
}
