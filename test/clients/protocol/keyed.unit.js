// Maps and shared polls in both codecs; Protobuf is read by the messages of the JavaScript SDK, or by protobufjs with
// the fields that only Halley has.

import protobuf from 'protobufjs'
import t from 'tap'
import { disconnects } from '../../../src/base/errors.js'
import { JsonCodec } from '../../../src/clients/protocol/json.js'
import { parseCommand as parseJson } from '../../../src/clients/protocol/json-commands.js'
import { ProtobufCodec } from '../../../src/clients/protocol/protobuf.js'
import { parseCommand as parseProtobuf, splitFrame } from '../../../src/clients/protocol/protobuf-commands.js'
import { PollJsonCodec, UniJsonCodec } from '../../../src/clients/protocol/uni-json.js'
import { thrown } from '../auth/jwt.js'
import { makePublication } from './publication.js'
import { commandFrame, repliesOf } from './sdk-messages.js'

/** @import { Keyed, Publication } from '../../../src/channels/broker/contract.js' */

const json = new JsonCodec()
const binary = new ProtobufCodec()

const { root } = protobuf.parse(
  `syntax = "proto3";
  message Publication {
    bytes data = 4; uint64 offset = 6; int64 time = 9; string key = 11; bool removed = 12; bool append = 100;
  }
  message PublishResult {
    uint64 offset = 100; string epoch = 101; string suppress_reason = 102; Publication current = 103;
  }
  message Push { string channel = 2; Publication pub = 4; }
  message Reply { uint32 id = 1; Push push = 4; PublishResult publish = 8; }
  message PublishRequest {
    string channel = 1; bytes data = 2; int32 type = 3; string key = 4; bool removed = 5;
    optional uint64 expected_offset = 100; string expected_epoch = 101; bool append = 102;
  }
  message Command { uint32 id = 1; PublishRequest publish = 7; }`,
  { keepCase: true },
)

/** With the fields that only Halley has. @param {any} encoded */
const extended = encoded => {
  const Reply = root.lookupType('Reply')
  return Reply.toObject(Reply.decodeDelimited(Buffer.from(encoded)), { longs: Number, bytes: Buffer })
}

const official = (/** @type {any} */ encoded) => repliesOf(Buffer.from(encoded))[0]
const inJson = (/** @type {any} */ encoded) => JSON.parse(Buffer.from(encoded).toString())

const DATA = Buffer.from('{"a":1}')
const TIME = 1_764_000_000_123

/** @param {Partial<Keyed>} [keyed] @param {Partial<Publication>} [fields] */
const change = (keyed, fields) =>
  makePublication({
    offset: 7,
    epoch: 'e',
    ...fields,
    keyed: { key: 'k', removed: false, append: false, time: TIME, ...keyed },
  })
const REMOVED = change({ removed: true }, { data: Buffer.alloc(0), tags: { t: 'x' } })

t.test('a change has its key and a removal has no data, also in delta subscriptions', async t => {
  const removed = { offset: 7, tags: { t: 'x' }, key: 'k', removed: true }
  const pushOf = (/** @type {object} */ pub) => ({ push: { channel: 'board', pub } })
  const key = 'é"\n'
  for (const [read, codec, data] of /** @type {const} */ ([
    [inJson, json, { a: 1 }],
    [official, binary, DATA],
  ])) {
    t.strictSame(read(codec.publication('board', change({ key }))), pushOf({ data, offset: 7, key }))
    t.strictSame(read(codec.publication('board', REMOVED)), pushOf(removed))
    t.strictSame(read(codec.deltaPublication('board', REMOVED, null)), pushOf(removed))
    const first = change({ key }, { offset: 1 })
    t.strictSame(read(codec.publication('board', first)), pushOf({ data, offset: 1, key, epoch: 'e' }))
  }
  const delta = Buffer.from('d')
  const text = { data: 'd', offset: 7, key: 'k', delta: true }
  t.strictSame(inJson(json.deltaPublication('board', change(), delta)), pushOf(text))
  t.strictSame(official(binary.deltaPublication('board', change(), delta)), pushOf({ ...text, data: delta }))
  t.strictSame(
    inJson(json.deltaPublication('board', change(), null)).push.pub,
    { data: '{"a":1}', offset: 7, key: 'k' },
    'full data is text',
  )
  t.strictSame(inJson(new UniJsonCodec().publication('board', change())), {
    channel: 'board',
    pub: { data: { a: 1 }, offset: 7, key: 'k' },
  })
  t.strictSame(inJson(new PollJsonCodec().publication('board', REMOVED)), { channel: 'board', ...removed })
  t.strictSame(inJson(new PollJsonCodec().publication('board', change({ key }))), {
    channel: 'board',
    data: { a: 1 },
    offset: 7,
    key,
  })
})

