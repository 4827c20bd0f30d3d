// The queue process from its primary's view: a real process, with an unreachable Redis.

import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { BrokerHost } from '../../../src/channels/broker/embedded/host.js'
import { loadConfig } from '../../../src/config/load.js'
import { ConfigSwitch } from '../../../src/processes/primary/config-switch.js'
import { QueueProcess } from '../../../src/processes/primary/queue-process.js'
import { newNodeIdentity } from '../../../src/processes/primary/worker-pool.js'
import { quietLog } from '../../backends/queues/republishers/rig.js'

/** A started queue process. @param {any} t */
async function start(t) {
  const redis = { redis_stream: { address: '127.0.0.1:1' } }
  const republish = [{ name: 'out', type: 'redis_stream', enabled: true, channels: ['*'], ...redis }]
  const { config } = loadConfig({ base: { republish } })
  const log = quietLog()
  const host = new BrokerHost({ maxBytes: 1e6, snapshotFile: '', log: /** @type {any} */ (log) })
  const rig = { config }
  const queues = new QueueProcess({
    config: () => rig.config,
    host,
    facts: () => ({ node: newNodeIdentity(config), terminal: false, quiet: true }),
    configSwitch: () => idle,
    log: /** @type {any} */ (log),
  })
  const idle = new ConfigSwitch(() => [])
  t.teardown(async () => {
    queues.kill()
    await queues.end()
    await host.end()
  })
  await queues.start()
  return Object.assign(rig, { queues, log })
}

t.test('a slow queue process is not killed: its exit is awaited', async t => {
  const { queues } = await start(t)
  const pid = /** @type {number} */ (queues.pid)
  process.kill(pid, 'SIGSTOP')
  // More than the pipe buffer.
  queues.send(/** @type {any} */ ({ type: 'log', shown: false, forward: false, padding: 'x'.repeat(4e6) }))
  let drained = false
  const draining = queues.drain().then(() => {
    drained = true
  })
  await turn()
  t.notOk(drained, 'not while it is stopped')
  process.kill(pid, 'SIGCONT')
  await draining
})

t.test('a queue process that does not start is not logged as a replacement', async t => {
  const rig = await start(t)
  const { queues, log } = rig
  const unknown = /** @type {any} */ ({ ...rig.config.republish[0], type: 'unknown' })
  rig.config = { ...rig.config, republish: [unknown] }
  await queues.replace()
  const lines = log.lines.map(({ level, message }) => [level, message])
  t.same(lines, [['error', 'queue process died']])
})
