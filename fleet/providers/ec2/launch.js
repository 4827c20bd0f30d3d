// Launches instances, and stores the plan in a file, to relaunch single drones.

import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { replaceFile } from '../../files.js'
import { packProgram, readProgram, saveProgram } from '../../program.js'
import { LaunchError, ProviderError } from '../contract.js'
import { Ec2, inParallel } from './client.js'
import { ensureGroup } from './groups.js'
import { DRONES_TAG, handleOf, instancesOf, namesOf } from './handles.js'
import { readPlace } from './options.js'
import { bootOf, tagsOf } from './plan.js'
import { userData } from './user-data.js'

/** @import { Handle } from '../../schema.js' */
/** @import { Details, Place } from './plan.js' */
/** @import { Batch } from './handles.js' */
/** @import { LaunchPlan } from '../contract.js' */
/** @import { Program } from '../../program.js' */

/** Attempts to use a new group, and ms between them: EC2 is eventually consistent. */
const GROUP_RETRY = { attempts: 6, pause: 1000 }
const ADDRESS_POLL = { pause: 2000, attempts: 45 }

/** Errors after which instances may have been launched. */
const MAYBE_LAUNCHED = new Set([
  'ENOTFOUND',
  'TimeoutError',
  'InternalError',
  'InternalFailure',
  'Unavailable',
  'ServiceUnavailable',
])

/** @param {Ec2} ec2 @param {Details} details @param {Batch} batch of one call @param {string} group @param {number} ends */
async function run(ec2, details, batch, group, ends) {
  const { options, places, nonce } = details
  const place = /** @type {Place} */ (places.find(({ region }) => region === batch.region))
  const { instanceType, spot, maxPrice, keyName } = options
  const tags = tagsOf({ run: details.run, names: namesOf(batch), ends })
  // The client token makes a call idempotent: repeating it after a lost reply launches nothing twice.
  const token = createHash('sha256')
    .update(`${nonce} ${details.run} ${batch.region} ${namesOf(batch)}`)
    .digest('hex')
    .slice(0, 40)
  const input = {
    ImageId: place.image.id,
    InstanceType: instanceType,
    MinCount: 1,
    MaxCount: batch.count,
    ClientToken: token,
    UserData: (await userData(bootOf(details, batch, ends))).toString('base64'),
    InstanceInitiatedShutdownBehavior: 'terminate',
    MetadataOptions: { HttpEndpoint: 'enabled', HttpTokens: 'required', HttpPutResponseHopLimit: 1 },
    TagSpecifications: ['instance', 'volume'].map(ResourceType => ({ ResourceType, Tags: tags })),
    ...(place.subnet === ''
      ? { SecurityGroupIds: [group] }
      : {
          NetworkInterfaces: [
            { DeviceIndex: 0, SubnetId: place.subnet, Groups: [group], AssociatePublicIpAddress: true },
          ],
        }),
    ...(keyName === '' ? {} : { KeyName: keyName }),
    ...(spot
      ? {
          InstanceMarketOptions: {
            MarketType: 'spot',
            SpotOptions: {
              SpotInstanceType: 'one-time',
              InstanceInterruptionBehavior: 'terminate',
              ...(maxPrice === null ? {} : { MaxPrice: String(maxPrice) }),
            },
          },
        }
      : {}),
  }
  for (let attempt = 1; ; attempt++) {
    try {
      const { Instances = [] } = await ec2.send(batch.region, 'RunInstances', input)
      // This reply may omit the tags of the instances.
      return Instances.map((/** @type {any} */ instance) =>
        handleOf({ ...instance, Tags: tags }, batch.region),
      )
    } catch (error) {
      if (error.code === 'InvalidGroup.NotFound' && attempt < GROUP_RETRY.attempts) {
        await sleep(GROUP_RETRY.pause * attempt)
        continue
      }
      if (!MAYBE_LAUNCHED.has(error.code)) throw error
      const filter = [{ Name: 'client-token', Values: [token] }]
      const there = await instancesOf(ec2, batch.region, filter).catch(() => [])
      if (there.length === 0) throw error
      return there
    }
  }
}

/**
 * @param {Ec2} ec2 @param {Details} details @param {string} region @param {number} ends
 * @param {(handles: Handle[]) => void} onLaunched
 */
async function launchIn(ec2, details, region, ends, onLaunched) {
  const place = details.places.find(one => one.region === region)
  const names = details.batches.filter(batch => batch.region === region)
  const tags = tagsOf({ run: details.run, names: namesOf(names[0]), ends }).filter(
    ({ Key }) => Key !== DRONES_TAG,
  )
  const group = await ensureGroup(ec2, region, {
    run: details.run,
    vpc: place?.vpc ?? '',
    rules: details.rules,
    tags,
  })
  let here = 0
  try {
    const waiting = [...names]
    for (let batch = waiting.shift(); batch !== undefined; batch = waiting.shift()) {
      const handles = await run(ec2, details, batch, group, ends)
      here += handles.length
      onLaunched(handles)
      // EC2 may launch fewer. Another call, with its own user data, requests the rest, or fails with the
      // reason.
      const rest = batch.count - handles.length
      if (rest > 0) waiting.unshift({ ...batch, first: batch.first + handles.length, count: rest })
    }
  } catch (error) {
    // EC2 refuses to delete a group that other instances of the run use.
    if (here === 0) await ec2.send(region, 'DeleteSecurityGroup', { GroupId: group }).catch(() => {})
    throw error
  }
}

