// What a command says while it is at work: in a terminal one line that changes, elsewhere a line now and then.

const CLEAR = '\r\x1b[2K'

export class Progress {
  #stderr
  #tty
  #columns
  #shown = false
  #last = ''

  /**
   * @param {(text: string) => void} stderr
   * @param {{isTTY?: boolean, columns?: number}} stream that it ends up in
   */
  constructor(stderr, { isTTY = false, columns = 80 }) {
    this.#stderr = stderr
    this.#tty = isTTY
    this.#columns = columns
  }

  /** @param {string} text that the next one takes the place of */
  show(text) {
    if (text === this.#last) return
    this.#last = text
    if (!this.#tty) return this.#stderr(`${text}\n`)
    this.#stderr(`${CLEAR}${text.length >= this.#columns ? `${text.slice(0, this.#columns - 2)}…` : text}`)
    this.#shown = true
  }

  /** @param {string} text that stays */
  line(text) {
    this.clear()
    this.#stderr(`${text}\n`)
  }

  clear() {
    if (this.#shown) this.#stderr(CLEAR)
    this.#shown = false
    this.#last = ''
  }
}
