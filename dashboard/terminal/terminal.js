import blessed from 'blessed'
import { Canvas } from './canvas.js'
import { Guard } from './guard.js'
import { KeyInput, keyName } from './key-input.js'
import { Theme } from './theme.js'

/** @import { Capabilities } from './capabilities.js' */
/** @import { Line } from './line.js' */

/** @typedef {{columns: number, rows: number}} Size */
/** @typedef {{_handle?: {setBlocking?: (on: boolean) => void}, _refreshSize?: () => void}} Internals of a tty stream */

/**
 * @typedef {object} BlessedScreen used members: blessed has no types
 * @property {import('./canvas.js').Row[]} lines
 * @property {Record<string, any>} tput capabilities of the terminal
 * @property {(event: string, listener: (...args: any[]) => void) => void} on
 * @property {() => void} render
 * @property {() => void} realloc
 * @property {() => void} destroy
 */

const { program: createProgram, screen: createScreen, box: createBox } = /** @type {any} */ (blessed)

// Blessed enters the alternate screen and hides the cursor. Also: disable line wrapping and bracketed paste.
const ENTER = '\x1b[?7l\x1b[?2004l'
const LEAVE = '\x1b[0m\x1b[?7h'
/** Written by the guard; also undoes blessed's changes. */
const RESCUE = `${LEAVE}\x1b[?1l\x1b>\x1b[?25h\x1b[?1049l`

/**
 * The terminal: a screen to draw on, and its keys. The only user of blessed.
 *
 *              open                 Ctrl-Z, SIGTSTP
 *   closed -----------> open -------------------------> (the process is stopped)
 *     ^                 |  ^                                        |
 *     +------ close ----+  +------------------ SIGCONT -------------+
 */
export class Terminal {
  /** @type {(name: string) => void} blessed's name: `q`, `G`, `space`, `up`, `enter`, `C-c`, `M-x`, `f1` ... */
  onKey = () => {}
  /** @type {(size: Size) => void} after a repaint for the new size */
  onResize = () => {}
  /** @type {() => void} the terminal was closed */
  onEnd = () => {}

  #input
  #output
  #host = process
  #suspendable
  #guardFd
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
  #drawPending = false

  #onData = (/** @type {Buffer} */ bytes) => this.#keys?.write(bytes)
  #onGone = () => {
    if (this.#isOpen) this.onEnd()
  }
  #onStop = () => this.#suspend(this.#host.pid)
  // After SIGSTOP: other programs may have used the terminal.
  #onContinue = () => {
    this.#leave()
    this.#enter()
  }
  #onDrained = () => {
    if (!this.#drawPending) return
    this.#drawPending = false
    this.#render()
  }

  /**
   * @param {object} parts @param {NodeJS.ReadStream} parts.input
   * @param {NodeJS.WriteStream & {fd: number} & Internals} parts.output @param {Capabilities} parts.capabilities
   * @param {boolean} [parts.suspendable] whether Ctrl-Z stops the program's process group; else it is a key (`C-z`)
   * @param {number} [parts.guardFd] file descriptor kept open by the guard; 0: none
   */
  constructor({ input, output, capabilities, suspendable = true, guardFd = 0 }) {
    this.#input = input
    this.#output = output
    this.#suspendable = suspendable
    this.#guardFd = guardFd
    this.#theme = new Theme(capabilities.colors)
    this.#unicode = capabilities.unicode
    // Not removed by `close`: the last write to a closed terminal may fail later.
    output.on('error', this.#onGone)
    input.on('error', this.#onGone)
  }

  /** @returns {Size} */
  get size() {
    return { columns: this.#output.columns || 80, rows: this.#output.rows || 24 }
  }

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

  /** Restores the terminal. Idempotent. */
  close() {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#host.off('SIGTSTP', this.#onStop)
    this.#host.off('SIGCONT', this.#onContinue)
    this.#input.off('data', this.#onData)
    this.#input.off('end', this.#onGone)
    this.#leave()
  }

  /** Keeps only the latest lines until earlier output has drained. @param {Line[]} lines not changed afterwards */
  draw(lines) {
    this.#lines = lines
    this.#render()
  }

  redraw() {
    this.#screen?.realloc()
    this.#render()
  }

  #render() {
    if (this.#screen === null || this.#drawPending) return
    if (this.#output.writableLength === 0) return this.#screen.render()
    this.#drawPending = true
    this.#output.write('', this.#onDrained)
  }

  #enter() {
    if (this.#output.isTTY) this.#guard = new Guard(this.#output.fd, RESCUE, this.#guardFd)
    // Blocks until the process is in the foreground: nothing may be written before.
    if (this.#input.isTTY) this.#input.setRawMode(true).resume()
    this.#guard?.start()
    this.#setBlocking(false)
    this.#output._refreshSize?.()
    this.#output.write(ENTER)
    this.#screen = this.#createScreen()
    this.#render()
  }

  #leave() {
    this.#keys?.clear()
    const guard = this.#guard
    this.#guard = null
    this.#drawPending = false
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
    // The input's mode is set in #enter. forceUnicode: without Unicode, the texts are already ASCII.
    this.#keys = new KeyInput()
    const program = createProgram({ input: this.#keys, output: this.#output, forceUnicode: true })
    Object.assign(program, { cols: this.size.columns, rows: this.size.rows })
    /** @type {BlessedScreen} */
    const screen = createScreen({ program, forceUnicode: true })
    // brokenACS: a wrong terminfo entry for the alternate character set (tmux) would show box lines as letters.
    // colors: the theme decides. parm_right_cursor: a relative move fails after a character of uncertain width.
    screen.tput.brokenACS = true
    screen.tput.colors = 256
    screen.tput.strings.parm_right_cursor = ''
    const canvas = new Canvas(this.#theme, this.#unicode)
    createBox({ parent: screen }).render = () => canvas.paint(screen.lines, this.#lines)
    screen.on('keypress', (character, key) => this.#emitKey(keyName(character, key)))
    // Blessed destroys it when the program exits or has an uncaught exception.
    screen.on('destroy', () => {
      if (this.#screen !== screen) return
      this.#screen = null
      this.close()
    })
    screen.on('resize', () => this.onResize(this.size))
    return screen
  }

  /** Node.js blocks on terminal writes: an unread terminal would stop the program. @param {boolean} on */
  #setBlocking(on) {
    if (this.#output.isTTY) this.#output._handle?.setBlocking?.(on)
  }

  /** @param {number} pid of the process to stop; 0: the process group */
  #suspend(pid) {
    this.#leave()
    // Without a handler, the signal stops the process, except in an orphaned process group.
    this.#host.off('SIGTSTP', this.#onStop)
    this.#host.off('SIGCONT', this.#onContinue)
    this.#host.kill(pid, 'SIGTSTP')
    this.#host.on('SIGTSTP', this.#onStop)
    this.#host.on('SIGCONT', this.#onContinue)
    this.#enter()
  }

  /** @param {string} name */
  #emitKey(name) {
    // A previous key may have closed the terminal.
    if (!this.#isOpen || name === '') return
    if (name === 'C-l') this.redraw()
    else if (name === 'C-z' && this.#suspendable) this.#suspend(0)
    else this.onKey(name)
  }
}
