/** Exit codes of the dashboard's process, for its parent. */
export const EXIT_CODES = Object.freeze({
  /** The user quit the view; the gateway keeps running. */
  left: 0,
  /** No gateway was found, or the dashboard crashed. */
  failed: 1,
  /** The user asked to stop the gateway. */
  stop: 10,
})
