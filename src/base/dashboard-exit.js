/** Exit codes of the dashboard's process, for the gateway that started it. */
export const EXIT_CODES = Object.freeze({
  /** The user quit the view; the gateway keeps running. */
  quit: 0,
  /** No gateway was found, or the dashboard crashed. */
  failed: 1,
  stop: 10,
})
