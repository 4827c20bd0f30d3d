// Fleet status on a terminal; the test sends the snapshots, not a controller.

import { fileURLToPath } from 'node:url'
import { connected } from '../dashboard/terminal/on-terminal.js'
import { mockSnapshots } from './mock-snapshot.js'

const PROGRAM = fileURLToPath(new URL('status-program.js', import.meta.url))
export const snapshots = mockSnapshots({ drones: 3, faults: { ECONNREFUSED: 17 } })
const last = /** @type {import('../../fleet/schema.js').FleetSnapshot} */ (snapshots.at(-1))

/**
 * @param {import('tap').Test} t
 * @param {{flags?: object, fed?: boolean}} [options] flags: of the program; fed: send snapshots
 */
export async function open(t, { flags = {}, fed = true } = {}) {
  const program = await connected(
    t,
    port => `${process.execPath} ${PROGRAM} ${port} '${JSON.stringify(flags)}'; echo exit $?`,
  )
  const { pid } = await program.next('pid')
  const beat = () => program.send({ snapshot: { ...last, time: last.time + 1000 } })
  if (fed) {
    for (const snapshot of snapshots) program.send({ snapshot })
    const beating = setInterval(beat, 1000)
    t.teardown(() => clearInterval(beating))
  }
  return { ...program, beat, pid }
}
