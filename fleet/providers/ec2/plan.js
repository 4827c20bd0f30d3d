// Plans a launch by read-only calls: instances, price, and the lines to print before the launch.

import { randomBytes } from 'node:crypto'
import { packProgram } from '../../program.js'
import { ProviderError } from '../contract.js'
import { allOf, Ec2, inParallel } from './client.js'
import { cidrOf, groupName, RUN_TAG } from './groups.js'
import { batchesOf, DRONES_TAG, namesOf } from './handles.js'
import { connectAddress, readOptions, readPlace } from './options.js'
import { priceOf } from './price.js'
import { setupScript, USER_DATA_LIMIT, userData } from './user-data.js'

/** @import { PriceOf } from './price.js' */
/** @import { Options } from './options.js' */
/** @import { Batch } from './handles.js' */
/** @import { Rule } from './groups.js' */
/** @import { Program } from '../../program.js' */
/** @import { LaunchConfig } from '../../schema.js' */
/** @import { LaunchOptions, LaunchPlan } from '../contract.js' */

/**
 * @typedef {Awaited<ReturnType<typeof planRegion>>} Place a region, and its instances; `subnet`, `vpc` '': the
 *   default ones
 * @typedef {{nonce: string, run: string, dir: string, flags: Record<string, any>, options: Options, places: Place[],
 *   batches: Batch[], rules: Rule[], program: Program}} Details of a plan; launch.js stores them in a file, to
 *   relaunch drones; `nonce`: of this launch, for client tokens
 */

/** ms. */
const HOUR = 3_600_000

/** @param {number} ms @returns {string} */
const durationText = ms => (ms % HOUR === 0 ? `${ms / HOUR} h` : `${Math.round(ms / 60_000)} min`)

/** @param {number} dollars */
const dollarsText = dollars => (dollars < 1 ? dollars.toFixed(4) : dollars.toFixed(2))

/** Sources that may connect to a drone. @param {Options} options @param {LaunchConfig} config */
async function inboundRules({ controller, keyName }, config) {
  /** @type {Rule[]} */
  const rules = []
  if (controller === null || (config.listen === undefined && keyName === '')) return rules
  const from = await cidrOf(controller.host)
  if (config.listen !== undefined)
    rules.push({ port: Number(config.listen.split(':').at(-1)), from, why: 'controller' })
  if (keyName !== '') rules.push({ port: 22, from, why: 'ssh' })
  return rules
}

/** @param {Ec2} ec2 @param {string} region @param {string} subnet @param {Options} options */
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

/** @param {Details} details @param {number} size of the largest user data, bytes @param {string} script setup.sh */
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
    `time limit ${durationText(timeLimit)}: each instance then powers itself off, which terminates it, even without the controller`,
    config.listen === undefined ? `drones dial ${config.controller}` : `drones listen at ${config.listen}`,
    ...(config.status === undefined ? [] : [`status port of each drone: ${config.status}`]),
    `targets allowed: ${config.allow.join(', ')}`,
    `Node.js ${options.nodeVersion} from ${options.nodeUrl}, if the image has none`,
    `drone program: SHA-256 ${program.sha256}, ${program.bytes.length} bytes, downloaded from the controller`,
    `user data: ${size} of ${USER_DATA_LIMIT} bytes, compressed: bootstrap, service, kernel settings, and this script, run once:`,
    ...script
      .trimEnd()
      .split('\n')
      .map(line => `  | ${line}`.trimEnd()),
  )
  return lines
}

/** Tags of the instances of a call. @param {{run: string, names: string, ends: number}} launch `ends`: Unix ms */
export const tagsOf = ({ run, names, ends }) => [
  { Key: 'Name', Value: `halley ${run} ${names}` },
  { Key: RUN_TAG, Value: run },
  { Key: DRONES_TAG, Value: names },
  { Key: 'halley:ends', Value: new Date(ends).toISOString() },
]

