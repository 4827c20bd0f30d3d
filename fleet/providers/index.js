// Where drones are launched: processes of this machine (local.js), or instances of Amazon EC2 (ec2/). contract.js is
// the contract of a provider; a row below adds one, in the order of the help. Providers import src/doctor,
// fleet/program.js and their own SDK, nothing of the controller. An unused provider loads no SDK.

import { FLAGS as EC2_FLAGS, HELP as EC2_HELP } from './ec2/options.js'
import { local } from './local.js'

/** @typedef {import('./contract.js').Provider} Provider */

/**
 * @typedef {object} ProviderEntry
 * @property {Provider['flags']} flags
 * @property {string} help
 * @property {() => Promise<Provider>} load
 */

/** @type {Readonly<Record<string, ProviderEntry>>} */
export const PROVIDERS = Object.freeze({
  local: { flags: local.flags, help: local.help, load: async () => local },
  ec2: {
    flags: EC2_FLAGS,
    help: EC2_HELP,
    // Its drones are on other machines.
    load: async () => ({ bind: '0.0.0.0', ...(await import('./ec2/index.js')).ec2 }),
  },
})
