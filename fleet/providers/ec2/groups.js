// Security groups: one per run and region, which admits only the named addresses.

import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { ProviderError } from '../contract.js'
import { Ec2Error } from './client.js'

/** @import { Ec2 } from './client.js' */

export const RUN_TAG = 'halley:run'

/** Terminating instances still use their group: ms between attempts to delete it, and in total. */
const DELETE_POLL = { pause: 3000, whole: 300_000 }

/** @typedef {{port: number, from: string, why: string}} Rule an allowed source, a CIDR */

/** @param {string[] | 'all'} runs */
export const ofRuns = runs =>
  runs === 'all' ? { Name: 'tag-key', Values: [RUN_TAG] } : { Name: `tag:${RUN_TAG}`, Values: runs }

/** @param {string} run @returns {string} */
export const groupName = run => `halley-${run}`

/** @param {string} host name or address @returns {Promise<string>} CIDR of that address alone */
export async function cidrOf(host) {
  let address = host
  if (isIP(host) === 0) {
    try {
      ;({ address } = await lookup(host, { family: 4 }))
    } catch {
      throw new ProviderError(`--controller: the name ${host} has no address`)
    }
  }
  return `${address}/${isIP(address) === 6 ? 128 : 32}`
}

/** @param {Rule} rule */
const permission = ({ port, from, why }) => ({
  IpProtocol: 'tcp',
  FromPort: port,
  ToPort: port,
  ...(from.includes(':')
    ? { Ipv6Ranges: [{ CidrIpv6: from, Description: why }] }
    : { IpRanges: [{ CidrIp: from, Description: why }] }),
})

/**
 * Creates the group of the run if necessary, and returns its id.
 * @param {Ec2} ec2 @param {string} region
 * @param {{run: string, vpc: string, rules: Rule[], tags: {Key: string, Value: string}[]}} options `vpc` '': the default
 */
export async function ensureGroup(ec2, region, { run, vpc, rules, tags }) {
  let id = ''
  try {
    const { GroupId } = await ec2.send(region, 'CreateSecurityGroup', {
      GroupName: groupName(run),
      Description: `Halley load drones of run ${run}`,
      ...(vpc ? { VpcId: vpc } : {}),
      TagSpecifications: [{ ResourceType: 'security-group', Tags: tags }],
    })
    id = GroupId
  } catch (error) {
    if (error.code !== 'InvalidGroup.Duplicate') throw error
    const found = (await groupsOf(ec2, region, [run])).find(
      group => group.run === run && (vpc === '' || group.vpc === vpc),
    )
    if (found === undefined) throw error
    id = found.id
  }
  for (const rule of rules) {
    try {
      await ec2.send(region, 'AuthorizeSecurityGroupIngress', {
        GroupId: id,
        IpPermissions: [permission(rule)],
      })
    } catch (error) {
      if (error.code !== 'InvalidPermission.Duplicate') throw error
    }
  }
  return id
}

/** @param {Ec2} ec2 @param {string} region @param {string[] | 'all'} runs */
export async function groupsOf(ec2, region, runs) {
  const groups = await ec2.all(region, 'DescribeSecurityGroups', 'SecurityGroups', {
    Filters: [ofRuns(runs)],
  })
  return groups.map(({ GroupId, Tags = [], VpcId = '' }) => ({
    id: GroupId,
    run: Tags.find((/** @type {any} */ tag) => tag.Key === RUN_TAG)?.Value ?? '',
    vpc: VpcId,
  }))
}

/** @param {Ec2} ec2 @param {string} region @param {string} id @param {(text: string) => void} onProgress */
export async function deleteGroup(ec2, region, id, onProgress) {
  const began = Date.now()
  for (;;) {
    try {
      await ec2.send(region, 'DeleteSecurityGroup', { GroupId: id })
      return
    } catch (error) {
      if (error.code === 'InvalidGroup.NotFound') return
      const over = Date.now() - began > DELETE_POLL.whole
      if (error.code !== 'DependencyViolation' || over)
        throw over
          ? new Ec2Error(
              `${region}: security group ${id} is still in use; run the stop command again in some minutes`,
              error.code,
              region,
            )
          : error
      const seconds = Math.round((Date.now() - began) / 1000)
      onProgress(`${region}: waiting for instances to release security group ${id} (${seconds} s)`)
      await sleep(DELETE_POLL.pause)
    }
  }
}
