// Plans a launch by read-only calls: instances, price, and the lines that are printed before the launch.

import { randomBytes } from 'node:crypto'
import { packProgram } from '../../program.js'
import { allOf, Ec2, inParallel } from './client.js'
import { cidrOf, groupName, RUN_TAG } from './groups.js'
import { batchesOf, DRONES_TAG, namesOf } from './handles.js'
import { findImage, machineType } from './machines.js'
import { connectAddress, readOptions, readPlace } from './options.js'
import { priceOf } from './price.js'
import { setupScript, USER_DATA_LIMIT, userData } from './user-data.js'

/**
 * @typedef {object} Place a region, and what is launched there
 * @property {string} region
 * @property {import('./machines.js').MachineType} type
 * @property {import('./machines.js').Image} image
 * @property {string} subnet '': the default VPC's
 * @property {string} vpc '': the default one
 * @property {import('./price.js').PriceOf | null} price
 * @typedef {object} Details of a plan; launch.js stores them in a file, from which it relaunches drones
 * @property {string} nonce of this launch, for its client tokens
 * @property {string} run
 * @property {string} dir folder of the fleet's files
 * @property {Record<string, any>} flags
 * @property {import('./options.js').Options} options
 * @property {Place[]} places
 * @property {import('./handles.js').Batch[]} batches
 * @property {import('./groups.js').Rule[]} rules
 * @property {import('../../program.js').Program} program of the drones
 */

/** ms. */
const HOUR = 3_600_000

/** @param {number} ms @returns {string} */
const durationText = ms => (ms % HOUR === 0 ? `${ms / HOUR} h` : `${Math.round(ms / 60_000)} min`)

/** @param {number} dollars */
const dollarsText = dollars => (dollars < 1 ? dollars.toFixed(4) : dollars.toFixed(2))

/**
 * @param {import('./options.js').Options} options @param {import('../../schema.js').LaunchConfig} config
 * @returns {Promise<import('./groups.js').Rule[]>} of the security group: who may connect to a drone
 */
async function inboundRules({ controller, keyName }, config) {
  /** @type {import('./groups.js').Rule[]} */
  const rules = []
  if (controller === null || (config.listen === undefined && keyName === '')) return rules
  const from = await cidrOf(controller.host)
  if (config.listen !== undefined)
    rules.push({ port: Number(config.listen.split(':').at(-1)), from, why: 'controller' })
  if (keyName !== '') rules.push({ port: 22, from, why: 'ssh' })
  return rules
}

/**
 * @param {Ec2} ec2 @param {string} region @param {string} subnet @param {import('./options.js').Options} options
 * @returns {Promise<Place>}
 */
async function planRegion(ec2, region, subnet, options) {
  const type = await machineType(ec2, region, options.instanceType)
  const [image, price, vpc] = await Promise.all([
    findImage(ec2, region, type.architecture, options.image),
    priceOf(ec2, region, options),
    subnet
      ? ec2.send(region, 'DescribeSubnets', { SubnetIds: [subnet] }).then(({ Subnets }) => Subnets[0].VpcId)
      : '',
  ])
  if (options.keyName !== '') await ec2.send(region, 'DescribeKeyPairs', { KeyNames: [options.keyName] })
  return { region, type, image, subnet, vpc, price }
}

/**
 * @param {Details} details @param {number} size of the largest user data, bytes @param {string} script setup.sh
 * @returns {string[]} LaunchPlan.lines
 */
function planLines({ run, options, places, batches, rules, program }, size, script) {
  const { timeLimit, spot, maxPrice, keyName } = options
  const { config } = batches[0]
  const count = batches.reduce((sum, batch) => sum + batch.count, 0)
  const lines = [
    `run ${run}: ${count} ${count === 1 ? 'drone' : 'drones'} on EC2, in ${places.length} ${places.length === 1 ? 'region' : 'regions'}`,
  ]
  for (const { region, type, image, subnet, price } of places) {
    const own = batches.filter(batch => batch.region === region)
    const here = own.reduce((sum, batch) => sum + batch.count, 0)
    const market = spot ? `spot${maxPrice === null ? '' : ` (at most $${maxPrice}/h each)`}` : 'on-demand'
    lines.push(
      `${region}: ${here} x ${type.name} (${type.architecture}, ${type.cores} vCPU, ${(type.memory / 2 ** 30).toFixed(1)} GB), ${market}`,
      `  drones ${own.map(namesOf).join(', ')}, in ${own.length} ${own.length === 1 ? 'call' : 'calls'}`,
      `  image ${image.id} ${image.name} of ${image.created.slice(0, 10)}`,
      `  ${subnet === '' ? 'subnet of the default VPC, chosen by EC2' : `subnet ${subnet}`}`,
      `  $${price === null ? '?' : `${dollarsText(price.hourly)}/h each (${price.source}; with address and disk)`}`,
    )
  }
  const allowed = rules.map(({ port, from, why }) => `TCP ${port} from ${from} (${why})`).join(', ')
  // `ends` is known only at the launch.
  const tags = tagsOf({ run, names: namesOf(batches[0]), ends: 0 }).map(
    ({ Key, Value }) => `${Key}=${Key === 'halley:ends' ? '<launch + time limit>' : Value}`,
  )
  lines.push(
    `security group ${groupName(run)} in each region, removed by stop; in: ${allowed || 'nothing'}; out: everything`,
    ...(keyName === '' ? [] : [`SSH key ${keyName}`]),
    `tags of instances, volumes and groups: ${tags.join(' ')}`,
    `time limit ${durationText(timeLimit)}: each instance then powers itself off, which terminates it, whatever happens here`,
    config.listen === undefined ? `drones dial ${config.controller}` : `drones listen at ${config.listen}`,
    `targets allowed: ${config.allow.join(', ')}`,
    `Node.js ${options.nodeVersion} from ${options.nodeUrl}, where the image has none`,
    `drone program: SHA-256 ${program.sha256}, ${program.bytes.length} bytes, which instances fetch from the controller`,
    `user data: ${size} of ${USER_DATA_LIMIT} bytes, compressed: bootstrap, service, kernel settings, and this script, run once:`,
    ...script
      .trimEnd()
      .split('\n')
      .map(line => `  | ${line}`.trimEnd()),
  )
  return lines
}

