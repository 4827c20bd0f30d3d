// The admin endpoints of a real gateway: two workers, clients of every kind.

import t from 'tap'
import { anonymous, history, open, tokenClient, user } from '../../clients/session/support.js'
import { startGateway } from '../../kit/gateway.js'
import { freePort } from '../../kit/ports.js'
import { post as httpPost } from '../../kit/stream-client.js'
import { lines } from './rig.js'

const PASSWORD = 'the admin key of the tests'
const METHODS = [
  'info',
  'publish',
  'disconnect',
  'unsubscribe',
  'presence',
  'presence_stats',
  'history',
  'channels',
  'connections',
]

/** @param {{connect: any}} client @returns {string} its client id */
const id = ({ connect }) => connect.client

/**
 * @param {any} t
 * @param {object} [config]
 */
async function start(t, config = {}) {
  const gateway = await startGateway(t, {
    admin: { password: PASSWORD },
    client: tokenClient({ allow_anonymous_connect_without_token: true }),
    channel: {
      without_namespace: { ...open },
      namespaces: [{ name: 'his', ...open, ...history }],
    },
    ...config,
  })
  /**
   * @param {string} name
   * @param {string | object} body
   * @param {string} [token]
   */
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
    /**
     * @param {string} name
     * @param {object} [params]
     */
    call: async (name, params = {}) => (await post(name, params, token)).body.result,
  }
}