/** @param {LaunchOptions} options @returns {Promise<LaunchPlan>} */
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
 * Contents of the user data of a batch; the `id` of its configuration is unused. `ends`: Unix ms.
 * @param {Pick<Details, 'options' | 'places' | 'program'>} details @param {Batch} batch @param {number} ends
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

/** @param {Details} details @returns {LaunchPlan['price']} */
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
    unknown.length > 0 ? `; excluding ${unknown.join(', ')}, whose price is unknown (--price)` : ''
  const total = dollarsText((hourly * options.timeLimit) / HOUR)
  return {
    hourly,
    currency: 'USD',
    note: `$${total} until the time limit of ${durationText(options.timeLimit)}${sources ? ` (${sources})` : ''}${missing}; traffic costs extra`,
  }
}

/** Account of Canonical, the publisher of Ubuntu, in each AWS partition. */
const CANONICAL = { '': '099720109477', cn: '837727238323', gov: '513442679011' }

/** LTS releases with recent enough systemd and cloud-init, newest first. */
const RELEASES = ['noble-24.04', 'jammy-22.04']

const ARCHITECTURES = { x86_64: 'amd64', arm64: 'arm64' }

/** @param {Ec2} ec2 @param {string} region @param {string} name `t3.small` */
async function machineType(ec2, region, name) {
  const { InstanceTypes = [] } = await ec2.send(region, 'DescribeInstanceTypes', { InstanceTypes: [name] })
  const [found] = InstanceTypes
  if (found === undefined) throw new ProviderError(`${region}: no instance type ${name} here`)
  const architecture = found.ProcessorInfo?.SupportedArchitectures?.find(
    (/** @type {string} */ one) => one in ARCHITECTURES,
  )
  if (architecture === undefined)
    throw new ProviderError(`instance type ${name} is not x86_64 or arm64: drones need one of these`)
  return {
    name,
    architecture,
    cores: found.VCpuInfo?.DefaultVCpus ?? 1,
    memory: (found.MemoryInfo?.SizeInMiB ?? 0) * 2 ** 20,
  }
}

/** @param {any} image */
const imageOf = image => ({ id: image.ImageId, name: image.Name ?? '', created: image.CreationDate ?? '' })

/** @param {Ec2} ec2 @param {string} region @param {string} architecture @param {string} wanted '': the newest Ubuntu LTS */
async function findImage(ec2, region, architecture, wanted) {
  if (wanted !== '') {
    const { Images = [] } = await ec2.send(region, 'DescribeImages', { ImageIds: [wanted] })
    const [image] = Images
    if (image === undefined)
      throw new ProviderError(`${region}: no image ${wanted} here: image ids are regional`)
    if (image.Architecture !== architecture)
      throw new ProviderError(
        `${region}: image ${wanted} is for ${image.Architecture}, the instance type is ${architecture}`,
      )
    return imageOf(image)
  }
  const partition = region.startsWith('cn-') ? 'cn' : region.startsWith('us-gov-') ? 'gov' : ''
  const suffix = ARCHITECTURES[/** @type {keyof typeof ARCHITECTURES} */ (architecture)]
  const images = await ec2.all(region, 'DescribeImages', 'Images', {
    Owners: [CANONICAL[partition]],
    Filters: [
      // hvm-ssd, and since 24.04 hvm-ssd-gp3.
      {
        Name: 'name',
        Values: RELEASES.map(release => `ubuntu/images/hvm-ssd*/ubuntu-${release}-${suffix}-server-*`),
      },
      { Name: 'architecture', Values: [architecture] },
      { Name: 'state', Values: ['available'] },
    ],
  })
  for (const release of RELEASES) {
    const [newest] = images
      .filter(({ Name }) => Name.includes(`-${release}-`))
      .sort((a, b) => b.CreationDate.localeCompare(a.CreationDate))
    if (newest !== undefined) return imageOf(newest)
  }
  throw new ProviderError(
    `${region}: Canonical has no Ubuntu LTS image for ${architecture} here; pass one with --image`,
  )
}
