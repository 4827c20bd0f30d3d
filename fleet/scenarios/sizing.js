// The size of a run on the planning machine.

import { count } from '../../src/base/format.js'

/** @import { GatewayPlan, PlanOptions } from './contract.js' */

/** @typedef {Pick<PlanOptions, 'cores' | 'files'>} Machine */

/** Workers have other open files, and connections are distributed unevenly. */
const FILES_SHARE = 0.85
/** Connections per drone on a separate machine, as in the published run of a million. */
const PER_MACHINE = 25_000
/** Connections per drone on this machine: few drones, so that few processes open connections concurrently. */
const PER_LOCAL_DRONE = 500_000
/** Connections opened per second by a core that drones and gateway share. */
const OPENED_PER_CORE = 1000
/** Connections from one source address with ports chosen by the kernel. */
const PER_DEFAULT_ADDRESS = 20_000
/**
 * The kernel's search for a free port slows down: 100,000 connections from six addresses took four minutes to open;
 * from ports in sequence 50 s, at the requested rate.
 */
export const SOURCE_PORTS = '20000-65000'
const PER_ADDRESS = 40_000
const MAX_ADDRESSES = 250

/** @param {number} full @param {number} scale @param {number} [min] @returns {number} a whole number */
export const scaled = (full, scale, min = 1) => Math.max(min, Math.round(full * scale))

/** One per core, more if the open-files limit requires it. @param {number} connections @param {Machine} machine */
export const workersFor = (connections, { cores, files }) =>
  Math.max(cores, Math.ceil(connections / Math.max(1, files * FILES_SHARE)))

/** @param {number} connections @param {Pick<PlanOptions, 'local'>} where */
export const dronesFor = (connections, { local }) =>
  Math.max(1, Math.ceil(connections / (local ? PER_LOCAL_DRONE : PER_MACHINE)))

/** At most the rate of this machine. @param {number} published @param {Pick<PlanOptions, 'cores' | 'local'>} machine */
export const openingRate = (published, { cores, local }) =>
  local ? Math.min(published, cores * OPENED_PER_CORE) : published

/** @param {number} connections @returns {string[]} source addresses on loopback; empty: the default is enough */
export function loopbackAddresses(connections) {
  if (connections <= PER_DEFAULT_ADDRESS) return []
  return [`127.0.1.1-127.0.1.${Math.min(MAX_ADDRESSES, Math.ceil(connections / PER_ADDRESS) + 1)}`]
}

/**
 * A gateway with anonymous clients that may subscribe to all channels.
 * @param {number} connections @param {PlanOptions} options
 * @param {object} [config] sections of a configuration file @param {object} [channels] options without a namespace
 */
export function gatewayFor(connections, options, config = {}, channels = {}) {
  const { client, ...rest } = /** @type {any} */ (config)
  return {
    workers: workersFor(connections, options),
    redis: options.redis === true,
    config: {
      ...rest,
      client: { allow_anonymous_connect_without_token: true, connect_include_server_time: true, ...client },
      channel: { ...rest.channel, without_namespace: { ...OPEN, ...channels } },
    },
  }
}

export const OPEN = Object.freeze({ allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true })

/** @param {number} connections @returns {string} `1,000 connections` */
export const connectionsText = connections =>
  `${count(connections)} ${connections === 1 ? 'connection' : 'connections'}`

/** Differences of every run. @param {PlanOptions} options @returns {string[]} sentences */
export function commonDifferences({ scale, cores, local, target }) {
  const sentences = []
  if (scale !== 1) sentences.push(`This run has ${shareText(scale)} of the published connections.`)
  if (local) {
    const where = target ? 'The drones ran on this machine' : 'Gateway and drones shared this machine'
    sentences.push(
      `${where} (${cores} ${cores === 1 ? 'core' : 'cores'}): the drones took CPU time from the gateway.`,
    )
    if (!target)
      sentences.push(
        'All traffic went over loopback: no network card, no driver, no packet loss, almost no network delay.',
      )
  }
  return sentences
}

/** @param {number} scale @returns {string} `10 %`, `0.03 %` */
const shareText = scale => `${Number((scale * 100).toPrecision(3))}\u202f%`
