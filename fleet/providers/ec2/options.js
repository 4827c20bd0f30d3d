import { isIP } from 'node:net'
import { ProviderError } from '../contract.js'
import { PRICES_OF } from './price.js'

/** @import { Flag } from '../../../src/cli/args.js' */
/** @import { LaunchConfig } from '../../schema.js' */

/** @type {Record<string, Flag>} */
export const FLAGS = Object.freeze({
  region: { type: 'string', multiple: true },
  'instance-type': { type: 'string' },
  spot: { type: 'boolean' },
  'max-price': { type: 'string' },
  price: { type: 'string' },
  image: { type: 'string' },
  'key-name': { type: 'string' },
  subnet: { type: 'string', multiple: true },
  'time-limit': { type: 'string' },
  controller: { type: 'string' },
  'node-version': { type: 'string' },
  'node-url': { type: 'string' },
  endpoint: { type: 'string' },
})

export const HELP = `      --region NAME          region; drones are distributed evenly over several (repeat it, or separate by commas).
                             Default: that of the AWS configuration
      --instance-type TYPE   default t3.small
      --spot                 use spot instances; --max-price DOLLARS limits the price of one per hour
      --time-limit TIME      instances terminate themselves after this time in any case (default 2h)
      --controller HOST:PORT public address of this machine, which drones dial (see --bind for the port). With --listen,
                             HOST: the only address that may dial the drones
      --image AMI            default: the newest Ubuntu LTS of the region
      --key-name NAME        SSH key of the account; port 22 is open only for --controller
      --subnet ID            one per region, in the order of --region; default: those of the default VPC
      --node-version N       Node.js version to install: 22, or 22.11.0 (default 22)
      --node-url URL         download site of Node.js (default https://nodejs.org/dist)
      --price DOLLARS        price of an instance per hour. Default: list prices of ${PRICES_OF}, or today's spot price
      --endpoint URL         address of the EC2 API (or AWS_ENDPOINT_URL_EC2)`

/** @typedef {ReturnType<typeof readOptions>} Options */

const LOCAL = /^(?:|localhost|127\..*|0\.0\.0\.0|::1?)$/
const PRIVATE =
  /^(?:10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|169\.254\.|f[cd])/

const UNITS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const LIMIT = { min: 5 * UNITS.m, max: 14 * UNITS.d }

/** @param {unknown} value @returns {string[]} */
const list = value =>
  [...new Set([value ?? []].flat().flatMap(text => String(text).split(',')))]
    .map(text => text.trim())
    .filter(Boolean)

/** @param {Record<string, any>} flags @param {string} name @returns {number | null} per hour */
function dollars(flags, name) {
  const text = flags[name]
  if (text === undefined) return null
  const value = Number(String(text).replace(/^\$/, ''))
  if (!(value > 0) || text === '')
    throw new ProviderError(`--${name} "${text}" is not a price in dollars per hour, like 0.0104`)
  return value
}

/** @param {string} text @returns {number} ms */
function duration(text) {
  const match = /^(\d+(?:\.\d+)?)([smhd])$/.exec(text)
  const value = match ? Number(match[1]) * UNITS[/** @type {keyof UNITS} */ (match[2])] : Number.NaN
  if (!(value >= LIMIT.min && value <= LIMIT.max))
    throw new ProviderError(`--time-limit "${text}" is not a time from 5m to 14d, like 90m or 2h`)
  return value
}

/** @param {string} text @returns {{host: string, port: number}} port 0: not given */
function hostPort(text) {
  const match = /^(?:\[([0-9a-f:.]+)\]|([^\s:/]+))(?::(\d{1,5}))?$/i.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3] ?? 0)
  if (!host || port > 65_535)
    throw new ProviderError(`--controller "${text}" is not an address like 203.0.113.7:7000`)
  return { host, port }
}

/** Flags of every command. @param {Record<string, any>} flags */
export function readPlace(flags) {
  const regions = list(flags.region)
  for (const region of regions)
    if (!/^[a-z]{2}(?:-[a-z]+)+-\d+$/.test(region))
      throw new ProviderError(`--region "${region}" is not a region like eu-west-1`)
  const endpoint = flags.endpoint
  if (endpoint !== undefined && !/^https?:$/.test(URL.canParse(endpoint) ? new URL(endpoint).protocol : ''))
    throw new ProviderError(`--endpoint "${endpoint}" is not a URL`)
  return { regions, endpoint }
}

/** @param {Record<string, any>} flags */
export function readOptions(flags) {
  const { regions } = readPlace(flags)
  const maxPrice = dollars(flags, 'max-price')
  if (maxPrice !== null && !flags.spot) throw new ProviderError('--max-price requires --spot')
  const subnets = list(flags.subnet)
  if (subnets.length > 0 && subnets.length !== Math.max(regions.length, 1))
    throw new ProviderError(
      `--subnet: ${subnets.length} for ${Math.max(regions.length, 1)} regions; each needs its own`,
    )
  const nodeVersion = String(flags['node-version'] ?? '22').replace(/^v/, '')
  if (!/^\d{2}(?:\.\d+\.\d+)?$/.test(nodeVersion) || Number.parseInt(nodeVersion, 10) < 20)
    throw new ProviderError(
      `--node-version "${flags['node-version']}" is not a version from 20, like 22 or 22.11.0`,
    )
  const nodeUrl = String(flags['node-url'] ?? 'https://nodejs.org/dist').replace(/\/+$/, '')
  if (!URL.canParse(nodeUrl)) throw new ProviderError(`--node-url "${nodeUrl}" is not a URL`)
  return {
    regions,
    instanceType: String(flags['instance-type'] ?? 't3.small'),
    spot: flags.spot === true,
    maxPrice,
    price: dollars(flags, 'price'),
    image: String(flags.image ?? ''),
    keyName: String(flags['key-name'] ?? ''),
    subnets,
    timeLimit: duration(flags['time-limit'] ?? '2h'),
    controller: flags.controller === undefined ? null : hostPort(flags.controller),
    nodeVersion,
    nodeUrl,
  }
}

/**
 * Addresses of drone and controller, for the drone's configuration.
 * @param {Options} options @param {LaunchConfig} config @throws {ProviderError}
 */
export function connectAddress({ controller }, config) {
  const port = Number(/:(\d+)$/.exec(config.listen ?? '')?.[1] ?? 0)
  if (port > 0) {
    if (controller === null)
      throw new ProviderError(
        '--listen on EC2 requires the only address that may dial the drones: --controller ADDRESS',
      )
    return { listen: `0.0.0.0:${port}` }
  }
  const own = config.controller ? hostPort(config.controller) : null
  const host = controller?.host ?? own?.host ?? ''
  const at = { host, port: controller?.port || own?.port || 0 }
  // With a private address, an instance would dial itself or another. A VPC address must be given explicitly.
  const unreachable = controller === null && PRIVATE.test(host)
  if (unreachable || LOCAL.test(host) || at.port === 0)
    throw new ProviderError(
      `drones on EC2 dial this machine${own ? `, and cannot reach ${own.host}` : ''}: pass its public address, --controller HOST:PORT (or --listen, and the controller dials them)`,
    )
  return { controller: `${isIP(host) === 6 ? `[${host}]` : host}:${at.port}` }
}