t.test('without a key there is no admin page, and with admin.enabled off neither', async t => {
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

  t.test('nothing is answered without a token', async t => {
    for (const name of [...METHODS, 'command']) {
      for (const bad of [undefined, 'x', `${token}x`]) {
        const { status, headers, body } = await post(name, '{"channel":"x","data":1}', bad)
        t.equal(status, 401, name)
        t.equal(headers.get('cache-control'), 'no-store')
        t.same(body, { error: 'log in first' })
      }
    }
    t.equal((await fetch(`${gateway.url}/admin/api/stream`)).status, 401)
  })

  t.test('bodies are bounded, and garbage is refused in one line', async t => {
    for (const name of METHODS) {
      for (const garbage of ['', '[', '[]', 'null', '"x"', '\0', '{"user":5,"channel":5,"pattern":5}']) {
        if (name === 'info' && garbage.startsWith('{')) continue
        const { status, body } = await post(name, garbage, token)
        t.equal(status, 400, `${name} ${JSON.stringify(garbage)}`)
        t.same(body, { error: 'the body is not what this takes' })
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

  t.test('publish is that of the server API', async t => {
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

  t.test('channels come with the clients of all workers, the largest first, at most 500', async t => {
    const clients = await Promise.all(Array.from({ length: 6 }, () => anonymous(t, gateway)))
    for (const client of clients) await client.subscribe('crowd')
    await clients[0].subscribe('lonely')
    const { total, channels } = await call('channels', { pattern: '{crowd,lonely}' })
    t.equal(total, 2)
    t.same(channels, [
      { name: 'crowd', clients: 6 },
      { name: 'lonely', clients: 1 },
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

  t.test('presence of a channel, and its numbers', async t => {
    const client = await user(t, gateway, { sub: 'anna', info: { name: 'Anna' } })
    await client.subscribe('lounge')
    const { presence } = await call('presence', { channel: 'lounge' })
    t.same(Object.values(presence), [
      { user: 'anna', client: client.connect.client, conn_info: { name: 'Anna' } },
    ])
    t.same(await call('presence_stats', { channel: 'lounge' }), { num_clients: 1, num_users: 1 })
  })

  t.test("a user's connections are found wherever they are, and end when they are told to", async t => {
    const mine = await Promise.all(Array.from({ length: 6 }, () => user(t, gateway, { sub: 'bob' })))
    const other = await user(t, gateway, { sub: 'carol' })
    await mine[0].subscribe('one')
    for (let n = 0; n < 25; n++) await mine[1].subscribe(`of-bob-${n}`)
    const { total, connections } = await call('connections', { user: 'bob' })
    t.equal(total, 6)
    t.same(connections.map(({ client }) => client).sort(), mine.map(id).sort())
    const nodes = await call('info')
    for (const connection of connections) {
      t.match(connection, { user: 'bob', transport: 'websocket', codec: 'json' })
      t.same(connection.node, { uid: nodes.nodes[0].uid, name: nodes.nodes[0].name })
      t.ok([0, 1].includes(connection.worker))
    }
    const of = (/** @type {any} */ one) => connections.find(({ client }) => client === id(one))
    t.match(of(mine[0]), { subscriptions: 1, channels: ['one'] })
    t.equal(of(mine[1]).subscriptions, 25)
    t.same(
      of(mine[1]).channels,
      Array.from({ length: 20 }, (_, n) => `of-bob-${n}`),
      'not every name',
    )
    t.match(of(mine[2]), { subscriptions: 0, channels: [] })
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
    t.ok(connections.some((/** @type {any} */ row) => row.client === id(client) && row.user === ''))
  })

  t.test('connections of everybody, at most 500 of them', async t => {
    const [anna, nobody] = [await user(t, gateway, { sub: 'anna' }), await anonymous(t, gateway)]
    const { total, connections } = await call('connections', { all: true })
    t.ok(total >= 2)
    t.equal(connections.length, Math.min(total, 500))
    const userOf = (/** @type {string} */ client) =>
      connections.find((/** @type {any} */ row) => row.client === client)?.user
    t.equal(userOf(id(anna)), 'anna')
    t.equal(userOf(id(nobody)), '')
    t.equal((await post('connections', { all: 1 }, token)).status, 400)
  })

  t.test('info tells of the nodes', async t => {
    const { nodes } = await call('info')
    t.equal(nodes.length, 1)
    t.match(nodes[0], { version: String, uptime: Number, num_clients: Number, num_channels: Number })
  })

  t.test('the stream tells of every worker once a second, from any worker', async t => {
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
          t.same(
            snapshot.workers.map((/** @type {any} */ { sample }) => sample.pid).sort(),
            [...gateway.workerPids].sort(),
          )
        }
        await messages.return()
      }),
    )
  })

  t.test('a worker is restarted when it is asked for, and takes the same token', async t => {
    t.match((await post('command', { type: 'restart', worker: 9 }, token)).body.error, /worker/)
    t.equal((await post('command', { type: 'stop' }, token)).status, 403)
    const { pid } = gateway.lines.find(({ msg, worker }) => msg === 'worker listens' && worker === 0)
    const back = gateway.line(line => line.msg === 'worker listens' && line.worker === 0 && line.pid !== pid)
    // Whoever has taken the request may be the one that goes, before the answer has left.
    const asked = await post('command', { type: 'restart', worker: 0 }, token).catch(() => null)
    if (asked) t.same(asked.body, { error: null })
    await back
    // On connections of their own: those that `fetch` keeps may be of the worker that has gone. A handshake that waits
    // for that worker is reset by the kernel.
    const info = () =>
      httpPost(`${gateway.url}/admin/api/info`, '{}', { Authorization: `Bearer ${token}` }).then(
        ({ status }) => status,
        error => (error.code === 'ECONNRESET' ? info() : Promise.reject(error)),
      )
    const statuses = await Promise.all(Array.from({ length: 8 }, info))
    t.ok(statuses.every(status => status === 200))
  })
})

t.test('with an internal port the admin page is there, and not where clients are', async t => {
  const internal = await freePort()
  const gateway = await startGateway(t, {
    workers: 1,
    admin: { password: PASSWORD },
    http_server: { internal_port: internal, internal_address: '127.0.0.1' },
  })
  t.equal((await fetch(`${gateway.url}/admin`)).status, 404)
  t.equal((await fetch(`http://127.0.0.1:${internal}/admin`)).status, 200)
})
