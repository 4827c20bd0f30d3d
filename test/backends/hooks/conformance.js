// The conformance suite of hooks: what a client sees for each response of a backend, or of a module that calls one
// (docs/proxies.md). The adapter of an implementation lists the skipped rows, with reasons.

import { makeToken } from '../../clients/auth/jwt.js'
import { sign } from '../../clients/shared-poll/refresh-backend.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { StreamClient } from '../../kit/stream-client.js'
import { until } from '../../kit/wait.js'
import { configOf, EVENTS, holdOf, INTERNAL, rig, rowsOf, SECRET, soon } from './rig.js'

/** @import { ConformanceBackend } from './rig.js' */

const b64 = json => Buffer.from(json).toString('base64')

/**
 * Runs the suite against a backend.
 * @param {import('tap').Test} t @param {ConformanceBackend} backend
 * @param {object} [config] of the gateway, beside that of the table
 */
export async function conformance(t, backend, config = {}) {
  const gateway = await startGateway(t, { ...configOf(backend), ...config })
  const { open, enter, count } = rig(gateway, backend)
  const { row, has, end } = rowsOf(backend.without)

  /** Expires during other tests; longer than a machine stalls. */
  const EXPIRY_S = 4
  const REFUSED = [{ result: { expired: true } }, { error: { code: 1000 } }, {}]
  const FILTER = { key: 'team', cmp: 'eq', val: 'a' }
  const WRONG_FILTERS = [{}, { ...FILTER, cmp: 'is' }, { op: 'and', nodes: [] }]
  const UNREADABLE = { result: { expire_at: soon(1000), b64info: '_' } }
  const CAPS = [{ channels: ['granted:*', 'granted'], allow: ['sub', 'pub'], match: 'wildcard' }]
  const RENEWED = { result: { expire_at: soon(1000), info: { i: 2 }, meta: { renewed: true }, caps: CAPS } }
  /** What a backend answers that is not asked. */
  const REFUSAL = { error: { code: 1000, message: 'asked' } }
  const expiring = refresh =>
    enter(t, { expire_at: soon(EXPIRY_S), info: { i: 1 }, channels: ['listed:ch'], meta: { refresh } })
  /** @param {string} channel @param {string} id @returns {Promise<any>} what presence shows of the client */
  const shown = async (channel, id) => (await gateway.api('presence', { channel })).result.presence[id]
  const subscribed = async sub_refresh => {
    const client = await enter(t, { meta: { sub_refresh } })
    const answer = { result: { expire_at: soon(EXPIRY_S), info: { c: 1 } } }
    const { subscribe } = await client.call('subscribe', { channel: 'sr:ch', data: { answer } })
    return { client, subscribe }
  }
  const [refused, renewed, unreadable, subscriptions, unreadableSubscription] = await Promise.all([
    Promise.all([...REFUSED, { result: {} }].map(expiring)),
    expiring(RENEWED),
    has('refresh: invalid base64') ? expiring(UNREADABLE) : null,
    Promise.all([...REFUSED, { result: { info: { c: 2 }, server_tags_filter: FILTER } }].map(subscribed)),
    has('sub_refresh: invalid base64') ? subscribed(UNREADABLE) : null,
  ])

  await t.test('connect', async t => {
    await t.test('accepts a client with user, info, data and channels', async t => {
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

    await row(t, 'connect: base64 fields, duplicate channels', async t => {
      const { connect } = (
        await open(t, {
          result: { b64data: b64('{"b":2}'), data: 1, channels: ['one', 'one', ''], subs: { x: null } },
        })
      ).reply
      t.strictSame(connect.data, { b: 2 }, 'b64data wins')
      t.strictSame(Object.keys(connect.subs).sort(), ['one', 'x'])
      t.match((await open(t, { result: { b64info: '_' } })).reply.error, INTERNAL)
    })

    await t.test('subs of the request only provide positions', async t => {
      const subs = { 'hh:given': { recover: true }, 'free:wish': { recover: true }, 'nons:x': {} }
      const override = { force_recovery: { value: true } }
      const { connect } = (await open(t, { result: { subs: { 'hh:given': { override } } } }, { subs })).reply
      t.strictSame(Object.keys(connect.subs), ['hh:given'])
      t.equal(connect.subs['hh:given'].was_recovering, true)
      const bare = (await open(t, { result: { user: 'u' } }, { subs })).reply.connect
      t.ok(bare)
      t.equal(bare.subs, undefined)
    })

    await t.test('with a token, subs are ignored where a backend decides on subscriptions', async t => {
      const token = makeToken({ sub: 'bob' }, SECRET)
      const subs = { 'limited:a#bob': {} }
      const { connect } = (await open(t, {}, { token, subs })).reply
      t.ok(connect)
      t.equal(connect.subs, undefined)
    })

    await t.test('server_tags_filter: an invalid one is a failed call', async t => {
      const right = { result: { subs: { 'hh:a': { server_tags_filter: FILTER } } } }
      t.ok((await open(t, right)).reply.connect.subs['hh:a'])
      for (const server_tags_filter of WRONG_FILTERS) {
        const { reply } = await open(t, { result: { subs: { 'hh:a': { server_tags_filter } } } })
        t.strictSame(reply.error, INTERNAL)
      }
      // Protobuf has no null.
      if (backend.protocol === 'grpc') return
      const none = { result: { subs: { 'hh:a': { server_tags_filter: null } } } }
      t.ok((await open(t, none)).reply.connect.subs['hh:a'], 'null means none')
    })

    await t.test('caps grant subscriptions and publications without a call', async t => {
      const { client } = await open(t, { result: { user: 'u', caps: CAPS } })
      const granted = { channel: 'granted', data: { answer: REFUSAL } }
      t.strictSame((await client.call('subscribe', granted)).subscribe, {})
      t.strictSame((await client.call('publish', granted)).publish, {})
      for (const method of ['subscribe', 'publish'])
        t.strictSame((await client.call(method, { ...granted, channel: 'other' })).error, REFUSAL.error)
      for (const caps of [[{ ...CAPS[0], match: 'glob' }], [{ ...CAPS[0], allow: ['all'] }]])
        t.strictSame((await open(t, { result: { caps } })).reply.error, INTERNAL)
    })

    await t.test('rejects an expired server-side subscription', async t => {
      const past = await open(t, { result: { subs: { 'hh:a': { expire_at: 1 } } } })
      t.match(past.reply.error, { code: 110 })
    })

    await t.test('accepts an anonymous user', async t => {
      t.ok((await open(t, { result: {} })).reply.connect)
    })

    await t.test('refuses the client without a result', async t => {
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

    await row(t, 'connect: invalid close codes, missing and long reasons', async t => {
      for (const [code, reason, closeCode, closeReason] of /** @type {[number, any, number, string][]} */ ([
        [999, 'x', 3004, 'x'],
        [70000, 'x', 3004, 'x'],
        [4000, undefined, 4000, 'disconnected'],
        [4000, 'ä'.repeat(100), 4000, 'ä'.repeat(61)],
      ])) {
        const { client } = await open(t, { disconnect: { code, reason } })
        t.strictSame(await client.closed, { code: closeCode, reason: closeReason })
      }
    })

    await row(t, 'connect: no call for a client with a token', async t => {
      const before = count('connect')
      const token = makeToken({ sub: 'bob', exp: soon(1000) }, SECRET)
      const { reply } = await open(t, { result: { user: 'other' } }, { token })
      t.ok(reply.connect)
      t.equal(reply.connect.expires, undefined, 'the refresh proxy keeps it')
      t.match((await open(t, { result: {} }, { token: 'bad' })).client.closed, {})
      t.equal(count('connect'), before)
    })

    await t.test('disconnects one-way clients on an error', async t => {
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
    const subscribe = (answer, prefix = '', request = {}) =>
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

    await t.test('server_tags_filter', async t => {
      const { client: filtered } = await open(t, { result: { user: 'u' } })
      const answer = {
        result: { server_tags_filter: { op: 'or', nodes: [FILTER, { key: 'all', cmp: 'ex' }] } },
      }
      t.ok((await filtered.call('subscribe', { channel: 'filtered', data: { answer } })).subscribe)
      for (const tags of [{ team: 'b' }, {}, { team: 'a' }, { all: '' }])
        await gateway.api('publish', { channel: 'filtered', data: 1, tags })
      t.strictSame((await filtered.push('pub')).pub.tags, { team: 'a' })
      t.strictSame((await filtered.push('pub')).pub.tags, { all: '' })
      for (const server_tags_filter of WRONG_FILTERS)
        t.strictSame((await subscribe({ result: { server_tags_filter } }, 'hh:')).error, INTERNAL)
      if (backend.protocol === 'grpc') return
      t.strictSame((await subscribe({ result: { server_tags_filter: null } })).subscribe, {})
    })

    await t.test('allow grants publications without a call', async t => {
      await client.call('subscribe', { channel: 'allowed', data: { answer: { result: { allow: ['pub'] } } } })
      const said = { channel: 'allowed', data: { answer: REFUSAL } }
      t.strictSame((await client.call('publish', said)).publish, {})
      await client.call('unsubscribe', { channel: 'allowed' })
      t.strictSame((await client.call('publish', said)).error, REFUSAL.error)
      t.strictSame((await subscribe({ result: { allow: ['all'] } })).error, INTERNAL)
    })

    await row(t, 'subscribe: base64 data', async t => {
      const both = { data: { a: 1 }, b64data: b64('{"b":2}') }
      t.strictSame((await subscribe({ result: both })).subscribe, { data: { b: 2 } })
      t.strictSame((await subscribe({ result: { b64data: '*' } })).error, INTERNAL)
    })

    await row(t, 'subscribe: the reply contains the ttl', async t => {
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

    await row(t, 'subscribe: timeout', async t => {
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
    const publish = (answer, channel = 'room') =>
      client.call('publish', { channel, data: { answer, said: 1 } })

    t.strictSame((await publish({})).publish, {}, 'the data is unchanged')
    const { pub } = await client.push('pub')
    t.match(pub, { data: { said: 1 }, info: { user: 'u', conn_info: { i: 1 } } })

    await publish({ result: { data: { b: 2 } } })
    t.strictSame((await client.push('pub')).pub.data, { b: 2 })
    await row(t, 'publish: base64 data', async t => {
      await publish({ result: { data: { b: 2 }, b64data: b64('{"c":3}') } })
      t.strictSame((await client.push('pub')).pub.data, { b: 2 }, 'data wins')
      await publish({ result: { b64data: b64('{"c":3}') } })
      t.strictSame((await client.push('pub')).pub.data, { c: 3 })
    })
    await publish({ result: { data: null } })
    t.strictSame((await client.push('pub')).pub.data, null)
    await publish({ result: { tags: { a: 'b' } } })
    t.strictSame((await client.push('pub')).pub.tags, { a: 'b' })
    const other = await enter(t, { channels: ['room'] })
    t.strictSame((await publish({ result: { exclude_sender: true, data: 'others' } })).publish, {})
    t.strictSame((await other.push('pub')).pub.data, 'others')
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
    t.equal(count('publish'), before, 'without data or namespace there is no call')
    const refusal = { code: 1002, message: 'words' }
    t.strictSame((await publish({ error: refusal })).error, refusal)
    await row(t, 'publish: timeout', async t => {
      t.strictSame((await publish({ never: true }, 'late:x')).error, INTERNAL)
    })
  })

  await t.test('map_publish', async t => {
    const client = await enter(t, { info: { i: 1 } })
    const channel = 'map:1'
    await client.subscribe(channel, { type: 1, phase: 2 })
    const publish = (answer, key = 'k') =>
      client.call('publish', { channel, type: 1, key, data: { answer, said: 1 } })
    const pushed = async () => (await client.push('pub')).pub

    t.strictSame((await publish({})).publish, {}, 'the data is unchanged')
    t.match(await pushed(), { key: 'k', data: { said: 1 }, info: { user: 'u', conn_info: { i: 1 } } })
    const { fields } = await backend.call(call => call.event === 'map_publish')
    t.match(fields, { user: 'u', channel, key: 'k', data: { said: 1 }, client: client.connect.client })
    await publish({ result: { key: 'other', data: { b: 2 }, tags: { a: 'b' } } })
    t.match(await pushed(), { key: 'other', data: { b: 2 }, tags: { a: 'b' } })
    await publish({ result: { key: 'made' } }, '')
    t.match(await pushed(), { key: 'made' })
    await row(t, 'map_publish: base64 data', async t => {
      await publish({ result: { b64data: b64('{"c":3}'), b64stream_data: b64('"s"') } })
      t.match(await pushed(), { data: 's' })
      const { result } = await gateway.api('map_read_state', { channel, key: 'k' })
      t.match(result.entries, [{ data: { c: 3 } }])
    })
    await publish({ result: { data: 'whole', stream_data: 'change' } })
    t.match(await pushed(), { data: 'change' })
    t.match((await gateway.api('map_read_state', { channel, key: 'k' })).result.entries, [{ data: 'whole' }])
    for (const result of [
      { key_mode: 'if_new' },
      { key: 'none', key_mode: 'if_exists' },
      { idempotency_key: 'i', data: 1 },
      { idempotency_key: 'i', data: 2 },
      { data: 3 },
    ])
      t.strictSame((await publish({ result })).publish, {})
    t.equal((await pushed()).data, 1)
    t.equal((await pushed()).data, 3, 'suppressed ones in between')
    t.strictSame((await publish({ result: { key_mode: 'often' } })).error, INTERNAL)
    t.match((await publish({}, '')).error, { code: 107 }, 'no key')
    const refusal = { code: 1002, message: 'words' }
    t.strictSame((await publish({ error: refusal })).error, refusal)
  })

  await t.test('map_remove', async t => {
    const channel = 'map:2'
    for (const key of ['a', 'b'])
      await gateway.api('map_publish', { channel, key, data: 1, tags: { t: key } })
    const removed = async map_remove => {
      const client = await enter(t, { meta: { map_remove } })
      await client.subscribe(channel, { type: 1, phase: 2 })
      return { client, reply: await client.call('publish', { channel, type: 1, key: 'a', removed: true }) }
    }
    const refusal = { code: 1003, message: 'words' }
    t.strictSame((await removed({ error: refusal })).reply.error, refusal)
    const other = await removed({ result: { key: 'b', tags: { x: 'y' } } })
    t.strictSame(other.reply.publish, {})
    t.match((await other.client.push('pub')).pub, { key: 'b', removed: true, tags: { x: 'y' } })
    const { client, reply } = await removed({})
    t.strictSame(reply.publish, {})
    t.match((await client.push('pub')).pub, { key: 'a', removed: true, tags: { t: 'a' } })
    const { fields } = await backend.call(call => call.event === 'map_remove')
    t.match(fields, { user: 'u', channel, key: 'a' })
    t.strictSame((await client.call('publish', { channel, type: 1, key: 'a', removed: true })).publish, {})
    t.same((await gateway.api('map_stats', { channel })).result, {})
  })

  await t.test('shared_poll_refresh', async t => {
    const client = await enter(t)
    const channel = 'poll:1'
    await client.subscribe(channel, { type: 4 })
    const track = async answer => {
      const key = JSON.stringify(answer)
      const signature = sign(channel, [key], { user: 'u', secret: SECRET })
      await client.call('sub_refresh', { channel, type: 1, track: [{ signature, items: [{ key }] }] })
      return key
    }
    const answered = async (item, epoch = 'e') => {
      const key = await track({ item, epoch })
      return client.next(({ push }) => push?.pub?.key === key).then(({ push }) => push.pub)
    }
    t.match(await answered({ data: { ü: ['🎈', null] }, version: 7 }), {
      data: { ü: ['🎈', null] },
      version: 7,
    })
    t.match(await answered({ data: null, version: 1 }), { data: null })
    t.match(await answered({ data: 'x', version: 9007199254740991 }), { version: 9007199254740991 })
    t.match(await answered({ removed: true }), { removed: true })
    const { fields } = await backend.call(({ event }) => event === 'shared_poll_refresh')
    t.match(fields, { channel, items: [{ key: String, version: 0 }] })
    t.equal(fields.user ?? '', '', 'of no client')
    for (const answer of [{ error: { code: 1000, message: 'not now' } }, {}]) await track(answer)
    t.match(await answered({ data: 'then', version: 1 }), { data: 'then' }, 'failed calls are skipped')
    await row(t, 'shared_poll_refresh: invalid answers', async t => {
      for (const version of [-1, 'x']) await track({ item: { data: 1, version } })
      t.match(await answered({ data: 'end', version: 1 }), { data: 'end' })
    })
    await track({ item: { data: 1, version: 1 }, epoch: 'another' })
    t.match((await client.push('unsubscribe')).unsubscribe, { code: 2500 })
  })

  await t.test('cache_empty', async t => {
    const client = await enter(t)
    const channelOf = answer => `ce:${JSON.stringify(answer)}`
    const subscribed = async channel => {
      const reply = await client.subscribe(channel)
      await client.call('unsubscribe', { channel })
      return reply
    }
    const calls = channel =>
      backend.calls.filter(({ event, fields }) => event === 'cache_empty' && fields.channel === channel)
        .length
    const populated = channelOf({ result: { populated: true } })
    // The backend may serve several gateways.
    const former = calls(populated)
    for (let i = 1; i <= 2; i++) {
      t.equal((await subscribed(populated)).subscribe.was_recovering, true)
      t.equal(calls(populated) - former, i, 'true is not kept')
    }
    for (const answer of [{ result: { populated: false } }, { result: {} }, {}])
      t.equal((await subscribed(channelOf(answer))).subscribe.was_recovering, true)
    const { fields } = await backend.call(({ event }) => event === 'cache_empty')
    t.equal(fields.channel, populated)
    t.equal(fields.user ?? '', '', 'of no client')
    await row(t, 'cache_empty: error', async t => {
      const failed = channelOf({ error: { code: 1000, message: 'not now' } })
      t.strictSame((await subscribed(failed)).error, INTERNAL)
    })
  })

  await t.test('rpc', async t => {
    const client = await enter(t)
    const rpc = (answer, method = 'm') => client.call('rpc', { method, data: { answer } })
    t.strictSame((await rpc({ result: { data: { x: [1, 'a', null] } } })).rpc, {
      data: { x: [1, 'a', null] },
    })
    t.strictSame((await rpc({ result: { data: null } })).rpc, { data: null })
    t.strictSame((await rpc({})).rpc, {})
    t.match((await rpc({ error: { code: 5000, message: 'any' } })).error, { code: 5000, message: 'any' })
    t.strictSame((await rpc({ error: {} })).error, {}, 'fields that are zero are omitted')
    await row(t, 'rpc: timeout', async t => {
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

  await t.test('replies keep their order, pushes do not wait for them', async t => {
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

  await row(t, 'headers are forwarded byte for byte', async t => {
    // As in node:http: one character per byte. uWebSockets.js drops non-ASCII characters at the ends of a value.
    const value = Buffer.from('an ä and a € too').toString('latin1')
    const client = await RawClient.open(gateway.ws, { headers: { 'x-name': value } })
    t.teardown(() => client.socket.terminate())
    const { connect } = await client.call('connect')
    const { headers } = await backend.call(({ fields }) => fields.client === connect.client)
    t.equal(headers['x-name'], value)
  })

  await t.test('aborts the call if the client disconnects', async t => {
    const client = await enter(t)
    client.send({ id: 50, rpc: { method: 'left', data: { answer: { never: true } } } })
    const call = await backend.call(({ fields }) => fields.method === 'left')
    client.socket.terminate()
    await t.resolves(call.aborted)
  })

  await t.test('unsubscribed and disconnected events', async t => {
    const client = await enter(t, { meta: { m: 1 }, channels: ['server'] })
    const { client: id } = client.connect
    const noticed = event => backend.call(call => call.event === event && call.fields.client === id)
    await client.call('subscribe', { channel: 'stays' })
    await client.call('subscribe', { channel: 'ends' })
    await client.call('unsubscribe', { channel: 'ends' })
    const { fields: unsubscribed } = await noticed('unsubscribed')
    t.match(unsubscribed, { user: 'u', channel: 'ends', code: 0, reason: String, meta: { m: 1 } })
    await gateway.api('disconnect', { user: 'u', client: id, disconnect: { code: 4242, reason: 'go' } })
    await client.closed
    const { fields: disconnected } = await noticed('disconnected')
    t.match(disconnected, { user: 'u', code: 4242, reason: 'go', duration: Number, meta: { m: 1 } })
    t.strictSame(disconnected.channels.sort(), ['server', 'stays'])
  })

  await t.test('refresh', async t => {
    for (const client of refused) {
      t.equal(client.connect.expires, undefined)
      t.match(await client.closed, { code: 3005 })
    }
    await row(t, 'refresh: invalid base64', async t => {
      t.match(await unreadable?.closed, { code: 3004 }, 'base64 that cannot be read')
    })
    const { client: id } = renewed.connect
    await backend.call(({ event, fields }) => event === 'refresh' && fields.client === id)
    await until(async () => {
      t.ok((await renewed.call('rpc', { method: 'meta' })).rpc, 'it stays')
      return backend.calls.findLast(({ event }) => event === 'rpc')?.fields.meta.renewed
    })
    t.match(await shown('listed:ch', id), { client: id, conn_info: { i: 2 } }, 'presence shows the new info')
    const granted = { channel: 'granted', data: { answer: REFUSAL } }
    t.strictSame((await renewed.call('subscribe', granted)).subscribe, {}, 'the new capabilities')
  })

  await t.test('sub_refresh', async t => {
    for (const { subscribe } of subscriptions)
      t.strictSame(subscribe, {}, 'the expiry is not sent to clients')
    const { client: stays } = /** @type {any} */ (subscriptions.pop())
    const ended = async client => (await client.push('unsubscribe')).unsubscribe
    for (const { client } of subscriptions) t.match(await ended(client), { code: 2501 })
    await row(t, 'sub_refresh: invalid base64', async t => {
      t.match(await ended(unreadableSubscription?.client), { code: 2501 })
    })
    const { client: id } = stays.connect
    await backend.call(({ event, fields }) => event === 'sub_refresh' && fields.client === id)
    await until(async () => (await shown('sr:ch', id)).chan_info.c === 2)
    for (const tags of [{ team: 'b' }, { team: 'a' }])
      await gateway.api('publish', { channel: 'sr:ch', data: 1, tags })
    t.strictSame((await stays.push('pub')).pub.tags, { team: 'a' }, 'the new filter')
  })

  // Last: every event has been sent by now.
  await row(t, 'proxy metrics', async t => {
    const names = EVENTS.map(type => `protocol="${backend.protocol}",type="${type}",name="default"`)
    const failed = /halley_hook_failures_total\{[^}]*event="rpc",name="short.rpc",reason="timeout"\} 1/
    await until(async () => {
      const text = await (await fetch(`${gateway.url}/metrics`)).text()
      const counted = name =>
        new RegExp(`centrifugo_proxy_duration_seconds_histogram_count\\{${name}\\} [1-9]`).test(text) &&
        text.includes(`centrifugo_proxy_inflight_requests{${name}} 0`)
      // A snapshot may have been taken during a call.
      if (!failed.test(text) || !names.every(counted)) return false
      t.match(text, /centrifugo_proxy_errors\{[^}]*type="rpc",name="short.rpc"\} 1/)
      return true
    })
  })
  end(t)
}
