import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { CSV_HEADER, csvRow } from '../../src/metrics/csv-columns.js'
import { readCsv } from '../../src/metrics/csv-reader.js'
import { CsvWriter } from '../../src/metrics/csv-writer.js'
import { until } from '../kit/wait.js'
import { mockSnapshots } from './mock.js'

const snapshots = mockSnapshots({ seconds: 60 })
const times = snapshots.map(({ time }) => time)

/** @param {string} file */
const timesIn = async file => [...(await readCsv(file)).columns.time]

/** @param {string} file @param {import('../../src/metrics/schema.js').Snapshot} snapshot */
function endsWith(file, snapshot) {
  try {
    const text = readFileSync(file, 'utf8')
    return [true, false].some(first => text.endsWith(csvRow(snapshot, first)))
  } catch {
    // It is being rotated.
    return false
  }
}

t.test('one row for each snapshot, and one header', async t => {
  const file = join(t.testdir(), 'run.csv')
  const writer = new CsvWriter({ file })
  for (const snapshot of snapshots) writer.write(snapshot)
  await writer.close()
  const text = readFileSync(file, 'utf8')
  t.equal(text, CSV_HEADER + snapshots.map((s, at) => csvRow(s, at === 0)).join(''))
  t.match(writer.status, { file, bytes: text.length, max_bytes: 0, rotations: 0, error: null })
  t.same(await timesIn(file), times)
})

t.test('a row is in the file soon after it was given, without close', async t => {
  const file = join(t.testdir(), 'run.csv')
  const writer = new CsvWriter({ file })
  t.teardown(() => writer.close())
  for (let n = 0; n < 5; n++) {
    const { bytes } = writer.status
    writer.write(snapshots[n])
    await until(() => writer.status.bytes > bytes)
    t.same(await timesIn(file), times.slice(0, n + 1))
  }
})

t.test('the next gateway goes on in the same file, and says what it is', async t => {
  const file = join(t.testdir(), 'run.csv')
  for (const part of [snapshots.slice(0, 10), snapshots.slice(10, 20)]) {
    const writer = new CsvWriter({ file })
    for (const snapshot of part) writer.write(snapshot)
    await writer.close()
  }
  const { columns, facts, skipped } = await readCsv(file)
  t.same([...columns.time], times.slice(0, 20))
  t.same(
    facts.map(({ row }) => row),
    [0, 10],
  )
  t.equal(skipped, 0)
  t.equal(readFileSync(file, 'utf8').split('time,').length, 2, 'one header')
})

t.test('a row that was torn stays by itself', async t => {
  const file = join(t.testdir(), 'run.csv')
  writeFileSync(file, `${CSV_HEADER}${csvRow(snapshots[0], true)}${csvRow(snapshots[1], false).slice(0, 50)}`)
  const writer = new CsvWriter({ file })
  writer.write(snapshots[2])
  await writer.close()
  const { columns, skipped } = await readCsv(file)
  t.same([...columns.time], [times[0], times[2]])
  t.equal(skipped, 1)
})

t.test('a header that was torn is written anew, and nothing is moved', async t => {
  const dir = t.testdir()
  const file = join(dir, 'run.csv')
  writeFileSync(file, CSV_HEADER.slice(0, 40))
  const writer = new CsvWriter({ file })
  writer.write(snapshots[0])
  await writer.close()
  t.same(await timesIn(file), [times[0]])
  t.same(readdirSync(dir), ['run.csv'])
})

t.test('a file with another header is moved away, never mixed', async t => {
  const dir = t.testdir({ 'run.csv': 'time,other\n1,2\n', 'run.csv.1': 'older\n' })
  const file = join(dir, 'run.csv')
  const writer = new CsvWriter({ file, keep: 2 })
  writer.write(snapshots[0])
  await writer.close()
  t.same(await timesIn(file), [times[0]])
  t.equal(readFileSync(`${file}.1`, 'utf8'), 'time,other\n1,2\n')
  t.equal(readFileSync(`${file}.2`, 'utf8'), 'older\n')
})

t.test('rotation by size keeps so many files, each with its header, and loses no row', async t => {
  const dir = t.testdir()
  const file = join(dir, 'run.csv')
  const maxBytes = CSV_HEADER.length + 10 * csvRow(snapshots[59], true).length
  const writer = new CsvWriter({ file, maxBytes, keep: 20 })
  for (const snapshot of snapshots) {
    writer.write(snapshot)
    await until(() => endsWith(file, snapshot))
  }
  await writer.close()
  const { rotations } = writer.status
  t.ok(rotations >= 4, `${rotations} rotations`)
  t.equal(readdirSync(dir).length, rotations + 1)
  const names = [...Array.from({ length: rotations }, (_, n) => `${file}.${rotations - n}`), file]
  const parts = await Promise.all(names.map(timesIn))
  t.same(parts.flat(), times)
  for (const name of names) t.ok(statSync(name).size <= maxBytes, name)
  for (const { facts } of await Promise.all(names.map(name => readCsv(name)))) t.equal(facts.length, 1)
})

