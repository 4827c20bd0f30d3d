import t from 'tap'
import { CsvError, parseCsv, readCsv } from '../../src/metrics/csv-reader.js'

/** @param {{columns: Record<string, Float64Array>}} table */
const plain = ({ columns }) =>
  Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, [...values]]))

t.test('an incomplete last line is skipped and counted', async t => {
  const table = await parseCsv(['time,a\n1,10\n2,20\n3,3'])
  t.same(plain(table), { time: [1, 2], a: [10, 20] })
  t.equal(table.skipped, 1)
})

t.test('a broken line in the middle is skipped', async t => {
  const table = await parseCsv(['time,a,b\n1,10,5\n2,2', '\n3,30,6\n'])
  t.same(plain(table), { time: [1, 3], a: [10, 30], b: [5, 6] })
  t.equal(table.skipped, 1)
})

t.test('chunks may end anywhere', async t => {
  const text = 'time,a\r\n1,10\r\n2,20\r\n'
  for (let size = 1; size < text.length; size++) {
    const chunks = []
    for (let at = 0; at < text.length; at += size) chunks.push(Buffer.from(text.slice(at, at + size)))
    t.same(plain(await parseCsv(chunks)), { time: [1, 2], a: [10, 20] })
  }
})

t.test('further header lines may change the columns, as in concatenated files', async t => {
  const table = await parseCsv(['time,a,b\n1,10,5\ntime,b,c\n2,6,7\n'])
  t.same(plain(table), { time: [1, 2], a: [10, Number.NaN], b: [5, 6], c: [Number.NaN, 7] })
  t.equal(table.skipped, 0)
})

t.test('empty cells are unknown, unknown columns are kept, quotes and comments are understood', async t => {
  const table = await parseCsv(['# by hand\ntime,"a",other\n1,,"5"\n\n2,"2",6\n'])
  t.same(plain(table), { time: [1, 2], a: [Number.NaN, 2], other: [5, 6] })
})

t.test('a byte order mark is not part of the first name', async t => {
  t.same(plain(await parseCsv([Buffer.from('\ufefftime,a\n1,2\n')])), { time: [1], a: [2] })
})

t.test('the facts of each gateway that wrote to the file belong to its first row', async t => {
  const { facts } = await parseCsv(['time,a,facts\n1,1,name=x&cores=2\n2,1,\n3,1,name=y\n'])
  t.same(facts, [
    { row: 0, facts: { name: 'x', cores: '2' } },
    { row: 2, facts: { name: 'y' } },
  ])
})

t.test('the number of rows may exceed the initial capacity', async t => {
  const lines = Array.from({ length: 20_000 }, (_, n) => `${n},${n * 2}\n`)
  const { columns, rows } = await parseCsv(['time,a\n', ...lines])
  t.equal(rows, 20_000)
  t.equal(columns.a[19_999], 39_998)
  t.equal(columns.a[4096], 8192)
})

t.test('a file without a table is refused', async t => {
  await t.rejects(parseCsv(['\x7fELF\x01\x02\n\x03\n']), new CsvError('no header line'))
  await t.rejects(parseCsv(['1,2\n3,4\n']), new CsvError('no header line'))
  await t.rejects(readCsv('/nowhere/at/all.csv'), { code: 'ENOENT' })
  t.match(await parseCsv([]), { rows: 0, header: false })
})
