import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { FleetCsv, statisticsLine } from '../../../fleet/controller/csv.js'
import { prepareFolder, readState, Store, stateFile, takeLock } from '../../../fleet/controller/folder.js'
import { rampedAt, runRamp } from '../../../fleet/controller/settings-sender.js'
import { zeroTally } from '../../../fleet/controller/snapshot.js'
import { defaultSettings } from '../../../fleet/settings.js'
import { zeroCounters } from '../../../fleet/statistics/counters.js'
import { Distribution } from '../../../fleet/statistics/distribution.js'
import { tempDir } from '../../kit/folders.js'

/** @param {object} [more] @returns {any} */
const stateOf = more => ({
  version: 1,
  run: 'abc',
  secret: 'a'.repeat(64),
  host: '127.0.0.1',
  port: 1,
  advertise: '',
  provider: 'local',
  flags: {},
  began: 0,
  next: 1,
  drones: [],
  settings: defaultSettings(),
  base: 0,
  publishFrom: 0,
  revision: 0,
  ramp: null,
  past: zeroTally(),
  ...more,
})

t.test('the state file is complete and readable only by its user', async t => {
  const dir = join(tempDir(t), 'deep', 'down')
  await prepareFolder(dir)
  t.equal((await stat(dir)).mode & 0o777, 0o700)
  t.equal(await readState(dir), null, 'there is no state yet')
  const faults = /** @type {string[]} */ ([])
  const store = new Store(dir, text => faults.push(text))
  await Promise.all(Array.from({ length: 20 }, (_, revision) => store.save(stateOf({ revision }))))
  t.equal((await readState(dir))?.revision, 19, 'the latest state')
  t.equal((await stat(stateFile(dir))).mode & 0o777, 0o600)
  t.same(await readdir(dir), ['state.json'], 'no drafts')
  await store.remove()
  t.equal(await readState(dir), null)
  t.same(faults, [])
})

t.test('a damaged state is a one-line error with advice', async t => {
  const dir = tempDir(t)
  const texts = [
    '',
    '{"version":1,"run":"abc"',
    '[]',
    '{"version":9}',
    JSON.stringify(stateOf({ secret: 'short' })),
  ]
  for (const text of texts) {
    await writeFile(stateFile(dir), text)
    await t.rejects(readState(dir), {
      message: /^[^\n]*state\.json is damaged \([^\n]+\); `npx halley-gateway fleet stop all`[^\n]*$/,
    })
  }
})

t.test('a state that cannot be written stays in memory and is reported once', async t => {
  const dir = tempDir(t)
  const faults = /** @type {string[]} */ ([])
  const store = new Store(dir, text => faults.push(text))
  await mkdir(join(stateFile(dir), 'in-the-way'), { recursive: true })
  for (let i = 0; i < 3; i++) await store.save(stateOf())
  t.equal(faults.length, 1)
  t.match(faults[0], /cannot be written .*the fleet continues/)
  t.same(await readdir(dir), ['state.json'], 'no drafts')
  await rm(stateFile(dir), { recursive: true })
  await store.save(stateOf({ revision: 7 }))
  t.match(faults[1], /can be written again/)
  t.equal((await readState(dir))?.revision, 7)
})

t.test('a folder has one controller; the lock of a dead one is replaced', async t => {
  const dir = tempDir(t)
  const release = await takeLock(dir)
  await t.rejects(takeLock(dir), { message: new RegExp(`another controller \\(process ${process.pid}\\)`) })
  await release()
  await writeFile(join(dir, 'controller.lock'), `${process.pid}@1`)
  const [one, other] = await Promise.allSettled([takeLock(dir), takeLock(dir)])
  t.same(
    [one.status, other.status].sort(),
    ['fulfilled', 'rejected'],
    'a process with another start time is no controller',
  )
  t.same(await readdir(dir), ['controller.lock'])
})

t.test('a ramp is linear and ends early when aborted or after a failed step', async t => {
  const line = { from: 100, to: 1100, began: 0, ends: 10_000 }
  t.same(
    [-5, 0, 2500, 9999, 10_000, 99_999].map(now => rampedAt(line, now)),
    [100, 100, 350, 1100, 1100, 1100],
  )
  t.equal(rampedAt({ from: 10, to: 0, began: 0, ends: 10 }, 5), 5)
  const steps = /** @type {number[]} */ ([])
  const began = Date.now()
  const { signal } = new AbortController()
  await runRamp({ from: 0, to: 40, began, ends: began + 3500 }, signal, async n => void steps.push(n))
  t.equal(steps.at(-1), 40)
  t.ok(steps.length >= 3)
  const abort = new AbortController()
  const other = runRamp({ from: 0, to: 40, began, ends: began + 1e6 }, abort.signal, async () => {})
  abort.abort(new Error('enough'))
  await t.rejects(other, { message: 'enough' })
  const failing = runRamp({ from: 0, to: 40, began, ends: began + 1e6 }, signal, () =>
    Promise.reject(new Error('refused')),
  )
  await t.rejects(failing, { message: 'refused' })
})

/** @param {object} [more] @returns {any} */
function snapshot(more) {
  const latency = new Distribution()
  for (let i = 1; i <= 100; i++) latency.record(i)
  const none = new Distribution().toWire()
  const rates = { opened: 0, failed: 0, ended: 0, received: 20, published: 0, bytesIn: 0, bytesOut: 0 }
  return {
    time: 1_700_000_000_000,
    gauges: { wanted: 5, opening: 1, open: 4 },
    counters: { ...zeroCounters(), received: 100, lost: 3 },
    rates,
    drones: [],
    latency: none,
    latencyNow: latency.toWire(),
    ...more,
  }
}

t.test('the CSV file has a row per second with statistics of the last 5 s', async t => {
  const file = join(tempDir(t), 'fleet.csv')
  const csv = await FleetCsv.open(file)
  csv.write(snapshot())
  csv.write(snapshot({ time: 1_700_000_001_000, latencyNow: new Distribution().toWire() }))
  await csv.close()
  const again = await FleetCsv.open(file, { append: true })
  again.write(snapshot({ time: 1_700_000_002_000 }))
  await again.close()
  const [header, ...rows] = (await readFile(file, 'utf8'))
    .trim()
    .split('\n')
    .map(row => row.split(','))
  t.same(header.slice(0, 4), ['time', 'connections', 'wanted', 'opening'])
  t.equal(rows.length, 3, 'and one header')
  t.ok(rows.every(row => row.length === header.length))
  const cell = (/** @type {number} */ row, /** @type {string} */ name) => rows[row][header.indexOf(name)]
  t.equal(cell(0, 'lost'), '3')
  t.equal(cell(0, 'latency_mean_ms'), '50.5')
  t.equal(cell(0, 'latency_max_ms'), '100')
  t.equal(cell(1, 'latency_mean_ms'), '', 'a missing value is not 0')
  t.match(statisticsLine(snapshot()), /100 messages, min 1, mean 50\.5 ± 5\.69 .*max 100 ms$/)
  t.equal(statisticsLine(snapshot({ latencyNow: new Distribution().toWire() })), '')
})

t.test('a full disk is reported once and causes no delay', async t => {
  const file = join(tempDir(t), 'full.csv')
  await symlink('/dev/full', file)
  const faults = /** @type {string[]} */ ([])
  const csv = await FleetCsv.open(file, { onFault: text => faults.push(text) })
  for (let i = 0; i < 5; i++) csv.write(snapshot())
  await csv.close()
  t.equal(faults.length, 1)
  t.match(faults[0], /full\.csv cannot be written: ENOSPC/)
})
