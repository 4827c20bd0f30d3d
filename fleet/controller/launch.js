// Configurations of drones, and texts about them.

import { networkInterfaces } from 'node:os'

/** @import { LaunchConfig } from '../schema.js' */

/**
 * Given by the user: `flags` of the provider; `listen`: the drones listen, and the controller dials; `statusPort`:
 * host:port of the status port of the first drone of the launch.
 * @typedef {Pick<LaunchConfig, 'allow' | 'apiKey' | 'tokenSecret' | 'perProcess' | 'orphanAfter' | 'exitAfter'> &
 *   {flags?: Record<string, any>, listen?: boolean, statusPort?: string}} LaunchOptions
 */

/** Default address of a listening drone; a provider may have its own. */
const LISTEN = '0.0.0.0:7410'

/** @param {string} place host:port @param {number} further ports above it @throws {Error} one line: no such port */
function statusPlace(place, further) {
  const colon = place.lastIndexOf(':')
  const port = Number(place.slice(colon + 1)) + further
  if (port > 65_535)
    throw new Error(
      `--status-port ${place}: drone ${further + 1} would have port ${port}; the maximum is 65535`,
    )
  return `${place.slice(0, colon)}:${port}`
}

/**
 * @param {object} options
 * @param {{run: string, secret: string, next: number, controller: string}} options.run `next`: number of the first drone
 * @param {number} options.count @param {import('../providers/contract.js').Provider} options.provider
 * @param {LaunchOptions} options.launch
 * @returns {Promise<LaunchConfig[]>} one for each drone @throws {Error} one line
 */
export async function launchConfigs({ run, count, provider, launch }) {
  const { allow, apiKey, tokenSecret, perProcess, orphanAfter, exitAfter, listen, statusPort } = launch
  const given = Object.entries({ apiKey, tokenSecret, perProcess, orphanAfter, exitAfter })
  const addresses = listen ? await provider.listen?.(count) : undefined
  return Array.from({ length: count }, (_, i) => ({
    id: `d${run.next + i}`,
    run: run.run,
    secret: run.secret,
    ...(listen ? { listen: addresses?.[i] ?? LISTEN } : { controller: run.controller }),
    ...(statusPort ? { status: statusPlace(statusPort, provider.sharedHost ? i : 0) } : {}),
    allow,
    ...Object.fromEntries(given.filter(([, value]) => value !== undefined && value !== '')),
  }))
}

/** @param {string} host the controller's listen address @returns {string} host that drones dial */
export function hostForDrones(host) {
  if (host !== '0.0.0.0' && host !== '::' && host !== '') return host
  const addresses = Object.values(networkInterfaces()).flatMap(list => list ?? [])
  return addresses.find(({ family, internal }) => family === 'IPv4' && !internal)?.address ?? '127.0.0.1'
}

/** @param {string[]} urls @returns {string[]} `host:port` of each, for the allow list of the drones */
export const allowedTargets = urls =>
  urls.map(text => {
    const { hostname, port, protocol } = new URL(text)
    return `${hostname}:${port || (/^(?:https|wss):$/.test(protocol) ? 443 : 80)}`
  })

/** @param {string[]} ids @returns {string} `d1, d2 and 8 more` */
export function listIds(ids) {
  const shown = ids.slice(0, 5)
  const more = ids.length - shown.length
  return more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ')
}

/** @typedef {{up: string[], missing: {id: string, why: string}[]}} LaunchOutcome `up`: ids of drones that have reported */

/** @param {LaunchOutcome['missing']} missing @returns {string} one line with their ids */
export function missingText(missing) {
  /** @type {Map<string, string[]>} */
  const reasons = new Map()
  for (const { id, why } of missing) reasons.set(why, [...(reasons.get(why) ?? []), id])
  return [...reasons].map(([why, ids]) => `${listIds(ids)} did not report (${why})`).join('; ')
}
