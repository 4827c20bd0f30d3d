// Reloads while workers die. A worker may exit at any point of a reload, even between its two steps.

import t from 'tap'
import { config } from '../../kit/fleet.js'
import { startGateway } from '../../kit/gateway.js'
import { until } from '../../kit/wait.js'

/** About one in twenty used to hang. */
const RELOADS = 24
const WORKERS = 2

const isEnd = ({ msg }) => msg === 'configuration reloaded' || msg === 'configuration not reloaded'

t.test('every reload completes even if all workers are killed at once', async t => {
  const gateway = await startGateway(t, { ...config, workers: WORKERS })
  const ends = () => gateway.lines.filter(isEnd).length
  for (let reload = 1; reload <= RELOADS; reload++) {
    const pids = gateway.workerPids.slice(-WORKERS)
    gateway.process.kill('SIGHUP')
    for (const pid of pids) process.kill(pid, 'SIGKILL')
    await until(() => ends() === reload && gateway.workerPids.length === WORKERS * (reload + 1))
  }
  t.equal(ends(), RELOADS)
})
