// Filters on the tags of publications (client protocol).

import t from 'tap'
import { errors } from '../../../src/base/errors.js'
import { Filter, MAX_FILTER_LENGTH, MAX_OPERAND_LENGTH } from '../../../src/clients/protocol/filter.js'

const LONG = '12345678901234567890.12345678901234567890'

/** `cmp`, operand, tags, whether they match. */
/** @type {any[][]} */
const rows = [
  ['eq', 'a', { k: 'a' }, true],
  ['eq', 'a', { k: 'b' }, false],
  ['eq', 'a', { k: 'A' }, false],
  ['eq', 'a', {}, false],
  ['eq', 'a', { other: 'a' }, false],
  ['neq', 'a', { k: 'a' }, false],
  ['neq', 'a', { k: 'b' }, true],
  ['neq', 'a', { k: '' }, true],
  ['neq', 'a', {}, true],
  ['in', ['a', 'b'], { k: 'b' }, true],
  ['in', ['a', 'b'], { k: 'c' }, false],
  ['in', ['a', 'b'], {}, false],
  ['in', ['a', ''], {}, true],
  ['in', ['a', ''], { k: '' }, true],
  ['nin', ['a', 'b'], { k: 'b' }, false],
  ['nin', ['a', 'b'], { k: 'c' }, true],
  ['nin', ['a', 'b'], {}, true],
  ['nin', ['a', ''], {}, false],
  ['ex', undefined, { k: 'a' }, true],
  ['ex', undefined, { k: '' }, true],
  ['ex', undefined, {}, false],
  ['nex', undefined, { k: 'a' }, false],
  ['nex', undefined, { k: '' }, false],
  ['nex', undefined, {}, true],
  ['sw', 'ab', { k: 'abc' }, true],
  ['sw', 'ab', { k: 'ab' }, true],
  ['sw', 'bc', { k: 'abc' }, false],
  ['sw', 'ab', {}, false],
  ['ew', 'bc', { k: 'abc' }, true],
  ['ew', 'ab', { k: 'abc' }, false],
  ['ew', 'bc', {}, false],
  ['ct', 'b', { k: 'abc' }, true],
  ['ct', 'é', { k: 'café!' }, true],
  ['ct', 'd', { k: 'abc' }, false],
  ['ct', 'b', {}, false],
  ['gt', '10', { k: '11' }, true],
  ['gt', '10', { k: '10' }, false],
  ['gt', '10', { k: '9' }, false],
  ['gt', '9', { k: '10' }, true, 'numbers, not texts'],
  ['gt', '10', {}, false],
  ['gte', '10', { k: '10' }, true],
  ['gte', '1e1', { k: '10' }, false, 'plain decimals only'],
  ['gte', '10', { k: '1e1' }, false],
  ['gte', '10', { k: '10.0' }, true],
  ['gte', '10', { k: '9.99' }, false],
  ['gte', '10', {}, false],
  ['lt', '10', { k: '9.99' }, true],
  ['lt', '10', { k: '10' }, false],
  ['lt', '10', {}, false],
  ['lte', '10', { k: '10' }, true],
  ['lte', '10', { k: '10.01' }, false],
  ['lte', '10', {}, false],
  ['lt', '0', { k: '-0.5' }, true],
  ['gt', '-2', { k: '-1' }, true],
  ['gte', '0', { k: '-0' }, true],
  ['gt', LONG, { k: `${LONG}1` }, true, 'more digits than a double keeps'],
  ['lt', `${LONG}1`, { k: LONG }, true],
  ['gt', LONG, { k: LONG }, false],
  ['gte', LONG, { k: `${LONG}000` }, true],
  ['gt', '9007199254740992', { k: '9007199254740993' }, true],
  ['gt', '10', { k: 'eleven' }, false, 'what is no number does not compare'],
  ['gt', 'ten', { k: '11' }, false],
  ['lte', 'ten', { k: 'ten' }, false],
  ['gte', 'ten', { k: 'ten' }, false],
  ['gt', '10', { k: '' }, false],
  ['lt', '10', { k: '' }, false],
  ['lt', '10', { k: '1 ' }, false],
  ['lt', '10', { k: '0x1' }, false],
  ['lt', '10', { k: '1_0' }, false],
  ['lt', '10', { k: '.' }, false],
  ['lt', '10', { k: '-' }, false],
  ['lt', '10', { k: 'NaN' }, false],
  ['gt', '10', { k: 'Infinity' }, false],
  ['eq', '1', { k: '1.0' }, false, 'eq compares texts'],
]

for (const [cmp, operand, tags, expected, why = ''] of rows) {
  const leaf = { key: 'k', cmp, ...(Array.isArray(operand) ? { vals: operand } : { val: operand }) }
  const said = `${cmp} ${JSON.stringify(operand) ?? ''} over ${JSON.stringify(tags)}: ${expected} ${why}`
  t.equal(new Filter(leaf).matches(tags), expected, said)
  t.equal(new Filter({ op: 'not', nodes: [leaf] }).matches(tags), !expected, `not ${said}`)
}

