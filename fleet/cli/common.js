// Shared parts of the fleet's commands.

import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { escapeControls } from '../../src/base/terminal-text.js'
import { COMMAND } from '../../src/base/version.js'
import { UsageError } from '../../src/cli/args.js'
import { didYouMean } from '../../src/config/nearest.js'
import { PROVIDERS } from '../providers/index.js'
import { SETTINGS, SettingError } from '../settings.js'

/** @import { Flag } from '../../src/cli/args.js' */
/** @import { Command, Io } from '../../src/cli/command.js' */
/** @import { LaunchPlan } from '../providers/contract.js' */
/** @import { FleetSettings } from '../schema.js' */
/** @import { Setting } from '../settings.js' */

/** @type {Flag} */
export const TEXT = Object.freeze({ type: 'string' })
/** @type {Flag} */
export const LIST = Object.freeze({ type: 'string', multiple: true })
/** @type {Flag} */
export const SWITCH = Object.freeze({ type: 'boolean' })
/** @type {Flag} */
export const YES = Object.freeze({ type: 'boolean', short: 'y' })

/** @param {Flag} flag @param {string[]} names @returns {Record<string, Flag>} */
export const flagsOf = (flag, ...names) => Object.fromEntries(names.map(name => [name, flag]))

export const DIR_HELP = `      --dir DIR              folder of the fleet's state; default: HALLEY_FLEET_DIR, else
                             $XDG_STATE_HOME/halley/fleet, else ~/.local/state/halley/fleet`

export const COMMON_HELP = `  -h, --help                 print this text
  -V, --version              print the version`

/** @type {Record<string, Flag>} */
export const PROVIDER_FLAGS = Object.assign({}, ...Object.values(PROVIDERS).map(({ flags }) => flags))

export const PROVIDER_HELP = Object.entries(PROVIDERS)
  .map(([name, { help }]) => `Provider ${name}:\n${help}\n`)
  .join('\n')

/** @param {Io} io @param {Record<string, any>} flags @returns {string} absolute path */
export function dirOf({ env, cwd }, flags) {
  if (flags.dir !== undefined) return resolve(cwd, flags.dir)
  if (env.HALLEY_FLEET_DIR) return resolve(cwd, env.HALLEY_FLEET_DIR)
  const state = env.XDG_STATE_HOME || join(env.HOME || homedir(), '.local', 'state')
  return join(state, 'halley', 'fleet')
}

const UNITS = { ms: 0.001, s: 1, m: 60, h: 3600 }

/** @param {string} text `300s`, `5m`, `1.5h`; a bare number: seconds @param {string} what name for the error */
export function parseSeconds(text, what) {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text)
  if (match === null) throw new UsageError(`${what}: "${text}" is not a duration like 300s or 5m`)
  return Number(match[1]) * UNITS[/** @type {keyof UNITS} */ (match[2] ?? 's')]
}

/** @param {string | undefined} text `1000`, `1,000` or `1_000` @param {string} what for the error @param {number} [max] */
export function parseCount(text, what, max = 10_000) {
  if (text === undefined) throw new UsageError(`${what} is missing`)
  const value = /^\d[\d_,]*$/.test(text) ? Number(text.replace(/[_,]/g, '')) : Number.NaN
  if (!(value >= 1 && value <= max))
    throw new UsageError(`${what}: "${text}" is not a number from 1 to ${max}`)
  return value
}

/** @param {string | undefined} text `8880`, `0.0.0.0:8880` or `[::1]:8880` @returns {string | undefined} host:port */
export function parseStatusPort(text) {
  if (text === undefined) return
  const [, host = '127.0.0.1', port = 0] =
    /^(?:(\[[\da-f:.]+\]|[\w.-]+):)?(\d{1,5})$/i.exec(text) ?? /** @type {string[]} */ ([])
  if (Number(port) >= 1 && Number(port) <= 65_535) return `${host}:${port}`
  throw new UsageError(`--status-port: "${text}" is not PORT or HOST:PORT, as in 8880 or 0.0.0.0:8880`)
}

/** @param {string} name @returns {Setting} */
export function settingOf(name) {
  const plain = name.replaceAll('-', '_')
  const setting = SETTINGS.find(known => known.name === plain)
  if (setting !== undefined) return setting
  const names = SETTINGS.map(known => known.name)
  throw new UsageError(
    `unknown setting "${name}"${didYouMean(name, names)} (${COMMAND} fleet set --help lists all)`,
  )
}

/** @param {string[][]} pairs name and text of a value @returns {Partial<FleetSettings>} */
export function parseSettings(pairs) {
  /** @type {Record<string, any>} */
  const settings = {}
  for (const [name, text] of pairs) {
    const setting = settingOf(name)
    try {
      settings[setting.name] = setting.parse(text)
    } catch (error) {
      if (error instanceof SettingError) throw new UsageError(`${setting.name}: ${error.message}`)
      throw error
    }
  }
  return settings
}

