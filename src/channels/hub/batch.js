/** @import { Publication } from '../broker/contract.js' */

/** Memory kept between two batches, bytes. */
const KEEP = 1024 * 1024

/** Separator of the pushes of a text codec. */
const LINE_FEED = 10

/** Encoded pushes of one codec, one behind the other, so that any run of them is a frame. */
export class Batch {
  #memory = Buffer.allocUnsafeSlow(64 * 1024)
  #end = 0
  /** @type {number[]} */
  #starts = []
  /** @type {number[]} */
  #ends = []
  /** @type {(Publication | null)[]} of each push; null: a join or a leave */
  publications = []
  #lines = false

  /** Begins a batch. @param {boolean} binary whether the codec is: its pushes need no separator */
  begin(binary) {
    if (this.#memory.length > KEEP) this.#memory = Buffer.allocUnsafeSlow(64 * 1024)
    this.#end = 0
    this.#starts = []
    this.#ends = []
    this.publications = []
    this.#lines = !binary
  }

  get size() {
    return this.publications.length
  }

  /** @param {Uint8Array} push copied @param {Publication | null} publication */
  add(push, publication) {
    const room = this.#end + push.length + 1
    if (room > this.#memory.length) {
      const larger = Buffer.allocUnsafeSlow(room * 2)
      larger.set(this.#memory.subarray(0, this.#end))
      this.#memory = larger
    }
    if (this.#lines && this.size > 0) this.#memory[this.#end++] = LINE_FEED
    this.#starts.push(this.#end)
    this.#memory.set(push, this.#end)
    this.#end += push.length
    this.#ends.push(this.#end)
    this.publications.push(publication)
  }

  /**
   * @param {number} from index of the first push @param {number} to index after the last one
   * @returns {Buffer} these pushes as one frame; valid until the next `begin`
   */
  frame(from, to) {
    return this.#memory.subarray(this.#starts[from], this.#ends[to - 1])
  }
}