t.test('an appended value has the append flag', async t => {
  const part = change({ append: true }, { data: Buffer.from('"more"') })
  t.strictSame(inJson(json.publication('text', part)).push.pub, {
    data: 'more',
    offset: 7,
    key: 'k',
    append: true,
  })
  t.match(extended(binary.publication('text', part)).push.pub, {
    data: Buffer.from('"more"'),
    offset: 7,
    key: 'k',
    append: true,
  })
  t.equal(official(binary.publication('text', part)).push.pub.key, 'k', 'the SDK skips the mark')
})

t.test('a change of a shared poll has a version, also in delta subscriptions', async t => {
  for (const version of [1n, 2n ** 53n - 1n]) {
    const update = change({ time: 0 }, { offset: 0, epoch: '', version })
    const pub = { data: { a: 1 }, key: 'k', version: Number(version) }
    t.strictSame(inJson(json.publication('poll', update)).push.pub, pub)
    t.strictSame(inJson(json.deltaPublication('poll', update, null)).push.pub, { ...pub, data: '{"a":1}' })
    t.strictSame(official(binary.publication('poll', update)).push.pub, { ...pub, data: DATA })
    t.strictSame(official(binary.deltaPublication('poll', update, null)).push.pub, { ...pub, data: DATA })
  }
})

t.test('pages and live replies of maps are the same in both codecs', async t => {
  const info = '{"user":"u","client":"c"}'
  const state = [change({}, { info, tags: { t: 'x' } }), change({ key: 'l' }, { data: Buffer.from('"é"') })]
  const page = { type: 1, phase: 2, cursor: 'k"', epoch: 'e', offset: 9, state }
  const wanted = {
    epoch: 'e',
    offset: 9,
    type: 1,
    phase: 2,
    cursor: 'k"',
    state: [
      { data: { a: 1 }, info: JSON.parse(info), offset: 7, tags: { t: 'x' }, key: 'k', time: TIME },
      { data: 'é', offset: 7, key: 'l', time: TIME },
    ],
  }
  t.same(inJson(json.subscribe(2, page)), { id: 2, subscribe: wanted })
  const bytes = wanted.state.map((entry, i) => ({ ...entry, data: state[i].data }))
  t.same(official(binary.subscribe(2, page)), { id: 2, subscribe: { ...wanted, state: bytes } })
  t.same(
    inJson(json.subscribe(2, { ...page, delta: true })).subscribe,
    { ...wanted, state: wanted.state.map((entry, i) => ({ ...entry, data: state[i].data.toString() })) },
    'data of a delta-negotiated subscription are text, and only the live reply says so',
  )
  t.equal(official(binary.subscribe(2, { ...page, delta: true })).subscribe.delta, undefined)

  const delta = Buffer.from('d')
  const live = {
    ...{ type: 1, epoch: 'e', offset: 9, delta: true, recoverable: true, state: state.slice(1) },
    publications: [change(), change({}, { offset: 8 }), change({ removed: true }, { data: Buffer.alloc(0) })],
    deltas: [null, delta, null],
  }
  const result = { recoverable: true, epoch: 'e', offset: 9, delta: true, type: 1 }
  const publications = [
    { data: '{"a":1}', offset: 7, key: 'k' },
    { data: 'd', offset: 8, key: 'k', delta: true },
    { offset: 7, key: 'k', removed: true },
  ]
  t.same(inJson(json.subscribe(2, live)).subscribe, {
    ...result,
    publications,
    state: [{ data: '"é"', offset: 7, key: 'l', time: TIME }],
  })
  t.same(official(binary.subscribe(2, live)).subscribe, {
    ...result,
    publications: publications.map(one => (one.data ? { ...one, data: Buffer.from(one.data) } : one)),
    state: [{ data: state[1].data, offset: 7, key: 'l', time: TIME }],
  })

  const subs = new Map([['board', { ...page, phase: 0, cursor: '' }]])
  const connected = { client: 'c', version: 'v', subs }
  const { phase, cursor, ...inSubs } = wanted
  t.same(inJson(new UniJsonCodec().connect(1, connected)).connect.subs.board, inSubs)
  t.same(official(binary.connect(1, connected)).connect.subs.board, { ...inSubs, state: bytes })
  for (const result of [{ type: 0, phase: 0, cursor: '', state: [] }, {}]) {
    t.equal(json.subscribe(2, result), '{"id":2,"subscribe":{}}')
    t.strictSame([...Buffer.from(binary.subscribe(2, result))], [4, 0x08, 2, 0x32, 0])
  }
  t.same(inJson(json.subscribe(2, { type: 4, epoch: 'e' })).subscribe, { epoch: 'e', type: 4 })
})