/** @param {string} text `name=value` @returns {[string, string]} */
export function parsePair(text) {
  const at = text.indexOf('=')
  if (at < 1) throw new UsageError(`"${text}" is not NAME=VALUE`)
  return [text.slice(0, at), text.slice(at + 1)]
}

/** @param {any} value of a setting @returns {string} as in `--set` */
export const shown = value => (Array.isArray(value) ? value.join(',') : String(value))

/** @param {Record<string, any>} flags @param {string} name of the provider @throws {UsageError} a flag of another one */
export function providerFlags(flags, name) {
  if (!Object.hasOwn(PROVIDERS, name))
    throw new UsageError(`unknown provider "${name}"; use ${Object.keys(PROVIDERS).join(' or ')}`)
  const given = Object.keys(PROVIDER_FLAGS).filter(flag => flags[flag] !== undefined)
  for (const flag of given) {
    if (Object.hasOwn(PROVIDERS[name].flags, flag)) continue
    const owner = Object.keys(PROVIDERS).find(other => Object.hasOwn(PROVIDERS[other].flags, flag))
    throw new UsageError(`--${flag} requires --provider ${owner}; the provider is ${name}`)
  }
  return given.length === 0 ? undefined : Object.fromEntries(given.map(flag => [flag, flags[flag]]))
}

/** @param {any} error @returns {string} one line; for a bug, the stack */
export const reasonOf = error =>
  error instanceof TypeError || error instanceof ReferenceError
    ? (error.stack ?? error.message)
    : error.message

const CLEAR = '\r\x1b[2K'
/** ms between printed lines that differ only in numbers. */
const BETWEEN = 1000

/** @param {string} text @returns {string} without its numbers; a completed one, `7 of 7`, is another kind */
const kindOf = text => (/\b(\d+) of \1\b/.test(text) ? text : text.replace(/\d+/g, '#'))

/** Progress line: overwritten on a terminal; else printed, at most once per second and kind. */
export class Progress {
  #stderr
  #tty
  #columns
  #shown = false
  #kind = ''
  #at = 0
  /** The next line, unless another replaces it. @type {NodeJS.Timeout | undefined} */
  #next

  /** @param {(text: string) => void} stderr not escaped @param {{isTTY?: boolean, columns?: number}} stream behind it */
  constructor(stderr, { isTTY = false, columns = 80 }) {
    this.#stderr = stderr
    this.#tty = isTTY
    this.#columns = columns || 80
  }

  /** @param {string} text until the next one */
  show(text) {
    if (this.#tty) {
      const line = escapeControls(text, '')
      const { length } = line
      this.#stderr(`${CLEAR}${length >= this.#columns ? `${line.slice(0, this.#columns - 2)}…` : line}`)
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
    this.#stderr(`${escapeControls(text)}\n`)
  }

  /** @param {string} text permanent */
  line(text) {
    this.clear()
    this.#stderr(`${escapeControls(text)}\n`)
  }

  clear() {
    clearTimeout(this.#next)
    if (this.#shown) this.#stderr(CLEAR)
    this.#shown = false
  }
}

/**
 * Prints errors, except UsageError, as one line with exit status 1.
 * @param {Omit<Command, 'run'> & {run: (io: Io, flags: Record<string, any>, progress: Progress) =>
 *   Promise<number | undefined | void>}} command
 * @returns {Command}
 */
export const fleetCommand = ({ run, ...command }) => ({
  ...command,
  async run(io, flags) {
    const progress = new Progress((io.raw ?? io).stderr, process.stderr)
    try {
      return /** @type {number | undefined} */ (await run(io, flags, progress)) ?? 0
    } catch (error) {
      if (error instanceof UsageError) throw error
      progress.clear()
      io.stderr(`halley: ${reasonOf(error)}\n`)
      return 1
    }
  },
})

/** @param {string} question @param {string} refusal error without a terminal @returns {Promise<boolean>} @throws {Error} */
export async function askYesNo(question, refusal) {
  if (!process.stdin.isTTY) throw new Error(refusal)
  const questions = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await questions.question(`${question} (yes/no) `)
  questions.close()
  return /^y(?:es)?$/i.test(answer.trim())
}

/** @param {NonNullable<LaunchPlan['price']>} price */
export const priceText = ({ hourly, currency, note }) =>
  `about ${hourly.toFixed(2)} ${currency} per hour${note === '' ? '' : ` (${note})`}`

/**
 * Prints a launch with a price, and prompts for confirmation.
 * @param {Pick<LaunchPlan, 'lines' | 'price'>} plan @param {boolean} yes confirmed in advance @param {Progress} progress
 */
export async function confirmCost({ lines, price }, yes, progress) {
  if (price === null) return true
  for (const line of [...lines, priceText(price)]) progress.line(line)
  return (
    yes ||
    (await askYesNo('Launch these drones?', 'this costs money: pass --yes to confirm without a terminal'))
  )
}
