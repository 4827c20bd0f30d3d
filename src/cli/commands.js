// In the order of `halley --help`.

import { configCheck, configDefaults, configDoc } from './config.js'
import { configInit } from './config-init.js'
import { doctor } from './doctor.js'
import { reload } from './reload.js'
import { report } from './report.js'
import { restart } from './restart.js'
import { serve } from './serve.js'
import { subtoken, token } from './token.js'

/** @import { Command } from './command.js' */

/** @type {readonly Command[]} */
export const COMMANDS = Object.freeze([
  serve,
  reload,
  restart,
  report,
  doctor,
  token,
  subtoken,
  configInit,
  configCheck,
  configDefaults,
  configDoc,
])
