import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Fleet } from '../controller/fleet.js'
import { allowedOf } from './target.js'

/**
 * What a launch for a run would be, from a fleet that is gone afterwards.
 *
 * @param {import('../scenarios/contract.js').RunPlan} plan
 * @param {Pick<import('./run.js').RunOptions, 'provider' | 'flags' | 'target' | 'control' | 'apiKey' | 'tokenSecret'>} options
 * @returns {Promise<string[]>} lines
 */
export async function dryLaunch({ drones }, { provider, flags, target = [], control, apiKey, tokenSecret }) {
  const dir = await mkdtemp(join(tmpdir(), 'halley-plan-'))
  const fleet = await Fleet.open({ dir, provider, flags, ...control })
  try {
    const allow = target.length > 0 ? allowedOf(target) : ['127.0.0.1']
    const { lines, price } = await fleet.plan(drones, {
      flags,
      allow,
      apiKey,
      tokenSecret,
      listen: control?.listen,
    })
    return price === null
      ? lines
      : [...lines, `about ${price.hourly.toFixed(2)} ${price.currency} an hour (${price.note})`]
  } finally {
    await fleet.close()
    await rm(dir, { recursive: true, force: true })
  }
}
