// The EC2 API of all regions. The SDK is large and is loaded with the first request.

import { setTimeout as sleep } from 'node:timers/promises'
import { nearest } from '../../../src/config/nearest.js'
import { ProviderError } from '../contract.js'

const PARALLEL = 8

/** Timeouts to connect, and of a reply, ms. By default the SDK only warns about lost packets. */
const TIMEOUTS = { connectionTimeout: 5000, requestTimeout: 30_000, throwOnRequestTimeout: true }

/** Attempts after the SDK's, and delay of the first, ms, doubling: RunInstances has 2 tokens/s. */
const RETRY = { attempts: 4, pause: 2000 }

const SDK = '@aws-sdk/client-ec2'

/** @throws {ProviderError} the optional peer dependency is missing */
const loadSdk = () =>
  import('@aws-sdk/client-ec2').catch(error => {
    if (error.code !== 'ERR_MODULE_NOT_FOUND' || !error.message.includes(`'${SDK}'`)) throw error
    throw new ProviderError(`drones on EC2 need the AWS SDK, which is not installed: npm install ${SDK}`)
  })

export class Ec2 {
  #sdk
  #endpoint
  /** @type {Map<string, import('@aws-sdk/client-ec2').EC2Client>} */
  #clients = new Map()

  /** @param {{endpoint?: string}} options for all regions @throws {ProviderError} no SDK, or no credentials */
  static async open({ endpoint }) {
    const ec2 = new Ec2(await loadSdk(), endpoint)
    try {
      await ec2.#client('us-east-1').config.credentials()
    } catch (error) {
      ec2.close()
      throw toEc2Error(error, '', 'credentials')
    }
    return ec2
  }

  /** @param {typeof import('@aws-sdk/client-ec2')} sdk @param {string} [endpoint] */
  constructor(sdk, endpoint) {
    this.#sdk = sdk
    this.#endpoint = endpoint
  }

  /** @param {string} region */
  #client(region) {
    let client = this.#clients.get(region)
    if (client === undefined) {
      client = new this.#sdk.EC2Client({
        region,
        endpoint: this.#endpoint,
        maxAttempts: 5,
        requestHandler: TIMEOUTS,
      })
      this.#clients.set(region, client)
    }
    return client
  }

  /**
   * @param {string} region @param {string} action `DescribeInstances` @param {Record<string, any>} [input]
   * @returns {Promise<any>} @throws {Ec2Error}
   */
  async send(region, action, input = {}) {
    const Command = /** @type {any} */ (this.#sdk)[`${action}Command`]
    for (let attempt = 1, pause = RETRY.pause; ; attempt++, pause *= 2) {
      try {
        return await this.#client(region).send(new Command(input))
      } catch (error) {
        const fault = toEc2Error(error, region, action)
        if (!THROTTLED.has(fault.code) || attempt === RETRY.attempts) throw fault
        await sleep(pause * (0.5 + Math.random()))
      }
    }
  }

  /**
   * Reads all pages; `list` is the name in the reply.
   * @param {string} region @param {string} action @param {string} list @param {Record<string, any>} input
   */
  async all(region, action, list, input) {
    const found = []
    let page = await this.send(region, action, input)
    found.push(...(page[list] ?? []))
    while (page.NextToken) {
      page = await this.send(region, action, { ...input, NextToken: page.NextToken })
      found.push(...(page[list] ?? []))
    }
    return found
  }

  /** @returns {Promise<string>} region of the AWS configuration; '': none */
  async #configured() {
    const client = new this.#sdk.EC2Client({ endpoint: this.#endpoint })
    try {
      return await client.config.region()
    } catch {
      return ''
    } finally {
      client.destroy()
    }
  }

  /** Checks that regions exist and are open to this account. @param {string[]} wanted none: the configured one */
  async regions(wanted) {
    const configured = await this.#configured()
    const chosen = wanted.length > 0 ? wanted : [configured]
    if (chosen[0] === '') throw new Ec2Error('no region: pass --region, or set AWS_REGION', 'NoRegion', '')
    const all = await this.#describe(partitionHome(chosen[0], configured), true)
    for (const region of chosen) {
      const found = all.find(({ name }) => name === region)
      const open = all.filter(one => one.open).map(({ name }) => name)
      if (found === undefined)
        throw new Ec2Error(
          `unknown region ${region}; similar: ${near(region, open).join(', ')}`,
          'NoSuchRegion',
          region,
        )
      if (!found.open)
        throw new Ec2Error(
          `this account has not opted in to region ${region}; similar regions that it can use: ${near(region, open).join(', ')}`,
          'OptInRequired',
          region,
        )
    }
    return chosen
  }

  /** @returns {Promise<string[]>} all regions open to this account */
  async openRegions() {
    const configured = await this.#configured()
    return (await this.#describe(partitionHome(configured, configured), false))
      .filter(({ open }) => open)
      .map(({ name }) => name)
  }

  /** @param {string} from @param {boolean} all @returns {Promise<{name: string, open: boolean}[]>} */
  async #describe(from, all) {
    const { Regions = [] } = await this.send(from, 'DescribeRegions', { AllRegions: all })
    return Regions.map((/** @type {any} */ { RegionName, OptInStatus }) => ({
      name: String(RegionName),
      open: OptInStatus !== 'not-opted-in',
    }))
  }

  close() {
    for (const client of this.#clients.values()) client.destroy()
    this.#clients.clear()
  }
}

