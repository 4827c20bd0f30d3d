// A gateway's stats socket in a separate process, to be killed: node stats-socket-child.js PATH

import { StatsSocket } from '../../src/metrics/stats-socket.js'
import { monitorRig } from './monitor-rig.js'

const { monitor, logged } = monitorRig()
const socket = await StatsSocket.open({
  path: process.argv[2],
  monitor,
  actions: { gc() {}, restart() {}, stop() {}, log: () => () => {}, reload: async () => '' },
  log: /** @type {any} */ ({ error: (/** @type {string} */ line) => logged.push(line) }),
})
process.stdout.write(socket ? 'listens\n' : `${logged[0]}\n`)
if (!socket) process.exit(1)
