// docs/fleet.md lists all settings and counters.

import { readFileSync } from 'node:fs'
import t from 'tap'
import { SETTINGS } from '../../fleet/settings.js'
import { COUNTERS } from '../../fleet/statistics/counters.js'

const page = readFileSync(new URL('../../docs/fleet.md', import.meta.url), 'utf8')

/** @param {any} value */
const valueText = value =>
  typeof value === 'number' ? value.toLocaleString('en') : value.length === 0 ? '' : `${value}`

t.test('the documentation lists the settings of fleet/settings.js', async t => {
  const rows = SETTINGS.map(
    ({ name, default: value, doc }) =>
      `| \`${name}\` | ${valueText(value)} | ${doc.replaceAll('|', '\\|')} |`,
  )
  const table = ['| setting | default | |', '| --- | --- | --- |', ...rows].join('\n')
  t.equal(page.split(/<!-- \/?settings -->/)[1]?.trim(), table)
})

t.test('the documentation defines every counter', async t => {
  const section = page.slice(page.indexOf('## What is counted'), page.indexOf('## Statistics'))
  for (const name of COUNTERS.filter(name => !name.startsWith('bytes'))) t.match(section, `\`${name}\``, name)
})
