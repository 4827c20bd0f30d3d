// Patterns of namespaces: what fits, what a start refuses.

import t from 'tap'
import { PatternRoutes, parseChannelPattern, variablesOf } from '../../src/config/channel-patterns.js'
import { loadConfig } from '../../src/config/load.js'
import { faultsOf } from './support.js'

/** @param {...string} patterns @returns {any} */
const configOf = (...patterns) => ({
  channel: { patterns: true, namespaces: patterns.map((pattern, i) => ({ name: `n${i}`, pattern })) },
})

/** @param {...string} patterns @returns {(channel: string) => string | undefined} pattern of a channel */
function routesOf(...patterns) {
  t.same(faultsOf(configOf(...patterns)), [], 'no conflict')
  /** @type {PatternRoutes<string>} */
  const routes = new PatternRoutes()
  for (const pattern of patterns) routes.add(parseChannelPattern(pattern), pattern)
  return channel => routes.find(channel, 0)
}

t.test('a pattern fits the whole name, segment by segment', async t => {
  /** @type {[string, string[], string[]][]} */
  const table = [
    [
      '/users/:name',
      ['/users/m', '/users/M:x#1', '/users/ü'],
      ['/users', '/users/', '/users/m/x', '/users//x', '/users/m/', '/Users/m', '//m', 'users/m'],
    ],
    ['/news/:type/:sub', ['/news/a/b'], ['/news/a', '/news', '/news//b', '/news/a/']],
    ['/p/user_:u', ['/p/user_a', '/p/user_user_'], ['/p/user_', '/p/user', '/p/a']],
    ['/a/b.c~d', ['/a/b.c~d'], ['/a/bxc~d', '/a/b.c~d/']],
    ['/:x', ['/a', '/:x'], ['/', '', '/a/b']],
    [`/${'s/'.repeat(15)}:x`, [`/${'s/'.repeat(15)}a`], [`/${'s/'.repeat(16)}a`, `/${'s/'.repeat(14)}a`]],
  ]
  for (const [pattern, right, wrong] of table) {
    const find = routesOf(pattern)
    for (const channel of right) t.equal(find(channel), pattern, `${pattern}: ${channel}`)
    for (const channel of wrong) t.equal(find(channel), undefined, `${pattern}: ${channel}`)
  }
  t.equal(routesOf('/:x')(`/${'/'.repeat(100_000)}`), undefined)
})

t.test('the most static pattern wins, in any order', async t => {
  const patterns = [
    '/users/:name',
    '/users/me',
    '/users/m:rest',
    '/users/:name/posts',
    '/:any/me/posts/:id',
    '/a/:x/c',
  ]
  /** @type {[string, string | undefined][]} */
  const table = [
    ['/users/me', '/users/me'],
    ['/users/mary', '/users/m:rest'],
    ['/users/m', '/users/:name'],
    ['/users/ann', '/users/:name'],
    ['/users/me/posts', '/users/:name/posts'],
    ['/users/me/posts/1', '/:any/me/posts/:id'],
    ['/a/me/posts/1', '/:any/me/posts/:id'],
    ['/a/me/c', '/a/:x/c'],
    ['/users/me/likes', undefined],
  ]
  for (const order of [patterns, [...patterns].reverse()]) {
    const find = routesOf(...order)
    for (const [channel, pattern] of table) t.equal(find(channel), pattern, channel)
  }
})

t.test('variables', async t => {
  /** @param {string} pattern @param {string} channel @param {number} [from] */
  const variables = (pattern, channel, from = 0) => variablesOf(parseChannelPattern(pattern), channel, from)
  t.strictSame(variables('/e/:p/v_:t', '/e/a%2F/v_v_1'), { p: 'a%2F', t: 'v_1' })
  t.strictSame(variables('/e/:p', '$/e/a', 1), { p: 'a' })
  t.strictSame(variables('/e/f', '/e/f'), {})
  t.strictSame(Object.keys(variables('/:__proto__', '/a')), ['__proto__'])
})

