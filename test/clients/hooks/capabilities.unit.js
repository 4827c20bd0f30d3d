// Capabilities without a gateway: which channels they match, bounds, invalid lists, sharing.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { CapabilitySets, Operation, readAllow } from '../../../src/clients/hooks/capabilities.js'
import { until } from '../../kit/wait.js'

const { SUBSCRIBE, PUBLISH, PRESENCE, HISTORY } = Operation

/** @param {any} caps */
const read = caps => new CapabilitySets().read(caps)

/** @param {string} match @param {string} pattern @param {string} channel */
const matches = (match, pattern, channel) =>
  read([{ channels: [pattern], allow: ['sub'], match }])?.of(channel) === SUBSCRIBE

t.test('names are exact, wildcards or regular expressions', async t => {
  /** @type {[string, string, string[], string[]][]} */
  const table = [
    ['', 'news', ['news'], ['news2', 'New', 'a:news', '']],
    ['exact', 'a*', ['a*'], ['ab', 'a']],
    ['wildcard', '*', ['a', 'a:b/c#d'], []],
    ['wildcard', 'news:*', ['news:', 'news:a', 'news:a:b', 'news:a/b'], ['news', 'xnews:a']],
    ['wildcard', '*:x', [':x', 'a:b:x'], ['a:xy', 'x']],
    ['wildcard', 'a*b*c', ['abc', 'a1b2c', 'abcbc'], ['ac', 'acb', 'abcd']],
    ['wildcard', 'aba*aba', ['abaaba', 'abaXaba'], ['aba', 'ababa']],
    ['wildcard', 'a**b', ['ab', 'axb'], ['a']],
    ['wildcard', 'a.c', ['a.c'], ['abc']],
    ['regex', '^p_\\d+$', ['p_7', 'p_77'], ['p_7x', 'xp_7', 'p_']],
    ['regex', 'mid', ['mid', 'amidst'], ['mi']],
    ['regex', '^(a+)+$', ['aaa'], [`${'a'.repeat(200)}!`]],
  ]
  for (const [match, pattern, right, wrong] of table) {
    for (const channel of right) t.ok(matches(match, pattern, channel), `${match} ${pattern}: ${channel}`)
    for (const channel of wrong) t.notOk(matches(match, pattern, channel), `${match} ${pattern}: ${channel}`)
  }
})

t.test('operations of all entries are united, in any order', async t => {
  const entries = [
    { channels: ['a'], allow: ['pub'] },
    { channels: ['a', 'b'], allow: ['sub', 'sub'] },
    { channels: ['a*'], match: 'wildcard', allow: ['hst'] },
    { channels: ['^a'], match: 'regex', allow: ['prs'] },
    { channels: ['a'], allow: [] },
  ]
  for (const caps of [read(entries), read([...entries].reverse())]) {
    t.equal(caps?.of('a'), SUBSCRIBE | PUBLISH | PRESENCE | HISTORY)
    t.equal(caps?.of('ab'), PRESENCE | HISTORY)
    t.equal(caps?.of('b'), SUBSCRIBE)
    t.equal(caps?.of('c'), 0)
  }
})

t.test('none', async t => {
  for (const none of [undefined, null, []]) t.equal(read(none), null)
  for (const none of [undefined, null, []]) t.equal(readAllow(none), 0)
  t.equal(read([{ channels: null, allow: null, match: null }])?.of('a'), 0, 'null is absent')
  t.equal(read([{ channels: ['a'] }])?.of('a'), 0)
})

t.test('an invalid list is an error that names the place', async t => {
  const entry = { channels: ['a'], allow: ['sub'] }
  /** @type {[any, RegExp][]} */
  const table = [
    ['sub', /^caps is not a list/],
    [{}, /^caps is not a list/],
    [[[]], /^caps\[0\] is not an object/],
    [[entry, null], /^caps\[1\] is not an object/],
    [[{ ...entry, channels: 'a' }], /^caps\[0\]\.channels is not a list/],
    [[{ ...entry, channels: [1] }], /^caps\[0\]\.channels has 1/],
    [[{ ...entry, channels: [''] }], /^caps\[0\]\.channels has ""/],
    [[{ ...entry, channels: ['a'.repeat(257)] }], /1 to 256 characters/],
    [[{ ...entry, allow: 'sub' }], /^caps\[0\]\.allow is not a list/],
    [[{ ...entry, allow: ['sbu'] }], /^caps\[0\]\.allow has "sbu"; operations are sub, pub, prs, hst/],
    [[{ ...entry, allow: [1] }], /^caps\[0\]\.allow has 1/],
    [[{ ...entry, match: 'glob' }], /^caps\[0\]\.match is "glob"/],
    [[{ ...entry, match: 1 }], /^caps\[0\]\.match is 1/],
    [[{ ...entry, match: 0 }], /^caps\[0\]\.match is 0/],
    [[{ ...entry, match: ['wildcard'] }], /^caps\[0\]\.match is \["wildcard"\]/],
    [[{ ...entry, match: 'toString' }], /^caps\[0\]\.match/],
    [[{ ...entry, match: 'regex', channels: ['('] }], /invalid pattern "\("/],
    [[{ ...entry, match: 'regex', channels: ['(?=a)'] }], /invalid pattern/],
    [[{ ...entry, match: 'regex', channels: Array(9).fill('a{1000}') }], null],
    [[{ ...entry, match: 'regex', channels: Array(10).fill('a{1000}') }], /more than 10000 instructions/],
    [Array(65).fill(entry), /more than 64 entries/],
    [
      [
        { ...entry, channels: Array(1000).fill('a') },
        { ...entry, channels: Array(25).fill('a') },
      ],
      /1024 channels/,
    ],
    [[{ ...entry, channels: Array(80).fill('a'.repeat(256)) }], /larger than 16384 bytes/],
    [[{ ...entry, channels: Array(30).fill('ä'.repeat(256)) }], null],
    [[{ ...entry, channels: Array(40).fill('ä'.repeat(256)) }], /larger than 16384 bytes/],
  ]
  for (const [caps, message] of table) {
    if (message === null) t.ok(read(caps))
    else t.throws(() => read(caps), { message }, JSON.stringify(caps).slice(0, 80))
  }
  t.ok(read(Array(64).fill(entry)))
  t.ok(read([{ ...entry, channels: Array(1024).fill('a') }]))
  t.throws(() => readAllow('pub'), { message: 'allow is not a list' })
  t.throws(() => readAllow(['pub', 'all']), { message: /^allow has "all"/ })
})

t.test('equal lists share one object while it is used', async t => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc')
  const sets = new CapabilitySets()
  const list = () => [{ channels: ['a', 'news:*'], allow: ['sub'], match: 'wildcard' }]
  let first = sets.read(list())
  t.equal(sets.read(list()), first)
  t.equal(
    sets.read([{ allow: ['sub', 'sub'], match: 'wildcard', channels: ['a', 'news:*'], extra: 1 }]),
    first,
  )
  t.not(sets.read([{ ...list()[0], allow: ['sub', 'pub'] }]), first)
  first = null
  await until(() => {
    collect()
    return sets.size === 0
  })
})