/** China's and the government's regions are separate. @param {string} region @param {string} configured */
function partitionHome(region, configured) {
  if (region.startsWith('cn-')) return 'cn-north-1'
  if (region.startsWith('us-gov-')) return 'us-gov-west-1'
  return /^(?:$|cn-|us-gov-)/.test(configured) ? 'us-east-1' : configured
}

/** @param {string} region @param {string[]} open @returns {string[]} at most 6 */
function near(region, open) {
  const around = open.filter(name => name.split('-')[0] === region.split('-')[0])
  const best = nearest(region, open)
  const others = around.length > 0 ? around : open
  return [...new Set(best === '' ? others : [best, ...others])].slice(0, 6)
}

/** A few items at a time. @template T, R @param {T[]} items @param {(item: T) => Promise<R>} work */
export async function inParallel(items, work) {
  /** @type {PromiseSettledResult<R>[]} */
  const results = new Array(items.length)
  let next = 0
  const lane = async () => {
    while (next < items.length) {
      const index = next++
      try {
        results[index] = { status: 'fulfilled', value: await work(items[index]) }
      } catch (reason) {
        results[index] = { status: 'rejected', reason }
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(PARALLEL, items.length) }, lane))
  return results
}

/** @template T @param {PromiseSettledResult<T>[]} results @returns {T[]} @throws the first fault */
export function allOf(results) {
  return results.map(result => {
    if (result.status === 'rejected') throw result.reason
    return result.value
  })
}

/** A failed call to EC2; the message is one line. */
export class Ec2Error extends ProviderError {
  /** @param {string} message one line @param {string} code of EC2 or Node.js @param {string} region '': all */
  constructor(message, code, region) {
    super(message)
    this.code = code
    this.region = region
  }
}

const THROTTLED = new Set([
  'RequestLimitExceeded',
  'Throttling',
  'ThrottlingException',
  'RequestThrottled',
  'TooManyRequestsException',
])

const POLICY_DOCS = 'docs/fleet-ec2.md has the required policy'

