import { readFileSync } from 'node:fs'
import t from 'tap'
import { Disconnect, disconnects, errors, unsubscribes } from '../../src/base/errors.js'

const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8')

/**
 * @param {string} title of a section of docs/errors.md
 * @returns {string[][]} its table without the head and without the last column, which explains
 */
function table(title) {
  const [, section] = page.split(`## ${title}\n`)
  const rows = section
    .split('\n## ')[0]
    .split('\n')
    .filter(line => line.startsWith('| `'))
  return rows.map(row =>
    row
      .split('|')
      .slice(1, -2)
      .map(cell => cell.trim().replaceAll('`', '')),
  )
}

/** @param {boolean} value */
const yes = value => (value ? 'yes' : 'no')
/** @param {string[][]} rows by name */
const sorted = rows => [...rows].sort(([a], [b]) => (a < b ? -1 : 1))

/** Section of docs/errors.md -> its rows. @type {Record<string, string[][]>} */
const sections = {
  Errors: Object.entries(errors).map(([name, { code, message, temporary, status }]) => [
    ...[name, String(code), message, yes(temporary), String(status)],
  ]),
  Disconnects: Object.entries(disconnects).map(([name, { code, reason, reconnect }]) => [
    ...[name, String(code), reason, yes(reconnect)],
  ]),
  Unsubscribes: Object.entries(unsubscribes).map(([name, { code, reason }]) => [
    ...[name, String(code), reason, yes(code >= 2500)],
  ]),
}
for (const [title, rows] of Object.entries(sections))
  t.test(`docs/errors.md lists exactly the ${title.toLowerCase()}`, async t =>
    t.same(sorted(table(title)), sorted(rows)),
  )

t.test('every reason fits a close frame and is not JSON', async t => {
  for (const { reason } of [...Object.values(disconnects), ...Object.values(unsubscribes)]) {
    t.ok(reason.length > 0 && Buffer.byteLength(reason) <= 123, reason)
    t.throws(() => JSON.parse(reason), reason)
  }
})

t.test('the code decides whether SDKs reconnect', async t => {
  /** @param {number} code */
  const reconnect = code => new Disconnect(code, 'x').reconnect
  t.same([3000, 3499, 4000, 4499].map(reconnect), [true, true, true, true])
  t.same([3500, 3999, 4500, 4999].map(reconnect), [false, false, false, false])
})
