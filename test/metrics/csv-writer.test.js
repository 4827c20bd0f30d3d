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

/** @typedef {import('../../src/metrics/schema.js').Snapshot} Snapshot */

const snapshots = mockSnapshots({ seconds: 60 })
const times = snapshots.map(({ time }) => time)

/** @param {string} file */
const timesIn = async file => [...(await readCsv(file)).columns.time]

/** @param {ConstructorParameters<typeof CsvWriter>[0]} options @param {Snapshot[]} rows @returns {Promise<CsvWriter>} closed */
async function written(options, rows) {
  const writer = new CsvWriter(options)
  for (const snapshot of rows) writer.write(snapshot)
  await writer.close()
  return writer
}

/** Writes one row after another. @param {CsvWriter} writer @param {string} file @param {Snapshot[]} rows */
async function writeEach(writer, file, rows) {
  for (const snapshot of rows) {
    writer.write(snapshot)
    // A file that is being rotated cannot be read.
    await until(() =>
      [true, false].some(first => readFileSync(file, 'utf8').endsWith(csvRow(snapshot, first))),
    )
  }
  await writer.close()
}

t.test('writes a header, and a row for each snapshot', async t => {
  const file = join(t.testdir(), 'run.csv')
  const { status } = await written({ file }, snapshots)
  const text = readFileSync(file, 'utf8')
  t.equal(text, CSV_HEADER + snapshots.map((s, at) => csvRow(s, at === 0)).join(''))
  t.match(status, { file, bytes: text.length, max_bytes: 0, rotations: 0, error: null })
  t.same(await timesIn(file), times)
})

t.test('a row is in the file soon after write()', async t => {
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

t.test('the next gateway appends to the same file, with its facts', async t => {
  const file = join(t.testdir(), 'run.csv')
  await written({ file }, snapshots.slice(0, 10))
  await written({ file }, snapshots.slice(10, 20))
  const { columns, facts, skipped } = await readCsv(file)
  t.same([...columns.time], times.slice(0, 20))
  t.same(
    facts.map(({ row }) => row),
    [0, 10],
  )
  t.equal(skipped, 0)
  t.equal(readFileSync(file, 'utf8').split('time,').length, 2, 'one header')
})

t.test('an incomplete row is terminated, and the next one starts on a new line', async t => {
  const file = join(t.testdir(), 'run.csv')
  writeFileSync(file, `${CSV_HEADER}${csvRow(snapshots[0], true)}${csvRow(snapshots[1], false).slice(0, 50)}`)
  await written({ file }, [snapshots[2]])
  const { columns, skipped } = await readCsv(file)
  t.same([...columns.time], [times[0], times[2]])
  t.equal(skipped, 1)
})

t.test('an incomplete header is replaced, and the file stays', async t => {
  const dir = t.testdir()
  const file = join(dir, 'run.csv')
  writeFileSync(file, CSV_HEADER.slice(0, 40))
  await written({ file }, [snapshots[0]])
  t.same(await timesIn(file), [times[0]])
  t.same(readdirSync(dir), ['run.csv'])
})

t.test('a file with another header is rotated', async t => {
  const file = join(t.testdir({ 'run.csv': 'time,other\n1,2\n', 'run.csv.1': 'older\n' }), 'run.csv')
  await written({ file, keep: 2 }, [snapshots[0]])
  t.same(await timesIn(file), [times[0]])
  t.equal(readFileSync(`${file}.1`, 'utf8'), 'time,other\n1,2\n')
  t.equal(readFileSync(`${file}.2`, 'utf8'), 'older\n')
})

t.test('rotation by size loses no row, and each file has its header', async t => {
  const dir = t.testdir()
  const file = join(dir, 'run.csv')
  const maxBytes = CSV_HEADER.length + 10 * csvRow(snapshots[59], true).length
  const writer = new CsvWriter({ file, maxBytes, keep: 20 })
  await writeEach(writer, file, snapshots)
  const { rotations } = writer.status
  t.ok(rotations >= 4, `${rotations} rotations`)
  t.equal(readdirSync(dir).length, rotations + 1)
  const names = [...Array.from({ length: rotations }, (_, n) => `${file}.${rotations - n}`), file]
  const parts = await Promise.all(names.map(name => readCsv(name)))
  t.same(
    parts.flatMap(({ columns }) => [...columns.time]),
    times,
  )
  for (const { facts } of parts) t.equal(facts.length, 1)
  for (const name of names) t.ok(statSync(name).size <= maxBytes, name)
})

t.test('`keep` limits the number of rotated files', async t => {
  for (const keep of [0, 1, 2]) {
    const dir = t.testdir()
    const file = join(dir, 'run.csv')
    const writer = new CsvWriter({ file, maxBytes: CSV_HEADER.length + 1000, keep })
    await writeEach(writer, file, snapshots.slice(0, 20))
    t.same(readdirSync(dir).sort(), ['run.csv', 'run.csv.1', 'run.csv.2'].slice(0, keep + 1))
    t.same((await timesIn(file)).at(-1), times[19])
    rmSync(dir, { recursive: true })
  }
})

t.test('a full disk is reported once, without exceptions or blocking', async t => {
  /** @type {string[]} */
  const errors = []
  const writer = new CsvWriter({ file: '/dev/full', onError: text => errors.push(text) })
  for (const snapshot of snapshots.slice(0, 10)) {
    writer.write(snapshot)
    await until(() => writer.status.error !== null)
  }
  await writer.close()
  t.same(errors, ['cannot write /dev/full: ENOSPC'])
  t.equal(writer.status.error, 'ENOSPC')
})

t.test('rows are kept as text while the folder is missing', async t => {
  const dir = join(t.testdir(), 'later')
  const file = join(dir, 'run.csv')
  /** @type {string[]} */
  const errors = []
  const writer = new CsvWriter({ file, onError: text => errors.push(text) })
  const snapshot = structuredClone(snapshots[0])
  writer.write(snapshot)
  await until(() => writer.status.error !== null)
  t.equal(writer.status.error, 'ENOENT')
  snapshot.time = 1
  writer.write(snapshots[1])
  mkdirSync(dir)
  await until(() => {
    // Each row is another attempt.
    if (writer.status.error !== null) writer.write(snapshots[2])
    return writer.status.error === null
  })
  await writer.close()
  t.same((await timesIn(file)).slice(0, 2), times.slice(0, 2))
  t.same(errors, [`cannot write ${file}: ENOENT`])
})

t.test('a moved file is created again', async t => {
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

t.test('rows are kept while the folder is deleted', async t => {
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

t.test('kill -9 loses at most the last row', async t => {
  const file = join(t.testdir(), 'run.csv')
  const child = fork(fileURLToPath(new URL('./csv-child.js', import.meta.url)), [file])
  t.teardown(() => child.kill('SIGKILL'))
  const size = () => statSync(file, { throwIfNoEntry: false })?.size ?? 0
  for (let n = 0; n < 40; n++) {
    const before = size()
    child.send('write')
    await until(() => size() > before)
  }
  child.send('write')
  child.kill('SIGKILL')
  await once(child, 'exit')
  const rows = await timesIn(file)
  const all = mockSnapshots({ seconds: 100 }).map(({ time }) => time)
  t.ok(rows.length >= 40, `${rows.length} of 41`)
  t.same(rows, all.slice(0, rows.length))
})
