import { COMMAND } from '../base/version.js'
import { UsageError } from './args.js'
import { commandGateway } from './local-gateway.js'

/** @import { Command } from './command.js' */

/** @type {Command} */
export const restart = {
  name: 'restart',
  summary: 'replace the workers of a running gateway, one after another',
  help: `Usage: ${COMMAND} restart [SOCKET | PORT] [flags]

Replaces all workers of a gateway on this machine, one after another, while it serves its clients: a new process
listens before the old one stops accepting and disconnects its clients over shutdown.drain. The log of the gateway shows
the progress. SIGUSR2 does the same.

SOCKET is the path of the gateway's stats socket, PORT its port. Neither is required if one gateway is running.

      --worker INDEX     replace only this worker
  -h, --help             print this text
  -V, --version          print the version

Examples:
  ${COMMAND} restart
  ${COMMAND} restart 8000 --worker 0
`,
  flags: { worker: { type: 'string' } },
  words: 1,

  run(io, { words: [target], worker: index }) {
    if (index !== undefined && !/^\d+$/.test(index))
      throw new UsageError('--worker must be the index of a worker, starting at 0')
    const worker = index === undefined ? null : Number(index)
    const done = worker === null ? 'replacing all workers, one after another' : `replacing worker ${worker}`
    return commandGateway(io, 'restart', target, { type: 'restart', worker }, done)
  },
}
