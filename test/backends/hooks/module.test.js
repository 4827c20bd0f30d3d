// A hooks module in the workers of a real gateway: decisions of its handlers, and failures.

import { fileURLToPath } from 'node:url'
import t from 'tap'
import { makeToken } from '../../clients/auth/jwt.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'

const SECRET = 'secret of the tests'
const hooks = fileURLToPath(new URL('hooks.js', import.meta.url))

const namespace = {
  presence: true,
  allow_subscribe_for_client: true,
  allow_publish_for_subscriber: true,
  allow_presence_for_client: true,
}
const gateway = await startGateway(t, {
  hooks: { module: hooks, timeout: '1s' },
  client: { token: { hmac_secret_key: SECRET }, expired_sub_close_delay: '0s' },
  channel: { without_namespace: namespace },
})

/** @returns {number} unix s */
const soon = () => Math.floor(Date.now() / 1000) + 1

/** A client that leaves with its test. @param {any} t @param {any} [data] @param {object} [options] */
async function open(t, data, options = {}) {
  const client = await RawClient.open(gateway.ws, options)
  t.teardown(() => client.socket.terminate())
  return { client, reply: await client.call('connect', { ...(data && { data }) }) }
}

async function enter(t, as, answer = {}) {
  const { client, reply } = await open(t, { as, answer })
  if (reply.error) throw new Error(reply.error.message)
  client.connect = reply.connect
  return client
}

t.test('connect', async t => {
  t.test('admits with user, info, data, meta and subscriptions', async t => {
    const { client, reply } = await open(
      t,
      {
        as: 'ann',
        answer: { subscriptions: { news: { data: { welcome: true }, override: { presence: true } } } },
      },
      { headers: { 'X-Kept': 'here', 'X-Other': 'too' } },
    )
    const { connect } = reply
    t.match(connect.data, { client: connect.client, token: null, transport: 'websocket' })
    t.strictSame(connect.subs, { news: { data: { welcome: true } } })
    const { presence } = (await gateway.api('presence', { channel: 'news' })).result
    t.match(presence[connect.client], { user: 'ann', conn_info: { name: 'ann' } })
    const { rpc } = await client.call('rpc', { method: 'who' })
    t.strictSame(rpc.data, {
      user: 'ann',
      client: connect.client,
      meta: { from: 'here', all: 'too' },
      // Only the headers named by the module are kept.
      kept: { 'x-kept': 'here' },
    })
  })

  t.test('adds to what a token says', async t => {
    const client = await RawClient.open(gateway.ws)
    t.teardown(() => client.socket.terminate())
    const token = makeToken({ sub: 'bea', channels: ['own'], info: { of: 'token' } }, SECRET)
    const { connect } = await client.call('connect', {
      token,
      data: { as: 'bea the second', answer: { subscriptions: ['more'], info: undefined } },
    })
    t.equal(connect.data.token, 'bea')
    t.same(Object.keys(connect.subs).sort(), ['more', 'own'])
    t.match((await client.call('rpc', { method: 'who' })).rpc.data, { user: 'bea the second' })
  })

  t.test('a bad token never reaches the handler', async t => {
    const client = await RawClient.open(gateway.ws)
    client.send({ id: 1, connect: { token: 'x.y.z', data: { as: 'eve' } } })
    t.match(await client.closed, { code: 3500 })
  })

  t.test('refuses with an error or a disconnect; without a result the other rules apply', async t => {
    t.strictSame((await open(t, { refuse: { code: 4010, message: 'full' } })).reply.error, {
      code: 4010,
      message: 'full',
    })
    const refused = await gateway.line(
      ({ msg, reason }) => msg === 'client refused' && reason !== 'invalid_token',
    )
    t.equal(refused.reason, 'application', 'a message of the module is not a metric label')
    for (const [data, end] of /** @type {[any, any][]} */ ([
      [{ refuse: { code: 4501, reason: 'banned' } }, { code: 4501, reason: 'banned' }],
      [undefined, { code: 3501, reason: 'bad request' }],
    ])) {
      const client = await RawClient.open(gateway.ws)
      client.send({ id: 1, connect: data ? { data } : {} })
      t.same(await client.closed, end)
    }
  })

  t.test('answers later; commands behind it wait', async t => {
    const client = await RawClient.open(gateway.ws)
    t.teardown(() => client.socket.terminate())
    client.send(
      { id: 1, connect: { data: { as: 'cay', later: 50 } } },
      { id: 2, rpc: { method: 'echo', data: 7 } },
    )
    t.ok((await client.next()).connect)
    t.strictSame(await client.next(), { id: 2, rpc: { data: 7 } })
  })

  t.test('a throw: error 100, one log line with the stack, and the worker keeps running', async t => {
    const { reply } = await open(t, { throws: true })
    t.match(reply.error, { code: 100, temporary: true })
    const line = await gateway.line(({ hook }) => hook === 'connect hook')
    t.match(line.err, { message: 'connect is broken', stack: /hooks\.js:\d+/ })
    t.ok(await enter(t, 'dan'))
  })
})

