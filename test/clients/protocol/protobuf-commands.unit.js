// Commands in Protobuf are read like those in JSON; malformed bytes are refused.

import t from 'tap'
import { disconnects } from '../../../src/base/errors.js'
import { parseCommand as parseJson } from '../../../src/clients/protocol/json-commands.js'
import { ProtobufCodec } from '../../../src/clients/protocol/protobuf.js'
import {
  parseCommand,
  readEmulationRequest,
  splitFrame,
} from '../../../src/clients/protocol/protobuf-commands.js'
import { thrown } from '../auth/jwt.js'
import { Random } from '../session/fuzz/random.js'
import { commandFrame } from './sdk-messages.js'

const parse = frame => splitFrame(Buffer.from(frame)).map(parseCommand)
const refuses = (t, frame, why) =>
  t.equal(
    thrown(() => parse(frame)),
    disconnects.badRequest,
    why,
  )

/** A command, written by the SDK and read by the codec. */
const written = command => parse(commandFrame(command))[0]

/** A frame with one command of these bytes. @param {(number | number[] | string)[]} parts */
function bytes(...parts) {
  const command = Buffer.concat(parts.map(part => Buffer.from(typeof part === 'number' ? [part] : part)))
  if (command.length > 127) throw new Error('too long for this')
  return Buffer.concat([Buffer.from([command.length]), command])
}

t.test('every field of every command is read as in JSON', async t => {
  const subscribe = {
    channel: 'a',
    token: 't',
    recover: true,
    epoch: 'e',
    offset: 2 ** 52,
    positioned: true,
    recoverable: true,
    join_leave: true,
    delta: 'fossil',
    tf: {
      op: 'and',
      nodes: [
        { key: 'k', cmp: 'in', vals: ['x', ''] },
        { op: 'not', nodes: [{ key: 'é', cmp: 'eq', val: 'v' }] },
      ],
    },
    flag: 3,
    type: 1,
    phase: 2,
    cursor: 'c',
    limit: 100,
    asc: true,
  }
  const commands = [
    { connect: { token: 't', name: 'js', version: '1', flag: 1, headers: { a: 'y', 'X-Y': '' } } },
    { connect: { subs: { a: subscribe, é: {}, b: { recover: true, epoch: 'e' } } } },
    { connect: {} },
    { subscribe },
    { subscribe: { channel: 'a', limit: -1, type: -2, flag: -3 } },
    { unsubscribe: { channel: 'a' } },
    { publish: { channel: 'a', type: 1, key: 'k', removed: true } },
    { presence: { channel: 'a' } },
    { presence_stats: { channel: 'a' } },
    { history: { channel: 'a', limit: -1, since: { offset: 3, epoch: 'e' }, reverse: true } },
    { history: { channel: 'a', since: {} } },
    { rpc: { method: 'm' } },
    { send: {} },
    { refresh: { token: 't' } },
    { sub_refresh: { channel: 'a', token: 't', type: 2 } },
    { ping: {}, rpc: {} },
  ]
  for (const fields of commands) {
    const command = { id: 0xfffffff0, ...fields }
    t.strictSame(written(command), parseJson(JSON.stringify(command)), Object.keys(fields)[0])
  }
  const data = '{"x": 1.0}'
  for (const name of ['connect', 'subscribe', 'publish', 'rpc', 'send']) {
    const { request } = written({ id: 1, [name]: { data: Buffer.from(data) } })
    const inJson = parseJson(`{"id":1,"${name}":{"data":${data}}}`).request
    t.strictSame(request, { ...inJson, data: Buffer.from(inJson.data) }, `${name} data`)
  }
})

t.test('payloads may be any bytes; empty ones count as absent', async t => {
  const data = Buffer.from([0, 10, 255, 128])
  t.ok(data.equals(written({ id: 1, publish: { channel: 'a', data } }).request.data))
  for (const none of [{ data: Buffer.alloc(0) }, {}])
    t.equal(written({ id: 1, publish: { channel: 'a', ...none } }).request.data, undefined)
})

