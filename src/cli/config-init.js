import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import { COMMAND } from '../base/version.js'
import { TRANSPORTS } from '../config/check.js'
import { DEFAULTS, initialText } from '../config/initial.js'
import { ConfigError, loadConfig } from '../config/load.js'
import { didYouMean } from '../config/nearest.js'
import { UsageError } from './args.js'

/** @import { Answers } from '../config/initial.js' */
/** @import { Command } from './command.js' */
/** @import { Questions } from './questions.js' */

const KINDS = ['.json', '.yaml', '.yml']
const ENGINES = ['memory', 'redis']

/** The message follows the answer. */
class InvalidAnswer extends Error {}

/** @param {string} text */
const listOf = text => text.split(/[\s,]+/).filter(part => part !== '')

/** @param {string} text @throws {InvalidAnswer} */
function readPort(text) {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (port < 1 || port > 65_535) throw new InvalidAnswer('is not a port number (1 to 65535)')
  return port
}

/** @param {string} text @throws {InvalidAnswer} */
function readOrigins(text) {
  const origins = listOf(text)
  const wrong = origins.find(origin => !/^(?:\*|loopback|[a-z][-+.a-z0-9]*:\/\/[^/?#\s]+)$/i.test(origin))
  if (wrong !== undefined || origins.length === 0)
    throw new InvalidAnswer('is not an origin such as https://example.com or http://localhost:3000')
  return origins
}

/** @param {string} text @throws {InvalidAnswer} */
function readTransports(text) {
  const names = listOf(text).filter(name => name !== 'websocket' && name !== 'none')
  const wrong = names.find(name => !TRANSPORTS.some(known => known === name))
  if (wrong !== undefined)
    throw new InvalidAnswer(
      `is not a transport${didYouMean(wrong, [...TRANSPORTS])} (${TRANSPORTS.join(', ')})`,
    )
  return TRANSPORTS.filter(name => names.includes(name))
}

/** @param {string} text @returns {Answers['engine']} @throws {InvalidAnswer} */
function readEngine(text) {
  if (!ENGINES.includes(text)) throw new InvalidAnswer('is not an engine: memory or redis')
  return /** @type {Answers['engine']} */ (text)
}

/** @param {string} text @throws {InvalidAnswer} */
function readAddress(text) {
  try {
    loadConfig({ base: { engine: { type: 'redis', redis: { address: text } } } })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new InvalidAnswer(error.faults[0].replace(/^[^:]*: /, ''))
  }
  return text
}

/** @type {{[K in keyof Answers]: {flag: string, text: string, usual: string, read: (text: string) => Answers[K]}}} */
const QUESTIONS = {
  port: { flag: 'port', text: 'Port', usual: String(DEFAULTS.port), read: readPort },
  origins: {
    flag: 'origin',
    text: 'Origins of your pages',
    usual: DEFAULTS.origins.join(' '),
    read: readOrigins,
  },
  transports: {
    flag: 'transport',
    text: `Transports in addition to WebSocket (${TRANSPORTS.join(', ')})`,
    usual: 'none',
    read: readTransports,
  },
  engine: {
    flag: 'engine',
    text: 'Engine: memory for one machine, redis for several',
    usual: DEFAULTS.engine,
    read: readEngine,
  },
  redisAddress: {
    flag: 'redis-address',
    text: 'Redis address',
    usual: DEFAULTS.redisAddress,
    read: readAddress,
  },
}
const NAMES = /** @type {(keyof Answers)[]} */ (Object.keys(QUESTIONS))

/** @param {Record<string, any>} flags @throws {UsageError} */
function answersOf(flags) {
  /** @type {Record<string, unknown>} */
  const known = {}
  for (const name of NAMES) {
    const { flag, read } = QUESTIONS[name]
    if (flags[flag] === undefined) continue
    const text = [flags[flag]].flat().join(' ')
    try {
      known[name] = read(text)
    } catch (error) {
      if (!(error instanceof InvalidAnswer)) throw error
      throw new UsageError(`--${flag} ${text}: ${error.message}`)
    }
  }
  if (known.redisAddress === undefined) return known
  if (known.engine === 'memory') throw new UsageError('--redis-address requires --engine redis')
  return { ...known, engine: 'redis' }
}

/**
 * Repeats until the answer is valid.
 * @template {keyof Answers} K
 * @param {K} name @param {Questions} questions @param {(text: string) => void} stdout
 * @returns {Promise<Answers[K]>}
 * @throws {Error} end of input
 */
async function ask(name, questions, stdout) {
  const { text, usual, read } = QUESTIONS[name]
  for (;;) {
    const answer = await questions.ask(`${text} [${usual}]: `)
    if (answer === null) throw new Error('end of input; no file was written')
    try {
      return read(answer === '' ? usual : answer)
    } catch (error) {
      if (!(error instanceof InvalidAnswer)) throw error
      stdout(`  ${answer} ${error.message}\n`)
    }
  }
}

/**
 * @param {Record<string, unknown>} known answers
 * @param {Questions | null} questions null: use the defaults
 * @param {(text: string) => void} stdout
 * @returns {Promise<Answers>}
 */
async function complete(known, questions, stdout) {
  const answers = { ...known }
  for (const name of NAMES) {
    const { usual, read } = QUESTIONS[name]
    const isAsked = questions !== null && (name !== 'redisAddress' || answers.engine === 'redis')
    answers[name] ??= isAsked ? await ask(name, questions, stdout) : read(usual)
  }
  return /** @type {Answers} */ (/** @type {unknown} */ (answers))
}

/** @type {Record<string, string>} */
const REASONS = {
  EEXIST: 'already exists; use --force to replace it and its secrets',
  ENOENT: 'no such directory',
  EACCES: 'permission denied',
  EROFS: 'the file system is read-only',
  EISDIR: 'is a directory',
  ENOSPC: 'the disk is full',
}

/**
 * Readable only by its owner.
 * @param {string} file @param {string} text @param {boolean} force replaces an existing file
 */
async function writePrivate(file, text, force) {
  // A new file: an existing one keeps its mode.
  const path = force ? `${file}.${randomBytes(4).toString('hex')}` : file
  const handle = await open(path, 'wx', 0o600)
  try {
    await handle.writeFile(text)
    if (force) await rename(path, file)
  } catch (error) {
    await rm(path, { force: true })
    throw error
  } finally {
    await handle.close()
  }
}

/** @type {Command} */
export const configInit = {
  name: 'config init',
  summary: 'write a configuration file with random secrets',
  help: `Usage: ${COMMAND} config init [FILE] [flags]

Writes a commented configuration to start from: random secrets for tokens, the server API and the admin page (32 bytes
each), origins, transports, engine and example channels. On a terminal it prompts for values that are not given as
flags. The file is readable only by its owner. FILE ends with .yaml, .yml or .json (JSON has no comments); default:
config.yaml.

      --port PORT           port to listen on; default: ${DEFAULTS.port}
      --origin ORIGIN       origin of your pages, such as https://example.com; can be repeated
      --transport NAME      additional transport; can be repeated: ${TRANSPORTS.slice(0, 3).join(', ')},
                            ${TRANSPORTS.slice(3).join(', ')}
      --engine ENGINE       memory, for one machine, or redis, for several; default: memory
      --redis-address URL   address of the Redis server: redis://user:password@host:port/db; implies --engine redis
      --yes                 do not prompt; use defaults for values not given as flags
      --force               replace an existing file
  -h, --help                print this text
  -V, --version             print the version

Examples:
  ${COMMAND} config init
  ${COMMAND} config init --yes --port 9000 --origin https://example.com --transport sse
  ${COMMAND} config init /etc/halley/config.yaml --engine redis --redis-address redis://10.0.0.5:6379
`,
  flags: {
    port: { type: 'string' },
    origin: { type: 'string', multiple: true },
    transport: { type: 'string', multiple: true },
    engine: { type: 'string' },
    'redis-address': { type: 'string' },
    yes: { type: 'boolean' },
    force: { type: 'boolean' },
  },
  words: 1,

  async run({ cwd, stdout, stderr, questions }, flags) {
    const [name = 'config.yaml'] = flags.words
    const kind = extname(name).toLowerCase()
    if (!KINDS.includes(kind))
      throw new UsageError(`${name}: the file name must end with .json, .yaml or .yml`)
    const known = answersOf(flags)
    const path = resolve(cwd, name)
    const force = flags.force === true
    try {
      // Check early; writing checks again.
      if (!force && existsSync(path)) throw Object.assign(new Error(), { code: 'EEXIST' })
      const open = flags.yes || questions === undefined ? null : await questions()
      let answers
      try {
        answers = await complete(known, open, stdout)
      } finally {
        open?.close()
      }
      const text = initialText(answers)
      const parsed = kind === '.json' ? (await import('yaml')).parse(text) : null
      await writePrivate(path, parsed === null ? text : `${JSON.stringify(parsed, null, 2)}\n`, force)
    } catch (error) {
      if (error.code === undefined) throw error
      stderr(`halley: ${name}: ${REASONS[error.code] ?? error.message}\n`)
      return 1
    }
    stdout(
      `${name}: written with a new token secret, API key and admin key\n` +
        (known.origins === undefined && (flags.yes || questions === undefined)
          ? 'Change client.allowed_origins to the origins of your pages and channel to your channels, then:\n'
          : 'Change channel to your channels, then:\n') +
        `  ${COMMAND} serve -c ${name}\n`,
    )
    return 0
  },
}
