// Subscribers with different codecs on one channel.

import t from 'tap'
import { JsonCodec } from '../../../src/clients/protocol/json.js'
import { ProtobufCodec } from '../../../src/clients/protocol/protobuf.js'
import { makePublication } from '../../clients/protocol/publication.js'
import { repliesOf } from '../../clients/protocol/sdk-messages.js'
import { answer, PLAIN, startHub } from './rig.js'

/** @template {JsonCodec | ProtobufCodec} T @param {T} codec */
function counting(codec) {
  const counted = { codec, calls: 0 }
  const { publication } = codec
  codec.publication = (...args) => {
    counted.calls++
    return publication.apply(codec, args)
  }
  return counted
}

t.test('a publication is encoded once per codec and sent once per codec and filter', async t => {
  const rig = startHub()
  const json = counting(new JsonCodec())
  const protobuf = counting(new ProtobufCodec())
  const filters = [null, { key: 'k', cmp: 'ex' }, { key: 'k', cmp: 'eq', val: 'v' }]
  const sessions = []
  for (const filter of filters) {
    for (const { codec } of [json, protobuf, json, protobuf]) {
      const session = rig.session()
      session.codec = /** @type {any} */ (codec)
      rig.subscribe(session, 'x', PLAIN, { filter, events: true })
      rig.calls.shift()?.done(null, answer())
      sessions.push(session)
    }
  }
  rig.publish('x', '1', { tags: { k: 'v' } })
  t.strictSame([json.calls, protobuf.calls], [1, 1])
  t.equal(rig.published, 6, 'one send per codec and filter')
  for (const session of sessions) t.equal(session.got.length, 2, 'the reply and the publication')
  rig.publish('x', '2')
  t.strictSame([json.calls, protobuf.calls], [2, 2])
  const counts = sessions.map(({ got }) => got.length)
  t.strictSame(counts, [3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2])
  for (const session of sessions.slice(0, 2)) rig.unsubscribe(session, 'x')
  rig.publish('x', '3')
  t.strictSame([json.calls, protobuf.calls], [3, 3])
})

t.test('an encoded publication is not overwritten by other messages', async t => {
  const codec = new ProtobufCodec()
  const bytes = codec.publication('x', makePublication({ data: Buffer.from('"a"') }))
  codec.disconnect(3008, 'slow')
  codec.event('x', '{"user":"u","client":"c"}', true)
  t.strictSame(repliesOf(bytes), [{ push: { channel: 'x', pub: { data: Buffer.from('"a"') } } }])
})

t.test('compact and plain subscribers share a channel, with one encoding of each kind per codec', async t => {
  const rig = startHub()
  const json = counting(new JsonCodec())
  const sessions = []
  for (const filter of [null, { key: 'k', cmp: 'ex' }]) {
    for (const compact of [false, true, false, true]) {
      const session = rig.session()
      session.codec = /** @type {any} */ (json.codec)
      rig.subscribe(session, 'x', PLAIN, { filter, events: true, compact })
      rig.calls.shift()?.done(null, answer())
      sessions.push(Object.assign(session, { compact }))
    }
  }
  rig.publish('x', '1', { tags: { k: 'v' } })
  rig.hub.presence('x', '{"user":"u","client":"c"}', true)
  t.equal(json.calls, 2)
  const id = rig.hub.idOf('x')
  for (const { compact, got } of sessions) {
    const head = compact ? { id } : { channel: 'x' }
    t.strictSame(got.slice(1), [
      { ...head, pub: { data: 1, tags: { k: 'v' } } },
      { ...head, join: { info: { user: 'u', client: 'c' } } },
    ])
  }
})

t.test('a channel keeps its id while it has subscribers, and ids are not used again', async t => {
  const rig = startHub()
  const [a, b, c] = [rig.session(), rig.session(), rig.session()]
  const id = (/** @type {any} */ session) => session.joined.get('x').channel.id
  const join = session => {
    rig.subscribe(session, 'x', PLAIN, { compact: true })
    rig.calls.shift()?.done?.(null, answer())
  }
  join(a)
  join(b)
  t.equal(id(a), 1)
  rig.unsubscribe(a, 'x')
  join(c)
  t.equal(id(c), 1)
  rig.unsubscribe(b, 'x')
  rig.unsubscribe(c, 'x')
  rig.calls.splice(0)
  join(a)
  t.equal(id(a), 2)
})
