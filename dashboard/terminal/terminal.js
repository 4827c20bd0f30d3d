/**
 * @typedef {import('./line.js').Line} Line
 * @typedef {import('./capabilities.js').Capabilities} Capabilities
 * @typedef {{columns: number, rows: number}} Size
 */

/**
 * The terminal: a screen to draw on, and keys that come from it.
 */
export class Terminal {
  /** @type {(name: string) => void} a key: `q`, `G`, `space`, `up`, `enter`, `escape`, `page-up`, `ctrl-c`, `alt-x`, `shift-up`, `f1` ... */
  onKey = () => {}
  /** @type {(size: Size) => void} the screen is painted anew by the next draw */
  onResize = () => {}
  /** @type {() => void} there is nobody any more: the terminal has gone */
  onEnd = () => {}

  /**
   * @param {object} parts
   * @param {NodeJS.ReadStream} parts.input
   * @param {NodeJS.WriteStream} parts.output
   * @param {Capabilities} parts.capabilities
   * @param {boolean} [parts.suspendable] whether Ctrl-Z stops the program; else it is a key like others (`ctrl-z`)
   */
  // biome-ignore lint/correctness/noUnusedFunctionParameters: not there yet
  constructor({ input, output, capabilities, suspendable = true }) {}

  /** @returns {Size} */
  get size() {
    return { columns: 80, rows: 24 }
  }

  /** Takes the screen: the alternate one, without a cursor, and every key comes to us. */
  open() {}

  /** Gives everything back as it was. More than once is once. */
  close() {}

  /**
   * Shows lines, from the top. They are not to be changed afterwards. While the terminal has not taken what was written before,
   * only the last lines are kept, and shown later.
   *
   * @param {Line[]} lines
   */
  // biome-ignore lint/correctness/noUnusedFunctionParameters: not there yet
  draw(lines) {}

  /** Paints everything anew. */
  redraw() {}
}
