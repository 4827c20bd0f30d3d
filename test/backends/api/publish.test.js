import t from 'tap'
import { numbers, pluck } from '../lists.js'
import { publications, startApi } from './support.js'

const api = await startApi(t)

const base64 = text => Buffer.from(text).toString('base64')
const BAD_REQUEST = { error: { code: 107, message: /^bad request/ } }
const UNKNOWN = { error: { code: 102, message: 'unknown channel' } }

t.test('a publication without history has no position', async t => {
  t.equal(await api.text('publish', { channel: 'plain', data: { a: 1 } }), '{"result":{}}')
})

t.test('with history, a publication has offset and epoch on every worker', async t => {
  let epoch
  for (let offset = 1; offset <= 12; offset++) {
    const { result } = await api.call('publish', { channel: 'his:count', data: offset })
    epoch ??= result.epoch
    t.same(result, { offset, epoch })
  }
})

t.test('payloads are unchanged except for line feeds', async t => {
  const subscriber = await api.subscriber('raw')
  const payloads = [
    '{ "b": 1.0,  "a": 12345678901234567890 }',
    'null',
    'true',
    '-0.0e+10',
    '"\\u00e9 \\/ é 😀 \\ud800"',
    '[]',
    '{"a":1,"a":2,"__proto__":{"x":1}}',
    '{ "data": {"channel":"other"}, "x": "\\"}{" }',
  ]
  for (const data of payloads) {
    t.equal(
      await api.text('publish', `{"data":[],"channel":"raw","x":{"data":0}, "data" :\t${data} }`),
      '{"result":{}}',
    )
  }
  await api.text('publish', '{"channel":"raw","data":{\n "nl" : 1\n}}')
  await publications(subscriber, 'raw', payloads.length + 1)
  const arrived = subscriber.frames.filter(text => text.includes('"pub"'))
  for (const [at, data] of [...payloads, '{ "nl" : 1}'].entries())
    t.ok(arrived[at].includes(`"data":${data}`), data)
})

t.test('all subscribers receive the publications of a caller in order', async t => {
  const subscribers = await Promise.all([1, 2, 3, 4].map(() => api.subscriber('order')))
  const count = 60
  for (let n = 0; n < count; n++) await api.text('publish', { channel: 'order', data: n })
  const expected = numbers(count)
  for (const subscriber of subscribers) {
    t.same(pluck(await publications(subscriber, 'order', count), 'data'), expected)
  }
})

t.test('missing fields and unknown namespaces are errors', async t => {
  for (const request of [{}, { data: 1 }, { channel: 'plain' }, { channel: 'plain', data: 1, b64data: '!' }])
    t.match(await api.call('publish', request), BAD_REQUEST)
  t.same(await api.call('publish', { channel: 'nowhere:a', data: 1 }), UNKNOWN)
  t.same(await api.call('publish', { channel: 'NOWHERE', data: 1 }), { result: {} })
})

t.test('channel names and permissions are not checked', async t => {
  for (const channel of ['$secret', 'dialog#1,2', 'é', ' ', 'x'.repeat(1000), ':a', '__proto__', '\u0000']) {
    const reply = await api.call('publish', { channel, data: 1 })
    t.same(reply, { result: {} }, JSON.stringify(channel).slice(0, 20))
  }
  t.same(await api.call('publish', { channel: '$nowhere:a', data: 1 }), UNKNOWN)
})

t.test('skip_history delivers without storing', async t => {
  const subscriber = await api.subscriber('his:skip')
  t.equal(await api.text('publish', { channel: 'his:skip', data: 1, skip_history: true }), '{"result":{}}')
  const { epoch } = (await api.call('publish', { channel: 'his:skip', data: 2 })).result
  t.same(await publications(subscriber, 'his:skip', 2), [{ data: 1 }, { data: 2, offset: 1, epoch }])
})

t.test('tags are delivered and stored', async t => {
  const subscriber = await api.subscriber('his:tags')
  await api.text('publish', '{"channel":"his:tags","data":1,"tags":{"a":"1","b":null}}')
  await api.text('publish', { channel: 'his:tags', data: 2, tags: {} })
  const expected = [
    { data: 1, offset: 1, tags: { a: '1', b: '' } },
    { data: 2, offset: 2 },
  ]
  const { result } = await api.call('history', { channel: 'his:tags', limit: -1 })
  t.same(result.publications, expected)
  const [first, second] = expected
  const { epoch } = result
  t.same(await publications(subscriber, 'his:tags', 2), [{ ...first, epoch }, second])
})

t.test('an idempotency key publishes once for each channel', async t => {
  const subscriber = await api.subscriber('his:once')
  const once = (channel, data) => api.call('publish', { channel, data, idempotency_key: 'k' })
  const first = await once('his:once', 1)
  t.equal(first.result.offset, 1)
  for (let again = 0; again < 6; again++) t.same(await once('his:once', 2), first)
  t.equal((await once('his:other', 1)).result.offset, 1)
  await api.call('publish', { channel: 'his:once', data: 'end' })
  t.same(pluck(await publications(subscriber, 'his:once', 2), 'data'), [1, 'end'])

  const without = await api.subscriber('once')
  t.same(await once('once', 1), { result: {} })
  t.same(await once('once', 2), { result: {} })
  await api.call('publish', { channel: 'once', data: 'end' })
  t.same(pluck(await publications(without, 'once', 2), 'data'), [1, 'end'])
})

