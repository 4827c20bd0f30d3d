// The provider of Amazon EC2: instances in several regions, found by their tags. This file finds, stops and restarts
// them; plan.js plans a launch, launch.js makes it, user-data.js and setup.sh turn an instance into a drone, client.js
// is the API. It fulfils providers/contract.js: each instance ends itself at its time limit. The SDK is an optional
// dependency that only client.js loads, with the first request. Only providers/index.js imports this folder.

import { setTimeout as sleep } from 'node:timers/promises'
import { ProviderError } from '../contract.js'
import { allOf, Ec2, inParallel } from './client.js'
import { deleteGroup, groupsOf, ofRuns } from './groups.js'
import { ALIVE, instancesOf } from './handles.js'
import { launch, relaunch } from './launch.js'
import { FLAGS, HELP, readPlace } from './options.js'
import { plan } from './plan.js'

/** @import { Handle } from '../../schema.js' */
/** @import { Options } from '../contract.js' */

const MAX_PER_CALL = 100
/** Interval and timeout of the shutdown check, ms. */
const SHUTDOWN_POLL = { pause: 1500, whole: 120_000 }

/**
 * @param {string[] | 'all'} runs @param {Options} options without regions: all regions open to the account
 * @returns {Promise<Handle[]>} of named runs also recently ended ones, as `gone` with the reason
 */
async function find(runs, { flags }) {
  const { regions, endpoint } = readPlace(flags)
  if (runs !== 'all' && runs.length === 0) return []
  const ec2 = await Ec2.open({ endpoint })
  try {
    const searched = regions.length > 0 ? await ec2.regions(regions) : await ec2.openRegions()
    const states =
      runs === 'all' ? [{ Name: 'instance-state-name', Values: [...ALIVE, 'shutting-down'] }] : []
    const found = await inParallel(searched, region => instancesOf(ec2, region, [ofRuns(runs), ...states]))
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
    // One unknown instance fails the whole call: repeat it with the known ones.
    const known = (await instancesOf(ec2, region, [{ Name: 'instance-id', Values: ids }])).map(
      ({ handle }) => handle,
    )
    if (known.length < ids.length) await terminate(ec2, region, known)
    else throw error
  }
}

/** @param {Ec2} ec2 @param {string} region @param {string[]} ids @param {(text: string) => void} onProgress */
async function terminateAll(ec2, region, ids, onProgress) {
  for (let from = 0; from < ids.length; from += MAX_PER_CALL) {
    const some = ids.slice(from, from + MAX_PER_CALL)
    await terminate(ec2, region, some)
    for (const began = Date.now(); ; ) {
      const alive = await instancesOf(ec2, region, [
        { Name: 'instance-id', Values: some },
        { Name: 'instance-state-name', Values: [...ALIVE] },
      ])
      if (alive.length === 0) break
      if (Date.now() - began > SHUTDOWN_POLL.whole)
        throw new ProviderError(
          `${region}: ${alive.length} instances did not shut down: ${alive.map(({ handle }) => handle).join(', ')}`,
        )
      onProgress(`${region}: waiting for ${alive.length} instances to shut down`)
      await sleep(SHUTDOWN_POLL.pause)
    }
    onProgress(
      `${region}: ${Math.min(from + MAX_PER_CALL, ids.length)} of ${ids.length} instances terminated`,
    )
  }
}

/**
 * Deletes the groups of runs without instances.
 * @param {Ec2} ec2 @param {string} region @param {string[] | 'all'} runs @param {(text: string) => void} onProgress
 */
async function deleteEmptyGroups(ec2, region, runs, onProgress) {
  const groups = await groupsOf(ec2, region, runs)
  if (groups.length === 0) return
  const alive = await instancesOf(ec2, region, [
    ofRuns(runs),
    { Name: 'instance-state-name', Values: [...ALIVE] },
  ])
  for (const { id, run } of groups) {
    if (alive.some(handle => handle.run === run)) continue
    await deleteGroup(ec2, region, id, onProgress)
    onProgress(`${region}: security group ${id} deleted`)
  }
}

/**
 * Terminates instances, and deletes the security groups of runs without any. Without handles: the groups of all such
 * runs, in the regions of the flags, or in all.
 * @param {Handle[]} handles @param {Options} options @param {(text: string) => void} onProgress
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
    const results = await inParallel([...places], async region => {
      const own = handles.filter(({ where, state }) => where === region && state !== 'gone')
      await terminateAll(
        ec2,
        region,
        own.map(({ handle }) => handle),
        onProgress,
      )
      await deleteEmptyGroups(ec2, region, runs, onProgress)
    })
    // Clears all regions before throwing the error of one.
    allOf(results)
  } finally {
    ec2.close()
  }
}

/** @param {Handle} handle of a running or terminated instance @param {Options} options @returns {Promise<Handle>} */
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
