import { readFileSync } from 'node:fs'
import t from 'tap'
import { examine, readFacts, recipes } from '../../../src/metrics/doctor/index.js'
import { ec2, folders } from './machines.js'

const page = readFileSync(new URL('../../../docs/doctor.md', import.meta.url), 'utf8')

t.test('the settings for a million connections are those of recipes()', async t => {
  const [server, drone] = [...page.matchAll(/^```conf\n([\s\S]*?)^```$/gm)].map(([, text]) => text)
  t.equal(server, recipes({ connections: 1_000_000, role: 'server', memory: 16 * 1024 ** 3 }).sysctl)
  t.equal(drone, recipes({ connections: 25_000, role: 'drone', memory: 1024 ** 3 }).sysctl)
})

t.test('the table lists every check', async t => {
  const facts = readFacts(t.testdir(folders(ec2(), target => t.fixture('symlink', target))))
  const [, table] = page.split('## What is checked')
  for (const role of /** @type {const} */ (['server', 'drone']))
    for (const { id } of examine(facts, { role })) t.match(table, `\`${id.replace(/ of .*/, '')}\``, id)
})
