// scripts/api-page.js generates docs/api.md from docs/openapi.yaml.

import t from 'tap'
import { apiPage } from '../../scripts/api-page.js'

t.test('nested fields are listed with their full path', async t => {
  const field = { type: 'string', description: 'Innermost' }
  const inner = { type: 'object', description: 'Inner', properties: { c: field } }
  const outer = { type: 'object', description: 'Outer', properties: { b: inner } }
  const json = schema => ({
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