t.test('headers may have names of inherited members', async t => {
  for (const name of ['__proto__', 'constructor', 'toString', '']) {
    const entry = [0x0a, name.length, ...Buffer.from(name), 0x12, 1, 0x78]
    const { request } = parse(bytes(8, 1, [0x22, entry.length + 2, 0x32, entry.length, ...entry]))[0]
    t.strictSame(Object.entries(request.headers), [[name, 'x']])
    const sub = [0x0a, name.length, ...Buffer.from(name), 0x12, 2, 0x38, 7]
    const subs = parse(bytes(8, 1, [0x22, sub.length + 2, 0x1a, sub.length, ...sub]))[0].request.subs
    t.strictSame([...subs], [[name, { offset: 7 }]])
  }
  t.equal(/** @type {any} */ ({}).x, undefined)
})

t.test('a frame is split into commands that do not reference the frame', async t => {
  const frame = commandFrame(
    { id: 1, rpc: { method: 'a' } },
    {},
    { id: 2, publish: { data: Buffer.from('x') } },
  )
  const raws = splitFrame(frame)
  frame.fill(0xff)
  const parsed = raws.map(parseCommand).map(({ id, method }) => `${id} ${method}`)
  t.strictSame(parsed, ['1 rpc', '0 ', '2 publish'])
  t.equal(parseCommand(raws[2]).request.data.toString(), 'x')
  const codec = new ProtobufCodec()
  t.strictSame(raws.map(codec.size), [raws[0].length, 0, raws[2].length])
})

t.test('an empty command is a pong', async t => {
  for (const command of [[0], bytes(8, 0), bytes([0x80, 1, 5]), [2, 0x12, 0]]) {
    t.strictSame(parse(Buffer.from(command)), [{ id: 0, method: '', request: null, ping: false }])
  }
})

t.test('a command with several requests is read as the first in the order of preference', async t => {
  const order = [
    'connect',
    'subscribe',
    'unsubscribe',
    'publish',
    'presence',
    'presence_stats',
    'history',
    'rpc',
    'send',
    'refresh',
    'sub_refresh',
  ]
  for (let i = 0; i < order.length; i++) {
    const requests = order.slice(i).map(name => [name, {}])
    t.equal(written({ id: 1, ...Object.fromEntries(requests) }).method, order[i])
  }
  const history = [0x52, 3, 0x0a, 1, 0x61]
  const publish = [0x3a, 3, 0x0a, 1, 0x62]
  for (const both of [
    [...history, ...publish],
    [...publish, ...history],
  ]) {
    t.strictSame(parse(bytes(8, 1, both)), [
      { id: 1, method: 'publish', request: { channel: 'b' }, ping: false },
    ])
  }
})

t.test('repeated message fields are merged; of other fields the last one counts', async t => {
  const publish = field => [0x3a, field.length, ...Buffer.from(field)]
  const [command] = parse(bytes(8, 1, publish('\x0a\x01a'), 8, 2, publish('\x12\x01x'), publish('\x12\x01y')))
  t.strictSame(command, {
    id: 2,
    method: 'publish',
    request: { channel: 'a', data: Buffer.from('y') },
    ping: false,
  })
})

t.test('unknown fields of every wire type are skipped', async t => {
  const unknown = [
    [0xa0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
    [0xa1, 1, 1, 2, 3, 4, 5, 6, 7, 8],
    [0xa2, 1, 3, 1, 2, 3],
    [0xa3, 1, 0xa3, 1, 8, 1, 0xa4, 1, 0x12, 1, 1, 0xa4, 1],
    [0xa5, 1, 1, 2, 3, 4],
    [0xf8, 0xff, 0xff, 0xff, 0x0f, 1],
  ]
  for (const field of unknown) {
    t.equal(parse(bytes(field, 8, 9, [0x6a, 0], field))[0].id, 9)
    const inner = [...field, 0x0a, 1, 0x61]
    t.equal(parse(bytes(8, 9, [0x3a, inner.length, ...inner]))[0].request.channel, 'a')
  }
})

t.test('numbers that are too large lose their upper bits', async t => {
  const ones = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]
  for (const [varint, id, what] of /** @type {[number[], number, string][]} */ ([
    [[0x85, 0x80, 0x80, 0x80, 0x10], 5, '2^32 + 5'],
    [[0x85, 0x80, 0x80, 0x80, 0x80, 0x01], 5, '2^35 + 5'],
    [ones, 0xffffffff, '2^64 - 1'],
    [[0x85, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00], 5, '5 with superfluous bytes'],
  ]))
    t.equal(parse(bytes(8, varint, [0x6a, 0]))[0].id, id, what)
  const offset = varint => parse(bytes(8, 1, [0x2a, varint.length + 1, 0x38, ...varint]))[0].request.offset
  t.equal(offset(ones), 2 ** 64, '2^64 - 1, about')
  t.equal(offset([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f]), Number.MAX_SAFE_INTEGER)
})

