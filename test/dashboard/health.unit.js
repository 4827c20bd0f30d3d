import { readFileSync } from 'node:fs'
import t from 'tap'
import { health, healthSpan, perSecond } from '../../dashboard/health.js'
import { LIMITS } from '../../src/metrics/limits.js'

t.test('rates are per second', async t => {
  t.equal(perSecond(300, 1500), 200)
  t.equal(perSecond(300, 0), 0, 'no time has passed')
})

t.test('health follows the limits, and is marked without colours', async t => {
  t.equal(health(LIMITS.tickAvg[0] - 0.1, 'tickAvg'), 'good')
  t.equal(health(LIMITS.tickAvg[0], 'tickAvg'), 'warn')
  t.equal(health(LIMITS.tickAvg[1], 'tickAvg'), 'bad')
  t.equal(health(null, 'tickAvg'), 'good', 'unknown')
  t.same(healthSpan('1234', 'bad', true), ['1234', 'bad'])
  t.same(healthSpan('1234', 'bad', false), ['1234!', 'bad'])
  t.same(healthSpan('1234', 'warn', false), ['1234~', 'warn'])
  t.same(healthSpan('1234', 'good', false), ['1234 ', 'value'], 'the width is the same')
})

t.test('the documentation has the same limits', async t => {
  const docs = readFileSync(new URL('../../docs/dashboard.md', import.meta.url), 'utf8')
  /** @type {[keyof typeof LIMITS, string, (value: number) => string][]} */
  const rows = [
    ['tickAvg', 'delay avg', value => `${value} ms`],
    ['tickP90', 'delay p90', value => `${value} ms`],
    ['tickMax', 'delay max', value => `${value} ms`],
    ['loop', 'loop', value => `${value * 100} %`],
    ['cpu', 'CPU of a worker', value => `${value * 100} %`],
    ['gc', 'GC in a second', value => `${value} ms`],
    ['machine', 'CPU of the machine', value => `${value * 100} %`],
    ['steal', 'steal', value => `${value * 100} %`],
    ['full', 'memory of the machine, open files, heap of its limit', value => `${value * 100} %`],
    [
      'outbox',
      'largest outbox',
      value => (value < 1024 ** 2 ? `${value / 1024} KB` : `${value / 1024 ** 2} MB`),
    ],
    ['overflows', 'listen overflows', value => `${value} a second`],
  ]
  t.same(rows.map(([limit]) => limit).sort(), Object.keys(LIMITS).sort())
  for (const [limit, name, text] of rows) {
    t.match(docs, `| ${name} | ${text(LIMITS[limit][0])} | ${text(LIMITS[limit][1])} |`)
  }
})
