import { Ajv } from 'ajv'
import t from 'tap'
import { channelOptions, options } from '../../src/config/options.js'
import { isPlain } from '../../src/config/read.js'
import { parseDuration } from '../../src/config/values.js'

const ajv = new Ajv({ meta: false, validateSchema: false, strict: false })
const all = [...options, ...channelOptions]
/** Most options share one. */
const schemas = new Map(all.map(({ schema }) => [JSON.stringify(schema), schema]))

/** @param {Record<string, any>} schema @returns {boolean} */
const hasObjects = ({ type, items = {} }) => [type, items.type].includes('object')

/** Values of every type, and those at the ends of every range. */
const values = new Set([
  ...[
    null,
    true,
    false,
    0,
    1,
    -1,
    1.5,
    NaN,
    Infinity,
    '0',
    'true',
    '',
    ' ',
    'a',
    'é',
    '😀',
    '/',
    '/a',
    '/a/',
  ],
  ...[
    '/a/b',
    'a/b',
    '/a b',
    '//',
    '/a//b',
    '/a?b',
    '/é',
    '/😀',
    '/*',
    [],
    [''],
    ['a'],
    ['a', ''],
    [1],
    [null],
    [['a']],
  ],
  ...[{}, { length: 1 }, { code: 1 }, [{ code: 1 }], new Array(1)],
  ...all.flatMap(({ schema: { minimum = 0, maximum = 0 } }) => [
    minimum - 1,
    minimum,
    minimum + 0.5,
    maximum,
    maximum + 1,
  ]),
  ...all.flatMap(({ schema }) => [
    ...(schema.enum ?? []),
    ...(schema.items?.enum ?? []).map(entry => [entry]),
  ]),
])

t.test('a value that is accepted without ajv is valid', async t => {
  const wrong = []
  for (const [text, schema] of schemas) {
    const validate = ajv.compile(schema)
    for (const value of values) if (isPlain(schema, value) && !validate(value)) wrong.push([text, value])
  }
  t.same(wrong, [])
})

t.test('valid values of all but objects are accepted without ajv, defaults among them', async t => {
  const missed = []
  for (const { path, schema, type, single, default: given } of all) {
    const value = type === 'duration' ? parseDuration(given) : single ? [given] : given
    if (!hasObjects(schema) && !isPlain(schema, value)) missed.push([path, value])
  }
  for (const [text, schema] of schemas) {
    if (hasObjects(schema)) continue
    const validate = ajv.compile(schema)
    for (const value of values) if (validate(value) && !isPlain(schema, value)) missed.push([text, value])
  }
  t.same(missed, [])
})

t.test('a schema with a keyword of ajv alone is left to ajv', async t => {
  t.equal(isPlain({ type: 'string', format: 'uri' }, 'a'), false)
  t.equal(isPlain({ type: 'array', uniqueItems: true }, []), false)
  t.equal(isPlain({ type: 'number' }, 1), false)
})
