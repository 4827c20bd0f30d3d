// Providers: drones as processes of this machine (local.js), or instances of Amazon EC2 (ec2/). contract.js defines
// a provider; a row below adds one, in the order of the help.
// May import: src/metrics/doctor, fleet/program.js, fleet/files.js and the provider's own SDK; nothing of the controller.
// Promises: an unused provider loads no SDK; everything launched ends by itself.

import { FLAGS as EC2_FLAGS, HELP as EC2_HELP } from './ec2/options.js'
import { local } from './local.js'

/** @import { Provider } from './contract.js' */

/** @type {Readonly<Record<string, Pick<Provider, 'flags' | 'help'> & {load: () => Promise<Provider>}>>} */
export const PROVIDERS = Object.freeze({
  local: { flags: local.flags, help: local.help, load: async () => local },
  ec2: {
    flags: EC2_FLAGS,
    help: EC2_HELP,
    // Its drones are on other machines.
    load: async () => ({ bind: '0.0.0.0', ...(await import('./ec2/index.js')).ec2 }),
  },
})
