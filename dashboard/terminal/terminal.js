import blessed from 'blessed'
import { Canvas } from './canvas.js'
import { Guard } from './guard.js'
import { KeyInput, nameOf } from './keys.js'
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
 *
 * @typedef {object} BlessedScreen as far as it is used here: blessed has no types
 * @property {import('./canvas.js').Row[]} lines
 * @property {Record<string, any>} tput what the terminal can do
 * @property {(event: string, listener: (...args: any[]) => void) => void} on
 * @property {() => void} render
 * @property {() => void} realloc
 * @property {() => void} destroy
 */

const { program: createProgram, screen: createScreen, box: createBox } = /** @type {any} */ (blessed)

// Blessed takes the alternate screen and hides the cursor. Besides: no wrapping at the right edge, no marks around what is pasted.
const ENTER = '\x1b[?7l\x1b[?2004l'
const LEAVE = '\x1b[0m\x1b[?7h'
/** What the guard writes: blessed's part, too. */
const RESCUE = `${LEAVE}\x1b[?1l\x1b>\x1b[?25h\x1b[?1049l`

/**
 * The terminal: a screen to draw on, and keys that come from it. The one place that knows blessed.
 *
 *              open                 Ctrl-Z, SIGTSTP
 *   closed -----------> open -------------------------> (the program stands still)
 *     ^                 |  ^                                        |
 *     +------ close ----+  +------------------ SIGCONT -------------+
 */
export class Terminal {
  /** @type {(name: string) => void} a key as blessed names it: `q`, `G`, `space`, `up`, `enter`, `escape`, `pageup`, `C-c`, `M-x`, `S-up`, `f1` ... */
  onKey = () => {}
  /** @type {(size: Size) => void} what was drawn last is painted for the new size already */
  onResize = () => {}
  /** @type {() => void} there is nobody any more: the terminal has gone */
  onEnd = () => {}

  #input
  #output
  #host
  #suspendable
  #theme
  #unicode
  /** @type {KeyInput | null} */
  #keys = null
  /** @type {Guard | null} */
  #guard = null
  #isOpen = false
  /** @type {BlessedScreen | null} */
  #screen = null
  /** @type {Line[]} */
  #lines = []
  /** Whether something is to be drawn when the terminal has taken what was written. */
  #late = false

  #onData = (/** @type {Buffer} */ bytes) => this.#keys?.write(bytes)
  #onGone = () => {
    if (this.#isOpen) this.onEnd()
  }
  #onStop = () => this.#suspend(this.#host.pid)
  #onContinue = () => this.#continue()
  #onTaken = () => {
    if (!this.#late) return
    this.#late = false
    this.#render()
  }

  /**
   * @param {object} parts
   * @param {NodeJS.ReadStream} parts.input
   * @param {NodeJS.WriteStream & {fd: number}} parts.output
   * @param {Capabilities} parts.capabilities
   * @param {boolean} [parts.suspendable] whether Ctrl-Z stops the program, with all of its process group; else it is a key like others
   *   (`C-z`)
   * @param {Host} [parts.host] the process
   */
  constructor({ input, output, capabilities, suspendable = true, host = process }) {
    this.#input = input
    this.#output = output
    this.#host = host
    this.#suspendable = suspendable
    this.#theme = new Theme(capabilities.colors)
    this.#unicode = capabilities.unicode
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
    this.#render()
  }

  /** Paints everything anew. */
  redraw() {
    this.#screen?.realloc()
    this.#render()
  }

  #render() {
    if (this.#screen === null || this.#late) return
    if (this.#output.writableLength === 0) return this.#screen.render()
    this.#late = true
    this.#output.write('', this.#onTaken)
  }

  #enter() {
    if (this.#output.isTTY) this.#guard = new Guard(this.#output.fd, RESCUE)
    // In the background this stands still until we are called to the foreground: nothing may be written before.
    if (this.#input.isTTY) this.#input.setRawMode(true).resume()
    this.#guard?.start()
    this.#setBlocking(false)
    const output = /** @type {Internals} */ (/** @type {unknown} */ (this.#output))
    output._refreshSize?.()
    this.#output.write(ENTER)
    this.#screen = this.#createScreen()
    this.#render()
  }

  #leave() {
    this.#keys?.clear()
    const guard = this.#guard
    this.#guard = null
    this.#late = false
    const screen = this.#screen
    this.#screen = null
    screen?.destroy()
    this.#output.write(LEAVE, () => guard?.end())
    if (this.#output.writableLength === 0) guard?.end()
    this.#setBlocking(true)
    if (this.#input.isTTY) this.#input.setRawMode(false).pause()
  }

  /** @returns {BlessedScreen} */
  #createScreen() {
    // The mode of the input is ours, see #enter; and texts without Unicode are ASCII already.
    this.#keys = new KeyInput()
    const program = createProgram({ input: this.#keys, output: this.#output, forceUnicode: true })
    Object.assign(program, { cols: this.size.columns, rows: this.size.rows })
    /** @type {BlessedScreen} */
    const screen = createScreen({ program, forceUnicode: true })
    // Lines of boxes would come out as letters where the alternate character set is not what terminfo says (tmux); the theme knows
    // the colours; and a move relative to a character whose width is not sure would go astray.
    screen.tput.brokenACS = true
    screen.tput.colors = 256
    screen.tput.strings.parm_right_cursor = ''
    const canvas = new Canvas(this.#theme, this.#unicode)
    createBox({ parent: screen }).render = () => canvas.paint(screen.lines, this.#lines)
    screen.on('keypress', (character, key) => this.#say(nameOf(character, key)))
    // Blessed ends it by itself when the program exits, or has not caught an exception.
    screen.on('destroy', () => {
      if (this.#screen !== screen) return
      this.#screen = null
      this.close()
    })
    screen.on('resize', () => this.onResize(this.size))
    return screen
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
    this.#host.off('SIGCONT', this.#onContinue)
    this.#host.kill(pid, 'SIGTSTP')
    this.#host.on('SIGTSTP', this.#onStop)
    this.#host.on('SIGCONT', this.#onContinue)
    this.#enter()
  }

  /** Somebody may have stopped us without asking, and used the terminal since. */
  #continue() {
    this.#leave()
    this.#enter()
  }

  /** @param {string} name of a key */
  #say(name) {
    // A key before may have closed it.
    if (!this.#isOpen || name === '') return
    if (name === 'C-l') this.redraw()
    else if (name === 'C-z' && this.#suspendable) this.#suspend(0)
    else this.onKey(name)
  }
}
