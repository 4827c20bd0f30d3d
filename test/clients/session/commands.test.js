// Every command with its result and each of its errors (client protocol).

import t from 'tap'
import { startGateway } from '../../kit/gateway.js'
import { at, error, forged, history, open, roundTrip, token, tokenClient, user } from './support.js'

const DENIED = error(103, 'permission denied')
const UNKNOWN = error(102, 'unknown channel')
const BAD = error(107, 'bad request')
const UNAVAILABLE = error(108, 'not available')
const UNRECOVERABLE = error(112, 'unrecoverable position')
const INVALID_TOKEN = { code: 3500, reason: 'invalid token' }

const subscriber = { allow_subscribe_for_client: true }
const kept = { presence: true, history_size: 5, history_ttl: '60s' }

t.test('commands', async t => {
  const gateway = await startGateway(t, {
    client: tokenClient({ channel_limit: 6, history_max_publication_limit: 5 }),
    channel: {
      max_length: 20,
      without_namespace: { ...open, ...history },
      namespaces: [
        { name: 'bare', ...subscriber },
        { name: 'shut' },
        { name: 'clients', ...subscriber, allow_publish_for_client: true },
        {
          ...{ name: 'subscribers', ...subscriber, ...kept },
          allow_publish_for_subscriber: true,
          allow_presence_for_subscriber: true,
          allow_history_for_subscriber: true,
        },
        { name: 'dialog', allow_user_limited_channels: true },
        { name: 'regex', ...subscriber, channel_regex: '^[a-zäö]+$' },
        { name: 'object', ...open, publication_data_format: 'json_object' },
        { name: 'seen', ...subscriber, ...kept },
      ],
    },
  })

  t.test('a refused subscribe returns the reason', async t => {
    const client = await user(t, gateway)
    const of = (/** @type {object} */ claims) => ({
      channel: 'a',
      token: token({ sub: 'u1', channel: 'a', ...claims }),
    })
    const lost = { recover: true, recoverable: true, offset: 9, epoch: 'nope' }
    /** @type {[string, object, object][]} */
    const table = [
      ['unknown namespace', { channel: 'nope:a' }, UNKNOWN],
      ['unknown namespace of a private channel', { channel: '$nope:a' }, UNKNOWN],
      ['unknown namespace comes before the name', { channel: 'nope:ä' }, UNKNOWN],
      ['not allowed', { channel: 'shut:a' }, DENIED],
      ['private without a token', { channel: '$a' }, DENIED],
      ['private with an empty token', { channel: '$a', token: '' }, DENIED],
      ['other users only', { channel: 'dialog:a#u2,u3' }, DENIED],
      ['nobody', { channel: 'dialog:a#' }, DENIED],
      ['not user-limited', { channel: 'dialog:a' }, DENIED],
      ['another kind of subscription', { channel: 'a', type: 1 }, DENIED],
      ['bad signature', { channel: 'a', token: forged({ sub: 'u1', channel: 'a' }) }, DENIED],
      ['no token at all', { channel: 'a', token: 'x' }, DENIED],
      ['a connection token', { channel: 'a', token: token({ sub: 'u1' }) }, DENIED],
      ['not ASCII', { channel: 'grün' }, BAD],
      ['against the pattern', { channel: 'regex:A1' }, BAD],
      ['longer than allowed', { channel: 'x'.repeat(21) }, BAD],
      ['longer than allowed in bytes', { channel: `regex:${'ä'.repeat(8)}` }, BAD],
      ['filter not allowed', { channel: 'a', tf: { key: 'a', cmp: 'ex' } }, BAD],
      ['expired', of({ exp: at(-5) }), error(109, 'token expired')],
      ['not valid yet', of({ nbf: at(60) }), error(109, 'token expired')],
      ['expire_at has passed', of({ expire_at: at(-5) }), error(110, 'expired')],
      ['unrecoverable, with the flag for that', { channel: 'a', ...lost, flag: 2 }, UNRECOVERABLE],
    ]
    for (const [name, request, refusal] of table)
      t.strictSame((await client.call('subscribe', request)).error, refusal, name)
    t.strictSame(
      (await client.call('presence_stats', { channel: 'a' })).presence_stats,
      { num_clients: 0, num_users: 0 },
      'no trace is left',
    )
  })

  t.test('a channel can be subscribed once, up to the channel limit', async t => {
    const client = await user(t, gateway)
    t.strictSame((await client.subscribe('bare:a')).subscribe, {})
    t.strictSame((await client.subscribe('bare:a')).error, error(105, 'already subscribed'))
    t.strictSame((await client.subscribe('dialog:a#u2,u1')).subscribe, {})
    t.strictSame((await client.subscribe('regex:äöa')).subscribe, {})
    t.strictSame((await client.subscribe('x'.repeat(20))).subscribe, {})
    t.strictSame((await client.subscribe(':a')).subscribe, {}, 'an empty namespace means none')
    const claims = { sub: 'u1', channel: '$a', exp: at(60), data: { w: 1 }, info: { i: 1 } }
    const { subscribe } = await client.subscribe('$a', { token: token(claims), flag: 1 })
    t.match(subscribe, { expires: true, data: { w: 1 } })
    t.ok(subscribe.ttl > 50 && subscribe.ttl <= 60)
    t.strictSame(Object.keys(subscribe).sort(), ['data', 'expires', 'ttl'])
    t.strictSame((await client.subscribe('bare:b')).error, error(106, 'limit exceeded'))
    await client.call('unsubscribe', { channel: 'bare:a' })
    t.strictSame((await client.subscribe('bare:b')).subscribe, {})
  })

  t.test('flags that are not allowed are absent in the result', async t => {
    const client = await user(t, gateway)
    const wishes = { positioned: true, recoverable: true, join_leave: true, recover: true, delta: 'fossil' }
    t.strictSame((await client.subscribe('bare:a', wishes)).subscribe, { was_recovering: true })
    t.strictSame((await client.subscribe('seen:a', { positioned: true, recoverable: true })).subscribe, {})
    t.match((await client.subscribe('wishes', { recoverable: true })).subscribe, {
      recoverable: true,
      positioned: true,
      epoch: String,
    })
  })

  t.test('a subscription token for another user, channel or client closes with 3500', async t => {
    const others = [
      { sub: 'u2', channel: 'a' },
      { channel: 'a' },
      { sub: 'u1', channel: 'b' },
      { sub: 'u1', channel: '$a' },
      { sub: 'u1', channel: 'a', client: 'x' },
    ]
    for (const claims of others) {
      const client = await user(t, gateway)
      client.send({ id: 9, subscribe: { channel: 'a', token: token(claims) } })
      t.strictSame(await client.closed, INVALID_TOKEN, JSON.stringify(claims))
    }
    const client = await user(t, gateway)
    const own = { sub: 'u1', channel: 'shut:a', client: client.connect.client }
    t.strictSame((await client.subscribe('shut:a', { token: token(own) })).subscribe, {}, 'a valid token')
  })

  t.test('unsubscribe always succeeds', async t => {
    const client = await user(t, gateway)
    await client.subscribe('bare:a')
    for (const channel of ['bare:a', 'bare:a', 'never', 'nope:a', 'ä', 'x'.repeat(500)]) {
      t.strictSame((await client.call('unsubscribe', { channel })).unsubscribe, {})
    }
    await gateway.api('publish', { channel: 'bare:a', data: 1 })
    await roundTrip(client)
    t.strictSame(client.messages, [], 'and nothing comes afterwards')
  })

  t.test('publish needs a permission', async t => {
    const client = await user(t, gateway)
    t.strictSame((await client.call('publish', { channel: 'clients:a', data: {} })).publish, {})
    /** @type {[string, object, object][]} */
    const table = [
      ['unknown namespace', { channel: 'nope:a', data: 1 }, UNKNOWN],
      ['not allowed', { channel: 'bare:a', data: 1 }, DENIED],
      ['subscribers only', { channel: 'subscribers:a', data: 1 }, DENIED],
      ['no data', { channel: 'a' }, BAD],
      ['no data comes before permission', { channel: 'bare:a' }, BAD],
      ['not ASCII', { channel: 'ä', data: 1 }, BAD],
      ['against the pattern', { channel: 'regex:A', data: 1 }, BAD],
      ['no object', { channel: 'object:a', data: [1] }, BAD],
      ['null where an object is wanted', { channel: 'object:a', data: null }, BAD],
    ]
    for (const [name, request, refusal] of table)
      t.strictSame((await client.call('publish', request)).error, refusal, name)
    await client.subscribe('subscribers:a')
    t.strictSame((await client.call('publish', { channel: 'subscribers:a', data: null })).publish, {})
    t.strictSame((await client.call('publish', { channel: 'object:a', data: { a: 1 } })).publish, {})
  })

  t.test('a publisher receives its own publication with its info before the reply', async t => {
    const client = await user(t, gateway, { sub: 'u1', info: { nm: 'A' } })
    await client.subscribe('room', { token: token({ sub: 'u1', channel: 'room', info: { seat: 1 } }) })
    client.send({ id: 70, publish: { channel: 'room', data: { x: 1 } } })
    const first = await client.next()
    const info = { user: 'u1', client: client.connect.client, conn_info: { nm: 'A' }, chan_info: { seat: 1 } }
    const { epoch } = first.push.pub
    t.match(epoch, /^[A-Za-z]{8}$/, 'the first publication of a stream has its epoch')
    t.strictSame(first, { push: { channel: 'room', pub: { data: { x: 1 }, info, offset: 1, epoch } } })
    t.strictSame(await client.next(), { id: 70, publish: {} })
    client.send({ id: 71, publish: { channel: 'room', data: 2 } })
    t.strictSame(await client.next(), { push: { channel: 'room', pub: { data: 2, info, offset: 2 } } })
    t.strictSame(await client.next(), { id: 71, publish: {} })
    await gateway.api('publish', { channel: 'room', data: 3 })
    t.strictSame(await client.push('pub'), { channel: 'room', pub: { data: 3, offset: 3 } }, 'of the API')
  })

  t.test('presence and presence_stats need access', async t => {
    const client = await user(t, gateway)
    /** @type {[string, string, object][]} */
    const table = [
      ['unknown namespace', 'nope:a', UNKNOWN],
      ['not ASCII', 'ä', BAD],
      ['off in the channel', 'bare:a', UNAVAILABLE],
      ['no access', 'seen:a', DENIED],
      ['subscribers only', 'subscribers:a', DENIED],
    ]
    for (const method of ['presence', 'presence_stats']) {
      for (const [name, channel, refusal] of table)
        t.strictSame((await client.call(method, { channel })).error, refusal, name)
    }
    await client.subscribe('subscribers:a')
    const id = client.connect.client
    /** @type {[string, object, object][]} */
    const results = [
      ['empty', {}, { num_clients: 0, num_users: 0 }],
      ['subscribers:a', { [id]: { user: 'u1', client: id } }, { num_clients: 1, num_users: 1 }],
    ]
    for (const [channel, presence, presence_stats] of results) {
      t.strictSame((await client.call('presence', { channel })).presence, { presence }, channel)
      t.strictSame((await client.call('presence_stats', { channel })).presence_stats, presence_stats, channel)
    }
  })

  t.test('history needs access; its limit is capped', async t => {
    const client = await user(t, gateway)
    /** @type {[string, object, object][]} */
    const refused = [
      ['unknown namespace', { channel: 'nope:a' }, UNKNOWN],
      ['not ASCII', { channel: 'ä' }, BAD],
      ['off in the channel', { channel: 'bare:a' }, UNAVAILABLE],
      ['no access', { channel: 'seen:a' }, DENIED],
      ['subscribers only', { channel: 'subscribers:a' }, DENIED],
      ['reverse from the beginning', { channel: 'h', reverse: true, since: {} }, BAD],
      ['another epoch', { channel: 'h', since: { offset: 1, epoch: 'other' } }, UNRECOVERABLE],
    ]
    for (const [name, request, refusal] of refused)
      t.strictSame((await client.call('history', request)).error, refusal, name)
    const { history: empty } = await client.call('history', { channel: 'empty' })
    t.strictSame(empty, { publications: [], epoch: empty.epoch, offset: 0 })
    t.match(empty.epoch, /^[A-Za-z]{8}$/)

    let epoch = ''
    for (let n = 1; n <= 8; n++)
      ({ epoch } = (await gateway.api('publish', { channel: 'h', data: n })).result)
    /** @type {[object, number[]][]} */
    const table = [
      [{}, []],
      [{ limit: 0 }, []],
      [{ limit: 2 }, [1, 2]],
      [{ limit: -1 }, [1, 2, 3, 4, 5]],
      [{ limit: 100 }, [1, 2, 3, 4, 5]],
      [{ limit: 2, reverse: true }, [8, 7]],
      [{ limit: -1, since: { offset: 6, epoch } }, [7, 8]],
      [{ limit: 1, since: { offset: 6 } }, [7]],
      [{ limit: -1, since: { offset: 8, epoch } }, []],
      [{ limit: -1, since: { offset: 20, epoch } }, []],
      [{ limit: -1, since: { offset: 3, epoch }, reverse: true }, [2, 1]],
      [{ limit: -1, since: { offset: 1, epoch }, reverse: true }, []],
      [{ since: { offset: 3, epoch } }, []],
    ]
    for (const [request, expected] of table) {
      const { history } = await client.call('history', { channel: 'h', ...request })
      const publications = expected.map(n => ({ data: n, offset: n }))
      t.strictSame(history, { publications, epoch, offset: 8 }, JSON.stringify(request))
    }
    await client.subscribe('subscribers:h')
    t.match(await client.call('history', { channel: 'subscribers:h' }), { history: { offset: 0 } })
  })

  t.test('rpc without a handler returns error 108', async t => {
    const client = await user(t, gateway)
    for (const request of [{}, { method: 'ping' }, { method: 'x', data: 1 }]) {
      t.strictSame((await client.call('rpc', request)).error, error(108, 'not available'))
    }
  })

  t.test('send closes with 3508', async t => {
    for (const command of [{ send: { data: 1 } }, { id: 5, send: {} }]) {
      const client = await user(t, gateway)
      client.send(command)
      t.strictSame(await client.closed, { code: 3508, reason: 'not available' })
      t.strictSame(client.messages, [])
    }
  })

  t.test('no worker has exited', async t => t.notOk(gateway.lines.some(({ msg }) => msg === 'worker died')))
})

