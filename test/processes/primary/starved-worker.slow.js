// A worker with hardly any CPU time, as on an overloaded machine, is not replaced.

import { execFileSync, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { testdir } from '../../kit/folders.js'
import { withoutProgram } from '../../kit/needs.js'
import { RawClient } from '../../kit/raw-client.js'
import { watched } from './telemetry-rig.js'

/** CPU time of the hook, ms: far less than the limit of a busy worker. */
const WORK = 1500
const HOOKS = `
  export const connect = () => ({ user: 'ann' })
  export const rpc = {
    work: () => {
      const begin = process.cpuUsage()
      for (;;) {
        const { user, system } = process.cpuUsage(begin)
        if (user + system > ${WORK} * 1000) return 'done'
      }
    },
  }`
/** Processes that compete for the worker's core. */
const RIVALS = 20
/** Seconds without a sample: longer than the limit of a busy worker. */
const STARVED = 12

/** A core that this process may use. */
const core = /Cpus_allowed_list:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'

const skip =
  withoutProgram('chrt', 'util-linux') ||
  withoutProgram('taskset', 'util-linux') ||
  // Not `unless`, which fails with CI=true: test:platforms runs the tests as an unprivileged user.
  (process.getuid?.() === 0 ? false : 'only root may raise the priority of a process')

t.test('a worker that gets no CPU time is not replaced', { skip }, async t => {
  const folder = testdir(t, { 'package.json': '{"type":"module"}', 'hooks.js': HOOKS })
  const { gateway, watcher } = await watched(t, {
    workers: 1,
    hooks: { module: join(folder, 'hooks.js') },
    worker: { liveness_timeout: '1s' },
    client: { ping_interval: '10m' },
  })
  const { workers } = await watcher.snapshot(({ totals }) => totals.workers === 1)
  const worker = String(workers[0].sample?.pid)
  const client = await RawClient.connected(gateway.ws)
  // SCHED_IDLE (sched(7)): it and its competitors use only idle time of that core.
  const spin = ['-i', '0', 'taskset', '-c', core, 'sh', '-c', 'while :; do :; done']
  const rivals = Array.from({ length: RIVALS }, () => spawn('chrt', spin, { stdio: 'ignore' }))
  const end = () => rivals.map(rival => rival.kill('SIGKILL'))
  t.teardown(end)
  execFileSync('taskset', ['-a', '-c', '-p', core, worker], { stdio: 'ignore' })
  execFileSync('chrt', ['-a', '-i', '-p', '0', worker], { stdio: 'ignore' })

  client.send({ id: 9, rpc: { method: 'work' } })
  const { seq } = await watcher.snapshot(({ workers: [first] }) => first.state === 'silent')
  await watcher.snapshot(later => later.seq >= seq + STARVED)
  end()
  execFileSync('chrt', ['-a', '-o', '-p', '0', worker], { stdio: 'ignore' })
  t.match(await client.next(message => message.id === 9), { rpc: { data: 'done' } })
  await watcher.snapshot(({ workers: [first] }) => first.state === 'up')
  t.strictSame(
    gateway.lines.filter(({ msg }) => msg === 'worker died'),
    [],
  )
  await client.close()
})
