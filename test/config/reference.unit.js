import { readFileSync } from 'node:fs'
import t from 'tap'
import { restrictingOptions, unsupportedOptions } from '../../src/config/centrifugo.js'
import { loadConfig } from '../../src/config/load.js'
import {
  channelOptions,
  consumerMembers,
  options,
  proxyMembers,
  republishMembers,
} from '../../src/config/options.js'
import { configReference, defaultTree } from '../../src/config/reference.js'

t.test('docs/config.md is what the table says (`halley config doc > docs/config.md`)', async t => {
  const page = readFileSync(new URL('../../docs/config.md', import.meta.url), 'utf8')
  t.ok(page === configReference(), 'the page is up to date')
})

t.test('every key is on the page once', async t => {
  const page = configReference()
  const rows = page.split('\n').filter(line => line.startsWith('| `'))
  const named = rows.map(line => line.split('`')[1])
  const expected = [
    ...options
      .filter(({ path, block }) => block === undefined && !path.startsWith('channel.without_namespace.'))
      .map(({ path }) => path),
    ...channelOptions.map(option => option.path),
    ...proxyMembers.map(option => option.path),
    ...consumerMembers.map(option => option.path),
    ...republishMembers.map(option => option.path),
  ]
  t.same(named.sort(), expected.sort())
  t.same(
    [...unsupportedOptions, ...restrictingOptions].filter(path => !page.includes(`- \`${path}\``)),
    [],
  )
})

t.test('no key is in two lists, and every row has a doc', async t => {
  const paths = [...options.map(option => option.path), ...unsupportedOptions, ...restrictingOptions]
  t.equal(new Set(paths).size, paths.length)
  t.same(
    options.filter(({ doc }) => doc.length === 0),
    [],
  )
})

t.test('the defaults as a file give the same configuration as no file', async t => {
  t.same(loadConfig({ base: defaultTree() }).config, loadConfig().config)
})
