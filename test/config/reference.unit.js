import t from 'tap'
import { restrictingOptions, unsupportedOptions } from '../../src/config/centrifugo.js'
import {
  channelOptions,
  consumerMembers,
  options,
  proxyMembers,
  rateLimitMembers,
  republishMembers,
} from '../../src/config/options.js'
import { configReference } from '../../src/config/reference.js'

t.test('every key is once on the page', async t => {
  const page = configReference()
  const rows = page.split('\n').filter(line => line.startsWith('| `'))
  const named = rows.map(line => line.split('`')[1])
  const expected = [
    ...options
      .filter(({ path, block }) => !block && !path.startsWith('channel.without_namespace.'))
      .map(({ path }) => path),
    ...channelOptions.map(option => option.path),
    ...proxyMembers.map(option => option.path),
    ...consumerMembers.map(option => option.path),
    ...republishMembers.map(option => option.path),
    ...rateLimitMembers.map(option => option.path),
  ]
  t.same(named.sort(), expected.sort())
  t.same(
    [...unsupportedOptions, ...restrictingOptions].filter(path => !page.includes(`- \`${path}\``)),
    [],
  )
})

t.test('no key is in two lists, and every row has a description', async t => {
  const paths = [...options.map(option => option.path), ...unsupportedOptions, ...restrictingOptions]
  t.equal(new Set(paths).size, paths.length)
  t.same(
    options.filter(({ doc }) => doc.length === 0),
    [],
  )
})
