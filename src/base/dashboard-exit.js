/** Exit codes of the dashboard's process: they tell the gateway that started it what the user wants. */
export const EXIT_CODES = Object.freeze({
  /** The user quit the view; the gateway keeps running. */
  quit: 0,
  /** No gateway was found, or the dashboard crashed. */
  failed: 1,
  /** The user asked to stop the gateway. */
  stop: 10,
})
