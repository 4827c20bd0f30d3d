// The launch of drones: their configurations, and the wait until all have reported.

import { networkInterfaces } from 'node:os'

/** @typedef {import('../schema.js').LaunchConfig} LaunchConfig */

/**
 * @typedef {object} LaunchOptions given by the user
 * @property {Record<string, any>} [flags] of the provider
 * @property {string[]} allow targets: `host:port` or `host`
 * @property {string} [apiKey]
 * @property {string} [tokenSecret]
 * @property {number} [perProcess]
 * @property {number} [orphanAfter] s
 * @property {number} [exitAfter] s
 * @property {boolean} [listen] the drones listen, and the controller dials
 */

/** Default address of a listening drone; a provider may have its own. */
const LISTEN = '0.0.0.0:7410'

/**
 * @param {object} options
 * @param {{run: string, secret: string, next: number, controller: string}} options.run `next`: number of the first
 *   drone
 * @param {number} options.count @param {import('../providers/contract.js').Provider} options.provider
 * @param {LaunchOptions} options.launch
 * @returns {Promise<LaunchConfig[]>} one for each drone
 */
export async function launchConfigs({ run, count, provider, launch }) {
  const { allow, apiKey, tokenSecret, perProcess, orphanAfter, exitAfter, listen } = launch
  const addresses = listen ? await provider.listen?.(count) : undefined
  return Array.from({ length: count }, (_, i) => {
    /** @type {LaunchConfig} */
    const config = {
      id: `d${run.next + i}`,
      run: run.run,
      secret: run.secret,
      ...(listen ? { listen: addresses?.[i] ?? LISTEN } : { controller: run.controller }),
      allow,
    }
    if (apiKey) config.apiKey = apiKey
    if (tokenSecret) config.tokenSecret = tokenSecret
    if (perProcess !== undefined) config.perProcess = perProcess
    if (orphanAfter !== undefined) config.orphanAfter = orphanAfter
    if (exitAfter !== undefined) config.exitAfter = exitAfter
    return config
  })
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

/** Interval of checks for drones that ended before they reported, ms. */
const CHECK_INTERVAL = 1000

/**
 * @typedef {object} LaunchOutcome
 * @property {string[]} up ids of the drones that have reported
 * @property {{id: string, why: string}[]} missing
 */

/**
 * @param {object} options @param {import('./drone.js').Drone[]} options.drones
 * @param {number} options.timeout ms
 * @param {AbortSignal} options.signal @param {(text: string) => void} options.onProgress
 * @param {(fn: () => void) => () => void} options.onHello calls `fn` at each hello; returns the unsubscribe function
 * @param {(() => Promise<import('../schema.js').Handle[]>) | null} options.find lists the run's drones;
 *   null: do not check them
 * @returns {Promise<LaunchOutcome>} when all have reported, after `timeout`, or when aborted
 */
export async function waitForDrones({ drones, timeout, signal, onProgress, onHello, find }) {
  const began = Date.now()
  /** @type {Map<string, string>} */
  const dead = new Map()
  let progress = -1
  // Ends the current wait.
  let wake = () => {}
  const unsubscribe = onHello(() => wake())
  const onAbort = () => wake()
  signal.addEventListener('abort', onAbort)
  let checkedAt = Date.now()
  try {
    for (;;) {
      const up = drones.filter(drone => drone.up)
      if (up.length !== progress) onProgress(`${up.length} of ${drones.length} drones report`)
      progress = up.length
      const over = Date.now() - began >= timeout || signal.aborted
      if (over || up.length + dead.size >= drones.length) break
      if (find !== null && Date.now() - checkedAt >= CHECK_INTERVAL) {
        checkedAt = Date.now()
        // A failed check says nothing about the drones.
        for (const { id, state, note } of await find().catch(() => []))
          if (state === 'gone' && drones.some(drone => drone.id === id && !drone.up))
            dead.set(id, `it ended${note ? `: ${note}` : ''}`)
        continue
      }
      await new Promise(resolve => {
        const timer = setTimeout(resolve, Math.min(CHECK_INTERVAL, Math.max(1, began + timeout - Date.now())))
        wake = () => {
          clearTimeout(timer)
          resolve(undefined)
        }
      })
    }
  } finally {
    unsubscribe()
    signal.removeEventListener('abort', onAbort)
  }
  const missing = drones.filter(drone => !drone.up)
  return {
    up: drones.filter(drone => drone.up).map(({ id }) => id),
    missing: missing.map(({ id }) => ({
      id,
      why: dead.get(id) ?? `it has not reported within ${Math.round(timeout / 1000)} s`,
    })),
  }
}

/** @param {LaunchOutcome['missing']} missing @returns {string} one line with their ids */
export function missingText(missing) {
  /** @type {Map<string, string[]>} */
  const reasons = new Map()
  for (const { id, why } of missing) reasons.set(why, [...(reasons.get(why) ?? []), id])
  return [...reasons].map(([why, ids]) => `${listIds(ids)} never reported (${why})`).join('; ')
}
