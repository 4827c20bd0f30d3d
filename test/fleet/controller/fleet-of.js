// A real fleet in a folder of the test's own, and ways to wait for it.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Fleet } from '../../../fleet/controller/fleet.js'
import { local } from '../../../fleet/providers/local.js'
import { signal } from '../../../fleet/providers/processes.js'

/** What lets anybody connect, subscribe and publish, and tells the time. */
export const OPEN_GATEWAY = {
  workers: 1,
  log: { level: 'info' },
  client: { insecure: true, connect_include_server_time: true },
  channel: {
    without_namespace: {
      allow_subscribe_for_client: true,
      allow_publish_for_client: true,
      history_size: 100,
      history_ttl: '60s',
    },
  },
}

/**
 * @param {any} t
 * @returns {Promise<string>} a folder; drones in it are ended with the test
 */
export async function fleetFolder(t) {
  const dir = await mkdtemp(join(tmpdir(), 'halley-fleet-'))
  t.teardown(async () => {
    for (const { handle } of await local.find('all', { dir, flags: {} })) await signal(handle, 'SIGKILL')
    await rm(dir, { recursive: true, force: true })
  })
  return dir
}

/**
 * @param {any} t
 * @param {string} dir
 * @param {object} [options] of Fleet.open
 */
export async function openFleet(t, dir, options = {}) {
  const fleet = await Fleet.open({ dir, provider: local, ...options })
  t.teardown(() => fleet.close())
  return fleet
}

/**
 * @param {Fleet} fleet
 * @param {(snapshot: import('../../../fleet/schema.js').FleetSnapshot) => boolean} good
 * @returns {Promise<import('../../../fleet/schema.js').FleetSnapshot>} the first one that is
 */
export function until(fleet, good) {
  return new Promise(resolve => {
    const look = (/** @type {any} */ snapshot) => {
      if (!good(snapshot)) return
      fleet.off('snapshot', look)
      resolve(snapshot)
    }
    fleet.on('snapshot', look)
  })
}
