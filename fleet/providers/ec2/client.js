// The EC2 API of all regions. The SDK is large and is loaded with the first request.

import { setTimeout as sleep } from 'node:timers/promises'
import { nearest } from '../../../src/config/nearest.js'
import { ProviderError } from '../contract.js'
import { Ec2Error, THROTTLED, toEc2Error } from './errors.js'

/** Concurrent requests to regions. */
const PARALLEL = 8

/** ms to connect, and for a reply. By default the SDK only warns when a network drops packets. */
const TIMEOUTS = Object.freeze({
  connectionTimeout: 5000,
  requestTimeout: 30_000,
  throwOnRequestTimeout: true,
})

/** Attempts after the SDK's own, and ms before the first, doubling: RunInstances has 2 tokens/s. */
const RETRY = Object.freeze({ attempts: 4, pause: 2000 })

const SDK = '@aws-sdk/client-ec2'

/**
 * @returns {Promise<typeof import('@aws-sdk/client-ec2')>} @throws {ProviderError} the optional peer dependency is
 *   missing
 */
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

  /**
   * @param {{endpoint?: string}} options `endpoint`: a URL for all regions @returns {Promise<Ec2>}
   * @throws {ProviderError} the SDK is not installed, or there are no credentials
   */
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
   * @param {string} region @param {string} action `DescribeInstances`
   * @param {Record<string, any>} [input]
   * @returns {Promise<any>}
   * @throws {Ec2Error}
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
   * Reads all pages.
   * @param {string} region @param {string} action @param {string} list its name in the reply
   * @param {Record<string, any>} input @returns {Promise<any[]>}
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

  /**
   * Checks that regions exist and are open to this account.
   * @param {string[]} wanted none: the configured one @returns {Promise<string[]>} @throws {Ec2Error}
   */
  async regions(wanted) {
    const configured = await this.#configured()
    const chosen = wanted.length > 0 ? wanted : [configured]
    if (chosen[0] === '') throw new Ec2Error('no region: give --region, or set AWS_REGION', 'NoRegion', '')
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

/**
 * A region that lists the others of its partition: China's and the government's are separate from the rest.
 * @param {string} region @param {string} configured
 */
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

/**
 * Runs `work` for all items, a few at a time.
 * @template T, R @param {T[]} items @param {(item: T) => Promise<R>} work
 * @returns {Promise<PromiseSettledResult<R>[]>} in the order of the items
 */
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
