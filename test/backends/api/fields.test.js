// What an error of the server API says about the request.

import t from 'tap'
import { KEY, publications, startApi } from './support.js'

t.test('errors of the server API name what is wrong', async t => {
  const api = await startApi(t)
  /** @param {string} path @param {string} body @param {Record<string, string>} [headers] */
  const ask = async (path, body, headers) => {
    const { status, text } = await api.request('POST', path, body, headers)
    return [status, text]
  }
  const bad = (/** @type {string} */ why) => [200, `{"error":{"code":107,"message":${JSON.stringify(why)}}}`]

  t.same(
    await ask('/api/publish', '{"chanel":"news","data":1}'),
    bad('bad request: channel is missing; unknown field "chanel"; did you mean channel?'),
  )
  t.same(await ask('/api/publish', '{"channel":"news"}'), bad('bad request: data is missing'))
  t.same(await ask('/api/publish', '{"channel":"news","b64data":"!"}'), bad('bad request'), 'neither')
  t.same(
    await ask('/api/broadcast', '{"chanels":["a"],"data":1}'),
    bad('bad request: channels is missing; unknown field "chanels"; did you mean channels?'),
  )
  t.same(
    await ask('/api/presence', `{"zzzzzzzz":1,"${'x'.repeat(100)}":1}`),
    bad(`bad request: channel is missing; unknown field "zzzzzzzz"; unknown field "${'x'.repeat(64)}..."`),
  )
  t.same(await ask('/api/publish', '{"channel":"news","data":1,"chanel":2}'), [200, '{"result":{}}'])
  t.same(await ask('/api/batch', '{"commands":[{"publish":{"chanel":"news","data":1}}]}'), [
    200,
    '{"replies":[{"error":{"code":107,"message":"bad request: channel is missing; unknown field \\"chanel\\"; did you mean channel?"}}]}',
  ])
  t.same(
    await ask('/api', '{"method":"publish","params":{"data":1}}'),
    bad('bad request: channel is missing'),
  )

  const refused = (/** @type {string} */ why) => [400, `Bad Request: ${why}`]
  t.same(await ask('/api/publish', '{"channel":5}'), refused('channel must be a string'))
  t.same(
    await ask('/api/publish', '{"channel":"a","tags":{"a":1}}'),
    refused('tags must be an object of strings'),
  )
  t.same(
    await ask('/api/history', '{"channel":"his:a","limit":"1"}'),
    refused('limit must be an integer of 32 bits'),
  )
  t.same(
    await ask('/api/history', '{"channel":"his:a","since":{"offset":-1}}'),
    refused('offset must be an integer from 0 on'),
  )
  t.same(await ask('/api/info', ''), refused('the body is empty'))
  t.same(await ask('/api/info', '{'), refused('the body is not JSON'))
  t.same(await ask('/api/info', '[]'), refused('the body must be a JSON object'))
  t.same(await ask('/api/batch', '{"commands":{}}'), refused('commands must be a list'))

  const missing =
    'Unauthorized: the API key is missing: send it as `X-API-Key: KEY` or `Authorization: apikey KEY`'
  t.same(await ask('/api/info', '{}', {}), [401, missing])
  const wrong = [401, 'Unauthorized: the API key is wrong']
  t.same(await ask('/api/info', '{}', { 'x-api-key': `${KEY}x` }), wrong)
  t.same(await ask('/api/info', '{}', { authorization: 'Bearer x' }), wrong)
  t.same(await ask('/api/info?api_key=x', '{}', {}), wrong)
  t.same(api.failures(), [], 'a fault of a caller is no error of the gateway')
})

t.test('calls with restrictions that are not supported are refused', async t => {
  const api = await startApi(t)
  const client = await api.subscriber('news')
  const other = await api.subscriber('news', 'ben')
  const filter = { key: 'tier', cmp: 'eq', val: 'pro' }
  /** @type {[string, object, string, any[], number][]} */
  const table = []
  for (const [method, request] of /** @type {[string, object][]} */ ([
    ['disconnect', { user: 'anna' }],
    ['unsubscribe', { channel: 'news', user: 'anna' }],
    ['refresh', { user: 'anna', expired: true }],
    ['subscribe', { channel: 'off:x', user: 'anna' }],
  ])) {
    table.push([method, request, 'label_filter', [filter, {}, [], ''], 107])
    table.push([method, request, 'all_users', [true], 107])
  }
  table.push(['subscribe', { channel: 'off:x', user: 'anna' }, 'server_tags_filter', [filter, {}, 'x'], 107])
  for (const [method, request] of /** @type {[string, object][]} */ ([
    ['publish', { channel: 'news', data: 1 }],
    ['broadcast', { channels: ['news'], data: 1 }],
  ])) {
    table.push([method, request, 'exclude_client', ['x'], 108])
    table.push([method, request, 'exclude_user', ['anna'], 108])
    table.push([method, request, 'users', [['ben']], 108])
  }
  for (const [method, request, field, values, code] of table) {
    for (const value of values) {
      const text = code === 107 ? 'bad request' : 'not available'
      const error = { code, message: `${text}: ${field} is not supported` }
      const given = { ...request, [field]: value }
      t.same(await api.call(method, given), { error }, `${method} with ${field}`)
      t.same(await api.call('batch', { commands: [{ [method]: given }] }), { replies: [{ error }] })
      t.same(
        JSON.parse((await api.request('POST', '/api', JSON.stringify({ method, params: given }))).text),
        {
          error,
        },
      )
    }
  }
  // Neutral values restrict nothing.
  const neutral = { label_filter: null, all_users: false, server_tags_filter: null }
  t.same(await api.call('subscribe', { channel: 'off:y', user: 'nobody', ...neutral }), { result: {} })
  const nobody = { exclude_client: '', exclude_user: null, users: [] }
  t.same(await api.call('publish', { channel: 'news', data: 'last', ...nobody }), { result: {} })
  for (const each of [client, other])
    t.match(
      await publications(each, 'news', 1),
      [{ data: 'last' }],
      'nothing came before, and all are connected',
    )
  t.strictSame(client.messages, [])
})
