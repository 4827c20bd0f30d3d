// A failed fork (here without free descriptors) counts as a failed start.

import { execFileSync } from 'node:child_process'
import t from 'tap'
import { config, crowd, healthy } from '../../kit/fleet.js'
import { startGateway } from '../../kit/gateway.js'
import { withoutProgram } from '../../kit/needs.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'

/** Fewer than a gateway has open. */
const NONE_FREE = 8

const skip = withoutProgram('prlimit', 'util-linux')

t.test('a failed fork is logged and retried; other workers keep running', { skip }, async t => {
  const gateway = await startGateway(t, config)
  const clients = await crowd(gateway)
  const pid = String(gateway.process.pid)
  const limit = execFileSync('prlimit', [
    '--pid',
    pid,
    '--nofile',
    '--noheadings',
    '--raw',
    '--output=SOFT,HARD',
  ])
  const [soft, hard] = String(limit).trim().split(' ')
  const setLimit = count => execFileSync('prlimit', ['--pid', pid, `--nofile=${count}:${hard}`])
  const failed = () => gateway.lines.filter(({ reason }) => /^spawn .* EMFILE$/.test(reason))

  setLimit(NONE_FREE)
  gateway.process.kill('SIGUSR2')
  t.match(await gateway.line(({ msg }) => /^rolling restart aborted/.test(msg)), {
    worker: 0,
    reason: /EMFILE/,
  })
  t.ok(
    clients.every(({ ended }) => !ended),
    'all clients stay connected',
  )

  process.kill(gateway.workerPids[1], 'SIGKILL')
  await until(() => failed().some(({ msg, failed_starts }) => msg === 'worker died' && failed_starts >= 2))
  const survivors = clients.filter(({ ended }) => !ended)
  t.ok(survivors.length > 0)

  setLimit(soft)
  await until(() => gateway.workerPids.length === 3)
  await healthy(gateway)
  t.ok(survivors.every(({ ended }) => !ended))
  await RawClient.connected(gateway.ws)

  setLimit(NONE_FREE)
  process.kill(gateway.workerPids.at(-1), 'SIGKILL')
  const before = failed().length
  await until(() => failed().length > before)
  t.strictSame(await gateway.stop(), { code: 0, signal: null })
})
