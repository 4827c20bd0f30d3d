import { spawn, spawnSync } from 'node:child_process'

/** @typedef {import('node:stream').Writable & {unref?: () => void}} Pipe */

// Its standard output is the terminal, its standard input the pipe whose other end we hold. When that ends without a word we
// are dead, whatever it was that killed us. Then there is a race with the shell that takes the terminal over: the screen comes
// first, and the settings are left alone when somebody has changed them since. The terminal is opened anew, because we do not
// block on it: such a write fails while somebody else is writing.
const SCRIPT = `
trap '' HUP INT QUIT TERM TSTP TTIN TTOU PIPE
exec 3>&1
name=$(tty <&3)
if [ -w "$name" ]; then exec 3>"$name"; fi
ours=$(stty -g <&3)
read -r word
if [ "$word" = clean ]; then exit; fi
for try in 1 2 3; do
  if printf '%b' "$2" >&3; then break; fi
  sleep 0.1
done
sleep 0.1
if [ -n "$1" ] && [ "$(stty -g <&3)" = "$ours" ]; then stty "$1" <&3; fi
`

/**
 * A child process that gives the terminal back when we cannot: we were killed, or crashed.
 */
export class Guard {
  #settings
  #fd
  #leave
  /** @type {Pipe | null} */
  #pipe = null

  /**
   * To be made before the terminal's settings are changed, and to be started afterwards.
   *
   * @param {number} fd of the terminal
   * @param {string} leave what is to be written to it
   */
  constructor(fd, leave) {
    this.#fd = fd
    this.#leave = leave
    const { stdout } = spawnSync('stty', ['-g'], { stdio: [fd, 'pipe', 'ignore'], encoding: 'utf8' })
    this.#settings = stdout?.trim() ?? ''
  }

  start() {
    const leave = this.#leave.replaceAll('\x1b', '\\0033')
    // In a session of its own, out of reach of what the terminal sends to its processes, and of what kills all of them.
    /** @type {import('node:child_process').ChildProcess} */
    const child = spawn('sh', ['-c', SCRIPT, 'guard', this.#settings, leave], {
      stdio: ['pipe', this.#fd, 'ignore'],
      cwd: '/',
      detached: true,
    })
    // Without a shell there is no guard; that is no reason not to show anything.
    child.on('error', () => {})
    child.unref()
    const pipe = /** @type {Pipe} */ (child.stdin)
    pipe.on('error', () => {})
    pipe.unref?.()
    this.#pipe = pipe
  }

  /** Everything is as it was: it may go. */
  end() {
    this.#pipe?.end('clean\n')
    this.#pipe = null
  }
}
