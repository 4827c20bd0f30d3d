// The size of a run on the machine that it is planned on.

import { count } from '../../src/base/format.js'

/** @typedef {import('./contract.js').PlanOptions} PlanOptions */
/** @typedef {import('./contract.js').GatewayPlan} GatewayPlan */

/** Workers have other open files too, and connections are distributed unevenly. */
const FILES_SHARE = 0.85
/** Connections of one drone on a machine of its own, as in the published run of a million. */
const PER_MACHINE = 25_000
/** Connections of one drone on this machine: few drones, so that few processes open connections at the same time. */
const PER_LOCAL_DRONE = 500_000
/** Connections that a core opens per second when drones and gateway share it. */
const OPENED_PER_CORE = 1000
/** Connections from one source address with ports of the kernel's choice. */
const PER_DEFAULT_ADDRESS = 20_000
/**
 * Ports that are named. The kernel looks for a free one longer and longer: 100,000 connections from six addresses took
 * four minutes to open, three of them its own; from ports in sequence it was 50 s, the rate that was asked for.
 */
export const SOURCE_PORTS = '20000-65000'
const PER_ADDRESS = 40_000
/** Source addresses on loopback beside 127.0.0.1. */
const MOST_ADDRESSES = 250

/** @param {number} full @param {number} scale @param {number} [least] @returns {number} a whole number */
export const scaled = (full, scale, least = 1) => Math.max(least, Math.round(full * scale))

/**
 * @param {number} connections @param {Pick<PlanOptions, 'cores' | 'files'>} machine
 * @returns {number} workers of a gateway: one per core, more where the open-files limit of a process requires it
 */
export const workersFor = (connections, { cores, files }) =>
  Math.max(cores, Math.ceil(connections / Math.max(1, files * FILES_SHARE)))

/** @param {number} connections @param {Pick<PlanOptions, 'local'>} where */
export const dronesFor = (connections, { local }) =>
  Math.max(1, Math.ceil(connections / (local ? PER_LOCAL_DRONE : PER_MACHINE)))

/**
 * @param {number} published connections per second @param {Pick<PlanOptions, 'cores' | 'local'>} machine
 * @returns {number} the same, or what this machine can open beside the load itself
 */
export const openingRate = (published, { cores, local }) =>
  local ? Math.min(published, cores * OPENED_PER_CORE) : published

/** @param {number} connections @returns {string[]} source addresses on loopback; empty: the default one is enough */
export function loopbackAddresses(connections) {
  if (connections <= PER_DEFAULT_ADDRESS) return []
  return [`127.0.1.1-127.0.1.${Math.min(MOST_ADDRESSES, Math.ceil(connections / PER_ADDRESS) + 1)}`]
}

/**
 * Plans a gateway with anonymous clients that may subscribe to all channels.
 * @param {number} connections @param {PlanOptions} options
 * @param {object} [config] sections of a configuration file @param {object} [channels] options without a namespace
 * @returns {GatewayPlan}
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

/** Options of channels with open access. */
export const OPEN = Object.freeze({ allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true })

/** @param {number} connections @returns {string} `1,000 connections` */
export const connectionsText = connections =>
  `${count(connections)} ${connections === 1 ? 'connection' : 'connections'}`

/** Differences of every run. @param {PlanOptions} options @returns {string[]} sentences */
export function commonDifferences({ scale, cores, local, target }) {
  const sentences = []
  if (scale !== 1) sentences.push(`This run has ${shareText(scale)} of the published connections.`)
  if (local) {
    const whom = target ? 'The drones ran on this machine' : 'Gateway and drones shared this machine'
    sentences.push(
      `${whom} (${cores} ${cores === 1 ? 'core' : 'cores'}): what the drones take is missing to the rest.`,
    )
    if (!target)
      sentences.push(
        'All traffic went over loopback: no network card, no driver, no packet loss, and next to no delay on the way.',
      )
  }
  return sentences
}

/** @param {number} scale @returns {string} `10 %`, `0.03 %` */
const shareText = scale => `${Number((scale * 100).toPrecision(3))}\u202f%`
