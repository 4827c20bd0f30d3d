// The command line of `halley`. Only bin/ imports it, adding the commands of the dashboard and the fleet.
// A command gets environment, folder and output in its Io and returns an exit code; nothing exits here. An invalid
// command line prints one line to standard error (code 2); an invalid configuration, one line per fault.
// A new command is a file with a `Command` and a row in commands.js.

import { escapeControls } from '../base/terminal-text.js'
import { COMMAND, packageVersion } from '../base/version.js'
import { ConfigError } from '../config/load.js'
import { didYouMean } from '../config/nearest.js'
import { parseFlags, UsageError } from './args.js'
import { serve } from './serve.js'

/** @import { Command, Io } from './command.js' */

const WHOLE = ['-h', '--help', '-V', '--version']

/**
 * Commands of another program.
 * @typedef {object} Extension
 * @property {string} name its first word
 * @property {string} summary one line
 * @property {readonly string[]} [examples] of a group
 * @property {() => Promise<readonly Command[]>} load
 */

/**
 * Loads all but `serve` on demand: a gateway needs no others.
 * @param {string[]} words @param {readonly Extension[]} extensions
 */
async function commandsFor([first = 'serve'], extensions) {
  if (first === 'serve' || (first.startsWith('-') && !WHOLE.includes(first))) return [serve]
  const extension = extensions.find(({ name }) => name === first)
  return extension === undefined ? (await import('./commands.js')).COMMANDS : extension.load()
}

/** @param {readonly {name: string, summary: string}[]} commands */
const list = commands => commands.map(({ name, summary }) => `  ${name.padEnd(18)}${summary}`).join('\n')

/** @param {readonly Command[]} commands @param {string} group */
const inGroup = (commands, group) => commands.filter(({ name }) => name.startsWith(`${group} `))

const FLAGS = `Flags:
  -h, --help        print this text, or the help of a command
  -V, --version     print the version`

/** @param {readonly Command[]} commands @param {readonly Extension[]} extensions */
const help = (commands, extensions) => `Usage: ${COMMAND} [command] [flags]

Comet and WebSocket gateway: Centrifuge protocol for clients, Centrifugo-compatible HTTP API for backends.

Commands:
${list([...commands.slice(0, 1), ...extensions, ...commands.slice(1)])}

${FLAGS}

Examples:
  ${COMMAND}                             run the gateway on 127.0.0.1:8000
  ${COMMAND} serve -c config.yaml        run it with a configuration
  ${COMMAND} token -c config.yaml -u 42  make a token for user 42
  ${COMMAND} serve --help                print the flags of a command
`

/** @param {readonly Command[]} commands @param {string} group @param {readonly Extension[]} extensions */
const examplesOf = (commands, group, extensions) =>
  extensions.find(({ name }) => name === group)?.examples ?? inGroup(commands, group).map(({ name }) => name)

/** @param {readonly Command[]} commands @param {string} group @param {readonly Extension[]} extensions */
const groupHelp = (commands, group, extensions) => `Usage: ${COMMAND} ${group} COMMAND [flags]

Commands:
${list(inGroup(commands, group))}

${FLAGS}

Examples:
${examplesOf(commands, group, extensions)
  .map(example => `  ${COMMAND} ${example}`)
  .join('\n')}
`

/**
 * Flags alone mean `serve`.
 * @param {readonly Command[]} commands @param {string[]} args @param {readonly Extension[]} extensions
 * @returns {{command?: Command, group: string, rest: string[]}} neither: halley itself
 * @throws {UsageError}
 */
function findCommand(commands, args, extensions) {
  const [first = '', second] = args
  if (WHOLE.includes(first)) return { group: '', rest: [first] }
  if (first === '' || first.startsWith('-')) return { command: serve, group: '', rest: args }
  const single = commands.find(({ name }) => name === first)
  if (single !== undefined) return { command: single, group: '', rest: args.slice(1) }
  const members = inGroup(commands, first)
  if (members.length === 0) {
    const words = [...new Set([...commands, ...extensions].map(({ name }) => name.split(' ')[0])), 'help']
    throw new UsageError(`unknown command "${first}"${didYouMean(first, words)} (see ${COMMAND} --help)`)
  }
  if (second === undefined || second.startsWith('-')) return { group: first, rest: args.slice(1) }
  const command = members.find(({ name }) => name === `${first} ${second}`)
  if (command !== undefined) return { command, group: first, rest: args.slice(2) }
  const meant = didYouMean(second, wordsOf(members), `${first} `)
  throw new UsageError(`unknown command "${first} ${second}"${meant} (see ${COMMAND} ${first} --help)`)
}

/** @param {readonly Command[]} members of a group */
const wordsOf = members => members.map(({ name }) => name.split(' ')[1])

/**
 * @param {string[]} args @param {Io} io @param {readonly Extension[]} extensions
 * @throws {UsageError} naming the command
 */
async function dispatch(args, io, extensions) {
  const words = args[0] === 'help' ? [...args.slice(1), '--help'] : args
  const commands = await commandsFor(words, extensions)
  const { command, group, rest } = findCommand(commands, words, extensions)
  try {
    const flags = parseFlags(rest, command?.flags ?? {}, command?.words)
    if (flags.version) io.stdout(`halley ${packageVersion()}\n`)
    else if (flags.help) {
      const text = group === '' ? help(commands, extensions) : groupHelp(commands, group, extensions)
      io.stdout(command?.help ?? text)
    } else if (command !== undefined) return await command.run(io, flags)
    else {
      const needed = wordsOf(inGroup(commands, group)).join(', ')
      throw new UsageError(`no command given; use one of ${needed}`)
    }
    return 0
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    const name = command?.name ?? group
    throw new UsageError(`${name}: ${error.message} (see ${COMMAND} ${name} --help)`)
  }
}

/**
 * @param {string[]} args after the script's name @param {Io} io @param {readonly Extension[]} [extensions]
 * @returns {Promise<number | undefined>} exit code: 0, 1 for a fault, 2 for an invalid command line; undefined: running
 */
export async function main(args, io, extensions = []) {
  const { stdout, stderr, terminal } = io
  const print = (/** @type {string} */ text) => stderr(escapeControls(text))
  try {
    const own = {
      ...io,
      stdout: (/** @type {string} */ text) => stdout(terminal ? escapeControls(text) : text),
      stderr: print,
      raw: { stdout, stderr },
    }
    return await dispatch(args, own, extensions)
  } catch (error) {
    if (error instanceof UsageError) {
      print(`halley: ${error.message}\n`)
      return 2
    }
    if (error instanceof ConfigError) for (const fault of error.faults) print(`halley: ${fault}\n`)
    // Plain errors (port in use) need no stack.
    else print(`halley: ${error?.constructor === Error ? error.message : (error?.stack ?? error)}\n`)
    return 1
  }
}