t.test('the result of a conditional publish has the current entry', async t => {
  const current = change()
  const entry = { data: { a: 1 }, offset: 7, key: 'k', time: TIME }
  /** @type {[any, any][]} */
  const results = [
    [
      { offset: 8, epoch: 'e', suppressed: '', current: null },
      { offset: 8, epoch: 'e' },
    ],
    [{ offset: 0, epoch: '', suppressed: '', current: null }, {}],
    [
      { offset: 9, epoch: 'e', suppressed: 'position_mismatch', current },
      { offset: 9, epoch: 'e', suppress_reason: 'position_mismatch', current: entry },
    ],
  ]
  for (const [result, publish] of results) {
    t.strictSame(inJson(json.published(3, result)), { id: 3, publish })
    const bytes = publish.current ? { ...publish, current: { ...entry, data: DATA } } : publish
    t.same(extended(binary.published(3, result)), { id: 3, publish: bytes })
  }
})

t.test('commands of maps and shared polls are read in both codecs', async t => {
  const Command = root.lookupType('Command')
  const written = (/** @type {object} */ command) =>
    splitFrame(Buffer.from(Command.encodeDelimited(Command.fromObject(command)).finish())).map(parseProtobuf)
  for (const publish of [
    { channel: 'board', type: 1, key: 'k', expected_offset: 0, expected_epoch: 'e' },
    { channel: 'board', type: 1, key: 'k', expected_offset: 2 ** 52, append: true },
    { channel: 'board', type: 1, key: 'k', removed: true },
  ]) {
    const command = { id: 5, publish }
    t.strictSame(written(command), [parseJson(JSON.stringify(command))])
  }
  const absent = { id: 5, publish: { channel: 'board' } }
  t.equal(written(absent)[0].request.expected_offset, undefined, 'absent differs from 0')
  t.equal(parseJson(JSON.stringify(absent)).request.expected_offset, undefined)

  const track = [
    { signature: 's', items: [{ key: 'a', version: 2 ** 52 }, { key: 'b' }] },
    { signature: 't', items: [{ key: 'c', version: 1 }] },
  ]
  for (const sub_refresh of [
    { channel: 'poll', type: 1, track, untrack: ['d', 'e'] },
    { channel: 'poll', type: 2, untrack: ['a'] },
  ]) {
    const command = { id: 5, sub_refresh }
    const { request } = parseJson(JSON.stringify(command))
    t.strictSame(request, sub_refresh)
    t.strictSame(splitFrame(commandFrame(command)).map(parseProtobuf)[0].request, request)
  }
  for (const fields of [
    '"track":{}',
    '"track":[1]',
    '"track":[{"items":[null]}]',
    '"track":[{"items":[{"key":1}]}]',
    '"track":[{"items":[{"key":"a","version":-1}]}]',
    '"untrack":"a"',
    '"untrack":[1]',
  ])
    t.equal(
      thrown(() => parseJson(`{"id":1,"sub_refresh":{${fields}}}`)),
      disconnects.badRequest,
      fields,
    )
  for (const fields of ['"expected_offset":-1', '"expected_offset":"1"', '"append":1', '"key":5'])
    t.equal(
      thrown(() => parseJson(`{"id":1,"publish":{${fields}}}`)),
      disconnects.badRequest,
      fields,
    )
})
