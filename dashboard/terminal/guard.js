import { spawn, spawnSync } from 'node:child_process'

/** @typedef {import('node:stream').Writable & {unref?: () => void}} Pipe */

// Arguments: $1 the settings (`stty -g`), $2 the escape sequences to restore. Its stdout is the terminal, its stdin a
// pipe from the dashboard: the pipe ends without `clean` if the dashboard died. By then the shell may have set up the
// terminal for its own prompt. So the guard restores the screen, but the settings only if nobody has changed them. It
// reopens the terminal because the inherited descriptor is non-blocking: a write fails while another process writes.
const SCRIPT = `
trap '' HUP INT QUIT TERM TSTP TTIN TTOU PIPE
exec 3>&1
name=$(tty <&3)
if [ -w "$name" ]; then exec 3>"$name"; fi
dashboard=$(stty -g <&3)
read -r word
if [ "$word" = clean ]; then exit; fi
for try in 1 2 3; do
  if printf '%b' "$2" >&3; then break; fi
  sleep 0.1
done
sleep 0.1
if [ -n "$1" ] && [ "$(stty -g <&3)" = "$dashboard" ]; then stty "$1" <&3; fi
`

/** A child process that restores the terminal when the dashboard is killed or crashes. */
export class Guard {
  #settings
  #fd
  #sequences
  #hold
  /** @type {Pipe | null} */
  #pipe = null

  /**
   * Create it before the terminal's settings change; start it afterwards.
   * @param {number} fd of the terminal @param {string} sequences restore the screen
   * @param {number} hold file descriptor that it holds until it has ended; 0: none
   */
  constructor(fd, sequences, hold) {
    this.#fd = fd
    this.#sequences = sequences
    this.#hold = hold > 0 ? hold : /** @type {const} */ ('ignore')
    const { stdout } = spawnSync('stty', ['-g'], { stdio: [fd, 'pipe', 'ignore'], encoding: 'utf8' })
    this.#settings = stdout?.trim() ?? ''
  }

  start() {
    // `printf %b` reads an escape character in octal.
    const sequences = this.#sequences.replaceAll('\x1b', '\\0033')
    // In its own session: signals to the terminal or the process group do not reach it.
    /** @type {import('node:child_process').ChildProcess} */
    const child = spawn('sh', ['-c', SCRIPT, 'guard', this.#settings, sequences], {
      // The script has its own use of 3.
      stdio: ['pipe', this.#fd, 'ignore', 'ignore', this.#hold],
      cwd: '/',
      detached: true,
    })
    // Without a shell the dashboard runs unguarded.
    child.on('error', () => {})
    child.unref()
    const pipe = /** @type {Pipe} */ (child.stdin)
    pipe.on('error', () => {})
    pipe.unref?.()
    this.#pipe = pipe
  }

  /** Call it when the terminal is restored: the guard exits. */
  end() {
    this.#pipe?.end('clean\n')
    this.#pipe = null
  }
}
