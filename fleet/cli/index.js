import { fleetController } from './controller.js'
import { fleetRamp } from './ramp.js'
import { fleetReport } from './report.js'
import { fleetRestart } from './restart.js'
import { fleetRun } from './run.js'
import { fleetSet } from './set.js'
import { fleetStart } from './start.js'
import { fleetStatus } from './status.js'
import { fleetStop } from './stop.js'

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
