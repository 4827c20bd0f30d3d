// The Redis server of a run, as the runner starts and stops it.

import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { RedisProcess } from '../../fleet/runner/processes.js'
import { withoutProgram } from '../kit/needs.js'
import { processesWith } from './run-rig.js'

const skip = withoutProgram('redis-server')

t.test('Redis can be started again while it exits', { skip }, async t => {
  const dir = t.testdir()
  const redis = new RedisProcess(dir)
  t.teardown(() => redis.stop())
  await redis.start()
  const names = await Promise.all(
    (await processesWith(dir)).map(async pid => ({
      pid,
      name: await readFile(`/proc/${pid}/comm`, 'utf8'),
    })),
  )
  const pid = Number(names.find(({ name }) => name === 'redis-server\n')?.pid)
  process.kill(pid, 'SIGSTOP')
  const both = Promise.all([redis.stop(), redis.start()])
  await sleep(1000)
  process.kill(pid, 'SIGCONT')
  await both
  t.notOk(existsSync(`/proc/${pid}`))
  await redis.stop()
  t.same(await processesWith(dir), [], 'the second process is tracked')
})
