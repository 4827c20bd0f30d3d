// Event proxies, loaded when a configuration has one for the first time: most workers never need them.

import { NO_HANDLERS } from '../../clients/hooks/contract.js'

/** @import { Handlers } from '../../clients/hooks/contract.js' */
/** @import { Parts } from './proxies.js' */

/** @type {typeof import('./proxies.js') | null} */
let proxies = null

/**
 * Must have ended before `createProxies` is called for this configuration.
 * @param {any} config
 * @returns {Promise<void>}
 */
export async function loadProxies({ client, channel, rpc, proxies: named }) {
  const blocks = [...Object.values(client.proxy), ...Object.values(channel.proxy), rpc.proxy, ...named]
  if (proxies === null && blocks.some(({ endpoint }) => endpoint !== ''))
    proxies = await import('./proxies.js')
}

/**
 * @param {any} config @param {Parts} parts
 * @returns {Handlers} those of all proxies that it uses
 * @throws {Error} naming a key
 */
export const createProxies = (config, parts) => proxies?.createProxies(config, parts) ?? NO_HANDLERS