/** By code; `detail` is EC2's own text. @type {Record<string, (detail: string, action: string) => string>} */
const MESSAGES = {
  CredentialsProviderError: detail =>
    `no AWS credentials (${detail}): set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or run "aws configure"`,
  ExpiredToken: () => 'the AWS credentials have expired: get new ones and try again',
  NotAccepted: detail => `the AWS credentials were not accepted (${detail})`,
  UnauthorizedOperation: (_, action) => `the AWS credentials do not allow ec2:${action}; ${POLICY_DOCS}`,
  OptInRequired: detail => `this account has not opted in to the region (${detail})`,
  RequestTimeTooSkewed: () => "this machine's clock is wrong: EC2 refuses signatures with a wrong time",
  InsufficientInstanceCapacity: () =>
    'EC2 has no free instances of this type here (InsufficientInstanceCapacity): try another type or region',
  UnfulfillableCapacity: () =>
    'EC2 has no free spot instances of this type here (UnfulfillableCapacity): try on-demand, or another type or region',
  VcpuLimitExceeded: () =>
    'the vCPU quota of this account is too low here (VcpuLimitExceeded): raise it under Service Quotas, or use more regions',
  InstanceLimitExceeded: () =>
    'the instance quota of this account is too low here (InstanceLimitExceeded): raise it under Service Quotas, or use more regions',
  MaxSpotInstanceCountExceeded: () =>
    'the spot quota of this account is too low here (MaxSpotInstanceCountExceeded): raise it under Service Quotas, or omit --spot',
  SpotMaxPriceTooLow: detail => `--max-price is below the spot price here (${detail})`,
  RequestLimitExceeded: () =>
    'too many EC2 requests by this account (RequestLimitExceeded): try again in a minute',
  'InvalidKeyPair.NotFound': detail => `--key-name: ${detail}`,
  'InvalidAMIID.NotFound': detail => `--image: ${detail}`,
  'InvalidAMIID.Malformed': detail => `--image: ${detail}`,
  'InvalidSubnetID.NotFound': detail => `--subnet: ${detail}`,
  'InvalidSubnet.Range': detail => `--subnet: ${detail}`,
  InvalidInstanceType: detail => `--instance-type: ${detail}`,
  VPCIdNotSpecified: () => 'this region has no default VPC: pass a subnet (--subnet)',
  ENOTFOUND: detail => `EC2 cannot be reached: ${detail}`,
  TimeoutError: () => 'EC2 cannot be reached: timed out',
}

/** Codes with the meaning of one of MESSAGES. @type {Record<string, string>} */
const SYNONYMS = {
  RequestExpired: 'ExpiredToken',
  ExpiredTokenException: 'ExpiredToken',
  TokenRefreshRequired: 'ExpiredToken',
  AuthFailure: 'NotAccepted',
  InvalidClientTokenId: 'NotAccepted',
  UnrecognizedClientException: 'NotAccepted',
  SignatureDoesNotMatch: 'NotAccepted',
  IncompleteSignature: 'NotAccepted',
  AccessDenied: 'UnauthorizedOperation',
  AccessDeniedException: 'UnauthorizedOperation',
  InsufficientHostCapacity: 'InsufficientInstanceCapacity',
  SpotInstanceCountLimitExceeded: 'MaxSpotInstanceCountExceeded',
  DefaultVpcDoesNotExist: 'VPCIdNotSpecified',
  EAI_AGAIN: 'ENOTFOUND',
  ECONNREFUSED: 'ENOTFOUND',
  ECONNRESET: 'ENOTFOUND',
  EHOSTUNREACH: 'ENOTFOUND',
  ENETUNREACH: 'ENOTFOUND',
  EPIPE: 'ENOTFOUND',
  ETIMEDOUT: 'TimeoutError',
}

const MAX_LENGTH = 300

/** @param {unknown} message @returns {string} one line without a full stop */
function oneLine(message) {
  const text = String(message).replace(/\s+/g, ' ').trim().replace(/\.$/, '')
  return text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)}...` : text
}

/** @param {any} error of the SDK @param {string} region @param {string} action `RunInstances` @returns {Ec2Error} */
function toEc2Error(error, region, action) {
  if (error instanceof Ec2Error) return error
  // A connection to several addresses fails with an AggregateError with an empty message.
  const detail = oneLine(error.message || error.errors?.[0]?.message || error.code || error.name)
  // The code of a response is in `Code` or `name`, the code of a network error in `code`.
  const code = String(
    error.Code ?? (error.$metadata?.httpStatusCode ? error.name : (error.code ?? error.name)),
  )
  const canonical = SYNONYMS[code] ?? code
  const message = MESSAGES[canonical]
  // Errors of credentials and clock concern all regions.
  const everywhere = /^(?:CredentialsProviderError|ExpiredToken|RequestTimeTooSkewed)$/.test(canonical)
  const text = message
    ? message(detail, action)
    : `${action} failed: ${code === 'Error' ? '' : `${code}: `}${detail}`
  return new Ec2Error(everywhere ? text : `${region}: ${text}`, canonical, everywhere ? '' : region)
}
