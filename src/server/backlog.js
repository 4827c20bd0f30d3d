/** What clients have not taken yet, added up. */
export class Backlog {
  /** Of all of them. */
  bytes = 0
  /** Of the one with the most. */
  largest = 0

  /** @param {number} bytes of one client */
  add(bytes) {
    this.bytes += bytes
    if (bytes > this.largest) this.largest = bytes
  }
}
