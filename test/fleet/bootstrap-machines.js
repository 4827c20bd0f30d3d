// A fleet with simulated machines, which have only a bootstrap.

import { packProgram, saveProgram } from '../../fleet/program.js'
import { freePort } from '../kit/ports.js'
import { Machine } from './ec2/machine.js'

export const program = await packProgram()

/**
 * @param {any} t
 * @param {string} dir of the fleet
 * @param {{sha256: string}} [pinned]
 * @returns {import('../../fleet/providers/contract.js').Provider & {machines: Machine[]}} drones are machines with
 *   nothing but a bootstrap
 */
export function machinesOf(t, dir, pinned = program) {
  /** @type {Machine[]} */
  const machines = []
  return {
    name: 'machines',
    help: '',
    flags: {},
    machines,
    plan: async ({ drones }) => ({ lines: [], price: null, details: drones }),
    launch: async ({ details }) => {
      await saveProgram(dir, program)
      for (const drone of details) {
        const machine = await Machine.make(t, drone, pinned.sha256)
        machine.start()
        machines.push(machine)
      }
      return details.map((/** @type {any} */ { id, run }) => ({ id, run, handle: id, state: 'running' }))
    },
    find: async () => [],
    stop: async () => {
      for (const machine of machines) await machine.kill()
    },
    restart: async handle => handle,
    listen: async count =>
      await Promise.all(Array.from({ length: count }, async () => `127.0.0.1:${await freePort()}`)),
  }
}
