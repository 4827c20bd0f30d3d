// Protobuf over WebSocket in raw frames (client protocol): negotiation, edge cases of framing, and channels that JSON
// and Protobuf clients share.

import { once } from 'node:events'
import t from 'tap'
import WebSocket from 'ws'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { commandFrame } from '../protocol/sdk-messages.js'
import { anonymous, at, history, open, token, tokenClient } from '../session/support.js'
import { ProtobufClient } from './protobuf-client.js'

const BAD_REQUEST = { code: 3501, reason: 'bad request' }
const INAPPROPRIATE = { code: 3506, reason: 'inappropriate protocol' }
/** Neither UTF-8 nor JSON. */
const BYTES = Buffer.from([0, 255, 10, 128])

const config = {
  client: tokenClient({ allow_anonymous_connect_without_token: true }),
  channel: {
    without_namespace: { ...open, ...history, join_leave: true },
    namespaces: [
      { name: 'plain', ...open },
      { name: 'rec', ...open, ...history, force_recovery: true },
      { name: 'json', ...open, publication_data_format: 'json' },
      { name: 'object', ...open, publication_data_format: 'json_object' },
      { name: 'binary', ...open, ...history, publication_data_format: 'binary' },
    ],
  },
}

t.jobs = 2

for (const driver of drivers) {
  t.test(driver, async t => {
    const gateway = await startGateway(t, { ...config, workers: 1, http_server: { driver } })

    /** @param {object} [request] */
    const protobufClient = async request => {
      const client = await ProtobufClient.connected(gateway.ws, request)
      t.teardown(() => client.socket.terminate())
      return client
    }
    /** @param {object} [request] */
    const jsonClient = request => anonymous(t, gateway, request)

    t.test('the codec is that of the first known subprotocol of the offer, or of the query', async t => {
      /** @type {[string, string[], string, boolean][]} */
      const table = [
        ['', ['centrifuge-protobuf'], 'centrifuge-protobuf', true],
        ['', ['x', 'centrifuge-protobuf', 'centrifuge-json'], 'centrifuge-protobuf', true],
        ['', ['centrifuge-json', 'centrifuge-protobuf'], 'centrifuge-json', false],
        ['', [], '', false],
        ['?format=protobuf', [], '', true],
        ['?cf_protocol=protobuf', [], '', true],
        ['?x=1&format=protobuf&cf_ws_frame_ping_pong=true', [], '', true],
        ['?format=json', [], '', false],
        ['?format=', ['centrifuge-protobuf'], 'centrifuge-protobuf', true],
      ]
      for (const [query, protocols, chosen, binary] of table) {
        const what = `${query} ${protocols}`
        const socket = new WebSocket(gateway.ws + query, protocols)
        const client = binary ? new ProtobufClient(socket) : new RawClient(socket)
        await once(socket, 'open')
        t.equal(socket.protocol, chosen, what)
        t.match(await client.call('connect'), { id: 1, connect: { client: /^[0-9a-f-]{36}$/ } }, what)
        if (client instanceof ProtobufClient) t.ok(client.frames[0].binary, `${what}: binary frames`)
        socket.terminate()
      }
    })

    t.test('several commands, and their replies, share a frame, text or binary', async t => {
      const client = await ProtobufClient.open(gateway.ws)
      client.sendBytes(
        commandFrame(
          { id: 1, connect: {} },
          { id: 2, subscribe: { channel: 'plain:a' } },
          { id: 3, presence: { channel: 'plain:a' } },
        ),
        true,
      )
      t.match(await client.next(), { id: 1, connect: { ping: 600, pong: true } })
      t.strictSame(await client.next(), { id: 2, subscribe: {} })
      const { presence } = await client.next()
      t.equal(Object.keys(presence.presence).length, 1, 'subscribed before the presence command ran')
      client.sendBytes(commandFrame({ id: 4, unsubscribe: { channel: 'plain:a' } }), false)
      t.strictSame(await client.next(), { id: 4, unsubscribe: {} }, 'the opcode does not matter')
      const ids = Array.from({ length: 50 }, (_, i) => 100 + i)
      const before = client.frames.length
      client.send(...ids.map(id => ({ id, unsubscribe: { channel: 'x' } })))
      for (const id of ids) t.equal((await client.next()).id, id)
      t.equal(client.frames.length - before, 4, 'at most 16 replies per frame')
      client.socket.terminate()
    })

    t.test('a malformed frame closes with 3501, after replies to earlier commands', async t => {
      /** @type {[string, number[]][]} */
      const table = [
        ['empty', []],
        ['a length beyond the end', [5, 8, 1]],
        ['a pong without a ping', [0]],
        ['an id without a request', [2, 8, 7]],
        ['JSON', [...Buffer.from('{"id":7,"unsubscribe":{"channel":"a"}}')]],
      ]
      for (const [what, bytes] of table) {
        const client = await protobufClient()
        client.sendBytes(Buffer.from(bytes))
        t.strictSame(await client.closed, BAD_REQUEST, what)
      }
      const client = await protobufClient()
      client.sendBytes(
        Buffer.concat([commandFrame({ id: 7, unsubscribe: { channel: 'a' } }), Buffer.from([2, 8, 7])]),
      )
      t.strictSame(await client.next(), { id: 7, unsubscribe: {} })
      t.strictSame(await client.closed, BAD_REQUEST)
    })

    t.test('offsets beyond the end of the stream are not recovered', async t => {
      const client = await protobufClient()
      // subscribe {channel 'rec:o', recover, offset 2^64 - 1}
      const subscribe = [0x0a, 5, ...Buffer.from('rec:o'), 0x18, 1, 0x38, ...Array(9).fill(0xff), 1]
      const command = [8, 9, 0x2a, subscribe.length, ...subscribe]
      client.sendBytes(Buffer.from([command.length, ...command]))
      t.match(await client.next(), {
        id: 9,
        subscribe: { recoverable: true, was_recovering: true, recovered: undefined },
      })
    })

    t.test('JSON and Protobuf clients exchange messages in a channel', async t => {
      const claims = { sub: 'u1', info: { name: 'Zoë' } }
      const [binary, json] = [
        await protobufClient({ token: token(claims) }),
        await jsonClient({ token: token(claims) }),
      ]
      await binary.call('subscribe', { channel: 'room', join_leave: true })
      t.match(await binary.push('join'), { channel: 'room', join: { info: { user: 'u1' } } })
      await json.subscribe('room')
      const joined = await binary.push('join')
      t.strictSame(joined.join.info, {
        user: 'u1',
        client: json.connect.client,
        conn_info: Buffer.from('{"name":"Zoë"}'),
      })

      const data = Buffer.from('{"a":\n1.0}')
      t.strictSame(await binary.call('publish', { channel: 'room', data }), { id: 3, publish: {} })
      const { pub } = await binary.push('pub')
      t.equal(pub.data.toString(), '{"a":1.0}', 'line feeds are removed: they end JSON messages')
      const info = { user: 'u1', client: binary.connect.client }
      t.match(pub, { info: { ...info, conn_info: Buffer.from('{"name":"Zoë"}') }, offset: 1, epoch: String })
      const { epoch } = pub
      t.strictSame(await json.push('pub'), {
        channel: 'room',
        pub: { data: { a: 1 }, info: { ...info, conn_info: { name: 'Zoë' } }, offset: 1, epoch },
      })
      await json.call('publish', { channel: 'room', data: ['é', 2] })
      t.equal((await binary.push('pub')).pub.data.toString(), '["é",2]')
      await json.push('pub')
      await gateway.api('publish', { channel: 'room', data: 'x', tags: { k: 'v' } })
      t.match((await binary.push('pub')).pub, { data: Buffer.from('"x"'), tags: { k: 'v' }, offset: 3 })
      t.match((await json.push('pub')).pub, { data: 'x', tags: { k: 'v' }, offset: 3 })

      const list = (await binary.call('history', { channel: 'room', limit: 10 })).history
      t.match(list, { epoch, offset: 3 })
      t.strictSame(
        list.publications.map((/** @type {any} */ { data }) => data.toString()),
        ['{"a":1.0}', '["é",2]', '"x"'],
      )
      const { presence } = (await binary.call('presence', { channel: 'room' })).presence
      t.strictSame(Object.keys(presence).sort(), [binary.connect.client, json.connect.client].sort())
      t.strictSame((await binary.call('presence_stats', { channel: 'room' })).presence_stats, {
        num_clients: 2,
        num_users: 1,
      })
      json.close()
      t.match(await binary.push('leave'), {
        channel: 'room',
        leave: { info: { client: json.connect.client } },
      })
    })

    t.test('data that is not JSON reaches Protobuf subscribers and closes JSON ones with 3506', async t => {
      for (const by of ['client', 'API']) {
        const channel = `plain:${by}`
        const [binary, publisher] = [await protobufClient(), await protobufClient()]
        const [json, bystander] = [await jsonClient(), await jsonClient()]
        for (const client of [binary, publisher, json]) await client.subscribe(channel)
        await bystander.subscribe('plain:other')
        if (by === 'API') await gateway.api('publish', { channel, b64data: BYTES.toString('base64') })
        else await publisher.call('publish', { channel, data: BYTES })
        t.strictSame(await json.closed, INAPPROPRIATE)
        for (const client of [binary, publisher]) t.ok(BYTES.equals((await client.push('pub')).pub.data))
        await gateway.api('publish', { channel, data: 1 })
        await gateway.api('publish', { channel: 'plain:other', data: 2 })
        for (const client of [binary, publisher]) t.equal((await client.push('pub')).pub.data.toString(), '1')
        t.strictSame(await bystander.push('pub'), { channel: 'plain:other', pub: { data: 2 } })
      }
    })

    t.test('only Protobuf clients may read history data that is not JSON', async t => {
      const binary = await protobufClient()
      const { subscribe } = await binary.call('subscribe', { channel: 'rec:bytes' })
      await binary.call('publish', { channel: 'rec:bytes', data: BYTES })
      const recover = { channel: 'rec:bytes', recover: true, epoch: subscribe.epoch }
      const late = await protobufClient()
      const reply = await late.call('subscribe', recover)
      t.ok(BYTES.equals(reply.subscribe.publications[0].data))
      t.match(reply.subscribe, { recovered: true, publications: [{ offset: 1 }] })
      const json = await jsonClient()
      json.send({ id: 50, subscribe: recover })
      t.strictSame(await json.closed, INAPPROPRIATE)
      const reader = await jsonClient()
      reader.send({ id: 50, history: { channel: 'rec:bytes', limit: 10 } })
      t.strictSame(await reader.closed, INAPPROPRIATE)
      t.match(await late.call('publish', { channel: 'rec:bytes', data: Buffer.from('1') }), { publish: {} })
    })

    t.test('publication_data_format selects the accepted payloads', async t => {
      const client = await protobufClient()
      /** @type {[string, string | Buffer, boolean][]} */
      const table = [
        ['plain:f', '', false],
        ['plain:f', BYTES, true],
        ['plain:f', '{"a":1}', true],
        ['json:f', '', false],
        ['json:f', BYTES, false],
        ['json:f', '{"a":1', false],
        ['json:f', Buffer.from([0x22, 0xff, 0x22]), false],
        ['json:f', ' [1]\n', true],
        ['object:f', '[1]', false],
        ['object:f', '{', false],
        ['object:f', '\n {"a":1}', true],
        ['binary:f', '', true],
        ['binary:f', BYTES, true],
      ]
      for (const [channel, data, allowed] of table) {
        const { error, publish } = await client.call('publish', { channel, data: Buffer.from(data) })
        const what = `${channel} ${JSON.stringify(String(data))}`
        if (allowed) t.strictSame(publish, {}, what)
        else t.strictSame(error, { code: 107, message: 'bad request' }, what)
      }
    })

    t.test('server-side subscriptions are made by token and by the server API', async t => {
      const claims = { sub: 'u2', subs: { 'rec:s': { data: { w: 1 }, info: { seat: 1 } }, 'plain:s': {} } }
      const client = await protobufClient({ token: token(claims) })
      t.match(client.connect.subs['rec:s'], {
        recoverable: true,
        positioned: true,
        epoch: String,
        data: Buffer.from('{"w":1}'),
      })
      t.strictSame(client.connect.subs['plain:s'], {})
      const { presence } = (await client.call('presence', { channel: 'rec:s' })).presence
      t.strictSame(presence[client.connect.client].chan_info, Buffer.from('{"seat":1}'))
      await gateway.api('publish', { channel: 'rec:s', data: 1 })
      t.match(await client.push('pub'), { channel: 'rec:s', pub: { offset: 1 } })
      await gateway.api('subscribe', { user: 'u2', channel: 'rec:t', data: { x: 1 } })
      t.match(await client.push('subscribe'), {
        channel: 'rec:t',
        subscribe: { recoverable: true, data: Buffer.from('{"x":1}') },
      })
      await gateway.api('unsubscribe', { user: 'u2', channel: 'rec:t' })
      t.match(await client.push('unsubscribe'), { unsubscribe: { code: 2000, reason: 'server unsubscribe' } })
      await gateway.api('refresh', { user: 'u2', expire_at: at(100) })
      t.match((await client.push('refresh')).refresh, { expires: true, ttl: Number })

      const subs = { 'rec:s': { recover: true, epoch: client.connect.subs['rec:s'].epoch } }
      const again = await protobufClient({ token: token(claims), subs })
      t.match(again.connect.subs['rec:s'], {
        recovered: true,
        publications: [{ data: Buffer.from('1'), offset: 1 }],
      })
      await gateway.api('disconnect', { user: 'u2' })
      t.strictSame(await again.closed, { code: 3503, reason: 'force disconnect' })
    })
  })
}
