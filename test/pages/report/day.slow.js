// The report of a day: many rows, a page of bounded size.

import { spawnSync } from 'node:child_process'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { csvText } from './rows.js'

const BIN = fileURLToPath(new URL('../../../bin/halley.js', import.meta.url))

t.test('a day is a page of less than 5 MB, with progress told', async t => {
  const dir = t.testdir()
  writeFileSync(join(dir, 'day.csv'), csvText({ seconds: 86_400, connections: 300_000 }))
  const { status, stderr } = spawnSync(process.execPath, [BIN, 'report', 'day.csv', '-o', 'day.html'], {
    cwd: dir,
    encoding: 'utf8',
  })
  t.equal(status, 0)
  // A fast machine has nothing to tell before it writes.
  t.match(stderr, /^(?:day\.csv: \d+ % read\n)*(?:writing the page\n)?$/)
  const { size } = statSync(join(dir, 'day.html'))
  t.ok(size < 5 * 1024 * 1024, `${size} bytes`)
  const page = readFileSync(join(dir, 'day.html'), 'utf8')
  const [{ columns }] = JSON.parse(/id="data">(.*?)<\/script>/s.exec(page)?.[1] ?? '[]')
  t.equal(Math.max(...columns['tick_max_ms:max']), 200, 'one second of a day')
})
