// The admin endpoints of a real gateway: two workers, clients of every kind.

import t from 'tap'
import { anonymous, history, open, tokenClient, user } from '../../clients/session/support.js'
import { startGateway } from '../../kit/gateway.js'
import { post as httpPost } from '../../kit/stream-client.js'
import { lines } from './rig.js'

const PASSWORD = 'the admin key of the tests'
const METHODS = (
  'info publish disconnect unsubscribe presence presence_stats history channels connections ' +
  'map_publish map_remove map_read_state map_clear map_info'
).split(' ')

const MAP = {
  name: 'map',
  subscription_type: 'map',
  allow_subscribe_for_client: true,
  allow_subscribe_for_anonymous: true,
  map: { mode: 'recoverable', key_ttl: '1h' },
}

/** @param {{connect: any}} client @returns {string} its client id */
const id = ({ connect }) => connect.client

async function start(t, config = {}) {
  const gateway = await startGateway(t, {
    admin: { password: PASSWORD },
    client: tokenClient({ allow_anonymous_connect_without_token: true }),
    channel: {
      without_namespace: { ...open },
      namespaces: [{ name: 'his', ...open, ...history }, MAP],
    },
    ...config,
  })
  const post = async (name, body, token) => {
    const answer = await fetch(`${gateway.url}/admin/api/${name}`, {
      method: 'POST',
      headers: token === undefined ? {} : { Authorization: `Bearer ${token}` },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
    return { status: answer.status, headers: answer.headers, body: await answer.json() }
  }
  const { token } = (await post('login', { password: PASSWORD })).body
  return {
    gateway,
    token,
    post,
    call: async (name, params = {}) => (await post(name, params, token)).body.result,
  }
}

t.test('without a key, or with admin.enabled off, there is no admin page', async t => {
  for (const admin of [{}, { password: 'key', enabled: false }]) {
    const gateway = await startGateway(t, { admin, workers: 1 })
    for (const path of ['/admin', '/admin/', '/admin/api/stream', '/admin/assets/pages/admin/page/app.js']) {
      t.equal((await fetch(gateway.url + path)).status, 404, path)
    }
    const login = await fetch(`${gateway.url}/admin/api/login`, { method: 'POST', body: '{"password":""}' })
    t.equal(login.status, 404)
    await gateway.stop()
  }
})

t.test('the admin page', async t => {
  const { gateway, token, post, call } = await start(t)

  t.test('without a token every request gets 401', async t => {
    for (const name of [...METHODS, 'command']) {
      for (const bad of [undefined, 'x', `${token}x`]) {
        const { status, headers, body } = await post(name, '{"channel":"x","data":1}', bad)
        t.equal(status, 401, name)
        t.equal(headers.get('cache-control'), 'no-store')
        t.same(body, { error: 'login required' })
      }
    }
    t.equal((await fetch(`${gateway.url}/admin/api/stream`)).status, 401)
  })

  t.test('bodies are limited; invalid ones are refused with one line', async t => {
    for (const name of METHODS) {
      for (const garbage of ['', '[', '[]', 'null', '"x"', '\0', '{"user":5,"channel":5,"pattern":5}']) {
        if (name === 'info' && garbage.startsWith('{')) continue
        const { status, body } = await post(name, garbage, token)
        t.equal(status, 400, `${name} ${JSON.stringify(garbage)}`)
        t.same(body, { error: 'invalid request body' })
      }
    }
    const large = await post('publish', { channel: 'x', data: 'x'.repeat(1024 * 1024) }, token)
    t.equal(large.status, 413)
    t.match(large.body.error, 'longer than 1048576 bytes')
    const get = await fetch(`${gateway.url}/admin/api/info`, {
      headers: { Authorization: `Bearer ${token}` },
    })
    t.equal(get.status, 405)
  })

  t.test('publish works like in the server API', async t => {
    const client = await anonymous(t, gateway)
    await client.subscribe('his:news')
    const { offset, epoch } = await call('publish', { channel: 'his:news', data: { text: 'hello' } })
    t.equal(offset, 1)
    t.type(epoch, 'string')
    const { push } = await client.next(message => message.push?.pub)
    t.same(push.pub.data, { text: 'hello' })
    t.same(await call('publish', { channel: 'plain', data: 1 }), {})
    const { publications } = await call('history', { channel: 'his:news', limit: 10 })
    t.same(publications, [{ data: { text: 'hello' }, offset: 1 }])
    const unknown = await post('publish', { channel: 'no:x', data: 1 }, token)
    t.equal(unknown.status, 404)
    t.same(unknown.body, { error: 'unknown channel', code: 102 })
    t.equal((await post('publish', { channel: '', data: 1 }, token)).status, 400)
  })

  t.test('keys of a map are published, read and removed', async t => {
    const client = await anonymous(t, gateway)
    await client.call('subscribe', { channel: 'map:1', type: 1, phase: 2 })
    t.same(await call('channels', { pattern: 'map:*' }), {
      total: 1,
      channels: [{ name: 'map:1', kind: 'map', clients: 1 }],
    })
    for (const key of ['a', 'b', 'c']) await call('map_publish', { channel: 'map:1', key, data: key })
    t.same(await call('map_info', { channel: 'map:1' }), { kind: 'map', mode: 'recoverable', keys: 3 })
    const { entries, cursor } = await call('map_read_state', { channel: 'map:1', limit: 2 })
    t.match(entries, [{ key: 'a', data: 'a', offset: 1 }, { key: 'b' }])
    t.match(await call('map_read_state', { channel: 'map:1', limit: 2, cursor }), { entries: [{ key: 'c' }] })
    t.equal((await call('map_remove', { channel: 'map:1', key: 'a' })).offset, 4)
    await call('map_clear', { channel: 'map:1' })
    t.equal((await call('map_info', { channel: 'map:1' })).keys, 0)
    const stream = await post('map_info', { channel: 'his:news' }, token)
    t.same(stream.body, { error: 'not available', code: 108 })
    t.equal((await post('map_info', { channel: '' }, token)).status, 400)
    t.equal((await post('map_info', { channel: 'no:x' }, token)).status, 404)
  })

  t.test('channels lists the clients of all workers, largest first, at most 500', async t => {
    const clients = await Promise.all(Array.from({ length: 6 }, () => anonymous(t, gateway)))
    for (const client of clients) await client.subscribe('crowd')
    await clients[0].subscribe('lonely')
    const { total, channels } = await call('channels', { pattern: '{crowd,lonely}' })
    t.equal(total, 2)
    t.same(channels, [
      { name: 'crowd', kind: 'stream', clients: 6 },
      { name: 'lonely', kind: 'stream', clients: 1 },
    ])
    await Promise.all(
      clients.map(async (client, of) => {
        for (let n = 0; n < 100; n++) await client.subscribe(`many-${of}-${n}`)
      }),
    )
    const many = await call('channels', { pattern: 'many-*' })
    t.equal(many.total, 600)
    t.equal(many.channels.length, 500)
    t.equal((await call('channels')).channels[0].name, 'crowd')
    t.equal((await post('channels', { pattern: '[' }, token)).status, 500)
  })

  t.test('presence and presence_stats show the clients of a channel', async t => {
    const client = await user(t, gateway, { sub: 'anna', info: { name: 'Anna' } })
    await client.subscribe('lounge')
    const { presence } = await call('presence', { channel: 'lounge' })
    t.same(Object.values(presence), [
      { user: 'anna', client: client.connect.client, conn_info: { name: 'Anna' } },
    ])
    t.same(await call('presence_stats', { channel: 'lounge' }), { num_clients: 1, num_users: 1 })
  })

  t.test('connections of a user on all workers are listed and can be disconnected', async t => {
    const mine = await Promise.all(Array.from({ length: 6 }, () => user(t, gateway, { sub: 'bob' })))
    const other = await user(t, gateway, { sub: 'carol' })
    await mine[0].subscribe('one')
    for (let n = 0; n < 25; n++) await mine[1].subscribe(`of-bob-${n}`)
    const { total, connections } = await call('connections', { user: 'bob' })
    t.equal(total, 6)
    t.same(connections.map(({ client }) => client).sort(), mine.map(id).sort())
    const nodes = await call('info')
    for (const connection of connections) {
      t.match(connection, { user: 'bob', transport: 'websocket', protocol: 'json' })
      t.same(connection.node, { uid: nodes.nodes[0].uid, name: nodes.nodes[0].name })
      t.ok([0, 1].includes(connection.worker))
    }
    const of = one => connections.find(({ client }) => client === id(one))
    t.same(of(mine[0]).state.channels, { one: { source: 6 } })
    t.equal(Object.keys(of(mine[1]).state.channels).length, 25)
    t.same(of(mine[2]).state.channels, {})
    t.equal((await call('connections', { user: 'bob', client: id(mine[3]) })).total, 1)
    t.equal((await call('connections', { user: 'nobody' })).total, 0)
    t.equal((await call('connections', { user: '__proto__' })).total, 0)

    await call('disconnect', { user: 'bob', client: id(mine[0]) })
    t.equal((await mine[0].closed).code, 3503)
    t.equal((await call('connections', { user: 'bob' })).total, 5)
    await call('disconnect', { user: 'bob' })
    for (const client of mine.slice(1)) t.equal((await client.closed).code, 3503)
    t.equal((await call('connections', { user: 'bob' })).total, 0)
    t.equal((await call('connections', { user: 'carol' })).total, 1)
    t.equal(other.socket.readyState, other.socket.OPEN)
  })

  t.test('anonymous connections are those without a user', async t => {
    const client = await anonymous(t, gateway)
    const { total, connections } = await call('connections', { user: '' })
    t.equal(total, connections.length)
    t.ok(connections.some(row => row.client === id(client) && row.user === ''))
  })

  t.test('all connections are listed, at most 500', async t => {
    const [anna, nobody] = [await user(t, gateway, { sub: 'anna' }), await anonymous(t, gateway)]
    const { total, connections } = await call('connections', { all: true })
    t.ok(total >= 2)
    t.equal(connections.length, Math.min(total, 500))
    const userOf = client => connections.find(row => row.client === client)?.user
    t.equal(userOf(id(anna)), 'anna')
    t.equal(userOf(id(nobody)), '')
    t.equal((await post('connections', { all: 1 }, token)).status, 400)
  })

  t.test('the stream of any worker has a sample of every worker each second', async t => {
    await Promise.all(
      Array.from({ length: 4 }, async () => {
        const answer = await fetch(`${gateway.url}/admin/api/stream`, {
          headers: { Authorization: `Bearer ${token}`, Connection: 'close' },
        })
        const messages = lines(answer)
        const hello = (await messages.next()).value
        t.equal(hello.type, 'hello')
        t.equal(hello.node.url, gateway.url)
        let last = hello.history.at(-1)?.seq ?? 0
        for (let n = 0; n < 2; n++) {
          const { type, snapshot } = (await messages.next()).value
          t.equal(type, 'snapshot')
          t.ok(snapshot.seq > last)
          last = snapshot.seq
          t.same(snapshot.workers.map(({ sample }) => sample.pid).sort(), [...gateway.workerPids].sort())
        }
        await messages.return()
      }),
    )
  })

  t.test('the command restart replaces a worker; the new one accepts the same token', async t => {
    t.match((await post('command', { type: 'restart', worker: 9 }, token)).body.error, /worker/)
    t.equal((await post('command', { type: 'stop' }, token)).status, 403)
    const { pid } = gateway.lines.find(({ msg, worker }) => msg === 'worker is listening' && worker === 0)
    const back = gateway.line(
      line => line.msg === 'worker is listening' && line.worker === 0 && line.pid !== pid,
    )
    // The worker of the request may be the one that ends, before its answer is sent.
    const answer = await post('command', { type: 'restart', worker: 0 }, token).catch(() => null)
    if (answer) t.same(answer.body, { error: null })
    await back
    // On connections of their own: those that `fetch` keeps may be of the worker that has ended. The kernel resets
    // handshakes that wait for that worker.
    const info = () =>
      httpPost(`${gateway.url}/admin/api/info`, '{}', { Authorization: `Bearer ${token}` }).then(
        ({ status }) => status,
        error => (error.code === 'ECONNRESET' ? info() : Promise.reject(error)),
      )
    const statuses = await Promise.all(Array.from({ length: 8 }, info))
    t.ok(statuses.every(status => status === 200))
  })
})
