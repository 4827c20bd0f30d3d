// Filters on the tags of publications (client protocol).

import t from 'tap'
import { errors } from '../../../src/base/errors.js'
import { Filter, MAX_FILTER_LENGTH, MAX_OPERAND_LENGTH } from '../../../src/clients/protocol/filter.js'
import { thrown } from '../auth/jwt.js'

const LONG = '12345678901234567890.12345678901234567890'
const ABSENT = undefined

/** Comparison, operand, tags that match, others. @type {any[][]} */
const rows = [
  ['eq', 'a', ['a'], ['b', 'A', ABSENT]],
  ['eq', '1', [], ['1.0']],
  ['neq', 'a', ['b', '', ABSENT], ['a']],
  ['in', ['a', 'b'], ['b'], ['c', ABSENT]],
  ['in', ['a', ''], ['', ABSENT], []],
  ['nin', ['a', 'b'], ['c', ABSENT], ['b']],
  ['nin', ['a', ''], [], [ABSENT]],
  ['ex', ABSENT, ['a', ''], [ABSENT]],
  ['nex', ABSENT, [ABSENT], ['a', '']],
  ['sw', 'ab', ['abc', 'ab'], ['xab', ABSENT]],
  ['ew', 'bc', ['abc'], ['bcx', ABSENT]],
  ['ct', 'b', ['abc'], ['acd', ABSENT]],
  ['ct', 'é', ['café!'], ['cafe']],
  ['gt', '9', ['10'], ['9', '8', ABSENT]],
  ['gte', '10', ['10', '10.0', '11'], ['9.99', '9', '1e1', ABSENT]],
  ['lt', '10', ['9.99', '9'], ['10', ABSENT, '', '1 ', '0x1', '1_0', '.', '-', 'NaN']],
  ['lte', '10', ['10'], ['10.01', ABSENT]],
  ['gt', '10', [], ['eleven', '', 'Infinity']],
  ['lt', '0', ['-0.5'], []],
  ['gt', '-2', ['-1'], []],
  ['gte', '0', ['-0'], []],
  ['gt', LONG, [`${LONG}1`], [LONG]],
  ['gte', LONG, [`${LONG}000`], []],
  ['lt', `${LONG}1`, [LONG], []],
  ['gt', '9007199254740992', ['9007199254740993'], []],
  ['gte', '1e1', [], ['10']],
  ['gt', 'ten', [], ['11']],
  ['lte', 'ten', [], ['ten']],
  ['gte', 'ten', [], ['ten']],
]

for (const [cmp, operand, matching, others] of rows) {
  const leaf = { key: 'k', cmp, ...(Array.isArray(operand) ? { vals: operand } : { val: operand }) }
  for (const tag of [...matching, ...others]) {
    const tags = tag === ABSENT ? { other: 'a' } : { k: tag }
    const expected = matching.includes(tag)
    const title = `${cmp} ${JSON.stringify(operand) ?? ''} with ${JSON.stringify(tags)}: ${expected}`
    t.equal(new Filter(leaf).matches(tags), expected, title)
    t.equal(new Filter({ op: 'not', nodes: [leaf] }).matches(tags), !expected, `not ${title}`)
  }
}

const matches = (node, tags) => new Filter(node).matches(tags)

t.test('inherited members and tags of a publication without tags are absent', async t => {
  for (const [key, tags] of /** @type {[string, any][]} */ ([
    ['k', null],
    ...['toString', 'constructor', '__proto__', 'hasOwnProperty'].map(key => [key, { k: 'a' }]),
  ])) {
    t.equal(matches({ key, cmp: 'ex' }, tags), false, key)
    t.equal(matches({ key, cmp: 'neq', val: 'a' }, tags), true, key)
    t.equal(matches({ key, cmp: 'ct', val: 'o' }, tags), false, key)
  }
  t.ok(matches({ key: '__proto__', cmp: 'eq', val: 'a' }, JSON.parse('{"__proto__":"a"}')))
})

t.test('and, or and not combine nodes', async t => {
  const a = { key: 'a', cmp: 'ex' }
  const b = { key: 'b', cmp: 'ex' }
  const tags = [{}, { a: '' }, { b: '' }, { a: '', b: '' }]
  const and = (...nodes) => ({ op: 'and', nodes })
  const or = (...nodes) => ({ op: 'or', nodes })
  const not = node => ({ op: 'not', nodes: [node] })
  for (const [node, expected] of /** @type {[any, number[]][]} */ ([
    [and(a, b), [0, 0, 0, 1]],
    [or(a, b), [0, 1, 1, 1]],
    [and(a), [0, 1, 0, 1]],
    [or(a), [0, 1, 0, 1]],
    [not(or(a, b)), [1, 0, 0, 0]],
    [or(and(a, b), not(a)), [1, 0, 1, 1]],
    [{ op: '', ...a }, [0, 1, 0, 1]],
  ]))
    t.same(
      tags.map(tags => Number(matches(node, tags))),
      expected,
      JSON.stringify(node),
    )
})

