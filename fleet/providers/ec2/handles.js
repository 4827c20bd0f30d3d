// What EC2 says of instances, as the handles of drones.

import { DRONES_TAG, idOf } from './batches.js'
import { RUN_TAG } from './groups.js'

/**
 * @typedef {import('../../schema.js').Handle} Handle
 * @typedef {import('./client.js').Ec2} Ec2
 */

/** EC2's states in the contract's words. A stopped instance still costs: it is not gone. @type {Record<string, string>} */
const STATES = {
  pending: 'pending',
  running: 'running',
  'shutting-down': 'stopping',
  stopping: 'stopping',
  stopped: 'stopping',
  terminated: 'gone',
}
/** EC2's states of instances that are not on their way out. */
export const ALIVE = Object.freeze(['pending', 'running', 'stopping', 'stopped'])

/** @param {any} instance EC2's @param {string} region @returns {Handle} */
export function handleOf(instance, region) {
  const tags = Object.fromEntries((instance.Tags ?? []).map((/** @type {any} */ tag) => [tag.Key, tag.Value]))
  const state = STATES[instance.State?.Name] ?? 'pending'
  /** @type {Handle} */
  const handle = {
    id: idOf(tags[DRONES_TAG] ?? '', instance.AmiLaunchIndex ?? 0),
    provider: 'ec2',
    where: region,
    handle: instance.InstanceId,
    run: tags[RUN_TAG] ?? '',
    launched: new Date(instance.LaunchTime ?? Date.now()).getTime(),
    state,
  }
  if (instance.PublicIpAddress) handle.address = instance.PublicIpAddress
  if (state === 'gone') handle.note = instance.StateReason?.Message || 'terminated'
  return handle
}

/**
 * @param {Ec2} ec2
 * @param {string} region
 * @param {{Name: string, Values: string[]}[]} Filters
 * @returns {Promise<Handle[]>} terminated ones too, for as long as EC2 remembers them
 */
export async function instancesOf(ec2, region, Filters) {
  const reservations = await ec2.all(region, 'DescribeInstances', 'Reservations', {
    Filters,
    MaxResults: 1000,
  })
  return reservations
    .flatMap(({ Instances = [] }) => Instances)
    .map(instance => handleOf(instance, region))
    .filter(({ handle }) => handle)
}