t.test('subscribe', async t => {
  const client = await enter(t, 'ann')
  t.strictSame((await client.subscribe('any', { data: { a: 1 } })).subscribe, {
    data: { allowed: true, said: { a: 1 } },
  })
  const { presence } = (await gateway.api('presence', { channel: 'any' })).result
  t.match(Object.values(presence), [{ user: 'ann', chan_info: { role: 'guest' } }])
  t.match((await client.subscribe('closed')).error, { code: 4000, message: 'closed today' })
  t.match((await client.subscribe('any')).error, { code: 105 })
  t.match((await client.subscribe('wrong')).error, { code: 100 })
  t.match(await gateway.line(({ hook }) => hook === 'subscribe hook'), {
    reason: /unknown field nonsense/,
  })
  t.match((await client.subscribe('gone', { data: { grant: { expireAt: 1 } } })).error, { code: 110 })
  t.ok((await client.subscribe('rules')).subscribe, 'the options of the channel allow it')
  client.send({ id: 99, subscribe: { channel: 'thrown out' } })
  t.same(await client.closed, { code: 4400, reason: 'thrown out' })
})

t.test('publish', async t => {
  const [ann, ben] = [await enter(t, 'ann'), await enter(t, 'ben')]
  await ben.subscribe('talk')
  t.match((await ann.call('publish', { channel: 'talk', data: { a: 1 } })).error, { code: 103 })
  await ann.subscribe('talk')
  t.strictSame((await ann.call('publish', { channel: 'talk', data: { a: 1 } })).publish, {})
  t.same((await ben.push('pub')).pub.data, { a: 1 })
  t.match((await ann.call('publish', { channel: 'talk', data: { bad: 1 } })).error, { code: 4001 })
  t.match((await ann.call('publish', { channel: 'talk', data: { alone: 1 } })).error, { code: 100 })
  await ann.call('publish', { channel: 'talk', data: { upper: 'quiet' } })
  t.match((await ben.push('pub')).pub, {
    data: { text: 'QUIET' },
    tags: { by: 'ann' },
    info: { user: 'ann', conn_info: { name: 'ann' } },
  })
  t.ok((await ann.call('publish', { channel: 'free', data: {} })).publish, 'any result allows it')

  t.test('keeps the order of a client for synchronous and asynchronous handlers', async t => {
    const sent = [{ n: 1 }, { slow: 30 }, { n: 2 }, { slow: 1 }, { n: 3 }]
    ann.send(...sent.map((data, at) => ({ id: 100 + at, publish: { channel: 'talk', data } })))
    const got = []
    for (const _ of sent) got.push((await ben.push('pub')).pub.data)
    t.same(got, [{ n: 1 }, { after: 30 }, { n: 2 }, { after: 1 }, { n: 3 }])
    const replies = []
    for (const _ of sent) replies.push((await ann.next(({ id }) => id >= 100)).id)
    t.same(replies, [100, 101, 102, 103, 104])
  })
})

t.test('rpc', async t => {
  const client = await enter(t, 'ann')
  const call = async (method, data) => {
    const { rpc, error } = await client.call('rpc', { method, ...(data !== undefined && { data }) })
    return rpc ?? error.code
  }
  t.same(await call('echo', { a: [1] }), { data: { a: [1] } })
  t.same(await call('nothing'), {})
  t.same(await call('missing'), 104)
  t.same(await call('__proto__'), 104)
  t.same(await call('slow', 5), { data: { waited: 5 } })
  t.same(await call('leak'), { data: 'left' })
  t.match(await gateway.line(({ msg }) => /^unhandled rejection in the hooks module/.test(msg)), {
    err: { message: 'nobody waits for it' },
  })
  t.same(await call('string'), 100)
  t.match(await gateway.line(({ hook }) => hook === 'rpc.string hook'), {
    err: { message: 'the handler threw "only a string"' },
  })
  t.same(await call('circular'), 100)
  t.same(await call('never'), 100, 'a handler has a timeout')
  t.match(await gateway.line(({ hook }) => hook === 'rpc.never hook'), {
    reason: 'timed out',
  })
  client.send({ id: 90, rpc: { method: 'bytes' } })
  t.match(await client.closed, { code: 3506 }, 'a JSON client cannot receive data that is not JSON')
})

