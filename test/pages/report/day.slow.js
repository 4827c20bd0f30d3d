// The report of a day: many rows, a page of bounded size.

import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { spawnHalley } from '../../kit/cli.js'
import { csvText } from './rows.js'

t.test('the page of a day is smaller than 5 MB, and progress is shown', async t => {
  const dir = t.testdir()
  writeFileSync(join(dir, 'day.csv'), csvText({ seconds: 86_400, connections: 300_000 }))
  const { code, err } = await spawnHalley(['report', 'day.csv', '-o', 'day.html'], { cwd: dir })
  t.equal(code, 0)
  // A fast machine shows no progress before it writes.
  t.match(err, /^(?:day\.csv: \d+ % read\n)*(?:writing the page\n)?$/)
  const { size } = statSync(join(dir, 'day.html'))
  t.ok(size < 5 * 1024 * 1024, `${size} bytes`)
  const page = readFileSync(join(dir, 'day.html'), 'utf8')
  const [{ columns }] = JSON.parse(/id="data">(.*?)<\/script>/s.exec(page)?.[1] ?? '[]')
  t.equal(Math.max(...columns['tick_max_ms:max']), 200, 'one second of a day')
})
