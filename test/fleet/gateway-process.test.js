// The gateway of a run, as the runner starts and follows it.

import t from 'tap'
import { GatewayProcess } from '../../fleet/runner/gateway-process.js'
import { testdir } from '../kit/folders.js'

/** Makes the primary open its stats socket only after its workers have answered for a while, as on a busy machine. */
const LATE_SOCKET = `import net from 'node:net'
const { listen } = net.Server.prototype
net.Server.prototype.listen = function (...args) {
  const path = args.find(arg => typeof arg === 'string' && arg.startsWith('/')) ?? args[0]?.path
  if (!path) return listen.apply(this, args)
  setTimeout(() => listen.apply(this, args), 1000)
  return this
}`

t.test('the workers are known after the start, even if the stats socket opens late', async t => {
  const gateway = await GatewayProcess.start({
    plan: {
      config: {},
      workers: 1,
      redis: false,
      nodeFlags: [`--import=data:text/javascript,${encodeURIComponent(LATE_SOCKET)}`],
    },
    out: testdir(t),
  })
  t.teardown(() => gateway.stop())
  t.equal(gateway.workerPids.length, 1)
  const [first] = gateway.workerPids
  t.match(await gateway.disturb('kill-worker', 0, 0), { text: `worker ${first} killed with SIGKILL` })

  const { pid } = gateway
  await gateway.restart('SIGKILL')
  t.not(gateway.pid, pid)
  t.equal(gateway.workerPids.length, 1, 'a restarted primary is found again')
  t.not(gateway.workerPids[0], first)
})
