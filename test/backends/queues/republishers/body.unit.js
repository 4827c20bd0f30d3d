import t from 'tap'
import { compileTemplate, formats, headersOf } from '../../../../src/backends/queues/body.js'

const info = '{"user":"7","client":"c-1","conn_info":{"name":"Ann"}}'
/** @type {(of?: object, publication?: object) => any} */
const republication = (of = {}, publication = {}) => ({
  number: 0,
  to: 1,
  source: 0,
  time: 1700000000000,
  channel: 'chat:"1"',
  meta: '{"plan":"x"}',
  ...of,
  publication: {
    data: Buffer.from('{"text":"hé", "n": 1.0}'),
    json: true,
    info,
    tags: { lang: 'de' },
    offset: 3,
    epoch: 'abcdefgh',
    ...publication,
  },
})

t.test('halley: the body has all fields of a publication, with its data unchanged', async t => {
  const body = formats.halley(republication(), 'i-1', false).toString()
  t.ok(body.includes('"data":{"text":"hé", "n": 1.0},'))
  t.same(JSON.parse(body), {
    id: 'i-1',
    channel: 'chat:"1"',
    data: { text: 'hé', n: 1 },
    user: '7',
    client: 'c-1',
    info: JSON.parse(info),
    tags: { lang: 'de' },
    offset: 3,
    epoch: 'abcdefgh',
    time: 1700000000000,
    source: 'client',
  })
  t.same(JSON.parse(formats.halley(republication(), 'i', true).toString()).user_data, { plan: 'x' })
  const bare = formats.halley(republication({ meta: '', source: 1 }, { info: '', tags: null }), 'i', true)
  const fields = 'id channel data user client offset epoch time source'
  t.equal(Object.keys(JSON.parse(bare.toString())).join(' '), fields)
})

t.test('halley: binary data is in b64data, empty data is null', async t => {
  const bytes = Buffer.from([0, 255, 34])
  const body = JSON.parse(
    formats.halley(republication({}, { data: bytes, json: false }), 'i', false).toString(),
  )
  t.equal(body.b64data, bytes.toString('base64'))
  t.notOk('data' in body)
  const none = formats.halley(republication({}, { data: Buffer.alloc(0) }), 'i', false)
  t.equal(JSON.parse(none.toString()).data, null)
})

t.test('carotene: the body has the fields of Carotene', async t => {
  const carotene = (of, publication, meta = false) =>
    JSON.parse(formats.carotene(republication(of, publication), 'i', meta).toString())
  t.same(carotene({}, {}), {
    type: 'message',
    message: { text: 'hé', n: 1 },
    channel: 'chat:"1"',
    user_id: '7',
    user_data: { name: 'Ann' },
  })
  t.same(carotene({}, {}, true).user_data, { plan: 'x' })
  t.same(carotene({ source: 1 }, { info: '' }), {
    type: 'message',
    message: { text: 'hé', n: 1 },
    channel: 'chat:"1"',
    from_server: 'true',
  })
})

t.test('data: the body is a copy of the data', async t => {
  const given = republication()
  const body = formats.data(given, 'i', false)
  given.publication.data.fill(0)
  t.equal(body.toString(), '{"text":"hé", "n": 1.0}')
})

t.test('headers have the names that consumers read', async t => {
  t.same(headersOf(republication(), 'here'), {
    'centrifugo-channels': 'chat:"1"',
    'halley-origin': 'here',
    'centrifugo-tag-lang': 'de',
  })
})

t.test('templates insert the channel and its namespace', async t => {
  t.equal(compileTemplate('{channel}', ':')('a:b'), 'a:b')
  t.equal(compileTemplate('x', ':')('a:b'), 'x')
  t.equal(compileTemplate('m.{namespace}.{channel}', ':')('a:$&'), 'm.a.a:$&')
  t.equal(compileTemplate('m.{namespace}', ':')('plain'), 'm.')
  t.equal(compileTemplate('m.{namespace}', '')('a:b'), 'm.')
})