t.test('tokens whose keys cannot be fetched get temporary error 100', async t => {
  // Nothing listens there.
  const gateway = await startGateway(t, {
    workers: 1,
    client: tokenClient({
      subscription_token: { enabled: true, jwks_public_endpoint: 'http://127.0.0.1:9/keys' },
    }),
    channel: { without_namespace: open },
    rpc: { ping: { enabled: true, method: 'are you there' } },
  })
  const client = await user(t, gateway)
  const rest = token({ sub: 'u1', channel: 'a' }).split('.').slice(1)
  const rs256 = Buffer.from('{"alg":"RS256","kid":"k1"}').toString('base64url')
  client.send(
    { id: 50, subscribe: { channel: 'a', token: [rs256, ...rest].join('.') } },
    { id: 51, unsubscribe: { channel: 'b' } },
  )
  t.strictSame(await client.next(), { id: 50, error: error(100, 'internal server error', true) })
  t.strictSame(await client.next(), { id: 51, unsubscribe: {} }, 'the next command waited for it')
  t.strictSame((await client.subscribe('a')).subscribe, {})

  t.test('rpc answers the configured ping method', async t => {
    t.strictSame((await client.call('rpc', { method: 'are you there', data: 1 })).rpc, {})
    t.strictSame((await client.call('rpc', { method: 'ping' })).error, error(104, 'method not found'))
  })
})
