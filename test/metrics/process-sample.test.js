import { closeSync, existsSync, openSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { GcSampler, OpenFiles, ProcessSampler } from '../../src/metrics/process-sample.js'
import { unless } from '../kit/needs.js'

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc')

/** @param {number} ms of the processor: on a busy machine others may have it for a while */
function work(ms) {
  const before = process.cpuUsage()
  while (process.cpuUsage(before).user < ms * 1000);
}

t.test('collections are counted by kind, with pauses, since the previous sample', async t => {
  const watch = new GcSampler()
  t.teardown(() => watch.stop())
  gc()
  gc()
  gc({ type: 'minor' })
  await turn()
  const first = watch.sample()
  t.ok(first.major.count >= 2)
  t.ok(first.major.pause > 0 && first.major.pause < 2000)
  t.ok(first.minor.count >= 1)
  t.ok(first.minor.pause > 0)
  const second = watch.sample()
  t.same(Object.keys(second), ['minor', 'major', 'incremental', 'weak'])
  t.same(second.major, { count: 0, pause: 0 })
})

t.test('CPU and event loop of a process are measured', async t => {
  const sampler = new ProcessSampler()
  t.teardown(() => sampler.stop())
  await turn()
  const before = process.cpuUsage()
  sampler.sample()
  work(200)
  await turn()
  const { cpu, loop, interval, pid, uptime } = sampler.sample()
  const used = process.cpuUsage(before)
  t.equal(pid, process.pid)
  t.ok(uptime > 0 && uptime <= process.uptime() * 1000 + 1)
  t.ok(interval >= 200)
  t.ok(cpu.user * interval > 150, JSON.stringify(cpu))
  t.ok((cpu.user + cpu.system) * interval < (used.user + used.system) / 1000 + 50, JSON.stringify(cpu))
  t.ok(loop.utilization > 0.5 && loop.utilization <= 1, `${loop.utilization}`)
  await new Promise(resolve => setTimeout(resolve, 200))
  t.ok(sampler.sample().loop.utilization < 0.9, 'since the sample before')
})

t.test('heap spaces add up to the heap', async t => {
  const sampler = new ProcessSampler()
  t.teardown(() => sampler.stop())
  const { memory } = sampler.sample()
  t.ok(memory.rss > memory.heap_total)
  t.ok(memory.heap_total >= memory.heap_used)
  t.ok(memory.heap_limit > memory.heap_total)
  t.ok(memory.external >= memory.array_buffers)
  t.match(Object.keys(memory.spaces), ['read_only', 'new', 'old', 'code'])
  const total = Object.values(memory.spaces).reduce((sum, space) => sum + space.total, 0)
  t.ok(Math.abs(total - memory.heap_total) < memory.heap_total / 10, `${total} of ${memory.heap_total}`)
})

t.test(
  'open files and their limit are reported',
  { skip: unless(existsSync('/proc/self/fd'), 'there is no /proc/self/fd') },
  async t => {
    const files = new OpenFiles()
    const before = Number(files.count())
    const opened = Array.from({ length: 20 }, () => openSync('/dev/null', 'r'))
    const limit = Number(files.limit)
    t.equal(new OpenFiles().count(), before + 20)
    for (const file of opened) closeSync(file)
    t.ok(before > 2)
    t.ok(limit > before)
  },
)

t.test('without a kernel count, files are counted rarely', async t => {
  // A folder whose size is not the number of its entries, as /proc/self/fd before Linux 6.2.
  const zeroSize = '/proc/self/task'
  t.equal(new OpenFiles('/no/such/folder').count(), null, 'there is none')
  if (!existsSync(zeroSize)) return t.pass('not run', { skip: `there is no ${zeroSize}` })
  const files = new OpenFiles(zeroSize)
  const count = Number(files.count())
  t.ok(count > 0)
  t.equal(files.count(), count)
})
