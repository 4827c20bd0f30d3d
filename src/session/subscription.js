/** What a subscription is, as bits: a million of them should be small. */
export const Kind = Object.freeze({
  SERVER_SIDE: 1,
  POSITIONED: 2,
  RECOVERABLE: 4,
  /** Listed in presence. */
  PRESENT: 8,
  /** Its join was announced, and so will be its leave. */
  ANNOUNCED: 16,
  /** The client keeps it alive with subscription tokens. */
  REFRESHED_BY_CLIENT: 32,
  /** A refresh with a token that does not list its channel any more closes the connection. */
  FROM_CONNECTION_TOKEN: 64,
})

/**
 * @typedef {object} Details what only some subscriptions have
 * @property {string} info channel info as JSON text, '' if none
 * @property {number} expireAt unix s, 0 = never
 */

/** @type {Readonly<Details>} */
export const NO_DETAILS = Object.freeze({ info: '', expireAt: 0 })

/**
 * One session's subscription to one channel.
 */
export class Subscription {
  /**
   * @param {import('../hub/channel.js').Channel} channel
   * @param {import('../hub/channel.js').Cohort} cohort
   * @param {import('../hub/channel.js').Cohort | null} events
   * @param {number} kind bits of Kind
   * @param {Readonly<Details>} details
   */
  constructor(channel, cohort, events, kind, details) {
    this.channel = channel
    this.cohort = cohort
    this.events = events
    this.kind = kind
    this.details = details
  }

  /** @param {number} kind one bit of Kind */
  is(kind) {
    return (this.kind & kind) !== 0
  }
}
