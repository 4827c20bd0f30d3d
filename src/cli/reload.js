import { COMMAND } from '../base/version.js'
import { commandGateway } from './local-gateway.js'

/** @import { Command } from './command.js' */

/** @type {Command} */
export const reload = {
  name: 'reload',
  summary: 'make a running gateway read its configuration again',
  help: `Usage: ${COMMAND} reload [SOCKET | PORT]

Makes a gateway on this machine read its configuration again, as SIGHUP does: file, variables and flags of its start.
A fault is printed, and nothing changes. docs/config.md says for each key what another value takes: live ones are in
force in all workers when the command ends; others start a rolling restart, or take a new start.

Without an argument it finds the gateway. SOCKET is the path of its stats socket, PORT its port.

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