const leaf = { key: 'k', cmp: 'eq', val: 'a' }
const invalid = {
  'an empty node': {},
  'unknown op': { op: 'xor', nodes: [leaf] },
  'op in capitals': { op: 'AND', nodes: [leaf] },
  'an inherited member as op': { op: 'constructor', nodes: [leaf] },
  'unknown cmp': { key: 'k', cmp: 'like', val: 'a' },
  'an inherited member as cmp': { key: 'k', cmp: 'toString', val: 'a' },
  'empty cmp': { key: 'k', cmp: '', val: 'a' },
  'no cmp': { key: 'k', val: 'a' },
  'and without nodes': { op: 'and' },
  'and with no nodes': { op: 'and', nodes: [] },
  'or without nodes': { op: 'or' },
  'not without nodes': { op: 'not' },
  'not with two nodes': { op: 'not', nodes: [leaf, leaf] },
  'a bad node deep inside': {
    op: 'and',
    nodes: [leaf, { op: 'not', nodes: [{ op: 'or', nodes: [leaf, {}] }] }],
  },
  'no vals for in': { key: 'k', cmp: 'in', vals: [] },
  'no vals for nin': { key: 'k', cmp: 'nin' },
  'val for in': { key: 'k', cmp: 'in', val: 'a' },
  'val for nin': { key: 'k', cmp: 'nin', val: 'a' },
  'both for in': { key: 'k', cmp: 'in', val: 'a', vals: ['a'] },
  'both for nin': { key: 'k', cmp: 'nin', val: 'a', vals: ['a'] },
}
for (const cmp of ['eq', 'neq', 'sw', 'ew', 'ct', 'gt', 'gte', 'lt', 'lte']) {
  invalid[`no key for ${cmp}`] = { cmp, val: '1' }
  invalid[`no val for ${cmp}`] = { key: 'k', cmp }
  invalid[`empty val for ${cmp}`] = { key: 'k', cmp, val: '' }
  invalid[`vals instead of val for ${cmp}`] = { key: 'k', cmp, vals: ['1'] }
  invalid[`both for ${cmp}`] = { key: 'k', cmp, val: '1', vals: ['1'] }
}
for (const cmp of ['in', 'nin']) invalid[`no key for ${cmp}`] = { cmp, vals: ['1'] }

const refusal = node => thrown(() => new Filter(node))

for (const [name, node] of Object.entries(invalid)) t.equal(refusal(node), errors.badRequest, name)

t.test('ex and nex work without a value', async t => {
  t.equal(matches({ cmp: 'nex' }, { k: 'a' }), true)
  t.equal(matches({ cmp: 'ex' }, { k: 'a' }), false)
})

t.test('only plain decimals with digits on both sides of the point are numbers', async t => {
  const gt = (val, k) => matches({ key: 'k', cmp: 'gt', val }, { k })
  for (const number of ['5.', '.5', '+5.', '-.5', '.', '', '+', '1e1', '0x5', ' 5', '5 ', '5..0', '1_0']) {
    t.equal(gt('-9', number), false, `${number} is a tag`)
    if (number !== '') t.equal(gt(number, '999'), false, `${number} is the operand`)
  }
  for (const number of ['5', '+5', '05', '5.0', '0.5', '-0.5']) t.equal(gt('-9', number), true, number)
})

t.test('numbers that differ only in zeros are equal, even negative ones', async t => {
  const gte = (val, k) => matches({ key: 'k', cmp: 'gte', val }, { k })
  for (const [a, b] of [
    ['0', '-0.00'],
    ['1', '+001'],
    ['-2.5', '-02.50'],
    ['100', '100.0'],
  ]) {
    t.ok(gte(a, b) && gte(b, a), `${a} and ${b}`)
  }
  for (const [less, more] of [
    ['-10', '-9'],
    ['-1.5', '-1.25'],
    ['-0.1', '0'],
    ['9', '10'],
    ['1.25', '1.3'],
    ['0.09', '0.1'],
    ['99.9', '100'],
  ]) {
    t.ok(gte(less, more) && !gte(more, less), `${less} is below ${more}`)
  }
})

t.test('overlong numbers and texts are refused in filters, and do not match as tags', async t => {
  const most = '9'.repeat(MAX_OPERAND_LENGTH)
  for (const cmp of ['gt', 'gte', 'lt', 'lte', 'ct']) {
    t.equal(refusal({ key: 'k', cmp, val: most }), undefined, cmp)
    t.equal(refusal({ key: 'k', cmp, val: `${most}9` }), errors.badRequest, cmp)
  }
  t.equal(matches({ key: 'k', cmp: 'gt', val: '1' }, { k: most }), true)
  for (const cmp of ['gt', 'gte', 'lt', 'lte'])
    t.equal(matches({ key: 'k', cmp, val: '1' }, { k: '9'.repeat(60_000) }), false, cmp)
})

t.test('a filter has a maximum length', async t => {
  const vals = ['x'.repeat(MAX_FILTER_LENGTH)]
  t.equal(refusal({ key: 'k', cmp: 'in', vals }), errors.badRequest)
  const rest = JSON.stringify({ key: 'k', cmp: 'in', vals: [''] }).length
  t.equal(refusal({ key: 'k', cmp: 'in', vals: [vals[0].slice(rest)] }), undefined)
})
