// docs/openapi.yaml has every method of the server API with its parameters. api.slow.js runs its examples.

import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { operations, resolve } from '../../scripts/api-page.js'
import { methods } from '../../src/backends/api/methods.js'
import {
  flag,
  ignored,
  optionalString,
  payload,
  raw,
  string,
  strings,
  tags,
} from '../../src/backends/api/params.js'

/** @import { Field } from '../../src/backends/api/params.js' */

const document = parse(readFileSync(new URL('../../docs/openapi.yaml', import.meta.url), 'utf8'))
const listed = operations(document)

/** Of what is not a number and not an object of fields. @type {Map<Field, string | undefined>} */
const TYPES = new Map([
  [string, 'string'],
  [optionalString, 'string'],
  [flag, 'boolean'],
  [strings, 'array'],
  [tags, 'object'],
  [payload, undefined],
  [raw, undefined],
  [ignored, undefined],
])

/** @param {Field} field */
function typeOf(field) {
  if (TYPES.has(field)) return TYPES.get(field)
  return field.zero === undefined && field.read === string.read ? 'string' : 'integer'
}

/** @param {any} t @param {any} schema of an object @param {Record<string, Field>} fields @param {string} where */
function compare(t, schema, fields, where) {
  t.same(Object.keys(schema.properties).sort(), Object.keys(fields).sort(), `fields of ${where}`)
  for (const [name, field] of Object.entries(fields)) {
    const given = resolve(document, schema.properties[name])
    const type = field.fields ? 'object' : typeOf(field)
    t.equal(given.type, type, `type of ${where}.${name}`)
    if (field.fields) compare(t, given, field.fields, `${where}.${name}`)
  }
}

t.test('it has exactly the methods of the API, with fields, an example and its result', async t => {
  t.same(listed.map(({ name }) => name).sort(), [...methods.keys(), 'batch'].sort())
  for (const [name, { fields }] of methods) {
    const { post, request, example, result } = /** @type {any} */ (listed.find(each => each.name === name))
    // Methods that only refuse need a channel.
    if (!post.deprecated) t.match({ example, result }, { example: Object, result: Object }, name)
    else if (name !== 'rpc') t.same(Object.keys(fields), ['channel'])
    compare(t, request, fields, name)
  }
})
