// Rolling restarts of a run's gateway, which take seconds.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { GatewayProcess } from '../../fleet/runner/gateway-process.js'
import { testdir } from '../kit/folders.js'
import { until } from '../kit/wait.js'

t.test('a rolling restart waits for the end of the previous one', async t => {
  const out = testdir(t)
  const gateway = await GatewayProcess.start({ plan: { config: {}, workers: 2 }, out })
  t.teardown(() => gateway.stop())
  const restarts = async () => {
    const lines = (await readFile(join(out, 'gateway.log'), 'utf8')).split('\n').filter(Boolean)
    return lines.map(line => JSON.parse(line).msg).filter(text => text.startsWith('rolling restart'))
  }
  process.kill(gateway.pid, 'SIGUSR2')
  await until(async () => (await restarts()).length > 0)
  await gateway.restartWorkers()
  const once = ['rolling restart started', 'rolling restart finished']
  await until(async () => (await restarts()).length >= 4)
  t.same(await restarts(), [...once, ...once])
})
