/**
 *   OPEN --connect--> CONNECTING --success--> CONNECTED --> CLOSED
 *                          \--error reply--> REFUSED ----/
 */
export const State = Object.freeze({ OPEN: 0, CONNECTING: 1, CONNECTED: 2, REFUSED: 3, CLOSED: 4 })

/** Properties of a session, as bits. */
export const Trait = Object.freeze({
  /** A ping was sent and not answered yet. */
  AWAITS_PONG: 1,
  /** Pings are WebSocket frames (`cf_ws_frame_ping_pong`). */
  FRAME_PINGS: 2,
  /** Counted against client.user_connection_limit. */
  CLAIMED: 4,
  /** It was told that it expires, so it sends tokens. */
  REFRESHES: 8,
})
