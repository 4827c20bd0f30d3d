// Faults with engine.memory.snapshot_file.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { bin } from '../../kit/gateway.js'
import { until } from '../../kit/wait.js'
import { publish, runs } from './snapshot-rig.js'

t.test('a snapshot that cannot be written is one error line; the shutdown is clean', async t => {
  const { start, folder } = await runs(t, { workers: 1 })
  const gateway = await start()
  await publish(gateway, 'one')
  await rm(folder, { recursive: true })
  gateway.process.kill('SIGTERM')
  t.strictSame(await gateway.exited, { code: 0, signal: null })
  await gateway.line(({ msg }) => msg === 'gateway stopped')
  const errors = gateway.lines.filter(({ level }) => level >= 50)
  t.match(errors, [{ reason: /ENOENT/, msg: /^snapshot not written/ }])
})

t.test('the snapshot is written even if a worker is killed during shutdown', async t => {
  const { start } = await runs(t, { workers: 1, shutdown: { timeout: '300ms' } })
  const first = await start()
  const { epoch } = await publish(first, 'one')
  const [worker] = first.workerPids
  process.kill(worker, 'SIGSTOP')
  first.process.kill('SIGTERM')
  t.strictSame(await first.exited, { code: 1, signal: null })
  t.match(await first.line(({ msg }) => msg === 'snapshot written'), { streams: 1, publications: 1 })
  const second = await start()
  t.strictSame(await publish(second, 'two'), { offset: 2, epoch })
})

t.test('a failed start keeps the snapshot for the next start', async t => {
  const { start } = await runs(t, { workers: 1 })
  const first = await start()
  const { epoch } = await publish(first, 'one')
  first.process.kill('SIGTERM')
  await first.exited
  const deadWorkers = 'import cluster from "node:cluster"; if (cluster.isWorker) process.exit(3)'
  const args = [
    '--import',
    `data:text/javascript,${deadWorkers}`,
    bin,
    'serve',
    '-c',
    join(first.folder, 'config.json'),
  ]
  const failing = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  failing.stdout.on('data', data => (output += data))
  t.strictSame(await once(failing, 'close'), [1, null])
  t.match(output, /snapshot restored(.|\n)*snapshot written/)
  const second = await start()
  t.match(await second.line(({ msg }) => msg === 'snapshot restored'), { streams: 1, publications: 1 })
  t.strictSame(await publish(second, 'two'), { offset: 2, epoch })
})

t.test('SIGTERM during the restore writes the snapshot again', async t => {
  const { start, file } = await runs(t)
  const first = await start()
  await publish(first, 'kept')
  first.process.kill('SIGTERM')
  t.strictSame(await first.exited, { code: 0, signal: null })
  const before = readFileSync(file, 'latin1')
  t.match(before, /^halley snapshot /)

  const child = spawn(process.execPath, [bin, 'serve', '-c', join(first.folder, 'config.json')], {
    stdio: 'ignore',
  })
  t.teardown(() => child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  // When the file is replaced by the marker of the running gateway.
  await until(() => readFileSync(file, 'latin1') !== before)
  child.kill('SIGTERM')
  t.strictSame(await exited, [0, null])
  t.match(readFileSync(file, 'latin1'), /^halley snapshot /)
  const later = await start()
  t.match(await later.api('history', { channel: 'news', limit: 1 }), {
    result: { publications: [{ data: 'kept' }] },
  })
})
