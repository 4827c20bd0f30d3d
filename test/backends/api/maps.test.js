// Map methods of the server API over HTTP.

import t from 'tap'
import { startGateway } from '../../kit/gateway.js'

const MAP = { subscription_type: 'map', map: { mode: 'persistent', stream_size: 5 } }
const gateway = await startGateway(t, {
  workers: 2,
  http_api: { insecure: true },
  channel: {
    without_namespace: {},
    namespaces: [
      { name: 'map', ...MAP },
      { name: 'json', ...MAP, publication_data_format: 'json' },
      { name: 'passing', subscription_type: 'map', map: { mode: 'ephemeral', key_ttl: '60s' } },
    ],
  },
})

/** @param {string} method @param {object | string} params @returns {Promise<any>} */
async function call(method, params) {
  const body = typeof params === 'string' ? params : JSON.stringify(params)
  const response = await fetch(`${gateway.url}/api/${method}`, { method: 'POST', body })
  return response.json()
}

const put = async (channel, key, data, options = {}) =>
  (await call('map_publish', { channel, key, data, ...options })).result

t.test('publishes, reads and removes keys', async t => {
  const channel = 'map:1'
  const first = await put(channel, 'b', { n: 1 }, { tags: { kind: 'x' } })
  t.match(first, { offset: 1, epoch: /^\w+$/ })
  await call('map_publish', {
    channel,
    key: 'ä 🎈',
    b64data: Buffer.from('\xff\x00', 'latin1').toString('base64'),
  })
  await put(channel, 'a', null)
  const { result } = await call('map_read_state', { channel, limit: -1 })
  t.match(result, {
    offset: 3,
    epoch: first.epoch,
    entries: [
      { key: 'a', data: null, offset: 3 },
      { key: 'b', data: { n: 1 }, tags: { kind: 'x' }, offset: 1, time: Number },
      { key: 'ä 🎈', b64data: '/wA=', offset: 2 },
    ],
  })
  t.same((await call('map_stats', { channel })).result, { num_keys: 3 })
  t.match(await call('map_read_state', { channel, key: 'b' }), { result: { entries: [{ key: 'b' }] } })
  t.same((await call('map_read_state', { channel })).result, { entries: [], offset: 3, epoch: first.epoch })
  t.match((await call('map_remove', { channel, key: 'b' })).result, { offset: 4 })
  t.match((await call('map_remove', { channel, key: 'b' })).result, {
    suppressed: true,
    suppress_reason: 'key_not_found',
  })
  t.match((await call('map_read_stream', { channel, since_offset: 2, limit: -1 })).result.entries, [
    { key: 'a', offset: 3 },
    { key: 'b', removed: true, offset: 4, tags: { kind: 'x' } },
  ])
  t.match(await call('map_read_stream', { channel, limit: 1, reverse: true }), {
    result: { entries: [{ offset: 4 }], offset: 4 },
  })
  t.same(await call('map_clear', { channel }), { result: {} })
  const cleared = (await call('map_read_state', { channel, limit: 10 })).result
  t.same(cleared.entries, [])
  t.not(cleared.epoch, first.epoch)
})

t.test('pages have a cursor and a revision', async t => {
  const channel = 'map:pages'
  for (let n = 10; n < 35; n++) await put(channel, `k${n}`, n)
  const keys = []
  let cursor = ''
  let epoch = ''
  do {
    const page = (await call('map_read_state', { channel, limit: 10, cursor, revision_offset: 25 })).result
    t.ok(page.entries.length <= 10)
    keys.push(...page.entries.map(({ key }) => key))
    ;({ cursor = '', epoch } = page)
    await put(channel, `new${cursor}`, 1)
  } while (cursor !== '')
  t.same(
    keys,
    Array.from({ length: 25 }, (_, n) => `k${n + 10}`),
  )
  t.match(await call('map_read_state', { channel, limit: 1, revision_epoch: `${epoch}x` }), {
    error: { code: 112 },
  })
  t.match(await call('map_read_state', { channel, revision_epoch: 'x' }), { error: { code: 112 } })
  t.match(await call('map_read_stream', { channel, limit: 1, since_offset: 1, since_epoch: 'x' }), {
    error: { code: 112 },
  })
})

