/**
 * States of a session. Code compares their numbers, so their order matters.
 *
 *   OPEN --connect--> CONNECTING --success--> CONNECTED
 *                          \---error reply--> REFUSED    its later commands are dropped
 *
 *   any of them --close--> CLOSED
 */
export const State = Object.freeze({ OPEN: 0, CONNECTING: 1, CONNECTED: 2, REFUSED: 3, CLOSED: 4 })

/** Bits of `session.traits`. */
export const Trait = Object.freeze({
  /** A ping was sent and not answered yet. */
  AWAITS_PONG: 1,
  /** Pings are WebSocket frames (`cf_ws_frame_ping_pong`). */
  FRAME_PINGS: 2,
  /** It counts against `client.user_connection_limit` until it is released. */
  USER_CLAIMED: 4,
  /** The client knows when its connection expires, so it sends refresh commands. */
  REFRESHED_BY_CLIENT: 8,
})
