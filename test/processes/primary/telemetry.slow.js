import t from 'tap'
import { majors, watched } from './telemetry-rig.js'

t.test('garbage is collected at intervals, one worker after another', async t => {
  // Three seconds between the workers: on a busy machine a collection may be a second or two late.
  const { watcher } = await watched(t, { gc: { idle: false } }, { args: ['--gc-interval', '6s'] })
  const counts = [0, 0]
  const times = [0, 0]
  let together = 0
  await watcher.snapshot(({ workers }) => {
    // A late worker has its previous sample.
    const fresh = workers.filter(({ index, sample }) => sample && sample.time !== times[index])
    for (const { index, sample } of fresh) times[index] = sample?.time ?? 0
    const collected = fresh.filter(worker => majors(worker) > 0)
    for (const { index } of collected) counts[index]++
    if (collected.length === 2) together++
    return Math.min(...counts) >= 2
  })
  // V8 also collects by itself while a worker starts.
  t.ok(together <= 1, `${together} times both in one second`)
})