t.test('a malformed command is a bad request', async t => {
  /** @type {[string, Buffer][]} */
  const wrong = [
    ['an empty frame', Buffer.alloc(0)],
    ['a length beyond the end', Buffer.from([3, 8, 1])],
    ['a length without an end', Buffer.from([0x80])],
    ['a length of 11 bytes', Buffer.from([...Array(10).fill(0x80), 0, 0])],
    ['a length of 4 GB', Buffer.from([0xff, 0xff, 0xff, 0xff, 0x0f, 1])],
    ['a second length beyond the end', Buffer.from([0, 1])],
    ['a tag without a value', bytes(8)],
    ['field 0', bytes(0, 1)],
    ['field 0 with a length', bytes(2, 0)],
    ['wire type 6', bytes(0x0e, 1)],
    ['wire type 7', bytes(0xa7, 1, 1)],
    ['the end of a group that has not begun', bytes(0xa4, 1)],
    ['a group without an end', bytes(0xa3, 1, 8, 1)],
    ['an id with a length', bytes(0x0a, 1, 1)],
    ['a request that is a number', bytes(8, 1, 0x20, 1)],
    ['a ping that is a number', bytes(8, 1, 0x58, 1)],
    ['a request beyond the end', bytes(8, 1, 0x3a, 4, 0x0a, 1, 0x61)],
    ['a string beyond the end of the command', bytes(8, 1, 0x3a, 3, 0x0a, 5, 0x61)],
    ['a string beyond the end of its message', bytes(8, 1, [0x3a, 3, 0x0a, 2, 0x61], [0x6a, 0])],
    ['a number beyond the end of its message', bytes(8, 1, [0x2a, 2, 0x38, 0x80], [0x6a, 0])],
    ['a fixed number beyond the end', bytes(8, 1, [0x3a, 3, 0xa5, 1, 1], [0x6a, 0, 0x6a, 0])],
    ['a channel that is a number', bytes(8, 1, [0x3a, 2, 8, 1])],
    ['an id without a request', bytes(8, 1)],
    ['a lone ping', bytes(0x5a, 0)],
    ['a lone ping with an id', bytes(8, 1, 0x5a, 0)],
    ['an unknown request', bytes(8, 1, [0x82, 1, 0])],
    ['a less preferred request that is malformed', bytes(8, 1, 0x3a, 0, [0x7a, 1, 0xff])],
  ]
  for (const [what, frame] of wrong) refuses(t, frame, what)
})

t.test('filters may nest as deep as in JSON, and groups do not recurse', async t => {
  const filter = depth => {
    let node = {}
    for (let i = 0; i < depth; i++) node = { op: 'not', nodes: [node] }
    return { id: 1, subscribe: { channel: 'a', tf: node } }
  }
  for (const depth of [0, 1, 20, 31, 32, 33, 34, 100, 1000]) {
    const expected = depth > 32 ? disconnects.badRequest : undefined
    const inJson = () => parseJson(JSON.stringify(filter(depth)))
    for (const read of [inJson, () => written(filter(depth))]) t.equal(thrown(read), expected, `${depth}`)
  }
  refuses(
    t,
    Buffer.concat([Buffer.from([0xe0, 0xd4, 3]), Buffer.alloc(60_000, Buffer.from([0xa3, 1]))]),
    'groups',
  )
})

/** Sets up to `most` bytes of a copy at random. */
function damaged(random, bytes, most) {
  const copy = Buffer.from(bytes)
  for (let n = random.below(most); n >= 0; n--) copy[random.below(copy.length)] = random.below(256)
  return copy
}