t.test('no more files than asked for', async t => {
  for (const [keep, left] of /** @type {[number, string[]][]} */ ([
    [0, ['run.csv']],
    [1, ['run.csv', 'run.csv.1']],
    [2, ['run.csv', 'run.csv.1', 'run.csv.2']],
  ])) {
    const dir = t.testdir()
    const file = join(dir, 'run.csv')
    const writer = new CsvWriter({ file, maxBytes: CSV_HEADER.length + 1000, keep })
    for (const snapshot of snapshots.slice(0, 20)) {
      writer.write(snapshot)
      await until(() => endsWith(file, snapshot))
    }
    await writer.close()
    t.same(readdirSync(dir).sort(), left)
    t.same((await timesIn(file)).at(-1), times[19])
    rmSync(dir, { recursive: true })
  }
})

t.test('a full disk is said once, and neither throws nor blocks', async t => {
  /** @type {string[]} */
  const said = []
  const writer = new CsvWriter({ file: '/dev/full', onError: text => said.push(text) })
  for (const snapshot of snapshots.slice(0, 10)) {
    writer.write(snapshot)
    await until(() => writer.status.error !== null)
  }
  await writer.close()
  t.same(said, ['cannot write /dev/full: ENOSPC'])
  t.equal(writer.status.error, 'ENOSPC')
})

t.test('a folder that is not there yet: rows wait, and are written when it is', async t => {
  const dir = join(t.testdir(), 'later')
  const file = join(dir, 'run.csv')
  /** @type {string[]} */
  const said = []
  const writer = new CsvWriter({ file, onError: text => said.push(text) })
  writer.write(snapshots[0])
  await until(() => writer.status.error !== null)
  t.equal(writer.status.error, 'ENOENT')
  writer.write(snapshots[1])
  mkdirSync(dir)
  await until(() => {
    // Each second is a try.
    if (writer.status.error !== null) writer.write(snapshots[2])
    return writer.status.error === null
  })
  await writer.close()
  const rows = await timesIn(file)
  t.same(rows.slice(0, 2), times.slice(0, 2))
  t.same(said, [`cannot write ${file}: ENOENT`])
})

t.test('rows that wait hold nothing of their snapshots', async t => {
  const folder = join(t.testdir(), 'later')
  const writer = new CsvWriter({ file: join(folder, 'run.csv') })
  const snapshot = structuredClone(snapshots[0])
  writer.write(snapshot)
  await until(() => writer.status.error !== null)
  snapshot.time = 1
  mkdirSync(folder)
  writer.write(snapshots[1])
  await writer.close()
  t.same(await timesIn(join(folder, 'run.csv')), [times[0], times[1]])
})

t.test('a file that somebody moved away is begun anew', async t => {
  const dir = t.testdir()
  const file = join(dir, 'run.csv')
  const writer = new CsvWriter({ file })
  writer.write(snapshots[0])
  await until(() => writer.status.bytes > 0)
  renameSync(file, join(dir, 'moved.csv'))
  writer.write(snapshots[1])
  await writer.close()
  t.same(await timesIn(join(dir, 'moved.csv')), [times[0]])
  t.same(await timesIn(file), [times[1]])
})

t.test('a folder that is deleted under it is an error, and comes back', async t => {
  const dir = join(t.testdir(), 'gone')
  const file = join(dir, 'run.csv')
  mkdirSync(dir)
  const writer = new CsvWriter({ file })
  writer.write(snapshots[0])
  await until(() => writer.status.bytes > 0)
  rmSync(dir, { recursive: true })
  writer.write(snapshots[1])
  await until(() => writer.status.error !== null)
  mkdirSync(dir)
  writer.write(snapshots[2])
  await until(() => writer.status.error === null)
  await writer.close()
  t.same(await timesIn(file), times.slice(1, 3))
})

t.test('kill -9 costs at most the last second', async t => {
  const file = join(t.testdir(), 'run.csv')
  const child = fork(fileURLToPath(new URL('./csv-child.js', import.meta.url)), [file])
  t.teardown(() => child.kill('SIGKILL'))
  const written = 40
  const size = () => statSync(file, { throwIfNoEntry: false })?.size ?? 0
  for (let n = 0; n < written; n++) {
    const before = size()
    child.send('write')
    // A second passes between rows in earnest; here as much as it takes until this one is with the kernel.
    await until(() => size() > before)
  }
  child.send('write')
  child.kill('SIGKILL')
  await once(child, 'exit')
  const rows = await timesIn(file)
  const all = mockSnapshots({ seconds: 100 }).map(({ time }) => time)
  t.ok(rows.length >= written, `${rows.length} of ${written + 1}`)
  t.same(rows, all.slice(0, rows.length))
})
