import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { families } from '../../../src/metrics/prometheus/families.js'
import { check } from './promql.js'

const page = readFileSync(new URL('../../../docs/metrics.md', import.meta.url), 'utf8')
const byName = new Map(families.map(family => [family.name, family]))

/** @param {string} name of a section */
const section = name => page.split(`\n## ${name}\n`)[1].split('\n## ')[0]

const board = JSON.parse(readFileSync(new URL('../../../docs/grafana.json', import.meta.url), 'utf8'))
/** @type {any[]} */
const panels = board.panels
const charts = panels.filter(({ type }) => type !== 'row')
const SOURCE = '${' + 'DS_PROMETHEUS}'
/** Every panel shows only the selected nodes. */
const CHOSEN = 'job=~"$job", instance=~"$instance"'

t.test('alerts name existing metrics and labels', async t => {
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

t.test('expressions in the text name existing metrics', async t => {
  const blocks = [...page.matchAll(/```\n(increase[\s\S]*?)```/g)]
  t.ok(blocks.length > 0)
  for (const [, expression] of blocks) t.doesNotThrow(() => check(expression, byName), expression)
})

t.test('the dashboard asks for a Prometheus on import and uses only that', async t => {
  t.match(board.__inputs, [{ name: 'DS_PROMETHEUS', type: 'datasource', pluginId: 'prometheus' }])
  for (const { title, datasource, targets } of charts) {
    t.equal(datasource.uid, SOURCE, title)
    for (const target of targets) t.equal(target.datasource.uid, SOURCE, title)
  }
  for (const { name, datasource } of board.templating.list) t.equal(datasource.uid, SOURCE, name)
})

t.test('the dashboard names all plugins it needs', async t => {
  const named = board.__requires
    .filter((/** @type {any} */ { type }) => type === 'panel')
    .map((/** @type {any} */ { id }) => id)
  t.same([...new Set(charts.map(({ type }) => type))].sort(), named.sort())
})

t.test('panels have unique ids and titles, and do not overlap', async t => {
  t.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  /** @type {Map<string, string>} */
  const taken = new Map()
  /** @type {string[]} */
  const overlaps = []
  const titles = new Set()
  let row = ''
  for (const { type, title, gridPos } of panels) {
    if (type === 'row') row = title
    t.notOk(titles.has(`${row}: ${title}`), `${row}: ${title}`)
    titles.add(`${row}: ${title}`)
    const { x, y, w, h } = gridPos
    t.ok(x >= 0 && x + w <= 24 && h > 0, `${title} is on the grid`)
    for (let cell = 0; cell < w * h; cell++) {
      const at = `${x + (cell % w)},${y + Math.floor(cell / w)}`
      if (taken.has(at)) overlaps.push(`${title} and ${taken.get(at)} at ${at}`)
      taken.set(at, title)
    }
  }
  t.same(overlaps, [])
})

t.test('the dashboard has its rows, and logarithmic event-loop delays', async t => {
  const rows = panels.filter(({ type }) => type === 'row').map(({ title }) => title)
  t.same(rows, ['Overview', 'Workers', 'Memory', 'Traffic', 'Errors and closes', 'Machine'])
  const delays = charts.filter(({ title }) => title.startsWith('Event-loop delay'))
  t.ok(delays.length >= 3)
  for (const { fieldConfig } of delays) t.equal(fieldConfig.defaults.custom.scaleDistribution.type, 'log')
})

t.test('every expression uses existing metrics and the selected nodes', async t => {
  const annotations = board.annotations.list.filter((/** @type {any} */ { expr }) => expr)
  const seen = new Set()
  for (const { expr } of [...charts.flatMap(({ targets }) => targets), ...annotations]) {
    t.doesNotThrow(() => {
      for (const name of check(expr, byName)) seen.add(name)
    }, expr)
    const names = expr.match(/\b(?:halley|centrifugo)_\w+/g)
    t.equal(expr.split(CHOSEN).length - 1, names.length, expr)
  }
  t.ok(seen.size > 40)
})

t.test('legends name labels that their expressions have', async t => {
  for (const { title, targets } of charts) {
    for (const { expr, legendFormat } of targets) {
      const labels = check(expr, byName).flatMap(name => byName.get(name)?.labels ?? [])
      for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) {
        t.ok(label === 'instance' || labels.includes(label), `${label} of ${title}`)
      }
    }
  }
})

t.test('nodes are selected by their metrics', async t => {
  t.same(
    board.templating.list.map((/** @type {any} */ { name }) => name),
    ['job', 'instance'],
  )
  for (const { query } of board.templating.list) {
    const [, name] = /^label_values\((\w+)/.exec(query.query) ?? []
    t.ok(byName.has(name), name)
  }
})
