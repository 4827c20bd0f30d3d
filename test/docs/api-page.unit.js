// docs/api.md is made from docs/openapi.yaml by scripts/api-page.js.

import t from 'tap'
import { apiPage } from '../../scripts/api-page.js'

t.test('a field of an object in an object is listed with its whole path', async t => {
  const field = { type: 'string', description: 'Innermost' }
  const inner = { type: 'object', description: 'Inner', properties: { c: field } }
  const outer = { type: 'object', description: 'Outer', properties: { b: inner } }
  const json = (/** @type {object} */ schema) => ({
    content: { 'application/json': { schema, example: {} } },
  })
  const post = {
    summary: 'Does something',
    requestBody: json({ properties: { a: outer } }),
    responses: { 200: json({}) },
  }
  t.match(
    apiPage({ info: { description: '' }, paths: { '/x': { post } } }),
    '| `a.b.c` | string | Innermost. |',
  )
})
