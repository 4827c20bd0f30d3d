// The real view on a real terminal, and the controller that it sees.

import { once } from 'node:events'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Tmux } from '../kit/tmux.js'
import { mockSnapshots } from './mock-snapshot.js'

const PROGRAM = fileURLToPath(new URL('status-program.js', import.meta.url))
export const snapshots = mockSnapshots({ drones: 3, faults: { ECONNREFUSED: 17 } })
const last = /** @type {import('../../fleet/schema.js').FleetSnapshot} */ (snapshots.at(-1))

/**
 * A terminal on which the view runs, and the controller that it sees.
 * @param {import('tap').Test} t
 * @param {object} [options]
 * @param {object} [options.flags]
 * @param {Parameters<typeof Tmux.start>[1]} [options.place]
 * @param {boolean} [options.fed] whether the snapshots are told
 * @param {string} [options.pipe] behind the command
 */
export async function open(t, { flags = {}, place = {}, fed = true, pipe = '' } = {}) {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { tmux, settings } = await Tmux.shell(t, place)
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const connected = once(server, 'connection')
  await tmux.enter(`${process.execPath} ${PROGRAM} ${port} '${JSON.stringify(flags)}'${pipe}; echo exit $?`)
  const [socket] = await connected
  t.teardown(() => socket.destroy())
  socket.on('error', () => {})
  /** @type {any[]} */
  const asked = []
  let pid = 0
  const greeted = new Promise(resolve => {
    const lines = createInterface({ input: socket })
    // It says the errors of its socket again.
    lines.on('error', () => {})
    lines.on('line', line => {
      const message = JSON.parse(line)
      if (message.pid === undefined) asked.push(message)
      else {
        pid = message.pid
        resolve(undefined)
      }
    })
  })
  await greeted
  const tell = (/** @type {object} */ message) => socket.write(`${JSON.stringify(message)}\n`)
  const beat = () => tell({ snapshot: { ...last, time: last.time + 1000 } })
  if (fed) {
    for (const snapshot of snapshots) tell({ snapshot })
    const beating = setInterval(beat, 1000)
    t.teardown(() => clearInterval(beating))
  }
  return { tmux, settings, asked, tell, beat, pid }
}
