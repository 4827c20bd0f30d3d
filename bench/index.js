// `npm run bench -- NAME`: `halley fleet run NAME`, with additional measurements for developers.
//
//   gateways.js   the same load on several gateways: gc, tls, batching, hooks ...; channels, ticks, watch
//   queues.js     consumers and republishers; poll.js, recovery.js: clients that drones lack
//
// This folder may import src/, fleet/, and the servers of the tests.

import { runCommand } from '../fleet/cli/run.js'
import { main } from '../src/cli/main.js'
import { GATEWAYS } from './gateways.js'
import { poll } from './poll.js'
import { QUEUES } from './queues.js'
import { recovery } from './recovery.js'

const MEASUREMENTS = [...GATEWAYS, poll, recovery, ...QUEUES]

const HELP = `Usage: npm run bench -- NAME [flags]

Runs a scenario, as \`halley fleet run NAME\` does (npm run bench -- --list), or a measurement of the developers:

${MEASUREMENTS.map(({ name, summary }) => `  ${name.padEnd(22)} ${summary}`).join('\n')}

All accept the flags of \`fleet run\` (npm run bench -- fan-100 --help); --set n=N is the number of clients.
`

const args = process.argv.slice(2)
if (args.length === 0 || /^--?h(?:elp)?$/.test(args[0])) process.stdout.write(HELP)
else {
  const io = {
    env: process.env,
    cwd: process.cwd(),
    stdout: (/** @type {string} */ text) => void process.stdout.write(text),
    stderr: (/** @type {string} */ text) => void process.stderr.write(text),
    terminal: process.stdout.isTTY === true,
  }
  const fleet = { name: 'fleet', summary: '', load: async () => [runCommand(MEASUREMENTS)] }
  process.exitCode = await main(['fleet', 'run', ...args], io, [fleet])
}
