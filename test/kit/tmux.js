import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { skipFile, withoutProgram } from './needs.js'
import { eventually, pause, until } from './wait.js'

const execute = promisify(execFile)
// Colour settings are for the output of the tests, not for the programs under test.
const { NO_COLOR, FORCE_COLOR, COLORTERM, ...inherited } = process.env
const ENV = { ...inherited, LC_ALL: 'C.UTF-8' }
const TIMEOUT_MS = 60_000

/** Skips this test file without tmux or `ps`. @param {any} t the root, before its first test */
export const needsTmux = t => skipFile(t, withoutProgram('tmux') || withoutProgram('ps', 'procps'))

/** A real terminal without a window: a separate tmux server. */
export class Tmux {
  #folder = mkdtempSync(join(tmpdir(), 'halley-tmux-'))
  #socket = join(this.#folder, 'socket')
  /** Also if a test exits without its teardown. */
  #onExit = () => {
    try {
      execFileSync('tmux', ['-S', this.#socket, 'kill-server'], { stdio: 'ignore' })
    } catch {
      // Already ended.
    }
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /**
   * @param {import('tap').Test} t its teardown ends the server
   * @param {{columns?: number, rows?: number, env?: Record<string, string>, command?: string[], term?: string}}
   *   [options] `command`: default is an interactive shell; `term`: TERM
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
      throw new Error('tmux is not installed: apt-get install tmux')
    }
    // Before the prompt, tmux may still change the settings of the terminal.
    if (options.command === undefined) await tmux.until(/[$#]/)
    return tmux
  }

  /**
   * A shell that has printed a line, which must be on the screen again after a program exits.
   * @param {import('tap').Test} t @param {Parameters<typeof Tmux.start>[1]} [options]
   * @returns {Promise<{tmux: Tmux, settings: string}>} settings: output of `stty -a`
   */
  static async shell(t, options) {
    const tmux = await Tmux.start(t, options)
    await tmux.enter("clear; echo what was bef''ore")
    // Some shells change the settings before each prompt.
    await tmux.until(/^what was before\n.*[$#]/m)
    return { tmux, settings: await tmux.settings() }
  }

  async run(...args) {
    const { stdout } = await execute('tmux', ['-S', this.#socket, ...args], { env: ENV })
    return stdout
  }

  /** @returns {Promise<string>} text of the screen, without trailing blanks */
  async screen() {
    return (await this.run('capture-pane', '-p')).replace(/ +$/gm, '').replace(/\n+$/, '')
  }

  /** The screen with escape sequences of its styles. */
  styled() {
    return this.run('capture-pane', '-p', '-e', '-N')
  }

  /**
   * @param {...string} names tmux variables: alternate_on, cursor_flag, pane_tty ...
   * @returns {Promise<string>} values, separated by spaces
   */
  async display(...names) {
    const format = names.map(name => `#{${name}}`).join(' ')
    return (await this.run('display-message', '-p', format)).trim()
  }

  /** @param {...string} names keys of tmux: Up, PageDown, C-c, Escape, Enter */
  async keys(...names) {
    await this.run('send-keys', ...names)
  }

  async type(text) {
    await this.run('send-keys', '-l', text)
  }

  /** Types a line and Enter. @param {string} command */
  async enter(command) {
    await this.type(command)
    await this.keys('Enter')
  }

  async resize(columns, rows) {
    await this.run('resize-window', '-x', `${columns}`, '-y', `${rows}`)
  }

  /**
   * @param {string | RegExp | ((screen: string) => boolean)} expected @returns {Promise<string>} the matching screen
   */
  async until(expected) {
    const shows = screen => {
      if (typeof expected === 'function') return expected(screen)
      return typeof expected === 'string' ? screen.includes(expected) : expected.test(screen)
    }
    let screen = ''
    const steady = async () => {
      screen = await this.screen()
      if (!shows(screen)) return false
      // The program may still write.
      await pause(20)
      return (await this.screen()) === screen
    }
    await until(steady, () => `${expected} on the screen:\n${screen}`, { timeout: TIMEOUT_MS })
    return screen
  }

  /** @returns {Promise<string>} output of `stty -a` */
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
 * Asserts that a program exited and restored the terminal: screen, cursor, wrapping and settings.
 * @param {import('tap').Test} t @param {{tmux: Tmux, settings: string}} terminal of Tmux.shell()
 * @param {string | RegExp} [ended] shown on the screen after the program exits @returns {Promise<string>} the screen
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
