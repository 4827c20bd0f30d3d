import { COMMAND } from '../base/version.js'
import { commandGateway } from './local-gateway.js'

/** @import { Command } from './command.js' */

/** @type {Command} */
export const reload = {
  name: 'reload',
  summary: 'reload the configuration of a running gateway',
  help: `Usage: ${COMMAND} reload [SOCKET | PORT]

Makes a gateway on this machine reread its configuration, as SIGHUP does: the file, variables and flags of its start.
Prints the error and changes nothing if the configuration is invalid. docs/config.md shows how each key is applied:
live keys are applied in all workers when the command ends; others start a rolling restart, or require a restart.

SOCKET is the path of the gateway's stats socket, PORT its port. Neither is required if one gateway is running.

  -h, --help             print this text
  -V, --version          print the version

Examples:
  ${COMMAND} reload
  ${COMMAND} reload 8000
`,
  flags: {},
  words: 1,

  run: (io, flags) =>
    commandGateway(io, 'reload', flags.words[0], { type: 'reload' }, 'configuration reloaded'),
}
