// The conformance suite of hooks: what a client sees for each answer of a backend, or of a module that asks one
// (docs/proxies.md). Rows that an implementation leaves out are in its adapter, with the reasons.

import { makeToken } from '../../clients/auth/jwt.js'
import { startGateway } from '../../kit/gateway.js'
import { StreamClient } from '../../kit/stream-client.js'
import { until } from '../../kit/wait.js'
import { figureRows, wireRows } from './conformance-wire.js'
import { configOf, holdOf, INTERNAL, rig, rowsOf, SECRET, soon } from './rig.js'

/** @import { ConformanceBackend } from './rig.js' */

/** @param {string} json */
const b64 = json => Buffer.from(json).toString('base64')

/**
 * Plays the table against a backend.
 * @param {import('tap').Test} t @param {ConformanceBackend} backend
 * @param {object} [config] of the gateway, beside that of the table
 */
export async function conformance(t, backend, config = {}) {
  const gateway = await startGateway(t, { ...configOf(backend), ...config })
  const { open, enter, count } = rig(gateway, backend)
  const { row, has, end } = rowsOf(backend.without)

  /** Expires during the other tests: later than a machine stands still. */
  const EXPIRY_S = 4
  const REFUSED = [{ result: { expired: true } }, { error: { code: 1000 } }, {}]
  const FILTER = { key: 'team', cmp: 'eq', val: 'a' }
  const FILTERED = { result: { expire_at: soon(1000), server_tags_filter: FILTER } }
  const UNREADABLE = { result: { expire_at: soon(1000), b64info: '_' } }
  const RENEWED = { result: { expire_at: soon(1000), info: { i: 2 }, meta: { renewed: true } } }
  const expiring = (/** @type {any} */ refresh) =>
    enter(t, { expire_at: soon(EXPIRY_S), info: { i: 1 }, channels: ['listed:ch'], meta: { refresh } })
  /** @param {string} channel @param {string} id @returns {Promise<any>} what presence shows of the client */
  const shown = async (channel, id) => (await gateway.api('presence', { channel })).result.presence[id]
  const subscribed = async (/** @type {any} */ sub_refresh) => {
    const client = await enter(t, { meta: { sub_refresh } })
    const answer = { result: { expire_at: soon(EXPIRY_S), info: { c: 1 } } }
    const { subscribe } = await client.call('subscribe', { channel: 'sr:ch', data: { answer } })
    return { client, subscribe }
  }
  const [refused, renewed, unreadable, subscriptions, unreadableSubscription] = await Promise.all([
    Promise.all([...REFUSED, { result: {} }].map(expiring)),
    expiring(RENEWED),
    has('refresh: other forms of answers') ? expiring(UNREADABLE) : null,
    Promise.all([...REFUSED, FILTERED, { result: { info: { c: 2 } } }].map(subscribed)),
    has('sub_refresh: other forms of answers') ? subscribed(UNREADABLE) : null,
  ])

  await t.test('connect', async t => {
    await t.test('admits: user, info, data, channels', async t => {
      const { client, reply } = await open(t, {
        result: {
          user: 'ann',
          info: { n: 1 },
          data: { a: 1 },
          channels: ['one', 'both'],
          subs: {
            both: { data: { d: 1 } },
            'hh:a': { override: { force_recovery: { value: true } } },
          },
        },
      })
      const { connect } = reply
      t.equal(connect.expires, undefined)
      t.strictSame(connect.data, { a: 1 })
      t.strictSame(Object.keys(connect.subs).sort(), ['both', 'hh:a', 'one'])
      t.strictSame(connect.subs.both, { data: { d: 1 } })
      t.match(connect.subs['hh:a'], { recoverable: true, positioned: true, epoch: String })
      const { fields } = await backend.call(call => call.fields.client === connect.client)
      t.match(fields, { transport: 'websocket', protocol: 'json', encoding: 'json' })
      t.equal(fields.user, undefined)
      t.equal(fields.meta, undefined)
      const sent = await client.call('publish', { channel: 'one', data: { p: 1 } })
      t.strictSame(sent.publish, {})
      t.match((await client.push('pub')).pub.info, {
        user: 'ann',
        client: connect.client,
        conn_info: { n: 1 },
      })
    })

    await row(t, 'connect: other forms of answers', async t => {
      const { connect } = (
        await open(t, {
          result: { b64data: b64('{"b":2}'), data: 1, channels: ['one', 'one', ''], subs: { x: null } },
        })
      ).reply
      t.strictSame(connect.data, { b: 2 }, 'b64data wins')
      t.strictSame(Object.keys(connect.subs).sort(), ['one', 'x'])
      t.match((await open(t, { result: { b64info: '_' } })).reply.error, INTERNAL)
    })

    await t.test('the channels of the client get positions, and are no wishes', async t => {
      const subs = { 'hh:given': { recover: true }, 'free:wish': { recover: true }, 'nons:x': {} }
      const override = { force_recovery: { value: true } }
      const { connect } = (await open(t, { result: { subs: { 'hh:given': { override } } } }, { subs })).reply
      t.strictSame(Object.keys(connect.subs), ['hh:given'])
      t.equal(connect.subs['hh:given'].was_recovering, true)
      const bare = (await open(t, { result: { user: 'u' } }, { subs })).reply.connect
      t.ok(bare)
      t.equal(bare.subs, undefined)
    })

    await t.test('with a token, channels of the client that a backend decides on are no wishes', async t => {
      const token = makeToken({ sub: 'bob' }, SECRET)
      const subs = { 'limited:a#bob': {} }
      const { connect } = (await open(t, {}, { token, subs })).reply
      t.ok(connect)
      t.equal(connect.subs, undefined)
    })

    await t.test('a filter that would not be applied refuses', async t => {
      for (const server_tags_filter of [FILTER, {}]) {
        const { reply } = await open(t, { result: { subs: { 'hh:a': { server_tags_filter } } } })
        t.strictSame(reply.error, INTERNAL)
      }
      // Protobuf has no null.
      if (backend.protocol === 'grpc') return
      const none = { result: { subs: { 'hh:a': { server_tags_filter: null } } } }
      t.ok((await open(t, none)).reply.connect.subs['hh:a'], 'null is none')
    })

    await t.test('subscriptions of the server may end', async t => {
      const past = await open(t, { result: { subs: { 'hh:a': { expire_at: 1 } } } })
      t.match(past.reply.error, { code: 110 })
    })

    await t.test('admits an anonymous user', async t => {
      t.ok((await open(t, { result: {} })).reply.connect)
    })

    await t.test('no result: nobody else lets the client in', async t => {
      t.match(await (await open(t, {})).client.closed, { code: 3501 })
    })

    await t.test('errors', async t => {
      for (const [answer, error] of /** @type {[any, object][]} */ ([
        [{ result: { expire_at: 1 } }, { code: 110 }],
        [{ result: { channels: ['nons:x'] } }, { code: 102 }],
        [
          { error: { code: 1000, message: 'm', temporary: true } },
          { code: 1000, message: 'm', temporary: true },
        ],
      ])) {
        const { reply } = await open(t, answer)
        t.match(reply.error, error, JSON.stringify(answer))
      }
    })

    await row(t, 'connect: disconnects win over errors and results', async t => {
      const answer = { result: {}, error: { code: 1000 }, disconnect: { code: 4501, reason: 'bye' } }
      const { client } = await open(t, answer)
      t.strictSame(await client.closed, { code: 4501, reason: 'bye' })
    })

    await row(t, 'connect: codes that a close frame cannot have, and missing reasons', async t => {
      for (const [disconnect, closed] of /** @type {[any, any][]} */ ([
        [
          { code: 999, reason: 'x' },
          { code: 3004, reason: 'x' },
        ],
        [
          { code: 70000, reason: 'x' },
          { code: 3004, reason: 'x' },
        ],
        [{ code: 4000 }, { code: 4000, reason: 'disconnected' }],
        [
          { code: 4000, reason: 'ä'.repeat(100) },
          { code: 4000, reason: 'ä'.repeat(61) },
        ],
      ])) {
        const { client } = await open(t, { disconnect })
        t.strictSame(await client.closed, closed)
      }
    })

    await row(t, 'connect: a client with a token is not asked about', async t => {
      const before = count('connect')
      const token = makeToken({ sub: 'bob', exp: soon(1000) }, SECRET)
      const { reply } = await open(t, { result: { user: 'other' } }, { token })
      t.ok(reply.connect)
      t.equal(reply.connect.expires, undefined, 'the refresh proxy keeps it')
      t.match((await open(t, { result: {} }, { token: 'bad' })).client.closed, {})
      t.equal(count('connect'), before)
    })

    await t.test('one-way clients get a disconnect for an error', async t => {
      const request = JSON.stringify({ data: { answer: { error: { code: 1000, message: 'm' } } } })
      const path = `/connection/uni_sse?cf_connect=${encodeURIComponent(request)}`
      const client = await StreamClient.open(gateway.url, path)
      const message = await client.next(({ disconnect }) => disconnect !== undefined)
      t.match(message.disconnect, { code: 3004 })
      await client.closed
    })
  })

  await t.test('subscribe', async t => {
    const client = await enter(t, { meta: { m: 1.5 } })
    let channels = 0
    const subscribe = (/** @type {any} */ answer, prefix = '', request = {}) =>
      client.call('subscribe', { channel: `${prefix}c${++channels}`, data: { answer }, ...request })

    await t.test('allows without a result', async t => {
      t.strictSame((await client.call('subscribe', { channel: 'plain' })).subscribe, {})
      const { fields } = await backend.call(call => call.fields.channel === 'plain')
      t.match(fields, { user: 'u', client: client.connect.client, meta: { m: 1.5 } })
      const before = count('subscribe')
      t.match((await client.call('subscribe', { channel: 'plain' })).error, { code: 105 })
      t.equal(count('subscribe'), before, 'one call')
    })

    await t.test('results', async t => {
      t.strictSame((await subscribe({ result: { data: { a: 1 } } })).subscribe, { data: { a: 1 } })
      t.strictSame((await subscribe({ result: { data: null } })).subscribe, { data: null })
      t.strictSame((await subscribe({ result: { expire_at: soon(50) } }, 'sr:')).subscribe, {})
      const forced = await subscribe({ result: { override: { force_recovery: { value: true } } } }, 'hh:')
      t.match(forced.subscribe, { recoverable: true, positioned: true, epoch: String })
    })

    await t.test('a filter that would not be applied refuses', async t => {
      for (const server_tags_filter of [FILTER, {}])
        t.strictSame((await subscribe({ result: { server_tags_filter } }, 'hh:')).error, INTERNAL)
      if (backend.protocol === 'grpc') return
      t.strictSame((await subscribe({ result: { server_tags_filter: null } })).subscribe, {})
    })

    await row(t, 'subscribe: other forms of answers', async t => {
      const both = { data: { a: 1 }, b64data: b64('{"b":2}') }
      t.strictSame((await subscribe({ result: both })).subscribe, { data: { b: 2 } })
      t.strictSame((await subscribe({ result: { b64data: '*' } })).error, INTERNAL)
    })

    await row(t, 'subscribe: an end that the client knows', async t => {
      const { subscribe: known } = await subscribe({ result: { expire_at: soon(50) } })
      t.match(known, { expires: true, ttl: Number })
    })

    await row(t, 'subscribe: the flags of the client have no effect', async t => {
      const recovery = { recoverable: true, recover: true, positioned: true }
      const { subscribe: plain } = await subscribe({ result: {} }, 'hh:', recovery)
      t.equal(plain.was_recovering, true)
      t.equal(plain.recoverable, undefined)
      t.equal(plain.positioned, undefined)
    })

    await t.test('errors', async t => {
      for (const [answer, error] of /** @type {[any, object][]} */ ([
        [{ result: { expire_at: 1 } }, { code: 110 }],
        [{ error: { code: 1001, message: 'no' } }, { code: 1001, message: 'no' }],
      ]))
        t.match((await subscribe(answer)).error, error, JSON.stringify(answer))
      const again = { channel: 'again', data: { answer: { error: { code: 1 } } } }
      t.match((await client.call('subscribe', again)).error, {})
      t.ok((await client.call('subscribe', { channel: 'again' })).subscribe, 'the channel is free again')
    })

    await row(t, 'subscribe: no answer in time', async t => {
      t.strictSame((await subscribe({ never: true }, 'late:')).error, INTERNAL)
    })

    await t.test('disconnects', async t => {
      const other = await enter(t)
      other.send({
        id: 2,
        subscribe: { channel: 'x', data: { answer: { disconnect: { code: 4100, reason: 'out' } } } },
      })
      t.strictSame(await other.closed, { code: 4100, reason: 'out' })
    })
  })

  await t.test('publish', async t => {
    const client = await enter(t, { info: { i: 1 }, channels: ['room'], subs: { 'hh:room': {} } })
    const publish = (/** @type {any} */ answer, channel = 'room') =>
      client.call('publish', { channel, data: { answer, said: 1 } })

    t.strictSame((await publish({})).publish, {}, 'as it is')
    const { pub } = await client.push('pub')
    t.match(pub, { data: { said: 1 }, info: { user: 'u', conn_info: { i: 1 } } })

    await publish({ result: { data: { b: 2 } } })
    t.strictSame((await client.push('pub')).pub.data, { b: 2 })
    await row(t, 'publish: other forms of answers', async t => {
      await publish({ result: { data: { b: 2 }, b64data: b64('{"c":3}') } })
      t.strictSame((await client.push('pub')).pub.data, { b: 2 }, 'data wins')
      await publish({ result: { b64data: b64('{"c":3}') } })
      t.strictSame((await client.push('pub')).pub.data, { c: 3 })
    })
    await publish({ result: { data: null } })
    t.strictSame((await client.push('pub')).pub.data, null)
    await publish({ result: { tags: { a: 'b' } } })
    t.strictSame((await client.push('pub')).pub.tags, { a: 'b' })
    if (backend.protocol === 'http')
      t.strictSame((await publish({ result: { exclude_sender: true } })).error, INTERNAL)
    await publish({ result: { tags: {} } })
    t.equal((await client.push('pub')).pub.tags, undefined)

    await publish({}, 'hh:room')
    t.match((await client.push('pub')).pub, { offset: 1 })
    await publish({ result: { skip_history: true } }, 'hh:room')
    t.equal((await client.push('pub')).pub.offset, undefined)
    t.strictSame((await publish({ result: { idempotency_key: 'k', data: 1 } }, 'hh:room')).publish, {})
    t.strictSame((await publish({ result: { idempotency_key: 'k', data: 2 } }, 'hh:room')).publish, {})
    t.equal((await client.push('pub')).pub.data, 1)
    await publish({ result: { data: 3 } }, 'hh:room')
    t.equal((await client.push('pub')).pub.data, 3, 'the repeated one was suppressed')

    const before = count('publish')
    t.match((await client.call('publish', { channel: 'room' })).error, { code: 107 })
    t.match((await client.call('publish', { channel: 'nons:x', data: 1 })).error, { code: 102 })
    t.equal(count('publish'), before, 'without data or namespace nobody is asked')
    const refusal = { code: 1002, message: 'words' }
    t.strictSame((await publish({ error: refusal })).error, refusal)
    await row(t, 'publish: no answer in time', async t => {
      t.strictSame((await publish({ never: true }, 'late:x')).error, INTERNAL)
    })
  })

  await t.test('rpc', async t => {
    const client = await enter(t)
    const rpc = (/** @type {any} */ answer, method = 'm') => client.call('rpc', { method, data: { answer } })
    t.strictSame((await rpc({ result: { data: { x: [1, 'a', null] } } })).rpc, {
      data: { x: [1, 'a', null] },
    })
    t.strictSame((await rpc({ result: { data: null } })).rpc, { data: null })
    t.strictSame((await rpc({})).rpc, {})
    t.match((await rpc({ error: { code: 5000, message: 'any' } })).error, { code: 5000, message: 'any' })
    t.strictSame((await rpc({ error: {} })).error, {}, 'fields that are zero are omitted')
    await row(t, 'rpc: no answer in time', async t => {
      t.strictSame((await rpc({ never: true }, 'late:m')).error, INTERNAL)
    })
    await row(t, 'rpc: namespaces of methods', async t => {
      t.strictSame((await rpc({ result: { data: 'named' } }, 'on:m')).rpc, { data: 'named' })
      const before = count('rpc')
      t.match((await rpc({}, 'zz:m')).error, { code: 104 })
      t.match((await rpc({}, 'off:m')).error, { code: 108 })
      t.equal(count('rpc'), before)
    })
    const before = count('rpc')
    t.strictSame((await client.call('rpc', { method: 'ping' })).rpc, {})
    t.equal(count('rpc'), before)
  })

  await t.test('replies in order, and pushes meanwhile', async t => {
    const client = await enter(t, { channels: ['order'] })
    const hold = client.connect.client
    client.send(
      { id: 10, rpc: { method: 'slow', data: { answer: { hold } } } },
      { id: 11, rpc: { method: 'fast' } },
    )
    await backend.call(call => call.fields.method === 'slow')
    await gateway.api('publish', { channel: 'order', data: 'meanwhile' })
    t.equal((await client.push('pub')).pub.data, 'meanwhile')
    holdOf(hold).release()
    t.match(await client.next(({ id }) => id > 0), { id: 10, rpc: {} })
    t.match(await client.next(({ id }) => id > 0), { id: 11, rpc: {} })
  })

  await wireRows(t, { gateway, backend, row, open, enter })

  await t.test('a client that leaves aborts the call', async t => {
    const client = await enter(t)
    client.send({ id: 50, rpc: { method: 'left', data: { answer: { never: true } } } })
    const call = await backend.call(({ fields }) => fields.method === 'left')
    client.socket.terminate()
    await t.resolves(call.aborted)
  })

  await t.test('notices of ends', async t => {
    const client = await enter(t, { meta: { m: 1 }, channels: ['server'] })
    const { client: id } = client.connect
    const told = (/** @type {string} */ event) =>
      backend.call(call => call.event === event && call.fields.client === id)
    await client.call('subscribe', { channel: 'stays' })
    await client.call('subscribe', { channel: 'ends' })
    await client.call('unsubscribe', { channel: 'ends' })
    const { fields: unsubscribed } = await told('unsubscribed')
    t.match(unsubscribed, { user: 'u', channel: 'ends', code: 0, reason: String, meta: { m: 1 } })
    await gateway.api('disconnect', { user: 'u', client: id, disconnect: { code: 4242, reason: 'go' } })
    await client.closed
    const { fields: disconnected } = await told('disconnected')
    t.match(disconnected, { user: 'u', code: 4242, reason: 'go', duration: Number, meta: { m: 1 } })
    t.strictSame(disconnected.channels.sort(), ['server', 'stays'])
  })

  await t.test('refresh', async t => {
    for (const client of refused) {
      t.equal(client.connect.expires, undefined)
      t.match(await client.closed, { code: 3005 })
    }
    await row(t, 'refresh: other forms of answers', async t => {
      t.match(await unreadable?.closed, { code: 3004 }, 'base64 that cannot be read')
    })
    const { client: id } = renewed.connect
    await backend.call(({ event, fields }) => event === 'refresh' && fields.client === id)
    await until(async () => {
      t.ok((await renewed.call('rpc', { method: 'meta' })).rpc, 'it stays')
      return backend.calls.findLast(({ event }) => event === 'rpc')?.fields.meta.renewed
    })
    t.match(await shown('listed:ch', id), { client: id, conn_info: { i: 2 } }, 'presence shows the new info')
  })

  await t.test('sub_refresh', async t => {
    for (const { subscribe } of subscriptions)
      t.strictSame(subscribe, {}, 'clients do not know that theirs expire')
    const { client: stays } = /** @type {any} */ (subscriptions.pop())
    const ended = async (/** @type {any} */ client) => (await client.push('unsubscribe')).unsubscribe
    for (const { client } of subscriptions) t.match(await ended(client), { code: 2501 })
    await row(t, 'sub_refresh: other forms of answers', async t => {
      t.match(await ended(unreadableSubscription?.client), { code: 2501 })
    })
    const { client: id } = stays.connect
    await backend.call(({ event, fields }) => event === 'sub_refresh' && fields.client === id)
    await until(async () => (await shown('sr:ch', id)).chan_info.c === 2)
    t.strictSame((await stays.call('publish', { channel: 'sr:ch', data: 1 })).publish, {})
    t.equal((await stays.push('pub')).channel, 'sr:ch')
  })

  await figureRows(t, { gateway, backend, row })
  end(t)
}
