// The conformance suite of event proxies: what a client sees for each answer of a backend (docs/proxies.md).

import { makeToken } from '../auth/jwt.js'
import { until } from '../fleet.js'
import { startGateway } from '../gateway.js'
import { RawClient } from '../raw-client.js'
import { StreamClient } from '../stream-client.js'
import { configOf, EVENTS, holdOf, INTERNAL, rig, SECRET, soon } from './rig.js'

/** @import { ConformanceBackend } from './rig.js' */

/**
 * Plays the table against a backend.
 * @param {import('tap').Test} t @param {ConformanceBackend} backend
 * @param {string} [driver] `http_server.driver`
 */
export async function conformance(t, backend, driver = 'auto') {
  const gateway = await startGateway(t, configOf(backend, driver))

  const { open, enter, count } = rig(gateway, backend)

  /** Expires during the other tests: later than a machine stands still. */
  const EXPIRY_S = 4
  const REFUSED = [{ result: { expired: true } }, { error: { code: 1000 } }, {}]
  const connections = await Promise.all(
    [...REFUSED, { result: {} }, { result: { expire_at: soon(1000), meta: { renewed: true } } }].map(
      async refresh => enter(t, { expire_at: soon(EXPIRY_S), meta: { refresh } }),
    ),
  )
  const subscriptions = await Promise.all(
    [...REFUSED, { result: {} }].map(async sub_refresh => {
      const client = await enter(t, { meta: { sub_refresh } })
      const answer = { result: { expire_at: soon(EXPIRY_S) } }
      const { subscribe } = await client.call('subscribe', { channel: 'sr:ch', data: { answer } })
      return { client, subscribe }
    }),
  )

  await t.test('connect', async t => {
    await t.test('admits: user, info, data, channels', async t => {
      const { client, reply } = await open(t, {
        result: {
          user: 'ann',
          info: { n: 1 },
          b64data: Buffer.from('{"b":2}').toString('base64'),
          data: { a: 1 },
          channels: ['one', 'one', '', 'both'],
          subs: {
            both: { data: { d: 1 } },
            'hh:a': { override: { force_recovery: { value: true } } },
            x: null,
          },
        },
      })
      const { connect } = reply
      t.notHas(connect, 'expires')
      t.strictSame(connect.data, { b: 2 }, 'b64data wins')
      t.strictSame(Object.keys(connect.subs).sort(), ['both', 'hh:a', 'one', 'x'])
      t.strictSame(connect.subs.both, { data: { d: 1 } })
      t.match(connect.subs['hh:a'], { recoverable: true, positioned: true, epoch: String })
      const { fields } = await backend.call(call => call.fields.client === connect.client)
      t.match(fields, { transport: 'websocket', protocol: 'json', encoding: 'json' })
      t.notHas(fields, 'user')
      t.notHas(fields, 'meta')
      const sent = await client.call('publish', { channel: 'one', data: { p: 1 } })
      t.strictSame(sent.publish, {})
      t.match((await client.push('pub')).pub.info, {
        user: 'ann',
        client: connect.client,
        conn_info: { n: 1 },
      })
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
        [{ result: { b64info: '_' } }, INTERNAL],
      ])) {
        const { reply } = await open(t, answer)
        t.match(reply.error, error, JSON.stringify(answer))
      }
    })

    await t.test('disconnects win over errors and results', async t => {
      const answer = { result: {}, error: { code: 1000 }, disconnect: { code: 4501, reason: 'bye' } }
      const { client } = await open(t, answer)
      t.strictSame(await client.closed, { code: 4501, reason: 'bye' })
    })

    await t.test('codes that a close frame cannot have, and missing reasons', async t => {
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

    await t.test('a client with a token is not asked about', async t => {
      const before = count('connect')
      const token = makeToken({ sub: 'bob', exp: soon(1000) }, SECRET)
      const { reply } = await open(t, { result: { user: 'other' } }, { token })
      t.ok(reply.connect)
      t.notHas(reply.connect, 'expires', 'the refresh proxy keeps it')
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
      const both = { data: { a: 1 }, b64data: Buffer.from('{"b":2}').toString('base64') }
      t.strictSame((await subscribe({ result: both })).subscribe, { data: { b: 2 } })
      t.strictSame((await subscribe({ result: { data: null } })).subscribe, { data: null })
      t.match((await subscribe({ result: { expire_at: soon(50) } })).subscribe, {
        expires: true,
        ttl: Number,
      })
      t.strictSame((await subscribe({ result: { expire_at: soon(50) } }, 'sr:')).subscribe, {})
      const recovery = { recoverable: true, recover: true, positioned: true }
      const { subscribe: plain } = await subscribe({ result: {} }, 'hh:', recovery)
      t.equal(plain.was_recovering, true)
      t.notHas(plain, 'recoverable', 'the flags of the client have no effect')
      t.notHas(plain, 'positioned')
      const forced = await subscribe({ result: { override: { force_recovery: { value: true } } } }, 'hh:')
      t.match(forced.subscribe, { recoverable: true, positioned: true, epoch: String })
    })

    await t.test('errors', async t => {
      for (const [answer, error] of /** @type {[any, object][]} */ ([
        [{ result: { expire_at: 1 } }, { code: 110 }],
        [{ error: { code: 1001, message: 'no' } }, { code: 1001, message: 'no' }],
        [{ result: { b64data: '*' } }, INTERNAL],
      ]))
        t.match((await subscribe(answer)).error, error, JSON.stringify(answer))
      t.strictSame((await subscribe({ never: true }, 'late:')).error, INTERNAL)
      t.match(
        (await client.call('subscribe', { channel: 'again', data: { answer: { error: { code: 1 } } } }))
          .error,
        {},
      )
      t.ok((await client.call('subscribe', { channel: 'again' })).subscribe, 'the channel is free again')
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

    const both = { data: { b: 2 }, b64data: Buffer.from('{"c":3}').toString('base64') }
    await publish({ result: both })
    t.strictSame((await client.push('pub')).pub.data, { b: 2 }, 'data wins')
    await publish({ result: { b64data: both.b64data } })
    t.strictSame((await client.push('pub')).pub.data, { c: 3 })
    await publish({ result: { data: null } })
    t.strictSame((await client.push('pub')).pub.data, null)
    await publish({ result: { tags: { a: 'b' } } })
    t.strictSame((await client.push('pub')).pub.tags, { a: 'b' })

    await publish({}, 'hh:room')
    t.match((await client.push('pub')).pub, { offset: 1 })
    await publish({ result: { skip_history: true } }, 'hh:room')
    t.notHas((await client.push('pub')).pub, 'offset')
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
    t.strictSame((await publish({ never: true }, 'late:x')).error, INTERNAL)
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
    t.strictSame((await rpc({ never: true }, 'late:m')).error, INTERNAL)
    t.strictSame((await rpc({ result: { data: 'named' } }, 'on:m')).rpc, { data: 'named' })
    const before = count('rpc')
    t.match((await rpc({}, 'zz:m')).error, { code: 104 })
    t.match((await rpc({}, 'off:m')).error, { code: 108 })
    t.strictSame((await client.call('rpc', { method: 'ping' })).rpc, {})
    t.equal(count('rpc'), before)
  })

  await t.test('replies in order, and pushes meanwhile', async t => {
    const client = await enter(t, { channels: ['order'] })
    client.send(
      { id: 10, rpc: { method: 'slow', data: { answer: { hold: 'order' } } } },
      { id: 11, rpc: { method: 'fast' } },
    )
    await backend.call(call => call.fields.method === 'slow')
    await gateway.api('publish', { channel: 'order', data: 'meanwhile' })
    t.equal((await client.push('pub')).pub.data, 'meanwhile')
    holdOf('order').release()
    t.match(await client.next(({ id }) => id > 0), { id: 10, rpc: {} })
    t.match(await client.next(({ id }) => id > 0), { id: 11, rpc: {} })
  })

  if (backend.statuses) {
    await t.test('headers keep their bytes', async t => {
      // As node:http has it: a character for each byte. uWebSockets.js drops those beyond ASCII at the ends of a value.
      const value = Buffer.from('an ä and a € too').toString('latin1')
      const client = await RawClient.open(gateway.ws, { headers: { 'x-name': value } })
      t.teardown(() => client.socket.terminate())
      const { connect } = await client.call('connect')
      const { headers } = await backend.call(({ fields }) => fields.client === connect.client)
      t.equal(headers['x-name'], value)
    })

    await t.test('statuses and bodies', async t => {
      const client = await enter(t)
      const rpc = (/** @type {any} */ answer) => client.call('rpc', { method: 'm', data: { answer } })
      for (const answer of [
        { status: 201, body: '{"result":{}}' },
        { status: 204, body: '' },
        { status: 500, body: '' },
        { status: 200, body: '' },
        { status: 200, body: '[]' },
        { status: 200, body: '{"result":{}} x' },
      ])
        t.strictSame((await rpc(answer)).error, INTERNAL, JSON.stringify(answer))
      t.match((await rpc({ status: 404, body: '' })).error, { code: 1404, message: 'unknown' })
      client.frames.length = 0
      await rpc({ status: 200, body: '{"result":{"data":{ "x" : 1.50 }}}' })
      t.ok(client.frames.join('').includes('"data":{ "x" : 1.50 }'), 'the text is kept')
      const override = { status: 200, body: '{"result":{"override":{"presence":true}}}' }
      t.strictSame(
        (await client.call('subscribe', { channel: 'o', data: { answer: override } })).error,
        INTERNAL,
      )
      const user = { status: 200, body: '{"result":{"user":5}}' }
      t.strictSame((await open(t, user)).reply.error, INTERNAL)
      client.send({ id: 99, rpc: { method: 'm', data: { answer: { status: 403, body: '' } } } })
      t.strictSame(await client.closed, { code: 4403, reason: 'forbidden' })
    })
  }

  await t.test('a client that leaves aborts the call', async t => {
    const client = await enter(t)
    client.send({ id: 50, rpc: { method: 'left', data: { answer: { never: true } } } })
    const call = await backend.call(({ fields }) => fields.method === 'left')
    client.socket.terminate()
    await t.resolves(call.aborted)
  })

  if (backend.notices) {
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
  }

  await t.test('refresh', async t => {
    const renewed = /** @type {RawClient} */ (connections.pop())
    for (const client of connections) {
      t.notHas(client.connect, 'expires')
      t.match(await client.closed, { code: 3005 })
    }
    const { client: id } = renewed.connect
    await backend.call(({ event, fields }) => event === 'refresh' && fields.client === id)
    await until(async () => {
      t.ok((await renewed.call('rpc', { method: 'meta' })).rpc, 'it stays')
      return backend.calls.findLast(({ event }) => event === 'rpc')?.fields.meta.renewed
    })
  })

  await t.test('sub_refresh', async t => {
    for (const { subscribe } of subscriptions)
      t.strictSame(subscribe, {}, 'clients do not know that theirs expire')
    const { client: renewed } = /** @type {any} */ (subscriptions.pop())
    for (const { client } of subscriptions)
      t.match((await client.push('unsubscribe')).unsubscribe, { code: 2501 })
    const { client: id } = renewed.connect
    await backend.call(({ event, fields }) => event === 'sub_refresh' && fields.client === id)
    t.strictSame((await renewed.call('publish', { channel: 'sr:ch', data: 1 })).publish, {})
    t.equal((await renewed.push('pub')).channel, 'sr:ch')
  })

  await t.test('metrics', async t => {
    const names = EVENTS.map(type => `protocol="${backend.protocol}",type="${type}",name="default"`)
    await until(async () => {
      // Figures come once a second.
      const text = await (await fetch(`${gateway.url}/metrics`)).text()
      const last = 'halley_hook_failures_total{[^}]*event="rpc",name="short.rpc",reason="timeout"} 1'
      if (!new RegExp(last.replace(/[{}]/g, '\\$&')).test(text)) return false
      const ended = (/** @type {string} */ name) =>
        new RegExp(`centrifugo_proxy_duration_seconds_histogram_count\\{${name}\\} [1-9]`).test(text)
      if (!names.every(ended)) return false
      for (const name of names) t.ok(text.includes(`centrifugo_proxy_inflight_requests{${name}} 0`), name)
      t.match(text, /centrifugo_proxy_errors\{[^}]*type="rpc",name="short.rpc"\} 1/)
      return true
    })
  })
}
