import t from 'tap'
import { startApi } from './support.js'

t.test('insecure: no key is needed', async t => {
  const api = await startApi(t, { workers: 1, http_api: { insecure: true } })
  t.equal((await api.request('POST', '/api/channels', '{}', {})).text, '{"result":{"channels":{}}}')
})

t.test('without a key, no call is allowed', async t => {
  const api = await startApi(t, { workers: 1, http_api: {} })
  t.equal((await api.request('POST', '/api/info', '{}', {})).status, 401)
  t.equal((await api.request('POST', '/api/info', '{}', { 'x-api-key': '' })).status, 401)
  t.equal((await api.request('POST', '/api/info?api_key=', '{}', {})).status, 401)
})

t.test('prefix and error mode are configurable', async t => {
  const api = await startApi(t, {
    workers: 1,
    http_api: { key: 'k', handler_prefix: '/backend/v1', error_mode: 'transport' },
  })
  const ask = (path, body) => api.request('POST', path, body, { 'x-api-key': 'k' })
  t.equal((await ask('/api/info', '{}')).status, 404)
  t.equal((await ask('/backend/v1/presence', '{"channel":"nowhere:a"}')).status, 404)
  t.equal(
    (await ask('/backend/v1/publish', '{"channel":"nowhere:a","data":1}')).text,
    '{"code":102,"message":"unknown channel"}',
  )
  const several = await ask('/backend/v1/batch', '{"commands":[{"presence":{"channel":"nowhere:a"}}]}')
  t.equal(several.status, 200, 'errors of items are unchanged')
  t.equal(several.text, '{"replies":[{"error":{"code":102,"message":"unknown channel"}}]}')
  t.equal((await ask('/backend/v1', '{"method":"info"}')).status, 200)
})

t.test('a disabled API has no endpoint', async t => {
  const api = await startApi(t, { workers: 1, http_api: { key: 'k', disabled: true } })
  t.equal((await api.request('POST', '/api/info', '{}', { 'x-api-key': 'k' })).status, 404)
})
