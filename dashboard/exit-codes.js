/**
 * What the dashboard's process says to the one that has started it.
 */
export const EXIT_CODES = Object.freeze({
  /** The view was quit, or the gateway is to run on without it. */
  left: 0,
  /** There was nothing to show, or it crashed. */
  failed: 1,
  /** Somebody has said that the gateway is to be stopped. */
  stop: 10,
})
