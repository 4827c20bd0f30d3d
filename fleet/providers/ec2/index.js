// The provider of Amazon EC2: instances in several regions, found by their tags. This file finds, stops and restarts
// them; plan.js says what would be launched, launch.js launches it, user-data.js and setup.sh make an instance a
// drone, client.js speaks with EC2.
//
// It promises what providers/contract.js asks for; each instance ends itself at its time limit, whatever happens here.
// The SDK is an optional dependency that only client.js loads, when EC2 is asked something. Nothing but
// providers/index.js imports this.

import { setTimeout as sleep } from 'node:timers/promises'
import { ProviderError } from '../contract.js'
import { abreast, allOf, Ec2 } from './client.js'
import { deleteGroup, groupsOf, ofRuns } from './groups.js'
import { ALIVE, instancesOf } from './handles.js'
import { launch, relaunch } from './launch.js'
import { FLAGS, HELP, readPlace } from './options.js'
import { plan } from './plan.js'

/**
 * @typedef {import('../../schema.js').Handle} Handle
 * @typedef {{dir: string, flags: Record<string, any>}} Options
 */

/** Instances of one call of TerminateInstances. */
const TOGETHER = 100
/** ms between looks whether all are shutting down, and of all of them. */
const ENDING = Object.freeze({ pause: 1500, whole: 120_000 })

/**
 * @param {string[] | 'all'} runs
 * @param {Options} options without regions in the flags all are searched that are open to the account
 * @returns {Promise<Handle[]>} of runs that were named, those too that ended lately, as `gone` with the reason
 * @throws {ProviderError}
 */
async function find(runs, { flags }) {
  const { regions, endpoint } = readPlace(flags)
  if (runs !== 'all' && runs.length === 0) return []
  const ec2 = await Ec2.open({ endpoint })
  try {
    const searched = regions.length > 0 ? await ec2.regions(regions) : await ec2.openRegions()
    const states =
      runs === 'all' ? [{ Name: 'instance-state-name', Values: [...ALIVE, 'shutting-down'] }] : []
    const found = await abreast(searched, region => instancesOf(ec2, region, [ofRuns(runs), ...states]))
    return allOf(found).flat()
  } finally {
    ec2.close()
  }
}

/** @param {Ec2} ec2 @param {string} region @param {string[]} ids */
async function terminate(ec2, region, ids) {
  if (ids.length === 0) return
  try {
    await ec2.send(region, 'TerminateInstances', { InstanceIds: ids })
  } catch (error) {
    if (!/^InvalidInstanceID/.test(error.code)) throw error
    // One that EC2 has forgotten keeps all from being ended: those that it knows, then.
    const known = (await instancesOf(ec2, region, [{ Name: 'instance-id', Values: ids }])).map(
      ({ handle }) => handle,
    )
    if (known.length < ids.length) await terminate(ec2, region, known)
    else throw error
  }
}

/** @param {Ec2} ec2 @param {string} region @param {string[]} ids @param {(text: string) => void} onProgress */
async function terminateAll(ec2, region, ids, onProgress) {
  for (let from = 0; from < ids.length; from += TOGETHER) {
    const some = ids.slice(from, from + TOGETHER)
    await terminate(ec2, region, some)
    for (const began = Date.now(); ; ) {
      const alive = await instancesOf(ec2, region, [
        { Name: 'instance-id', Values: some },
        { Name: 'instance-state-name', Values: [...ALIVE] },
      ])
      if (alive.length === 0) break
      if (Date.now() - began > ENDING.whole)
        throw new ProviderError(
          `${region}: ${alive.length} instances do not shut down: ${alive.map(({ handle }) => handle).join(', ')}`,
        )
      onProgress(`${region}: waiting for ${alive.length} instances to shut down`)
      await sleep(ENDING.pause)
    }
    onProgress(
      `${region}: ${Math.min(from + TOGETHER, ids.length)} of ${ids.length} instances are terminated`,
    )
  }
}

/**
 * The groups of runs that have no instance here any more.
 * @param {Ec2} ec2 @param {string} region @param {string[] | 'all'} runs @param {(text: string) => void} onProgress
 */
async function sweep(ec2, region, runs, onProgress) {
  const groups = await groupsOf(ec2, region, runs)
  if (groups.length === 0) return
  const alive = await instancesOf(ec2, region, [
    ofRuns(runs),
    { Name: 'instance-state-name', Values: [...ALIVE] },
  ])
  for (const { id, run } of groups) {
    if (alive.some(handle => handle.run === run)) continue
    await deleteGroup(ec2, region, id, onProgress)
    onProgress(`${region}: security group ${id} is removed`)
  }
}

/**
 * Ends instances, and takes away the security groups of runs without any. Without handles: those of all such runs, in
 * the regions of the flags, or in all.
 * @param {Handle[]} handles @param {Options} options @param {(text: string) => void} onProgress
 * @returns {Promise<void>}
 * @throws {ProviderError}
 */
async function stop(handles, { flags }, onProgress) {
  const { regions, endpoint } = readPlace(flags)
  const ec2 = await Ec2.open({ endpoint })
  try {
    const runs = handles.length === 0 ? 'all' : [...new Set(handles.map(({ run }) => run))]
    const places = new Set([
      ...handles.map(({ where }) => where),
      ...(regions.length > 0 ? await ec2.regions(regions) : []),
    ])
    if (places.size === 0) for (const region of await ec2.openRegions()) places.add(region)
    const results = await abreast([...places], async region => {
      const own = handles.filter(({ where, state }) => where === region && state !== 'gone')
      await terminateAll(
        ec2,
        region,
        own.map(({ handle }) => handle),
        onProgress,
      )
      await sweep(ec2, region, runs, onProgress)
    })
    // The error of one region does not keep the others from being cleared.
    allOf(results)
  } finally {
    ec2.close()
  }
}

/**
 * Reboots an instance, or launches another one in the place of one that is gone.
 * @param {Handle} handle @param {Options} options
 * @returns {Promise<Handle>}
 * @throws {ProviderError}
 */
async function restart(handle, { flags, dir }) {
  const ec2 = await Ec2.open(readPlace(flags))
  try {
    const region = handle.where
    const [now] = await instancesOf(ec2, region, [{ Name: 'instance-id', Values: [handle.handle] }])
    if (now?.state === 'running' || now?.state === 'pending') {
      await ec2.send(region, 'RebootInstances', { InstanceIds: [now.handle] })
      return now
    }
    return await relaunch(ec2, handle, dir)
  } finally {
    ec2.close()
  }
}

/** @type {import('../contract.js').Provider} */
export const ec2 = Object.freeze({ name: 'ec2', help: HELP, flags: FLAGS, plan, launch, find, stop, restart })
