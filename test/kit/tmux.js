import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { skipFile, withoutProgram } from './needs.js'
import { eventually, pause, until } from './wait.js'

const execute = promisify(execFile)
// The caller's colour settings are for the output of the tests, not for the programs under test.
const { NO_COLOR, FORCE_COLOR, COLORTERM, ...inherited } = process.env
const ENV = { ...inherited, LC_ALL: 'C.UTF-8' }
const TIMEOUT_MS = 60_000

/**
 * Skips this test file where there is no tmux, or no `ps`.
 * @param {any} t the root, before its first test
 */
export const needsTmux = t => skipFile(t, withoutProgram('tmux') || withoutProgram('ps', 'procps'))

/** A real terminal without a window: a tmux server of its own, which types keys and reads the screen. */
export class Tmux {
  #folder = mkdtempSync(join(tmpdir(), 'halley-tmux-'))
  #socket = join(this.#folder, 'socket')
  /** Also ends the server of a test that ended without its teardown. */
  #onExit = () => {
    try {
      execFileSync('tmux', ['-S', this.#socket, 'kill-server'], { stdio: 'ignore' })
    } catch {
      // The server has ended already.
    }
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /**
   * @param {import('tap').Test} t its teardown ends the server
   * @param {object} [options]
   * @param {number} [options.columns]
   * @param {number} [options.rows]
   * @param {Record<string, string>} [options.env]
   * @param {string[]} [options.command] default: an interactive shell
   * @param {string} [options.term] TERM
   * @returns {Promise<Tmux>}
   */
  static async start(t, options = {}) {
    const { columns = 80, rows = 24, env = {}, command = ['sh'], term = 'tmux-256color' } = options
    const tmux = new Tmux()
    const set = Object.entries({ PS1: '$ ', LC_ALL: 'C.UTF-8', ENV: '', ...env })
    const setup = `start-server ; set -g default-terminal ${term} ; set -g history-limit 200 ; new-session -d`
    const args = ['-f', '/dev/null', ...setup.split(' '), '-x', `${columns}`, '-y', `${rows}`]
    for (const [name, value] of set) args.push('-e', `${name}=${value}`)
    process.once('exit', tmux.#onExit)
    t.teardown(() => tmux.end())
    try {
      await tmux.run(...args, ...command)
    } catch (error) {
      if (error.code !== 'ENOENT') throw error
      throw new Error('this test needs tmux: apt-get install tmux')
    }
    // tmux sets up the terminal in the new process: until the prompt is there, its settings may still change.
    if (options.command === undefined) await tmux.until(/[$#]/)
    return tmux
  }

  /**
   * A shell that has printed a line, which must be on the screen again when a program has ended.
   *
   * @param {import('tap').Test} t
   * @param {Parameters<typeof Tmux.start>[1]} [options]
   * @returns {Promise<{tmux: Tmux, settings: string}>} settings: of the terminal, as `stty -a` prints them
   */
  static async shell(t, options) {
    const tmux = await Tmux.start(t, options)
    await tmux.enter("clear; echo what was bef''ore")
    // Some shells change the settings before each prompt.
    await tmux.until(/^what was before\n.*[$#]/m)
    return { tmux, settings: await tmux.settings() }
  }

  /**
   * @param {...string} args of tmux
   * @returns {Promise<string>} its output
   */
  async run(...args) {
    const { stdout } = await execute('tmux', ['-S', this.#socket, ...args], { env: ENV })
    return stdout
  }

  /** @returns {Promise<string>} the text on the screen, without blanks at the ends of lines */
  async screen() {
    return (await this.run('capture-pane', '-p')).replace(/ +$/gm, '').replace(/\n+$/, '')
  }

  /** @returns {Promise<string>} the screen with the escape sequences of its styles */
  styled() {
    return this.run('capture-pane', '-p', '-e', '-N')
  }

  /**
   * @param {...string} names of tmux variables: alternate_on, cursor_flag, pane_tty ...
   * @returns {Promise<string>} their values, separated by spaces
   */
  async display(...names) {
    const format = names.map(name => `#{${name}}`).join(' ')
    return (await this.run('display-message', '-p', format)).trim()
  }

  /** @param {...string} names of keys as tmux calls them: Up, PageDown, C-c, Escape, Enter */
  async keys(...names) {
    await this.run('send-keys', ...names)
  }

  /** @param {string} text */
  async type(text) {
    await this.run('send-keys', '-l', text)
  }

  /** Types a line and Enter. @param {string} command for the shell */
  async enter(command) {
    await this.type(command)
    await this.keys('Enter')
  }

  /**
   * @param {number} columns
   * @param {number} rows
   */
  async resize(columns, rows) {
    await this.run('resize-window', '-x', `${columns}`, '-y', `${rows}`)
  }

  /**
   * @param {string | RegExp | ((screen: string) => boolean)} expected part of the screen, or a condition on it
   * @returns {Promise<string>} the screen
   * @throws {Error} the screen does not show it within 60 s
   */
  async until(expected) {
    const shows = (/** @type {string} */ screen) => {
      if (typeof expected === 'function') return expected(screen)
      return typeof expected === 'string' ? screen.includes(expected) : expected.test(screen)
    }
    let screen = ''
    const steady = async () => {
      screen = await this.screen()
      if (!shows(screen)) return false
      // The program may still be writing.
      await pause(20)
      return (await this.screen()) === screen
    }
    await until(steady, () => `${expected} on the screen:\n${screen}`, { timeout: TIMEOUT_MS })
    return screen
  }

  /** @returns {Promise<string>} settings of the terminal, as `stty -a` prints them */
  async settings() {
    const { stdout } = await execute('sh', ['-c', 'stty -a < "$0"', await this.display('pane_tty')])
    return stdout
  }

  async end() {
    process.off('exit', this.#onExit)
    await this.run('kill-server').catch(() => {})
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/**
 * Asserts that a program has ended and left the terminal as it was: screen, cursor, wrapping and settings.
 *
 * @param {import('tap').Test} t
 * @param {{tmux: Tmux, settings: string}} terminal of Tmux.shell()
 * @param {string | RegExp} [ended] what the screen shows once the program has ended
 * @returns {Promise<string>} the screen
 */
export async function assertRestored(t, { tmux, settings }, ended = 'what was before') {
  const screen = await tmux.until(ended)
  t.match(screen, 'what was before', 'the main screen is back')
  const state = () => tmux.display('alternate_on', 'cursor_flag', 'wrap_flag')
  t.equal(await eventually(state, now => now === '0 1 1'), '0 1 1', 'main screen, cursor, wrapping')
  const stty = await eventually(
    () => tmux.settings(),
    now => now === settings,
  )
  t.equal(stty, settings, 'stty -a')
  return screen
}