t.test('invalid patterns', async t => {
  /** @type {[string, RegExp][]} */
  const table = [
    ['users/:name', /"users\/:name" does not start with \//],
    ['/', /empty segment/],
    ['/users/', /empty segment/],
    ['/users//:x', /empty segment/],
    ['/ü', /ASCII/],
    ['/a b', /ASCII/],
    ['/a/*', /wildcard/],
    ['/a*', /wildcard/],
    ['/a/:', /a variable is the end/],
    ['/a/:1', /a variable is the end/],
    ['/a/:x-y', /a variable is the end/],
    ['/a/:x:y', /a variable is the end/],
    ['/a/:x/:x', /two variables of the same name/],
    [`/${'a/'.repeat(16)}a`, /more than 16 segments/],
    [`/${'a'.repeat(255)}`, /longer than 255 bytes/],
  ]
  for (const [pattern, message] of table) {
    const faults = faultsOf(configOf(pattern))
    t.equal(faults.length, 1, pattern)
    t.match(faults[0], message)
    t.match(faults[0], /^channel\.namespaces\[0\]\.pattern: /)
  }
  for (const pattern of ['/a/:_x1', '/a-b/:X', `/${'a'.repeat(254)}`]) t.same(faultsOf(configOf(pattern)), [])
})

t.test('conflicts name both patterns', async t => {
  for (const [a, b] of [
    ['/a/:x', '/a/:y'],
    ['/a/:x', '/:y/b'],
    ['/a/b', '/a/b'],
    ['/a:x/:y', '/:x/b:y'],
    ['/x/:a/c', '/x/b/:c'],
  ]) {
    const faults = faultsOf(configOf(a, '/other/:x/:y/:z', b))
    t.equal(faults.length, 1, `${a} ${b}`)
    t.match(faults[0], `${JSON.stringify(b)} and ${JSON.stringify(a)} fit the same channels`)
  }
  for (const [a, b] of [
    ['/a/:x', '/b/:x'],
    ['/a/:x', '/a/:x/c'],
    ['/:x/:y', '/a/:y'],
    ['/a:x', '/ab:x'],
    ['/a:x/c', '/b:x/:y'],
    ['/x/:a/c', '/x/:b/d'],
  ])
    t.same(faultsOf(configOf(a, b)), [], `${a} ${b}`)
})

t.test('where patterns cannot be', async t => {
  const [bare] = faultsOf({ channel: { without_namespace: { pattern: '/a' } } })
  t.match(bare, /^channel\.without_namespace\.pattern: is for channel\.namespaces/)
  const off = configOf('/a/:x')
  off.channel.patterns = false
  t.same(loadConfig({ base: off }).warnings, [
    'channel.namespaces[0].pattern: has no effect without channel.patterns',
  ])
  const personal = {
    ...configOf('/a/:x'),
    client: { subscribe_to_user_personal_channel: { enabled: true, personal_channel_namespace: 'n0' } },
  }
  t.match(faultsOf(personal)[0], /personal_channel_namespace: namespace "n0" has a pattern/)
  const kind = { subscription_type: 'map_clients', map: { mode: 'ephemeral', key_ttl: '2m' } }
  /** @param {string} prefix */
  const mapped = prefix => ({
    channel: {
      patterns: true,
      without_namespace: { map_clients_presence_channel_prefix: prefix },
      namespaces: [{ name: 'seen', pattern: '/seen/:x', ...kind }],
    },
  })
  t.match(faultsOf(mapped('seen:'))[0], /namespace "seen" has a pattern/)
  t.match(faultsOf(mapped('/seen/'))[0], /starts with \//)
  const many = configOf(...Array.from({ length: 1025 }, (_, i) => `/p${i}/:x`))
  t.match(faultsOf(many), ['channel.namespaces: has 1025 patterns; at most 1024 are possible'])
})
