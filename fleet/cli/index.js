// The commands of `halley fleet`: flags and texts. start.js, stop.js and run.js are one command each, control.js those
// for a running fleet. May import: controller/, runner/, providers/ and scenarios/, mostly on first use, so that
// `--help` is quick. Promises: an error is one line on stderr and exit status 1, a usage error 2; nothing that costs
// money starts unconfirmed.

import { fleetController, fleetRamp, fleetRestart, fleetSet, fleetStatus } from './control.js'
import { fleetReport } from './report.js'
import { fleetRun } from './run.js'
import { fleetStart } from './start.js'
import { fleetStop } from './stop.js'

// The AWS SDK would print a warning about future Node.js versions between other lines.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true'

/** @type {readonly import('../../src/cli/command.js').Command[]} */
export const FLEET_COMMANDS = Object.freeze([
  fleetStart,
  fleetSet,
  fleetRamp,
  fleetStatus,
  fleetRun,
  fleetReport,
  fleetRestart,
  fleetStop,
  fleetController,
])
