/**
 * Session states. Code compares their numbers: the order matters.
 *
 *   OPEN --connect--> CONNECTING --success--> CONNECTED
 *                          \---error reply--> REFUSED    later commands are dropped
 *
 *   any of them --close--> CLOSED
 */
export const State = Object.freeze({ OPEN: 0, CONNECTING: 1, CONNECTED: 2, REFUSED: 3, CLOSED: 4 })

/** Bits of `session.traits`. */
export const Trait = Object.freeze({
  AWAITS_PONG: 1,
  /** Pings are WebSocket frames (`cf_ws_frame_ping_pong`). */
  FRAME_PINGS: 2,
  /** Counts against `client.user_connection_limit` until released. */
  USER_CLAIMED: 4,
  /** The client knows its connection's expiry and sends refresh commands. */
  REFRESHED_BY_CLIENT: 8,
  /** The client joins the parts that are appended to values of maps. */
  JOINS_PARTS: 16,
})

// The bits of `session.traits` above the traits: time of the last pong after its ping, ms + 1; 0: unknown.
const LATENCY_SHIFT = 12
const MAX_LATENCY = 0x3ffff
const TRAITS = (1 << LATENCY_SHIFT) - 1

/** @param {number} traits @returns {number} ms; -1: unknown */
export const latencyOf = traits => (traits >>> LATENCY_SHIFT) - 1

/** @param {number} traits @param {number} latency ms */
export const withLatency = (traits, latency) =>
  (traits & TRAITS) | ((Math.min(MAX_LATENCY - 1, Math.max(0, Math.round(latency))) + 1) << LATENCY_SHIFT)