t.test('a handler that throws or rejects with nothing refuses, and is logged', async t => {
  const own = await startGateway(t, {
    hooks,
    workers: 1,
    client: { allow_anonymous_connect_without_token: true },
    channel: { without_namespace: namespace },
  })
  const open = async data => {
    const client = await RawClient.open(own.ws)
    t.teardown(() => client.socket.terminate())
    return { client, reply: await client.call('connect', { data }) }
  }
  const { client } = await open({ as: 'ann' })
  await client.subscribe('rules')
  for (const value of ['undefined', 'null', 'zero', 'text', 'false', 'NaN'])
    for (const how of ['throws', 'rejects']) {
      const nothing = { [how]: value }
      const refused = { error: { code: 100, temporary: true } }
      t.match((await open({ as: 'eve', nothing })).reply, refused, `connect ${how} ${value}`)
      t.match(await client.subscribe('rules 2', { data: { nothing } }), refused, `subscribe ${how} ${value}`)
      const sent = { channel: 'rules', data: { nothing } }
      t.match(await client.call('publish', sent), refused, `publish ${how} ${value}`)
      t.match(await client.call('rpc', { method: 'fails', data: nothing }), refused, `rpc ${how} ${value}`)
    }
  await client.call('publish', { channel: 'rules', data: 'last' })
  t.equal((await client.push('pub')).pub.data, 'last', 'nothing was published before')
  for (const name of ['connect', 'subscribe', 'publish', 'rpc.fails'])
    t.match(await own.line(({ hook }) => hook === `${name} hook`), {
      err: { message: 'the handler threw undefined' },
    })
})

t.test('pongs are not delayed by a slow handler', async t => {
  const own = await startGateway(t, {
    hooks: { module: hooks, timeout: '20s' },
    workers: 1,
    client: { allow_anonymous_connect_without_token: true, ping_interval: '1s', pong_timeout: '500ms' },
  })
  /** @returns {Promise<{code: number} | null>} how it was closed before the handler had answered; null: it was not */
  const slow = async () => {
    const client = await RawClient.open(own.ws)
    t.teardown(() => client.socket.terminate())
    await client.login({ data: { as: 'ann' } })
    client.send({ id: 50, rpc: { method: 'slow', data: 2500 } })
    client.socket.on('message', data => String(data) === '{}' && client.send({}))
    await client.next(({ id }) => id === 50).catch(() => null)
    return client.ended
  }
  // If the test process was blocked, the answer is late: try again once.
  let ended = await slow()
  for (let again = 0; again < 4 && ended?.code === 3012; again++) ended = await slow()
  t.equal(ended, null, 'the client was not closed for a missing pong')
})

t.test('events of ended connections and subscriptions reach the module', async t => {
  const client = await enter(t, 'leaver')
  const { client: id } = client.connect
  await client.subscribe('first')
  await client.subscribe('second')
  await client.call('unsubscribe', { channel: 'first' })
  const of = msg => gateway.line(line => line.msg === msg && line.client === id)
  t.match(await of('hook unsubscribed'), { channel: 'first', code: 0 })
  client.send({ id: 70, rpc: { method: 'aborted' } })
  await of('hook called')
  client.socket.terminate()
  t.match(await of('hook disconnected'), {
    user: 'leaver',
    code: 3000,
    channels: ['second'],
    timed: true,
    meta: { from: 'nowhere' },
  })
  t.match(await gateway.line(({ msg }) => msg === 'hook aborted'), { reason: 'the client disconnected' })
  const thrown = await enter(t, 'thrown')
  await gateway.api('disconnect', { user: 'thrown' })
  await thrown.closed
  const line = await gateway.line(({ msg, user }) => msg === 'hook disconnected' && user === 'thrown')
  t.match(line, { code: 3503, reason: 'force disconnect' })
})

t.test("refresh extends a connection without the client's knowledge", async t => {
  const expiring = async as => {
    // The expiry may pass before the worker reads it: try again once.
    return until(async () => {
      const { client, reply } = await open(t, { as, answer: { expireAt: soon() } })
      return reply.connect && Object.assign(client, { connect: reply.connect })
    })
  }
  const staying = await expiring('staying')
  const going = await expiring('going')
  t.notOk('expires' in going.connect)
  t.match(await going.closed, { code: 3005 })
  t.same((await staying.call('rpc', { method: 'echo', data: 1 })).rpc, { data: 1 })
})

t.test("subRefresh extends a subscription without the client's knowledge", async t => {
  const client = await enter(t, 'ann')
  for (const channel of ['kept', 'lost']) {
    const reply = await until(async () => {
      const answer = await client.subscribe(channel, { data: { grant: { expireAt: soon() } } })
      return !answer.error && answer
    })
    t.notOk(reply.subscribe.expires)
  }
  t.match(await client.push('unsubscribe'), { channel: 'lost', unsubscribe: { code: 2501 } })
  t.match(
    (await client.call('sub_refresh', { channel: 'kept', token: 'x' }).catch(() => null)) ?? client.ended,
    {
      code: 3501,
    },
  )
})

t.test('started and stopping, once in each worker', async t => {
  const own = await startGateway(t, { hooks })
  const started = [await own.line(({ msg }) => msg === 'hook started')]
  started.push(await own.line(({ msg, pid }) => msg === 'hook started' && pid !== started[0].pid))
  for (const { position } of started) t.same(position, { offset: 0, epoch: '' }, 'its gateway publishes')
  const client = await RawClient.open(own.ws)
  await client.login({ data: { as: 'last' } })
  await own.stop()
  const ends = own.lines.map(({ msg }) => msg).filter(msg => /^hook (?:disc|stop)/.test(msg))
  t.same(ends.sort(), ['hook disconnected', 'hook stopping', 'hook stopping'])
})
