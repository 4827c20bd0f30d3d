import { fleetController, fleetRamp, fleetRestart, fleetSet, fleetStatus } from './control.js'
import { fleetReport } from './report.js'
import { fleetRun } from './run.js'
import { fleetStart } from './start.js'
import { fleetStop } from './stop.js'

// The AWS SDK tells people about versions of Node.js that it will want some day, in the middle of other lines.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true'

/** The commands of `halley fleet`. @type {readonly import('../../src/cli/command.js').Command[]} */
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