/** @param {LaunchPlan} plan @param {(text: string) => void} onProgress */
export async function launch({ details }, onProgress) {
  /** @type {Details} */
  const { flags, places, batches, options, dir } = details
  const count = batches.reduce(
    (/** @type {number} */ sum, /** @type {Batch} */ batch) => sum + batch.count,
    0,
  )
  const ec2 = await Ec2.open(readPlace(flags))
  try {
    const ends = Date.now() + options.timeLimit
    await saveLaunch(dir, details, ends)
    await keepProgram(dir, details.program)
    /** @type {Handle[]} */
    const launched = []
    const regions = places.map((/** @type {Place} */ { region }) => region)
    onProgress(`launching ${count} instances in ${regions.join(', ')}`)
    const results = await inParallel(regions, (/** @type {string} */ region) =>
      launchIn(ec2, details, region, ends, handles => {
        launched.push(...handles)
        onProgress(`${launched.length} of ${count} instances launched (${region})`)
      }),
    )
    const faults = results.flatMap(result => (result.status === 'rejected' ? [result.reason.message] : []))
    if (faults.length > 0)
      throw new LaunchError(
        `${launched.length} of ${count} instances were launched: ${faults.join('; ')}`,
        launched,
      )
    if (batches[0].config.listen !== undefined) await addresses(ec2, launched, onProgress)
    return launched
  } finally {
    ec2.close()
  }
}

/** Waits for the addresses. @param {Ec2} ec2 @param {Handle[]} launched @param {(text: string) => void} onProgress */
async function addresses(ec2, launched, onProgress) {
  for (let attempt = 1; ; attempt++) {
    const without = launched.filter(({ address }) => !address)
    if (without.length === 0) return
    if (attempt > ADDRESS_POLL.attempts)
      throw new LaunchError(
        `${without.length} instances got no public address: use a public subnet`,
        launched,
      )
    onProgress(`waiting for the addresses of ${without.length} instances`)
    for (const region of new Set(without.map(({ where }) => where))) {
      const ids = without.filter(({ where }) => where === region).map(({ handle }) => handle)
      const found = await instancesOf(ec2, region, [{ Name: 'instance-id', Values: ids.slice(0, 200) }])
      for (const { handle, address } of found) {
        const one = launched.find(own => own.handle === handle)
        if (one && address) one.address = address
      }
    }
    if (launched.some(({ address }) => !address)) await sleep(ADDRESS_POLL.pause)
  }
}

/** @param {string} dir @param {Program} program */
const keepProgram = (dir, program) =>
  saveProgram(dir, program).catch(error => {
    throw new ProviderError(`the drone's program cannot be stored in ${dir}: ${error.message}`)
  })

/** @typedef {Omit<Details, 'program'> & {sha256: string}} Remembered */

/** @param {string} dir */
const launchesFile = dir => join(dir, 'ec2-launches.json')

/** @param {string} dir @returns {Promise<{details: Remembered, ends: number}[]>} launches within their time limit */
async function readLaunches(dir) {
  try {
    const launches = JSON.parse(await readFile(launchesFile(dir), 'utf8'))
    return launches.filter((/** @type {{ends: number}} */ { ends }) => ends > Date.now())
  } catch {
    return []
  }
}

/** @param {string} dir @param {Details} details @param {number} ends */
async function saveLaunch(dir, { program, ...details }, ends) {
  const launches = [...(await readLaunches(dir)), { details: { ...details, sha256: program.sha256 }, ends }]
  await mkdir(dir, { recursive: true, mode: 0o700 })
  // It contains the run's secret.
  await replaceFile(launchesFile(dir), JSON.stringify(launches), { mode: 0o600 }).catch(error => {
    throw new ProviderError(`the launch cannot be recorded in ${dir}: ${error.message}`)
  })
}

/** Replaces a terminated instance, with the same time limit. @param {Ec2} ec2 @param {Handle} handle @param {string} dir */
export async function relaunch(ec2, handle, dir) {
  for (const { details, ends } of await readLaunches(dir)) {
    const number = Number(/\d+$/.exec(handle.id)?.[0])
    const batch = details.batches.find(
      ({ region, prefix, first, count }) =>
        region === handle.where &&
        handle.id === `${prefix}${number}` &&
        number >= first &&
        number < first + count,
    )
    if (details.run !== handle.run || batch === undefined) continue
    // The same program as the other drones, even after an upgrade of Halley.
    const program = await readProgram(dir, details.sha256).catch(() => packProgram())
    await keepProgram(dir, program)
    const again = { ...details, nonce: randomBytes(8).toString('hex'), program }
    /** @type {Handle[]} */
    const launched = []
    const single = { ...batch, first: number, count: 1 }
    await launchIn(ec2, { ...again, batches: [single] }, handle.where, ends, handles =>
      launched.push(...handles),
    )
    if (single.config.listen !== undefined) await addresses(ec2, launched, () => {})
    return launched[0]
  }
  throw new ProviderError(
    `drone ${handle.id} (${handle.handle} in ${handle.where}) is gone, and its launch parameters are unknown here; start another drone`,
  )
}
