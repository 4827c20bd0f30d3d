import { Guard } from './guard.js'
import { KeyDecoder } from './keys.js'
import { Screen } from './screen.js'
import { Theme } from './theme.js'

/**
 * @typedef {import('./line.js').Line} Line
 * @typedef {import('./capabilities.js').Capabilities} Capabilities
 * @typedef {{columns: number, rows: number}} Size
 * @typedef {Pick<NodeJS.Process, 'pid' | 'on' | 'off' | 'kill'>} Host
 *
 * @typedef {object} Internals of Node.js; a terminal's stream has them
 * @property {{setBlocking?: (on: boolean) => void}} [_handle]
 * @property {() => void} [_refreshSize]
 */

// The alternate screen, no cursor, no wrapping at the right edge, no marks around what is pasted.
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004l'
const LEAVE = '\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l'
/** An escape that nothing follows for so long is the key, ms. Over a bad line the rest of a sequence may be late. */
const ESCAPE_WAIT = 50

/**
 * The terminal: a screen to draw on, and keys that come from it.
 *
 *              open                 Ctrl-Z, SIGTSTP
 *   closed -----------> open -------------------------> (the program stands still)
 *     ^                 |  ^                                        |
 *     +------ close ----+  +------------------ SIGCONT -------------+
 */
export class Terminal {
  /** @type {(name: string) => void} a key: `q`, `G`, `space`, `up`, `enter`, `escape`, `page-up`, `ctrl-c`, `alt-x`, `shift-up`, `f1` ... */
  onKey = () => {}
  /** @type {(size: Size) => void} what was drawn last is painted for the new size after this, unless something else is drawn */
  onResize = () => {}
  /** @type {() => void} there is nobody any more: the terminal has gone */
  onEnd = () => {}

  #input
  #output
  #host
  #suspendable
  #screen
  #keys = new KeyDecoder()
  /** @type {Guard | null} */
  #guard = null
  #isOpen = false
  /** @type {Line[] | null} */
  #lines = null
  /** Whether the terminal has not taken all yet that was written. */
  #busy = false
  /** Whether something was to be drawn meanwhile. */
  #late = false
  /** @type {NodeJS.Timeout | undefined} */
  #escape

  #onData = (/** @type {Buffer} */ bytes) => this.#take(bytes)
  #onSize = () => this.#resize()
  #onGone = () => {
    if (this.#isOpen) this.onEnd()
  }
  #onStop = () => this.#suspend(this.#host.pid)
  #onContinue = () => this.#continue()
  #onTaken = () => this.#taken()

