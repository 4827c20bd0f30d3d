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

/** An answer that is none; the message is the end of a sentence that begins with the answer. */
class InvalidAnswer extends Error {}

/** @param {string} text @returns {string[]} its parts between blanks and commas */
const listOf = text => text.split(/[\s,]+/).filter(part => part !== '')

/** @param {string} text @returns {number} @throws {InvalidAnswer} */
function readPort(text) {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (port < 1 || port > 65_535) throw new InvalidAnswer('is not a port, a number from 1 to 65535')
  return port
}

/** @param {string} text @returns {string[]} @throws {InvalidAnswer} */
function readOrigins(text) {
  const origins = listOf(text)
  const wrong = origins.find(origin => !/^(?:\*|loopback|[a-z][-+.a-z0-9]*:\/\/[^/?#\s]+)$/i.test(origin))
  if (wrong !== undefined || origins.length === 0)
    throw new InvalidAnswer('is not an origin like https://example.com or http://localhost:3000')
  return origins
}

/** @param {string} text @returns {string[]} @throws {InvalidAnswer} */
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

/** @param {string} text @returns {string} @throws {InvalidAnswer} */
function readAddress(text) {
  try {
    loadConfig({ base: { engine: { type: 'redis', redis: { address: text } } } })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new InvalidAnswer(error.faults[0].replace(/^[^:]*: /, ''))
  }
  return text
}

/**
 * Asks until the answer is valid.
 * @template T
 * @param {Questions} questions @param {string} text @param {string} usual for an empty answer
 * @param {(answer: string) => T} read @param {(text: string) => void} stdout
 * @returns {Promise<T>}
 * @throws {Error} the input has ended
 */
async function ask({ ask }, text, usual, read, stdout) {
  for (;;) {
    const answer = await ask(`${text} [${usual}]: `)
    if (answer === null) throw new Error('the questions were not answered; nothing was written')
    try {
      return read(answer === '' ? usual : answer)
    } catch (error) {
      if (!(error instanceof InvalidAnswer)) throw error
      stdout(`  ${answer} ${error.message}\n`)
    }
  }
}

/**
 * @template T
 * @param {string} flag @param {string | undefined} text @param {(text: string) => T} read
 * @returns {T | undefined}
 * @throws {UsageError}
 */
function given(flag, text, read) {
  if (text === undefined) return undefined
  try {
    return read(text)
  } catch (error) {
    if (!(error instanceof InvalidAnswer)) throw error
    throw new UsageError(`--${flag} ${text}: ${error.message}`)
  }
}

/** @param {Record<string, any>} flags @returns {Partial<Answers>} what they say @throws {UsageError} */
function answersOf(flags) {
  const redisAddress = given('redis-address', flags['redis-address'], readAddress)
  const engine = given('engine', flags.engine, readEngine)
  if (engine === 'memory' && redisAddress !== undefined)
    throw new UsageError('--redis-address needs --engine redis')
  return {
    port: given('port', flags.port, readPort),
    origins: given('origin', flags.origin?.join(' '), readOrigins),
    transports: given('transport', flags.transport?.join(' '), readTransports),
    engine: engine ?? (redisAddress === undefined ? undefined : 'redis'),
    redisAddress,
  }
}

/**
 * @param {Partial<Answers>} known @param {Questions | null} questions null: the defaults are the answers
 * @param {(text: string) => void} stdout
 * @returns {Promise<Answers>}
 * @throws {Error} the input has ended
 */
async function complete(known, questions, stdout) {
  /**
   * @template T @param {T | undefined} value @param {string} text @param {string} usual
   * @param {(answer: string) => T} read
   */
  const get = async (value, text, usual, read) =>
    value ?? (questions === null ? read(usual) : await ask(questions, text, usual, read, stdout))
  const engine = 'Engine: memory for one machine, redis for several'
  const answers = {
    port: await get(known.port, 'Port', String(DEFAULTS.port), readPort),
    origins: await get(known.origins, 'Origins of your pages', DEFAULTS.origins.join(' '), readOrigins),
    transports: await get(
      known.transports,
      `Transports beside WebSocket (${TRANSPORTS.join(', ')})`,
      'none',
      readTransports,
    ),
    engine: await get(known.engine, engine, DEFAULTS.engine, readEngine),
    redisAddress: known.redisAddress ?? DEFAULTS.redisAddress,
  }
  if (answers.engine === 'redis')
    answers.redisAddress = await get(known.redisAddress, 'Redis address', DEFAULTS.redisAddress, readAddress)
  return answers
}

/** @type {Record<string, string>} */
const REASONS = {
  EEXIST: 'exists; --force replaces it, with its secrets',
  ENOENT: 'there is no such folder',
  EACCES: 'permission denied',
  EROFS: 'the file system is read-only',
  EISDIR: 'is a folder',
  ENOSPC: 'the disk is full',
}

/**
 * Writes a file that only its user may read.
 * @param {string} file @param {string} text @param {boolean} force replace an existing one
 * @throws {NodeJS.ErrnoException} EEXIST: the file exists; it is unchanged
 */
async function writePrivate(file, text, force) {
  // A new file: the mode of an existing one would stay.
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
each), origins, transports, engine and example channels. On a terminal it asks for what the flags do not say. Only its
user may read the file. FILE ends with .yaml, .yml or .json (JSON has no comments); default: config.yaml.

      --port PORT           port to listen on; default: ${DEFAULTS.port}
      --origin ORIGIN       origin of your pages, like https://example.com; can be repeated
      --transport NAME      transport beside WebSocket; can be repeated: ${TRANSPORTS.slice(0, 3).join(', ')},
                            ${TRANSPORTS.slice(3).join(', ')}
      --engine ENGINE       memory, for one machine, or redis, for several; default: memory
      --redis-address URL   address of the Redis server: redis://user:password@host:port/db; implies --engine redis
      --yes                 ask nothing: defaults for what the flags do not say
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
      // Before the questions, and once more when it is written.
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
      `${name}: written, with a new token secret, API key and admin key\n` +
        (known.origins === undefined && (flags.yes || questions === undefined)
          ? 'Change client.allowed_origins to the origins of your pages and channel to your channels, then:\n'
          : 'Change channel to your channels, then:\n') +
        `  ${COMMAND} serve -c ${name}\n`,
    )
    return 0
  },
}