t.test('older and equal versions are dropped; all 64 bits are compared', async t => {
  const subscriber = await api.subscriber('his:version')
  const send = (version, data, epoch = '') =>
    api.text(
      'publish',
      `{"channel":"his:version","data":${data},"version":${version},"version_epoch":"${epoch}"}`,
    )
  const offsetOf = text => JSON.parse(text).result.offset
  t.equal(offsetOf(await send('18446744073709551614', 1)), 1)
  t.equal(offsetOf(await send('18446744073709551613', 2)), 1, 'the position is unchanged')
  t.equal(offsetOf(await send('18446744073709551614', 3)), 1)
  t.equal(offsetOf(await send('18446744073709551615', 4)), 2)
  t.equal(offsetOf(await send('1', 5)), 2)
  t.equal(offsetOf(await send('1', 6, 'new')), 3, 'another epoch accepts any version')
  await publications(subscriber, 'his:version', 3)
  const versions = subscriber.frames.flatMap(text => /"version":(\d+)/.exec(text)?.[1] ?? [])
  t.same(versions, ['18446744073709551614', '18446744073709551615', '1'])
})

t.test('the data must have the format of the channel', async t => {
  const rows = [
    // namespace, data, b64data, ok
    ['json', '1', '', true],
    ['json', '', '', false],
    ['json', '', '{"a":1}', true],
    ['json', '', 'no json', false],
    ['object', '{}', '', true],
    ['object', ' {"a":[]}', '', true],
    ['object', '[]', '', false],
    ['object', 'null', '', false],
    ['object', '', ' {"a":1}', true],
    ['object', '', '"a"', false],
    ['object', '{}', '1', false],
    ['binary', '', '', true],
    ['binary', '', '\u0000\u0001', true],
    ['binary', '{}', '', true],
    ['off', '', '\u0000\u0001', true],
    ['off', '', '', false],
  ]
  for (const [namespace, data, bytes, ok] of rows) {
    const fields = [`"channel":"${namespace}:a"`]
    if (data !== '') fields.push(`"data":${data}`)
    if (bytes !== '') fields.push(`"b64data":"${base64(bytes)}"`)
    const answer = JSON.parse(await api.text('publish', `{${fields}}`))
    if (ok) t.ok(answer.result, `${namespace} takes ${fields}`)
    else t.match(answer, BAD_REQUEST, `${namespace} refuses ${fields}`)
  }
})

t.test('base64 data is decoded', async t => {
  const subscriber = await api.subscriber('b64')
  const send = b64data => api.call('publish', { channel: 'b64', data: 'not this', b64data })
  for (const bad of ['a', 'abc', '=', '====', 'ab=c', 'YQ', 'YQ===', '{}{}', 'Y-_=', 'YQ==YQ==']) {
    t.match(await send(bad), BAD_REQUEST, bad)
  }
  t.same(await send(base64('{"a":"é"}')), { result: {} })
  t.same(await send(`${base64('"line breaks"').slice(0, 8)}\r\n${base64('"line breaks"').slice(8)}`), {
    result: {},
  })
  t.same(await send(base64('{\n"b":1\n}')), { result: {} })
  t.same(await send(''), { result: {} })
  t.same(pluck(await publications(subscriber, 'b64', 4), 'data'), [
    { a: 'é' },
    'line breaks',
    { b: 1 },
    'not this',
  ])
})

t.test('payloads that are not JSON are stored unchanged', async t => {
  const b64data = Buffer.from([0, 255, 10, 123]).toString('base64')
  await api.call('publish', { channel: 'binary:h', b64data })
  await api.call('publish', { channel: 'binary:h', data: { a: 1 } })
  const { publications } = (await api.call('history', { channel: 'binary:h', limit: 10 })).result
  t.same(publications, [
    { b64data, offset: 1 },
    { data: { a: 1 }, offset: 2 },
  ])
})

t.test('broadcast has a response for each channel, in order', async t => {
  const subscribers = await Promise.all(['one', 'two'].map(channel => api.subscriber(channel)))
  const { result } = await api.call('broadcast', {
    channels: ['one', 'nowhere:a', '', 'his:cast', 'object:a', 'two', null],
    data: [1],
    idempotency_key: 'k',
    tags: { a: 'b' },
  })
  t.match(result.responses, [
    { result: {} },
    UNKNOWN,
    BAD_REQUEST,
    { result: { offset: 1, epoch: String } },
    BAD_REQUEST,
    { result: {} },
    BAD_REQUEST,
  ])
  t.equal(result.responses.length, 7)
  t.same(await publications(subscribers[0], 'one', 1), [{ data: [1], tags: { a: 'b' } }])
  t.same(await publications(subscribers[1], 'two', 1), [{ data: [1], tags: { a: 'b' } }])

  const again = await api.call('broadcast', {
    channels: ['his:cast', 'his:cast2'],
    data: [2],
    idempotency_key: 'k',
  })
  t.same(again.result.responses[0], result.responses[3], 'a key is valid per channel')
  t.equal(again.result.responses[1].result.offset, 1)
})

t.test('broadcast refuses invalid requests as a whole', async t => {
  for (const request of [{ data: 1 }, { channels: [], data: 1 }, { channels: ['a'], b64data: '!' }])
    t.match(await api.call('broadcast', request), BAD_REQUEST)
  const missing = await api.call('broadcast', { channels: ['a', 'b'] })
  t.match(missing, { result: { responses: [BAD_REQUEST, BAD_REQUEST] } })
})

t.test('broadcast to more channels than the concurrency limit', async t => {
  const channels = Array.from({ length: 5000 }, (_, n) => (n % 7 === 0 ? 'nowhere:a' : `his:many${n}`))
  const { responses } = (await api.call('broadcast', { channels, data: {} })).result
  t.equal(responses.length, channels.length)
  t.ok(
    responses.every((response, n) =>
      n % 7 === 0 ? response.error.code === 102 : response.result.offset === 1,
    ),
  )
})

t.test('the gateway logged no errors', async t => t.same(api.failures(), []))