t.test('random bytes give a command or a bad request, in linear time', async t => {
  const random = new Random(20261121)
  const seeds = [
    commandFrame({
      id: 1,
      connect: { token: 'token', headers: { a: 'b' }, subs: { x: { offset: 7, epoch: 'e' } } },
    }),
    commandFrame({
      id: 2,
      subscribe: { channel: 'abc', tf: { op: 'and', nodes: [{ key: 'k', cmp: 'in', vals: ['a', 'b'] }] } },
    }),
    commandFrame(
      { id: 3, publish: { channel: 'abc', data: Buffer.alloc(200, 7) } },
      {},
      { id: 4, rpc: { method: 'm' } },
    ),
    commandFrame({ id: 5, history: { channel: 'abc', limit: -1, since: { offset: 3, epoch: 'e' } } }),
  ]
  let commands = 0
  let refused = 0
  for (let i = 0; i < 60_000; i++) {
    const seed = random.chance(0.9) ? random.pick(seeds) : Buffer.alloc(1 + random.below(300))
    const frame = damaged(random, seed, 6)
    const cut = random.chance(0.2) ? frame.subarray(0, random.below(frame.length + 1)) : frame
    try {
      commands += parse(cut).length
    } catch (error) {
      if (error !== disconnects.badRequest) return t.fail(`${error}`, { frame: cut.toString('hex') })
      refused++
    }
  }
  t.ok(commands > 1000, `${commands} commands`)
  t.ok(refused > 1000, `${refused} frames refused`)

  const wide = {
    pongs: Buffer.alloc(65_536),
    nodes: nested(0x2a, 0x6a, 0x32),
    vals: nested(0x2a, 0x6a, 0x2a),
    subs: nested(0x22, 0x1a),
    headers: nested(0x22, 0x32),
  }
  for (const [what, frame] of Object.entries(wide)) {
    const before = process.cpuUsage()
    parse(frame)
    const ms = process.cpuUsage(before).user / 1000
    t.ok(ms < 500, `${what}: ${ms} ms of the processor`)
  }
})

/** A frame of 64 KB of empty fields. @param {number[]} tags from the outermost one to that of the fields */
function nested(...tags) {
  let bytes = Buffer.alloc(65_000, Buffer.from([tags[tags.length - 1], 0]))
  const length = n => [(n & 127) | 128, ((n >> 7) & 127) | 128, n >> 14]
  for (const tag of tags.slice(0, -1).reverse())
    bytes = Buffer.concat([Buffer.from([tag, ...length(bytes.length)]), bytes])
  return Buffer.concat([Buffer.from(length(bytes.length)), bytes])
}

// The body of a POST to the emulation endpoint.

/** @param {number} tag `field << 3 | 2`: 0x0a node, 0x12 session, 0x1a data @param {string | number[]} value */
const field = (tag, value) => [tag, value.length, ...Buffer.from(value)]
const readRequest = (...fields) => readEmulationRequest(Buffer.from(fields.flat()))

t.test('emulation: fields may be in any order, unknown ones are skipped', async t => {
  const whole = { node: 'n', session: 's', data: Buffer.from([0, 255]) }
  const data = field(0x1a, [0, 255])
  t.strictSame(readRequest(field(0x0a, 'n'), field(0x12, 's'), data), whole)
  // Field 99, a varint, and field 31, 2 bytes.
  const unknown = [0x98, 6, 1, 0xfa, 1, 2, 2, 120]
  t.strictSame(readRequest(data, field(0x12, 'x'), unknown, field(0x12, 's'), field(0x0a, 'n')), whole)
  t.strictSame(readRequest(field(0x12, 's')), { node: '', session: 's', data: Buffer.alloc(0) })
})

t.test('emulation: a malformed request is refused', async t => {
  for (const [what, bytes] of /** @type {[string, number[]][]} */ ([
    ['nothing', []],
    ['a tag without a length', [0x0a]],
    ['a length beyond the end', [0x0a, 2, 110]],
    ['a length far beyond the end', [0x1a, 5, 0]],
    ['field 0', [0, 0]],
    ['wire type 7', [0x0f, 1]],
    ['wire type 4', [0x0c]],
    ['an incomplete tag', [0x80]],
    ['a length of 4 GB', [0x1a, 0xff, 0xff, 0xff, 0xff, 0x0f]],
  ]))
    t.equal(readRequest(bytes), undefined, what)
})

t.test('emulation: a damaged request is read or refused, without an exception', async t => {
  const random = new Random(7)
  const seed = Buffer.from([
    ...field(0x0a, 'node'),
    ...field(0x12, 'session'),
    ...field(0x1a, 'data'.repeat(10)),
  ])
  let refused = 0
  for (let i = 0; i < 20_000; i++) {
    const body = damaged(random, seed, 4)
    const request = readEmulationRequest(body)
    if (request === undefined) refused++
    else if (request.data.length > body.length) return t.fail(body.toString('hex'))
  }
  t.ok(refused > 1000, `${refused} refused`)
})