  /**
   * @param {object} parts
   * @param {NodeJS.ReadStream} parts.input
   * @param {NodeJS.WriteStream & {fd: number}} parts.output
   * @param {Capabilities} parts.capabilities
   * @param {boolean} [parts.suspendable] whether Ctrl-Z stops the program, with all of its process group; else it is a key like others
   *   (`ctrl-z`)
   * @param {Host} [parts.host] the process
   */
  constructor({ input, output, capabilities, suspendable = true, host = process }) {
    this.#input = input
    this.#output = output
    this.#host = host
    this.#suspendable = suspendable
    this.#screen = new Screen(new Theme(capabilities.colors), capabilities.unicode)
    // Also after the end: what is written last may come too late for a terminal that has gone.
    output.on('error', this.#onGone)
    input.on('error', this.#onGone)
  }

  /** @returns {Size} */
  get size() {
    return { columns: this.#output.columns || 80, rows: this.#output.rows || 24 }
  }

  /** Takes the screen: the alternate one, without a cursor, and every key comes to us. */
  open() {
    if (this.#isOpen) return
    this.#isOpen = true
    this.#output.on('resize', this.#onSize)
    this.#host.on('SIGTSTP', this.#onStop)
    this.#host.on('SIGCONT', this.#onContinue)
    if (this.#input.isTTY) {
      this.#input.on('data', this.#onData)
      this.#input.on('end', this.#onGone)
    }
    this.#enter()
  }

  /** Gives everything back as it was. More than once is once. */
  close() {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#output.off('resize', this.#onSize)
    this.#host.off('SIGTSTP', this.#onStop)
    this.#host.off('SIGCONT', this.#onContinue)
    this.#input.off('data', this.#onData)
    this.#input.off('end', this.#onGone)
    this.#leave()
  }

  /**
   * Shows lines, from the top. They are not to be changed afterwards. While the terminal has not taken what was written before,
   * only the last lines are kept, and shown later.
   *
   * @param {Line[]} lines
   */
  draw(lines) {
    this.#lines = lines
    if (!this.#isOpen) return
    if (this.#busy) {
      this.#late = true
      return
    }
    const { columns, rows } = this.size
    this.#screen.resize(columns, rows)
    this.#write(this.#screen.show(lines))
  }

  /** Paints everything anew. */
  redraw() {
    this.#screen.forget()
    if (this.#lines !== null) this.draw(this.#lines)
  }

  #enter() {
    if (this.#output.isTTY) this.#guard = new Guard(this.#output.fd, LEAVE)
    // In the background this stands still until we are called to the foreground: nothing may be written before.
    if (this.#input.isTTY) this.#input.setRawMode(true).resume()
    this.#guard?.start()
    this.#setBlocking(false)
    const output = /** @type {Internals} */ (/** @type {unknown} */ (this.#output))
    output._refreshSize?.()
    this.#write(ENTER)
    this.redraw()
  }

  #leave() {
    clearTimeout(this.#escape)
    this.#keys.flush()
    const guard = this.#guard
    this.#guard = null
    this.#output.write(LEAVE, () => guard?.end())
    if (this.#output.writableLength === 0) guard?.end()
    this.#setBlocking(true)
    if (this.#input.isTTY) this.#input.setRawMode(false).pause()
  }

  /**
   * A terminal that does not read would stop the whole program: Node.js lets writes to terminals wait.
   *
   * @param {boolean} on
   */
  #setBlocking(on) {
    if (!this.#output.isTTY) return
    const output = /** @type {Internals} */ (/** @type {unknown} */ (this.#output))
    output._handle?.setBlocking?.(on)
  }

  /**
   * Leaves the terminal to others until we are continued.
   *
   * @param {number} pid of whom to stop; 0: the process group
   */
  #suspend(pid) {
    this.#leave()
    // Without a handler it stops us, right here; or it does not, when there is no shell that could continue us.
    this.#host.off('SIGTSTP', this.#onStop)
    this.#host.kill(pid, 'SIGTSTP')
    this.#host.on('SIGTSTP', this.#onStop)
    this.#enter()
  }

  /** Somebody may have stopped us without asking, and used the terminal since. */
  #continue() {
    if (this.#input.isTTY) this.#input.setRawMode(false).setRawMode(true)
    this.#write(ENTER)
    this.redraw()
  }

  #resize() {
    this.#screen.forget()
    this.#late = false
    const lines = this.#lines
    this.onResize(this.size)
    if (this.#lines === lines) this.redraw()
  }

  /** @param {string} text */
  #write(text) {
    if (text === '') return
    this.#busy = true
    this.#output.write(text, this.#onTaken)
  }

  #taken() {
    this.#busy = this.#output.writableLength > 0
    if (this.#busy || !this.#late || this.#lines === null) return
    this.#late = false
    this.draw(this.#lines)
  }

  /** @param {Buffer} bytes */
  #take(bytes) {
    clearTimeout(this.#escape)
    this.#say(this.#keys.decode(bytes))
    if (!this.#keys.pending || !this.#isOpen) return
    this.#escape = setTimeout(() => this.#say(this.#keys.flush()), ESCAPE_WAIT)
  }

  /** @param {string[]} names */
  #say(names) {
    for (const name of names) {
      // A key before may have closed it.
      if (!this.#isOpen) return
      if (name === 'ctrl-l') this.redraw()
      else if (name === 'ctrl-z' && this.#suspendable) this.#suspend(0)
      else this.onKey(name)
    }
  }
}
