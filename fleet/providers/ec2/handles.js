// Maps drones to instances: drones form batches of one call each, whose instances differ only in their launch index,
// and an instance description becomes a drone's handle.

import { ProviderError } from '../contract.js'
import { RUN_TAG } from './groups.js'

/** @import { Handle, LaunchConfig } from '../../schema.js' */
/** @import { Ec2 } from './client.js' */

/** Maximum instances per call: EC2 advises against larger calls, which may fail as a whole. */
const MAX_PER_CALL = 100

/** Lists the drones of a call; an instance's launch index selects one of them. */
export const DRONES_TAG = 'halley:drones'

/**
 * Drones `prefix` + first ... first + count - 1; `config`: shared, its id is the first one's.
 * @typedef {{region: string, prefix: string, first: number, count: number, config: LaunchConfig}} Batch
 */

/** @param {string} id */
function numbered(id) {
  const match = /^(.*?)(0|[1-9]\d{0,8})$/.exec(id)
  if (match === null) throw new ProviderError(`drone "${id}" has no number at the end of its id`)
  return { prefix: match[1], number: Number(match[2]) }
}

/** Evenly over the regions, with consecutive drones together. @param {LaunchConfig[]} drones @param {string[]} regions */
export function batchesOf(drones, regions) {
  /** @type {Batch[]} */
  const batches = []
  let rest = ''
  drones.forEach((config, index) => {
    const region = regions[Math.floor((index * regions.length) / drones.length)]
    const { prefix, number } = numbered(config.id)
    const last = batches.at(-1)
    const own = JSON.stringify({ ...config, id: '' })
    const next = last !== undefined && last.region === region && last.prefix === prefix && own === rest
    if (next && number === last.first + last.count && last.count < MAX_PER_CALL) last.count++
    else batches.push({ region, prefix, first: number, count: 1, config })
    rest = own
  })
  return batches
}

/** @param {{prefix: string, first: number, count: number}} batch @returns {string} `d1-d14`, or `d1` */
export const namesOf = ({ prefix, first, count }) =>
  `${prefix}${first}${count > 1 ? `-${prefix}${first + count - 1}` : ''}`

/** @param {string} names of a call @param {number} index of an instance in it @returns {string} id of its drone */
export function idOf(names, index) {
  const { prefix, number } = numbered(names.split(/(?<=\d)-/)[0] || '0')
  return `${prefix}${number + index}`
}

/** EC2's states -> Handle states. A stopped instance still costs: not `gone`. @type {Record<string, string>} */
const STATES = {
  pending: 'pending',
  running: 'running',
  'shutting-down': 'stopping',
  stopping: 'stopping',
  stopped: 'stopping',
  terminated: 'gone',
}
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

/** With terminated ones. @param {Ec2} ec2 @param {string} region @param {{Name: string, Values: string[]}[]} Filters */
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
