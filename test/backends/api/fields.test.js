// Errors of the server API describe the fault of the request.

import t from 'tap'
import { KEY, publications, startApi } from './support.js'

const MISSING = 'Unauthorized: missing API key: send it as `X-API-Key: KEY` or `Authorization: apikey KEY`'
const WRONG = 'Unauthorized: invalid API key'
const CHANEL = 'channel is missing; unknown field "chanel"; did you mean channel?'
const LONG = 'x'.repeat(100)

/** Requests and their fault: the message of error 107, or the text of another status. */
const FAULTS = /** @type {[string, string, string, number?, Record<string, string>?][]} */ ([
  ['publish', '{"chanel":"news","data":1}', CHANEL],
  ['publish', '{"channel":"news"}', 'data is missing'],
  ['publish', '{"channel":"news","b64data":"!"}', ''],
  ['broadcast', '{"chanels":["a"],"data":1}', CHANEL.replace(/chann?el/g, '$&s')],
  [
    'presence',
    `{"zzzzzzzz":1,"${LONG}":1}`,
    `channel is missing; unknown field "zzzzzzzz"; unknown field "${LONG.slice(0, 64)}..."`,
  ],
  ['', '{"method":"publish","params":{"data":1}}', 'channel is missing'],
  ['publish', '{"channel":5}', 'channel must be a string', 400],
  ['publish', '{"channel":"a","tags":{"a":1}}', 'tags must be an object with string values', 400],
  ['history', '{"channel":"his:a","limit":"1"}', 'limit must be a 32-bit integer', 400],
  ['history', '{"channel":"his:a","since":{"offset":-1}}', 'offset must be a non-negative integer', 400],
  ['info', '', 'the body is empty', 400],
  ['info', '{', 'the body is not JSON', 400],
  ['info', '[]', 'the body must be a JSON object', 400],
  ['batch', '{"commands":{}}', 'commands must be an array', 400],
  ['info', '{}', MISSING, 401, {}],
  ['info', '{}', WRONG, 401, { 'x-api-key': `${KEY}x` }],
  ['info', '{}', WRONG, 401, { authorization: 'Bearer x' }],
  ['info?api_key=x', '{}', WRONG, 401, {}],
])

t.test('errors of the server API name the reason', async t => {
  const api = await startApi(t)
  for (const [path, body, fault, code = 200, headers] of FAULTS) {
    const { status, text } = await api.request('POST', path === '' ? '/api' : `/api/${path}`, body, headers)
    const message = fault === '' ? 'bad request' : `bad request: ${fault}`
    const refusal = code === 400 ? `Bad Request: ${fault}` : fault
    const expected = code === 200 ? JSON.stringify({ error: { code: 107, message } }) : refusal
    t.strictSame([status, text], [code, expected], `${path} ${body.slice(0, 40)}`)
  }
  t.strictSame(await api.call('batch', { commands: [{ publish: { chanel: 'news', data: 1 } }] }), {
    replies: [{ error: { code: 107, message: `bad request: ${CHANEL}` } }],
  })
  t.same(await api.call('publish', { channel: 'news', data: 1, chanel: 2 }), { result: {} })
  t.same(api.failures(), [], 'an error of a caller is not logged')
})

t.test('calls with unsupported restrictions are refused', async t => {
  const api = await startApi(t)
  const client = await api.subscriber('news')
  const other = await api.subscriber('news', 'ben')
  const user = 'anna'
  const targeting = { exclude_client: ['x'], exclude_user: [user], users: [['ben']] }
  const table = /** @type {[string, object, Record<string, any[]>, number][]} */ ([
    ['publish', { channel: 'news', data: 1 }, targeting, 108],
    ['broadcast', { channels: ['news', 'none:x'], data: 1 }, targeting, 108],
  ]).flatMap(([method, request, fields, code]) =>
    Object.entries(fields).map(([field, values]) => ({ method, request, field, values, code })),
  )
  for (const { method, request, field, values, code } of table) {
    for (const value of values) {
      const message =
        code === 107
          ? `bad request: ${field} is not supported`
          : 'not available: needs channel.targeted_publications'
      const error = { code, message }
      const given = { ...request, [field]: value }
      t.same(await api.call(method, given), { error }, `${method} with ${field}`)
      t.same(await api.call('batch', { commands: [{ [method]: given }] }), { replies: [{ error }] })
      const legacy = await api.request('POST', '/api', JSON.stringify({ method, params: given }))
      t.same(JSON.parse(legacy.text), { error })
    }
  }
  // Neutral values restrict nothing.
  const neutral = { label_filter: null, all_users: false, server_tags_filter: null }
  t.same(await api.call('subscribe', { channel: 'off:y', user: 'nobody', ...neutral }), { result: {} })
  const nobody = { exclude_client: '', exclude_user: null, users: null }
  t.same(await api.call('publish', { channel: 'news', data: 'last', ...nobody }), { result: {} })
  for (const each of [client, other])
    t.match(
      await publications(each, 'news', 1),
      [{ data: 'last' }],
      'nothing came before, and all are connected',
    )
  t.strictSame(client.messages, [])
})
