import { spawn, spawnSync } from 'node:child_process'

/** @typedef {import('node:stream').Writable & {unref?: () => void}} Pipe */

// Arguments: $1 saved settings (`stty -g`), $2 escape sequences that restore the screen. Stdout is the terminal, stdin
// a pipe from the dashboard: it ends without `clean` if the dashboard died. By then the shell may have set up the
// terminal for its prompt, so the guard restores the screen, but the settings only if unchanged. It
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
   * @param {number} hold file descriptor kept open until exit; 0: none
   */
  constructor(fd, sequences, hold) {
    this.#fd = fd
    this.#sequences = sequences
    this.#hold = hold > 0 ? hold : /** @type {const} */ ('ignore')
    const { stdout } = spawnSync('stty', ['-g'], { stdio: [fd, 'pipe', 'ignore'], encoding: 'utf8' })
    this.#settings = stdout?.trim() ?? ''
  }

  start() {
    // `printf %b` takes escape characters in octal.
    const sequences = this.#sequences.replaceAll('\x1b', '\\0033')
    // In a new session: receives no signals of the terminal or the process group.
    /** @type {import('node:child_process').ChildProcess} */
    const child = spawn('sh', ['-c', SCRIPT, 'guard', this.#settings, sequences], {
      // The script uses descriptor 3.
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

  /** Exits the guard. Call it when the terminal is restored. */
  end() {
    this.#pipe?.end('clean\n')
    this.#pipe = null
  }
}