/**
 * @param {{run: string, names: string, ends: number}} launch `names`: drones of a call; `ends`: Unix ms
 * @returns {{Key: string, Value: string}[]} tags of its instances
 */
export const tagsOf = ({ run, names, ends }) => [
  { Key: 'Name', Value: `halley ${run} ${names}` },
  { Key: RUN_TAG, Value: run },
  { Key: DRONES_TAG, Value: names },
  { Key: 'halley:ends', Value: new Date(ends).toISOString() },
]

/**
 * @param {import('../contract.js').LaunchOptions} options @returns {Promise<import('../contract.js').LaunchPlan>}
 * @throws {import('../contract.js').ProviderError}
 */
export async function plan({ drones, flags, dir }) {
  const options = readOptions(flags)
  const { endpoint } = readPlace(flags)
  // Throws on invalid flags, before any request is made.
  const configs = drones.map(({ controller, listen, ...config }) => ({
    ...config,
    ...connectAddress(options, { ...config, controller, listen }),
  }))
  const ec2 = await Ec2.open({ endpoint })
  try {
    const chosen = await ec2.regions(options.regions)
    const batches = batchesOf(configs, chosen)
    const regions = chosen.filter(region => batches.some(batch => batch.region === region))
    const [places, rules, program, script] = await Promise.all([
      inParallel(regions, region =>
        planRegion(ec2, region, options.subnets[chosen.indexOf(region)] ?? '', options),
      ).then(allOf),
      inboundRules(options, configs[0]),
      packProgram(),
      setupScript(),
    ])
    const { run } = configs[0]
    /** @type {Details} */
    const details = {
      nonce: randomBytes(8).toString('hex'),
      run,
      dir,
      flags,
      options,
      places,
      batches,
      rules,
      program,
    }
    const ends = Date.now() + options.timeLimit
    let size = 0
    for (const batch of batches) size = Math.max(size, (await userData(bootOf(details, batch, ends))).length)
    return { lines: planLines(details, size, script), price: totalPrice(details), details }
  } finally {
    ec2.close()
  }
}

/**
 * @param {Pick<Details, 'options' | 'places' | 'program'>} details @param {import('./handles.js').Batch} batch
 * @param {number} ends Unix ms
 * @returns {import('./user-data.js').Boot} what the user data of the batch contains
 */
export function bootOf({ options, places, program }, { region, config, prefix, first }, ends) {
  const memory = places.find(place => place.region === region)?.type.memory ?? 0
  return {
    config,
    prefix,
    first,
    sha256: program.sha256,
    ends,
    nodeVersion: options.nodeVersion,
    nodeUrl: options.nodeUrl,
    memory,
  }
}

/** @param {Details} details @returns {import('../contract.js').LaunchPlan['price']} */
function totalPrice({ places, batches, options }) {
  let hourly = 0
  const unknown = []
  for (const { region, price, type } of places) {
    const count = batches
      .filter(batch => batch.region === region)
      .reduce((sum, batch) => sum + batch.count, 0)
    if (price === null) unknown.push(`${count} x ${type.name} in ${region}`)
    else hourly += price.hourly * count
  }
  const sources = [...new Set(places.flatMap(({ price }) => (price === null ? [] : [price.source])))].join(
    '; ',
  )
  const missing =
    unknown.length > 0 ? `; without ${unknown.join(', ')}, whose price is not known (--price)` : ''
  const total = dollarsText((hourly * options.timeLimit) / HOUR)
  return {
    hourly,
    currency: 'USD',
    note: `$${total} until the time limit of ${durationText(options.timeLimit)}${sources ? ` (${sources})` : ''}${missing}; traffic costs extra`,
  }
}
