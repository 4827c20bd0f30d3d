/**
 * How far a channel is.
 *
 *             first subscriber                 answer: position N
 *   (none) ----------------------> JOINING -------------------------> LIVE <---------+
 *                                                                      | line lost,  | what was missed has been
 *                                                                      | or a gap    | delivered, or is lost
 *                                                                      +--> CATCHING +
 */
export const State = Object.freeze({
  /** Nobody follows it yet: what comes is older than the position that the first subscriber is going to be told. */
  JOINING: 0,
  LIVE: 1,
  /** Subscribers are somewhere behind: what comes is part of what is being read. */
  CATCHING: 2,
})

/** What a worker knows of a channel that it is subscribed to. There may be a million of them. */
export class Channel {
  /** @type {number} */
  state = State.JOINING
  /** Whether Redis has been told to send what is published. */
  subscribed = false
  /** Whether somebody has been told to be subscribed: then a first subscription that fails does not take it away. */
  followed = false
  /** Position of what has been delivered last; epoch '' = not known. */
  offset = 0
  epoch = ''
  /** Of the batch that the last publication came with: tells it from another one with its offset. */
  mark = ''
  metaTtl = 0
  /** @type {((error: Error | null) => void)[] | null} who wants to go on when it is live */
  waiting = null

  /**
   * @param {string} name
   * @param {import('./partition.js').Partition} partition
   */
  constructor(name, partition) {
    this.name = name
    this.partition = partition
  }
}