t.test('entries read during writes plus later changes are the complete state', async t => {
  const channel = 'map:large'
  const read = async () => (await call('map_read_state', { channel, limit: -1 })).result
  // Several pages of the broker.
  for (const key of 'bcdefgh') await put(channel, key, key.repeat(150_000))
  for (let round = 0; round < 10; round++) {
    const writes = Array.from({ length: 4 }, (_, n) => put(channel, 'a', 10 * round + n))
    const [{ entries, offset }] = await Promise.all([read(), ...writes])
    const state = new Map(entries.map(({ key, data }) => [key, data]))
    const changes = await call('map_read_stream', { channel, since_offset: offset, limit: -1 })
    for (const { key, data } of changes.result.entries) state.set(key, data)
    t.same([...state].sort(), (await read()).entries.map(({ key, data }) => [key, data]).sort())
  }
})

t.test('failed checks suppress a write', async t => {
  const channel = 'map:checks'
  const first = await put(channel, 'k', 1, { idempotency_key: 'i', version: 5 })
  t.match(await put(channel, 'k', 2, { idempotency_key: 'i' }), { ...first, suppress_reason: 'idempotency' })
  t.match(await put(channel, 'k', 2, { version: 5 }), { suppressed: true, suppress_reason: 'version' })
  t.match(await put(channel, 'k', 2, { key_mode: 'if_new' }), { suppress_reason: 'key_exists' })
  t.match(await put(channel, 'x', 2, { key_mode: 'if_exists' }), { suppress_reason: 'key_not_found' })
  t.match(await put(channel, 'k', 2, { expected_offset: 9 }), {
    suppress_reason: 'position_mismatch',
    current: { key: 'k', data: 1, offset: 1 },
  })
  t.match(await put(channel, 'k', 2, { expected_offset: 0 }), { suppress_reason: 'position_mismatch' })
  const next = await put(channel, 'k', 2, { expected_offset: 1, expected_epoch: first.epoch })
  t.same(next, { offset: 2, epoch: first.epoch })
  t.match(await put(channel, 'new', 1, { expected_offset: 0 }), { offset: 3 })
})

t.test('appends to strings', async t => {
  const channel = 'map:text'
  for (const part of ['one', ' "two"', ' ü🎈']) await put(channel, 'k', part, { append: true })
  const { entries } = (await call('map_read_state', { channel, key: 'k' })).result
  t.equal(entries[0].data, 'one "two" ü🎈')
  t.match((await call('map_read_stream', { channel, limit: -1 })).result.entries, [
    { data: 'one' },
    { data: ' "two"', append: true },
    { data: ' ü🎈', append: true },
  ])
  t.match(await call('map_publish', { channel, key: 'k', data: 1, append: true }), { error: { code: 107 } })
  await put(channel, 'n', 1)
  t.match(await call('map_publish', { channel, key: 'n', data: 'x', append: true }), { error: { code: 107 } })
  t.match((await call('map_read_state', { channel, key: 'n' })).result, { entries: [{ data: 1 }] })
})

t.test('a change in the stream may differ from the value', async t => {
  const channel = 'map:change'
  await put(channel, 'k', { whole: true }, { stream_data: { part: 1 } })
  t.match((await call('map_read_state', { channel, key: 'k' })).result.entries, [{ data: { whole: true } }])
  t.match((await call('map_read_stream', { channel, limit: -1 })).result.entries, [{ data: { part: 1 } }])
})

t.test('an ephemeral map has no positions', async t => {
  t.same(await put('passing:1', 'k', 1), {})
  t.same((await call('map_read_state', { channel: 'passing:1' })).result, { entries: [] })
  t.match((await call('map_read_state', { channel: 'passing:1', limit: 5 })).result, {
    entries: [{ key: 'k' }],
  })
  t.match(await call('map_read_stream', { channel: 'passing:1' }), { error: { code: 107 } })
})

