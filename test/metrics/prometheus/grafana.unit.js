import { readFileSync } from 'node:fs'
import t from 'tap'
import { families } from '../../../src/metrics/prometheus/families.js'
import { check } from './promql.js'

const board = JSON.parse(readFileSync(new URL('../../../docs/grafana.json', import.meta.url), 'utf8'))
const byName = new Map(families.map(family => [family.name, family]))
/** @type {any[]} */
const panels = board.panels
const charts = panels.filter(({ type }) => type !== 'row')
const SOURCE = '${' + 'DS_PROMETHEUS}'
/** Every panel shows the nodes that were chosen, and no others. */
const CHOSEN = 'job=~"$job", instance=~"$instance"'

t.test('the dashboard asks for a Prometheus when it is imported, and uses no other', async t => {
  t.match(board.__inputs, [{ name: 'DS_PROMETHEUS', type: 'datasource', pluginId: 'prometheus' }])
  for (const { title, datasource, targets } of charts) {
    t.equal(datasource.uid, SOURCE, title)
    for (const target of targets) t.equal(target.datasource.uid, SOURCE, title)
  }
  for (const { name, datasource } of board.templating.list) t.equal(datasource.uid, SOURCE, name)
})

t.test('it needs no plugin that it does not name', async t => {
  const named = board.__requires
    .filter((/** @type {any} */ { type }) => type === 'panel')
    .map((/** @type {any} */ { id }) => id)
  t.same([...new Set(charts.map(({ type }) => type))].sort(), named.sort())
})

t.test('panels have an id and a title of their own, and lie side by side', async t => {
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

t.test('it shows what an operator looks for', async t => {
  const rows = panels.filter(({ type }) => type === 'row').map(({ title }) => title)
  t.same(rows, ['Overview', 'Workers', 'Memory', 'Traffic', 'Errors and closes', 'Machine'])
  const delays = charts.filter(({ title }) => title.startsWith('Event-loop delay'))
  t.ok(delays.length >= 3)
  for (const { fieldConfig } of delays) t.equal(fieldConfig.defaults.custom.scaleDistribution.type, 'log')
})

t.test('every expression is of metrics that are there, of the nodes that were chosen', async t => {
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

t.test('nodes are chosen among those that tell metrics', async t => {
  t.same(
    board.templating.list.map((/** @type {any} */ { name }) => name),
    ['job', 'instance'],
  )
  for (const { query } of board.templating.list) {
    const [, name] = /^label_values\((\w+)/.exec(query.query) ?? []
    t.ok(byName.has(name), name)
  }
})
