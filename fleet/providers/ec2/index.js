// Drones on Amazon EC2. The SDK is loaded by what asks EC2 something, not by who imports this.

import { find, restart, stop } from './instances.js'
import { launch } from './launch.js'
import { FLAGS, HELP } from './options.js'
import { plan } from './plan.js'

/** @type {import('../contract.js').Provider} */
export const ec2 = Object.freeze({ name: 'ec2', help: HELP, flags: FLAGS, plan, launch, find, stop, restart })
