import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { families } from '../../../src/metrics/prometheus/families.js'
import { check } from './promql.js'

const page = readFileSync(new URL('../../../docs/metrics.md', import.meta.url), 'utf8')
const byName = new Map(families.map(family => [family.name, family]))

/** @param {string} name of a section */
const section = name => page.split(`\n## ${name}\n`)[1].split('\n## ')[0]

t.test('alerts look at metrics and labels that are there, and say what they see', async t => {
  const [, text] = /```yaml\n([\s\S]*?)```/.exec(section('Alerts')) ?? []
  const { groups } = parse(text)
  t.ok(groups[0].rules.length >= 10)
  for (const { alert, expr, annotations } of groups[0].rules) {
    t.match(alert, /^Halley[A-Z]/)
    t.doesNotThrow(() => check(expr, byName), alert)
    t.match(annotations.summary, '{{ $labels.instance }}')
    for (const [, label] of annotations.summary.matchAll(/\$labels\.(\w+)/g)) {
      const known = check(expr, byName).flatMap(name => byName.get(name)?.labels ?? [])
      t.ok(label === 'instance' || known.includes(label), `${label} of ${alert}`)
    }
  }
})

t.test('expressions in the text look at metrics that are there', async t => {
  const blocks = [...page.matchAll(/```\n(increase[\s\S]*?)```/g)]
  t.ok(blocks.length > 0)
  for (const [, expression] of blocks) t.doesNotThrow(() => check(expression, byName), expression)
})

t.test('expressions that name what is not there are found', async t => {
  for (const expression of [
    'halley_nothing',
    'sum(halley_clients{worker="1"})',
    'sum by (code) (halley_clients)',
    'rates(halley_connections_opened_total[1m])',
    'halley_connections_opened_total',
    'rate(halley_clients[1m])',
    'sum(halley_clients',
    'halley_clients; 1',
    'rate(halley_event_loop_delay_seconds_sum{le="1"}[1m])',
  ]) {
    t.throws(() => check(expression, byName), expression)
  }
  t.same(
    check('sum by (worker, le) (rate(halley_event_loop_delay_seconds_bucket{job="a"}[5m])) > 1', byName),
    ['halley_event_loop_delay_seconds'],
  )
})
