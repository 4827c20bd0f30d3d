// What a command says while it is at work: in a terminal one line that changes, elsewhere a line now and then.

const CLEAR = '\r\x1b[2K'
/** ms between two lines that only differ in their numbers, where lines stay. */
const BETWEEN = 1000

/** @param {string} text @returns {string} what it tells, whatever its numbers; another one when it is through: `7 of 7` */
const kindOf = text => (/\b(\d+) of \1\b/.test(text) ? text : text.replace(/\d+/g, '#'))

export class Progress {
  #stderr
  #tty
  #columns
  #shown = false
  #kind = ''
  #at = 0
  /** The next line, if nothing comes that takes its place. @type {NodeJS.Timeout | undefined} */
  #next

  /**
   * @param {(text: string) => void} stderr
   * @param {{isTTY?: boolean, columns?: number}} stream that it ends up in
   */
  constructor(stderr, { isTTY = false, columns = 80 }) {
    this.#stderr = stderr
    this.#tty = isTTY
    this.#columns = columns || 80
  }

  /** @param {string} text that the next one takes the place of */
  show(text) {
    if (this.#tty) {
      const { length } = text
      this.#stderr(`${CLEAR}${length >= this.#columns ? `${text.slice(0, this.#columns - 2)}…` : text}`)
      this.#shown = true
      return
    }
    clearTimeout(this.#next)
    const wait = this.#at + BETWEEN - Date.now()
    if (wait <= 0 || kindOf(text) !== this.#kind) return this.#print(text)
    this.#next = setTimeout(() => this.#print(text), wait)
  }

  /** @param {string} text */
  #print(text) {
    this.#kind = kindOf(text)
    this.#at = Date.now()
    this.#stderr(`${text}\n`)
  }

  /** @param {string} text that stays */
  line(text) {
    this.clear()
    this.#stderr(`${text}\n`)
  }

  clear() {
    clearTimeout(this.#next)
    if (this.#shown) this.#stderr(CLEAR)
    this.#shown = false
  }
}