t.test('a publication without tags is one where every key is absent', async t => {
  t.equal(new Filter({ key: 'k', cmp: 'nex' }).matches(null), true)
  t.equal(new Filter({ key: 'k', cmp: 'eq', val: 'a' }).matches(null), false)
  t.equal(new Filter({ key: 'k', cmp: 'neq', val: 'a' }).matches(null), true)
})

t.test('names that every object has are no tags', async t => {
  for (const key of ['toString', 'constructor', '__proto__', 'hasOwnProperty']) {
    t.equal(new Filter({ key, cmp: 'ex' }).matches({ k: 'a' }), false, key)
    t.equal(new Filter({ key, cmp: 'neq', val: 'a' }).matches({ k: 'a' }), true, key)
    t.equal(new Filter({ key, cmp: 'ct', val: 'o' }).matches({ k: 'a' }), false, key)
  }
  t.equal(
    new Filter({ key: '__proto__', cmp: 'eq', val: 'a' }).matches(JSON.parse('{"__proto__":"a"}')),
    true,
  )
})

t.test('nodes combine', async t => {
  const a = { key: 'a', cmp: 'ex' }
  const b = { key: 'b', cmp: 'ex' }
  const tags = [{}, { a: '' }, { b: '' }, { a: '', b: '' }]
  const over = node => tags.map(tags => new Filter(node).matches(tags))
  t.same(over({ op: 'and', nodes: [a, b] }), [false, false, false, true])
  t.same(over({ op: 'or', nodes: [a, b] }), [false, true, true, true])
  t.same(over({ op: 'and', nodes: [a] }), [false, true, false, true])
  t.same(over({ op: 'or', nodes: [a] }), [false, true, false, true])
  t.same(over({ op: 'not', nodes: [{ op: 'or', nodes: [a, b] }] }), [true, false, false, false])
  t.same(
    over({
      op: 'or',
      nodes: [
        { op: 'and', nodes: [a, b] },
        { op: 'not', nodes: [a] },
      ],
    }),
    [true, false, true, true],
  )
  t.same(over({ op: '', ...a }), [false, true, false, true])
})

const leaf = { key: 'k', cmp: 'eq', val: 'a' }
const invalid = {
  'nothing at all': {},
  'unknown op': { op: 'xor', nodes: [leaf] },
  'op in capitals': { op: 'AND', nodes: [leaf] },
  'an op that every object has': { op: 'constructor', nodes: [leaf] },
  'unknown cmp': { key: 'k', cmp: 'like', val: 'a' },
  'a cmp that every object has': { key: 'k', cmp: 'toString', val: 'a' },
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

function refusal(node) {
  try {
    new Filter(node)
  } catch (error) {
    return error
  }
}

for (const [name, node] of Object.entries(invalid)) t.equal(refusal(node), errors.badRequest, name)

t.test('no key is needed where the sheet says so', async t => {
  t.equal(new Filter({ cmp: 'nex' }).matches({ k: 'a' }), true)
  t.equal(new Filter({ cmp: 'ex' }).matches({ k: 'a' }), false)
})

t.test('only plain decimals are numbers: with digits on both sides of a point', async t => {
  const gt = (val, tag) => new Filter({ key: 'k', cmp: 'gt', val }).matches({ k: tag })
  for (const number of ['5.', '.5', '+5.', '-.5', '.', '', '+', '1e1', '0x5', ' 5', '5 ', '5..0', '1_0']) {
    t.equal(gt('-9', number), false, `${number} is a tag`)
    if (number !== '') t.equal(gt(number, '999'), false, `${number} is the operand`)
  }
  for (const number of ['5', '+5', '05', '5.0', '0.5', '-0.5']) t.equal(gt('-9', number), true, number)
})

t.test('numbers that differ in zeros only are equal, also negative ones', async t => {
  const gte = (val, tag) => new Filter({ key: 'k', cmp: 'gte', val }).matches({ k: tag })
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

t.test(
  'work for a tag is bounded: long numbers and searched texts are refused, or compare with nothing',
  async t => {
    const most = '9'.repeat(MAX_OPERAND_LENGTH)
    for (const cmp of ['gt', 'gte', 'lt', 'lte', 'ct']) {
      t.doesNotThrow(() => new Filter({ key: 'k', cmp, val: most }), cmp)
      t.equal(refusal({ key: 'k', cmp, val: `${most}9` }), errors.badRequest, cmp)
    }
    t.equal(new Filter({ key: 'k', cmp: 'gt', val: '1' }).matches({ k: most }), true)
    for (const cmp of ['gt', 'gte', 'lt', 'lte']) {
      t.equal(new Filter({ key: 'k', cmp, val: '1' }).matches({ k: '9'.repeat(60_000) }), false, cmp)
    }
  },
)

t.test('a filter has a maximum length', async t => {
  const vals = ['x'.repeat(MAX_FILTER_LENGTH)]
  t.equal(refusal({ key: 'k', cmp: 'in', vals }), errors.badRequest)
  const rest = JSON.stringify({ key: 'k', cmp: 'in', vals: [''] }).length
  t.doesNotThrow(() => new Filter({ key: 'k', cmp: 'in', vals: [vals[0].slice(rest)] }))
})
