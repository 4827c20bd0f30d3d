import t from 'tap'
import { LimitedLog } from '../../src/base/log.js'
import { Refusals } from '../../src/metrics/refusals.js'
import { Traffic } from '../../src/metrics/traffic.js'

const client = { connected: true, user: '42', remoteAddress: () => '127.0.0.1' }

t.test('the size of a log line does not depend on the name sent by a client', async t => {
  /** @type {any[]} */
  const lines = []
  const log = new LimitedLog(/** @type {any} */ ({ info: (/** @type {any} */ fields) => lines.push(fields) }))
  const refusals = new Refusals(new Traffic([]), log)
  const client = { connected: true, user: '42', remoteAddress: () => '127.0.0.1' }
  for (const channel of ['x'.repeat(60_000), 'news', undefined])
    refusals.command({ code: 107 }, 'bad_request', client, channel)
  t.strictSame(
    lines.map(({ channel }) => channel),
    ['x'.repeat(255), 'news', undefined],
  )
})

t.test('error replies are counted by code up to 4999, higher ones as `other`', async t => {
  const traffic = new Traffic([])
  const refusals = new Refusals(traffic, new LimitedLog(/** @type {any} */ ({ info() {} })))
  for (const code of [100, 100, 4999, 5000, 4_294_967_295]) refusals.command({ code }, 'application', client)
  t.same(traffic.drain().errors, { 100: 2, 4999: 1, other: 2 })
})
