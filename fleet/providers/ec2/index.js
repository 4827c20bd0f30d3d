// Drones on Amazon EC2. The SDK is loaded by what asks EC2 something, not by who imports this.

import { packDrone } from '../../pack.js'
import { find, restart, stop } from './instances.js'
import { launch } from './launch.js'
import { FLAGS, HELP } from './options.js'
import { plan } from './plan.js'

/**
 * @param {() => Promise<string>} pack makes the one file that instances run
 * @returns {import('../contract.js').Provider}
 */
export const createEc2 = pack => ({
  name: 'ec2',
  help: HELP,
  flags: FLAGS,
  plan: options => plan(options, pack),
  launch,
  find,
  stop,
  restart: (handle, options) => restart(handle, options, pack),
})

export const ec2 = Object.freeze(createEc2(packDrone))
