import t from 'tap'
import { LimitedLog } from '../../src/base/log.js'
import { Refusals } from '../../src/metrics/refusals.js'

t.test('a line of the log does not grow with the name that a client sends', async t => {
  /** @type {any[]} */
  const lines = []
  const log = new LimitedLog({ info: fields => lines.push(fields) })
  const refusals = new Refusals({ errors: new Set(), refusals: new Set() }, log)
  const client = { connected: true, user: '42', remoteAddress: () => '127.0.0.1' }
  for (const channel of ['x'.repeat(60_000), 'news', undefined])
    refusals.command({ code: 107 }, 'bad_request', client, channel)
  t.strictSame(
    lines.map(({ channel }) => channel),
    ['x'.repeat(255), 'news', undefined],
  )
})
