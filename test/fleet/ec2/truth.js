// EC2 state as the SDK reports it, and drone configurations.

import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import * as sdk from '@aws-sdk/client-ec2'

/** @import { LaunchConfig } from '../../../fleet/schema.js' */

export const REGIONS = Object.freeze(['us-east-1', 'eu-west-1', 'ap-southeast-2'])

export class Truth {
  #clients

  /** @param {string} endpoint */
  constructor(endpoint) {
    this.#clients = new Map(REGIONS.map(region => [region, new sdk.EC2Client({ region, endpoint })]))
  }

  /** @param {string} region @param {any} command @returns {Promise<any>} */
  ask = (region, command) => /** @type {any} */ (this.#clients.get(region)).send(command)

  /** @param {string} run @returns {Promise<any[]>} instances that live, of all three regions */
  living = async run => {
    const Filters = [{ Name: 'tag:halley:run', Values: [run] }]
    const found = []
    for (const region of REGIONS) {
      const { Reservations } = await this.ask(region, new sdk.DescribeInstancesCommand({ Filters }))
      for (const { Instances } of Reservations)
        found.push(...Instances.map((/** @type {any} */ instance) => ({ ...instance, region })))
    }
    return found.filter(({ State }) => /pending|running/.test(State.Name))
  }

  /** @param {string} region @param {string} run @returns {Promise<any[]>} security groups */
  groupsIn = async (region, run) => {
    const Filters = [{ Name: 'group-name', Values: [`halley-${run}`] }]
    return (await this.ask(region, new sdk.DescribeSecurityGroupsCommand({ Filters }))).SecurityGroups
  }

  /** @param {string} run @returns {Promise<number>} security groups of all three regions */
  groups = async run => (await Promise.all(REGIONS.map(region => this.groupsIn(region, run)))).flat().length

  /** @param {string} region @param {string} InstanceId @returns {Promise<string>} its cloud-config */
  userData = async (region, InstanceId) => {
    const command = new sdk.DescribeInstanceAttributeCommand({ InstanceId, Attribute: 'userData' })
    return gunzipSync(Buffer.from((await this.ask(region, command)).UserData.Value, 'base64')).toString()
  }

  /** @param {any[]} things @param {string} key @returns {string[]} */
  tags = (things, key) =>
    things.map(({ Tags }) => Tags.find((/** @type {any} */ tag) => tag.Key === key)?.Value)

  close() {
    for (const client of this.#clients.values()) client.destroy()
  }
}

/** @param {number} count @param {Record<string, any>} [more] @returns {LaunchConfig[]} of a new run */
export function configs(count, more = {}) {
  const run = `run-${randomBytes(4).toString('hex')}`
  return Array.from({ length: count }, (_, i) => ({
    id: `d${i + 1}`,
    run,
    secret: '5e'.repeat(32),
    controller: '127.0.0.1:7000',
    allow: ['198.51.100.4:8000'],
    ...more,
  }))
}

const PROVIDER = new URL('../../../fleet/providers/ec2/index.js', import.meta.url).href

/** @param {string} body of a new process, which uses `ec2` @param {NodeJS.ProcessEnv} env @returns {Promise<string>} output */
export async function alone(body, env) {
  const script = `const { ec2 } = await import('${PROVIDER}')\n${body}`
  const args = ['--input-type=module', '-e', script]
  const { stdout } = await promisify(execFile)(process.execPath, args, { env, timeout: 120_000 })
  return stdout
}
