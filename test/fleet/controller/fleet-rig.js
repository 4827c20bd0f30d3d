// A real fleet with local drones, in a folder that is removed with the test.

import { on } from 'node:events'
import { Fleet } from '../../../fleet/controller/fleet.js'
import { local } from '../../../fleet/providers/local.js'
import { signal } from '../../../fleet/providers/processes.js'
import { tempDir } from '../../kit/folders.js'

/** Gateway configuration for drones: no tokens, all permissions, and the server time in the connect reply. */
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
 * @returns {Promise<string>} path of a new folder; drones in it are killed at the end of the test
 */
export async function fleetFolder(t) {
  const dir = tempDir(t)
  t.teardown(async () => {
    for (const { handle } of await local.find('all', { dir, flags: {} })) await signal(handle, 'SIGKILL')
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
 * @param {(snapshot: import('../../../fleet/schema.js').FleetSnapshot) => boolean} condition
 * @returns {Promise<import('../../../fleet/schema.js').FleetSnapshot>} the first snapshot that meets it
 */
export async function snapshotOf(fleet, condition) {
  for await (const [snapshot] of on(fleet, 'snapshot')) if (condition(snapshot)) return snapshot
  throw new Error('unreachable')
}
