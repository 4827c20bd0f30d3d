// The whole command line: the gateway's commands, the dashboard and the fleet.

import { COMMAND } from '../src/base/version.js'
import { main as run } from '../src/cli/main.js'

/** @import { Io } from '../src/cli/command.js' */
/** @import { Extension } from '../src/cli/main.js' */

/** @type {readonly Extension[]} */
const EXTENSIONS = [
  {
    name: 'dashboard',
    summary: 'watch a running gateway',
    load: async () => [(await import('../dashboard/command.js')).dashboard],
  },
  {
    name: 'fleet',
    summary: `generate load with drones, locally or on EC2; repeat published runs (${COMMAND} fleet --help)`,
    examples: [
      'fleet run comet-million --scale 0.01',
      'fleet start 2 --host http://127.0.0.1:8000',
      'fleet ramp --to 10000 --over 30s',
      'fleet status',
      'fleet stop all',
    ],
    load: async () => (await import('../fleet/cli/index.js')).FLEET_COMMANDS,
  },
]

/** `main` of src/cli, with dashboard and fleet. @param {string[]} args after the script's name @param {Io} io */
export const main = (args, io) => run(args, io, EXTENSIONS)
