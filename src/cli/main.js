import { ConfigError } from '../config/load.js'
import { nearest } from '../config/nearest.js'
import { parseFlags, UsageError } from './args.js'
import { configCheck, configDefaults, configDoc } from './config.js'
import { serve } from './serve.js'
import { subtoken } from './subtoken.js'
import { token } from './token.js'
import { packageVersion } from './version.js'

/** @typedef {import('./command.js').Command} Command */
/** @typedef {import('./command.js').Io} Io */

/** @type {readonly Command[]} */
const COMMANDS = [serve, token, subtoken, configCheck, configDefaults, configDoc]

/** @param {readonly Command[]} commands */
const list = commands => commands.map(({ name, summary }) => `  ${name.padEnd(18)}${summary}`).join('\n')

/** @param {string} group */
const inGroup = group => COMMANDS.filter(({ name }) => name.startsWith(`${group} `))

const HELP = `Usage: halley [command] [flags]

A Comet/WebSocket gateway: it speaks the Centrifuge protocol to clients and the Centrifugo HTTP API to backends.

Commands:
${list(COMMANDS)}

Flags:
  -h, --help        this text, or that of a command
  -V, --version     the version

Examples:
  halley                                  run the gateway on 127.0.0.1:8000
  halley serve -c config.json             run it with a configuration
  halley token -c config.json -u 42       make a token for user 42
  halley serve --help                     the flags of a command
`

/** @param {string} group */
const groupHelp = group => `Usage: halley ${group} COMMAND [flags]

Commands:
${list(inGroup(group))}

Flags:
  -h, --help        this text, or that of a command
  -V, --version     the version

Examples:
${inGroup(group)
  .map(({ name }) => `  halley ${name}`)
  .join('\n')}
`

/**
 * Finds the command that a command line means. Flags alone mean `serve`.
 * @param {string[]} args
 * @returns {{command: Command, rest: string[]} | {group: string, rest: string[]} | null} null: about halley as a whole
 * @throws {UsageError}
 */
function findCommand(args) {
  if (args.length > 0 && ['-h', '--help', '-V', '--version'].includes(args[0])) return null
  if (args.length === 0 || args[0].startsWith('-')) return { command: serve, rest: args }
  if (args[0] === 'help') return findCommand([...args.slice(1), '--help'])
  const [first, second] = args
  const single = COMMANDS.find(({ name }) => name === first)
  if (single !== undefined) return { command: single, rest: args.slice(1) }
  if (inGroup(first).length === 0) {
    const words = [...new Set(COMMANDS.map(({ name }) => name.split(' ')[0])), 'help']
    throw new UsageError(`unknown command "${first}"; did you mean ${nearest(first, words)}?`)
  }
  if (second === undefined || second.startsWith('-')) return { group: first, rest: args.slice(1) }
  const command = COMMANDS.find(({ name }) => name === `${first} ${second}`)
  if (command === undefined) {
    const words = inGroup(first).map(({ name }) => name.split(' ')[1])
    throw new UsageError(
      `unknown command "${first} ${second}"; did you mean ${first} ${nearest(second, words)}?`,
    )
  }
  return { command, rest: args.slice(2) }
}

/**
 * @param {string[]} args
 * @param {Io} io
 * @returns {Promise<number | undefined>}
 */
async function dispatch(args, io) {
  const found = findCommand(args)
  const own = found !== null && 'command' in found ? found.command.flags : {}
  let flags
  try {
    flags = parseFlags(found === null ? args.slice(0, 1) : found.rest, own)
  } catch (error) {
    const name = found !== null && ('command' in found ? found.command.name : found.group)
    if (error instanceof UsageError && name) error.message = `${name}: ${error.message}`
    throw error
  }
  if (flags.version) {
    io.stdout(`halley ${packageVersion()}\n`)
    return 0
  }
  if (found !== null && 'command' in found) {
    if (!flags.help) return found.command.run(io, flags)
    io.stdout(found.command.help)
    return 0
  }
  if (found !== null && !flags.help) {
    const words = inGroup(found.group).map(({ name }) => name.split(' ')[1])
    throw new UsageError(`${found.group} needs one of the commands ${words.join(', ')}`)
  }
  io.stdout(found === null ? HELP : groupHelp(found.group))
  return 0
}

/**
 * Runs one command line.
 * @param {string[]} args behind the script's name
 * @param {Io} io
 * @returns {Promise<number | undefined>} exit code: 0, 1 for a fault (of the configuration, say), 2 for a command line
 *   that cannot be understood; undefined: the gateway runs
 */
export async function main(args, io) {
  try {
    return await dispatch(args, io)
  } catch (error) {
    if (error instanceof UsageError) {
      io.stderr(`halley: ${error.message} (see halley --help)\n`)
      return 2
    }
    if (error instanceof ConfigError) for (const fault of error.faults) io.stderr(`halley: ${fault}\n`)
    // What the system refuses (a port in use) needs no stack; a mistake of ours does.
    else io.stderr(`halley: ${typeof error?.code === 'string' ? error.message : (error?.stack ?? error)}\n`)
    return 1
  }
}
