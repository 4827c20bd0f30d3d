// The command line of `halley`: main.js finds the command, args.js reads its flags, each command has a file.
// It imports everything below it; only bin/ imports it, and adds the commands of the dashboard and the fleet, which use
// args.js and command.js.
// It promises: a command gets environment, folder and output in its Io and returns an exit code; nothing exits here.
// A wrong command line is one line on standard error and code 2; an unusable configuration is one line for each fault.
// A new command is one file with a `Command` and a row in commands.js.

import { escapeControls } from '../base/terminal-text.js'
import { COMMAND, packageVersion } from '../base/version.js'
import { ConfigError } from '../config/load.js'
import { didYouMean } from '../config/nearest.js'
import { parseFlags, UsageError } from './args.js'
import { serve } from './serve.js'

/** @import { Command, Io } from './command.js' */

/** Of `halley` as a whole. */
const WHOLE = ['-h', '--help', '-V', '--version']

/**
 * A command, or a group of commands, of a program beside the gateway.
 * @typedef {object} Extension
 * @property {string} name its first word
 * @property {string} summary one line
 * @property {readonly string[]} [examples] of a group
 * @property {() => Promise<readonly Command[]>} load on use: a gateway needs none of them
 */

/**
 * All but `serve` are loaded on use: a gateway needs neither them nor what they import.
 * @param {string[]} words
 * @param {readonly Extension[]} extensions
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

/** @param {readonly Command[]} commands @param {readonly Extension[]} extensions */
const help = (commands, extensions) => `Usage: ${COMMAND} [command] [flags]

A Comet/WebSocket gateway: it speaks the Centrifuge protocol to clients and the Centrifugo HTTP API to backends.

Commands:
${list([...commands.slice(0, 1), ...extensions, ...commands.slice(1)])}

Flags:
  -h, --help        print this text, or the help of a command
  -V, --version     print the version

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

Flags:
  -h, --help        print this text, or the help of a command
  -V, --version     print the version

Examples:
${examplesOf(commands, group, extensions)
  .map(example => `  ${COMMAND} ${example}`)
  .join('\n')}
`

/**
 * Finds the command. Flags alone mean `serve`.
 * @param {readonly Command[]} commands @param {string[]} args @param {readonly Extension[]} extensions
 * @returns {{command: Command, rest: string[]} | {group: string, rest: string[]} | null} null: halley as a whole
 * @throws {UsageError}
 */
function findCommand(commands, args, extensions) {
  if (args.length > 0 && WHOLE.includes(args[0])) return null
  if (args.length === 0 || args[0].startsWith('-')) return { command: serve, rest: args }
  const [first, second] = args
  const single = commands.find(({ name }) => name === first)
  if (single !== undefined) return { command: single, rest: args.slice(1) }
  if (inGroup(commands, first).length === 0) {
    const words = [...new Set([...commands, ...extensions].map(({ name }) => name.split(' ')[0])), 'help']
    throw new UsageError(`unknown command "${first}"${didYouMean(first, words)} (see ${COMMAND} --help)`)
  }
  if (second === undefined || second.startsWith('-')) return { group: first, rest: args.slice(1) }
  const command = commands.find(({ name }) => name === `${first} ${second}`)
  if (command === undefined) {
    const words = inGroup(commands, first).map(({ name }) => name.split(' ')[1])
    throw new UsageError(
      `unknown command "${first} ${second}"${didYouMean(second, words, `${first} `)} (see ${COMMAND} ${first} --help)`,
    )
  }
  return { command, rest: args.slice(2) }
}

/**
 * @param {string[]} args @param {Io} io @param {readonly Extension[]} extensions
 * @returns {Promise<number | undefined>}
 * @throws {UsageError} naming the command
 */
async function dispatch(args, io, extensions) {
  const words = args[0] === 'help' ? [...args.slice(1), '--help'] : args
  const commands = await commandsFor(words, extensions)
  const found = findCommand(commands, words, extensions)
  const command = found !== null && 'command' in found ? found.command : null
  const group = found !== null && 'group' in found ? found.group : ''
  try {
    const flags = parseFlags(
      found === null ? words.slice(0, 1) : found.rest,
      command?.flags ?? {},
      command?.words,
    )
    if (flags.version) io.stdout(`halley ${packageVersion()}\n`)
    else if (flags.help)
      io.stdout(
        command?.help ?? (group === '' ? help(commands, extensions) : groupHelp(commands, group, extensions)),
      )
    else if (command !== null) return await command.run(io, flags)
    else {
      const needed = inGroup(commands, group).map(({ name }) => name.split(' ')[1])
      throw new UsageError(`no command given; use one of ${needed.join(', ')}`)
    }
    return 0
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    const name = command?.name ?? group
    throw new UsageError(`${name}: ${error.message} (see ${COMMAND} ${name} --help)`)
  }
}

/**
 * Runs one command line.
 * @param {string[]} args after the script's name @param {Io} io
 * @param {readonly Extension[]} [extensions] commands of programs beside the gateway
 * @returns {Promise<number | undefined>} exit code: 0, 1 for a fault (of the configuration, say), 2 for an invalid
 *   command line; undefined: the gateway runs
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
    // Plain errors (a port in use) need no stack; a bug of ours does.
    else print(`halley: ${error?.constructor === Error ? error.message : (error?.stack ?? error)}\n`)
    return 1
  }
}