t.test('a response has at most 16 MB with keys and tags', async t => {
  const channel = 'map:tags'
  const tags = { t: 'x'.repeat(400_000) }
  const put = n => ({ map_publish: { channel, key: `k${n}`, data: 1, tags } })
  for (let n = 0; n < 44; n += 22)
    await call('batch', { commands: Array.from({ length: 22 }, (_, i) => put(n + i)) })
  t.match(await call('map_read_state', { channel, limit: -1 }), { error: { code: 106 } })
  const first = (await call('map_read_state', { channel, limit: 1000 })).result
  t.ok(first.entries.length > 30 && first.entries.length < 44, `${first.entries.length} entries`)
  const last = (await call('map_read_state', { channel, limit: 1000, cursor: first.cursor })).result
  t.equal(first.entries.length + last.entries.length, 44, 'with a limit, the others follow')
  t.notOk(last.cursor)
})

t.test('errors name a missing key', async t => {
  for (const method of ['map_publish', 'map_remove'])
    t.match(await call(method, { channel: 'map:1', data: 1 }), {
      error: { code: 107, message: /key is missing/ },
    })
  const { error } = await call('map_read_state', { channel: 'stream' })
  t.notMatch(error.message, /missing/, 'where it is optional')
})

t.test('appends bytes, also those that are JSON', async t => {
  const channel = 'map:bytes'
  const append = (text, key = 'k') =>
    call('map_publish', { channel, key, b64data: Buffer.from(text).toString('base64'), append: true })
  const read = async key => (await call('map_read_state', { channel, key })).result.entries[0]
  const parts = ['12', '\xff', '{}', '\n', '"a"', 'null ', '1\n2']
  for (const part of parts) t.match(await append(part), { result: {} }, JSON.stringify(part))
  t.equal(Buffer.from((await read('k')).b64data, 'base64').toString(), parts.join(''))
  for (const part of ['"a"', '"b"']) await append(part, 'string')
  t.match(await read('string'), { data: 'ab' }, 'JSON strings begin and extend a string')
  t.match(await append('c', 'string'), { error: { code: 107 } })
  t.match(
    await call('map_publish', { channel: 'json:1', key: 'k', b64data: 'MQ==', append: true }),
    { error: { code: 107 } },
    'bytes where only JSON is allowed',
  )
})

t.test('refuses invalid requests', async t => {
  /** @type {[string, object, number][]} */
  const rows = [
    ['map_publish', { key: 'k', data: 1 }, 107],
    ['map_publish', { channel: 'map:1', data: 1 }, 107],
    ['map_publish', { channel: 'map:1', key: 'k'.repeat(1025), data: 1 }, 107],
    ['map_publish', { channel: 'map:1', key: '\ud800', data: 1 }, 107],
    ['map_publish', { channel: 'map:1', key: 'k', data: 1, key_mode: 'always' }, 107],
    ['map_publish', { channel: 'map:1', key: 'k', data: 1, expected_epoch: 'x' }, 107],
    ['map_publish', { channel: 'json:1', key: 'k', b64data: '/w==' }, 107],
    ['map_publish', { channel: 'none:1', key: 'k', data: 1 }, 102],
    ['map_publish', { channel: 'stream', key: 'k', data: 1 }, 107],
    ['map_remove', { channel: 'map:1', key: '' }, 107],
    ['map_remove', { channel: 'stream', key: 'k' }, 107],
    ['map_stats', { channel: 'stream' }, 107],
    ['map_clear', {}, 107],
    ['map_read_stream', { channel: 'map:1', reverse: true, since_offset: 0 }, 107],
    ['publish', { channel: 'map:1', data: 1 }, 107],
    ['subscribe', { channel: 'map:1', user: 'ann' }, 107],
    ['history', { channel: 'map:1' }, 108],
    ['shared_poll_publish', { channel: 'map:1', key: 'k', data: 1, version: 1 }, 107],
  ]
  for (const [method, params, code] of rows)
    t.match(
      await call(method, params),
      { error: { code } },
      `${method} ${JSON.stringify(params).slice(0, 60)}`,
    )
  const broadcast = await call('broadcast', { channels: ['map:1', 'stream'], data: 1 })
  t.match(broadcast.result.responses, [{ error: { code: 107 } }, { result: {} }])
  const { replies } = await call('batch', {
    commands: [
      { map_publish: { channel: 'map:batch', key: 'k', data: 1 } },
      { map_read_state: { channel: 'map:batch', limit: 1 } },
    ],
  })
  t.match(replies, [{ map_publish: { offset: 1 } }, { map_read_state: { entries: [{ key: 'k' }] } }])
})
