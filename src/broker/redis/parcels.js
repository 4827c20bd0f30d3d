import { errors } from '../../errors.js'

const PIECE = 512 * 1024
/** How long a parcel waits for the one it is for, ms. */
const TTL = 15_000

/**
 * What is too large for a message: Redis ends the connection of a subscriber that has too much before it. It is left under a key,
 * and taken away, piece by piece.
 */
export class Parcels {
  #partition
  /** @type {{key: string, size: number, wanted: () => boolean, done: (error: Error | null, bytes: Buffer) => void}[]} to be taken, one after another */
  #waiting = []

  /** @param {import('./partition.js').Partition} partition */
  constructor(partition) {
    this.#partition = partition
  }

  /**
   * @param {string} key
   * @param {Buffer} bytes not empty
   * @param {(error: Error | null) => void} done
   */
  leave(key, bytes, done) {
    let at = 0
    const next = (/** @type {Error | null} */ error) => {
      if (error || at === bytes.length) return done(error)
      const piece = bytes.subarray(at, at + PIECE)
      const first = at === 0
      at += piece.length
      if (first) this.#partition.send('set', [key, piece, 'PX', TTL], next)
      else this.#partition.send('append', [key, piece], next)
    }
    next(null)
  }

  /**
   * @param {string} key
   * @param {number} size bytes
   * @param {() => boolean} wanted whether it still is, when its turn comes
   * @param {(error: Error | null, bytes: Buffer) => void} done not called if it is not wanted any more
   */
  take(key, size, wanted, done) {
    this.#waiting.push({ key, size, wanted, done })
    if (this.#waiting.length === 1) this.#takeNext()
  }

  #takeNext() {
    while (this.#waiting.length > 0 && !this.#waiting[0].wanted()) this.#waiting.shift()
    if (this.#waiting.length === 0) return
    const { key, size, wanted, done } = this.#waiting[0]
    /** @type {Buffer[]} */
    const pieces = []
    let at = 0
    const finish = (/** @type {Error | null} */ error) => {
      this.#partition.send('del', [key], () => {})
      this.#waiting.shift()
      if (wanted()) done(error, Buffer.concat(pieces))
      this.#takeNext()
    }
    const next = () => {
      if (at === size || !wanted()) return finish(null)
      this.#partition.send('getrange', [key, at, at + PIECE - 1], (error, piece) => {
        if (error || piece.length === 0) return finish(errors.internal)
        pieces.push(piece)
        at += piece.length
        next()
      })
    }
    next()
  }
}
