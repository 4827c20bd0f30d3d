import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { pauses } from '../pauses.js'

const run = promisify(execFile)
// What somebody has said about colours is about the output of the tests.
const { NO_COLOR, FORCE_COLOR, COLORTERM, ...inherited } = process.env
const ENV = { ...inherited, LC_ALL: 'C.UTF-8' }

/**
 * A real terminal without a window: tmux, with a server of its own. It shows what a program writes, and types.
 */
export class Tmux {
  #folder = mkdtempSync(join(tmpdir(), 'halley-tmux-'))
  #socket = join(this.#folder, 'socket')
  /** A test that is given up ends nothing any more. */
  #onExit = () => {
    try {
      execFileSync('tmux', ['-S', this.#socket, 'kill-server'], { stdio: 'ignore' })
    } catch {
      // It has gone already.
    }
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /**
   * @param {import('tap').Test} t ends it
   * @param {object} [options]
   * @param {number} [options.columns]
   * @param {number} [options.rows]
   * @param {Record<string, string>} [options.env]
   * @param {string[]} [options.command] an interactive shell
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
      await tmux.do(...args, ...command)
    } catch (error) {
      if (error.code !== 'ENOENT') throw error
      throw new Error('this test needs tmux: apt-get install tmux')
    }
    // tmux sets up the terminal in the new process: before the shell asks, its settings may still change.
    if (options.command === undefined) await tmux.until(/[$#]/)
    return tmux
  }

  /**
   * A terminal with a shell that has printed something: it must be on the screen again when a program has ended.
   *
   * @param {import('tap').Test} t
   * @param {Parameters<typeof Tmux.start>[1]} [options]
   * @returns {Promise<{tmux: Tmux, settings: string}>} settings: of the terminal, as `stty -a` prints them
   */
  static async shell(t, options) {
    const tmux = await Tmux.start(t, options)
    await tmux.line("clear; echo what was bef''ore")
    // Some shells change the settings before each prompt.
    await tmux.until(/^what was before\n.*[$#]/m)
    return { tmux, settings: await tmux.settings() }
  }

  /**
   * @param {...string} args of tmux
   * @returns {Promise<string>} what it says
   */
  async do(...args) {
    const { stdout } = await run('tmux', ['-S', this.#socket, ...args], { env: ENV })
    return stdout
  }

  /** @returns {Promise<string>} what is on the screen, without blanks at the ends of lines */
  async screen() {
    return (await this.do('capture-pane', '-p')).replace(/ +$/gm, '').replace(/\n+$/, '')
  }

  /** @returns {Promise<string>} with the sequences for its styles */
  styled() {
    return this.do('capture-pane', '-p', '-e', '-N')
  }

  /**
   * @param {string} name of a variable of tmux: alternate_on, cursor_flag, pane_tty ...
   * @returns {Promise<string>}
   */
  async ask(name) {
    return (await this.do('display-message', '-p', `#{${name}}`)).trim()
  }

  /** @param {...string} names of keys as tmux calls them: Up, PageDown, C-c, Escape, Enter */
  async keys(...names) {
    await this.do('send-keys', ...names)
  }

  /** @param {string} text */
  async type(text) {
    await this.do('send-keys', '-l', text)
  }

  /** @param {string} command for the shell */
  async line(command) {
    await this.type(command)
    await this.keys('Enter')
  }

  /**
   * @param {number} columns
   * @param {number} rows
   */
  async resize(columns, rows) {
    await this.do('resize-window', '-x', `${columns}`, '-y', `${rows}`)
  }

  /**
   * @param {string | RegExp | ((screen: string) => boolean)} what the screen must come to show
   * @returns {Promise<string>} the screen
   */
  async until(what) {
    const shows = typeof what === 'function' ? what : (/** @type {string} */ s) => s.search(what) >= 0
    const needle = typeof what === 'string' ? (/** @type {string} */ s) => s.includes(what) : shows
    const deadline = Date.now() + 60_000
    for (const ms of pauses()) {
      const screen = await this.screen()
      if (needle(screen)) {
        // A picture may arrive in pieces.
        await wait(20)
        if ((await this.screen()) === screen) return screen
      }
      if (Date.now() > deadline) throw new Error(`the screen does not come to show ${what}:\n${screen}`)
      await wait(ms)
    }
  }

  /** @returns {Promise<string>} what `stty -a` says of it */
  async settings() {
    const { stdout } = await run('sh', ['-c', 'stty -a < "$0"', await this.ask('pane_tty')])
    return stdout
  }

  async end() {
    process.off('exit', this.#onExit)
    await this.do('kill-server').catch(() => {})
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/**
 * A program has ended and given the terminal back.
 *
 * @param {import('tap').Test} t
 * @param {{tmux: Tmux, settings: string}} terminal of Tmux.shell()
 * @param {string | RegExp} [ended] what the shell shows then
 * @returns {Promise<string>} the screen
 */
export async function isAsBefore(t, { tmux, settings }, ended = 'what was before') {
  const screen = await tmux.until(ended)
  t.match(screen, 'what was before', 'the screen from before')
  const state = () => tmux.ask('alternate_on} #{cursor_flag} #{wrap_flag')
  t.equal(await eventually(state, now => now === '0 1 1'), '0 1 1', 'main screen, cursor, wrapping')
  const stty = await eventually(
    () => tmux.settings(),
    now => now === settings,
  )
  t.equal(stty, settings, 'stty -a')
  return screen
}

/**
 * @template T
 * @param {() => T | Promise<T>} look
 * @param {(seen: T) => boolean} good
 * @returns {Promise<T>} what was seen; after 60 s whatever it is
 */
export async function eventually(look, good) {
  const deadline = Date.now() + 60_000
  for (const ms of pauses()) {
    const seen = await look()
    if (good(seen) || Date.now() > deadline) return seen
    await wait(ms)
  }
}
