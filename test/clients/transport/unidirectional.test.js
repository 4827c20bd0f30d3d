// One-way clients (client protocol).

import { once } from 'node:events'
import t from 'tap'
import WebSocket from 'ws'
import { Backend, result } from '../../backends/hooks/backend.js'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { post, StreamClient } from '../../kit/stream-client.js'
import { at, history, open, token, tokenClient } from '../session/support.js'

const transports = /** @type {const} */ (['uni_websocket', 'uni_sse', 'uni_http_stream'])
const on = { enabled: true }

/** @param {object} request of a connect */
const queryOf = request => `cf_connect=${encodeURIComponent(JSON.stringify(request))}`

/** @param {any[]} publications */
const payloads = publications => publications?.map(({ data }) => data)

/**
 * @param {any} t closes the client @param {import('../../kit/gateway.js').TestGateway} gateway
 * @param {(typeof transports)[number]} transport @param {object} request @param {Record<string, string>} [headers]
 * @param {string} [query] @returns {Promise<any>}
 */
async function connect(t, { url }, transport, request, headers = {}, query = '') {
  const path = `/connection/${transport}?${query}`
  const body = JSON.stringify(request)
  const open = async () => {
    if (transport === 'uni_http_stream')
      return StreamClient.open(url, path, { method: 'POST', body, headers })
    if (transport === 'uni_sse') return StreamClient.open(url, `${path}&${queryOf(request)}`, { headers })
    const socket = new WebSocket(`${url.replace('http', 'ws')}${path}`, { headers })
    socket.on('open', () => socket.send(body))
    return new RawClient(socket)
  }
  const client = await open()
  t.teardown(() => client.close())
  return client
}

for (const driver of drivers) {
  t.test(`one-way transports on ${driver}`, async t => {
    const gateway = await startGateway(t, {
      workers: driver === 'uws' ? 2 : 1,
      http_server: { driver },
      uni_websocket: on,
      uni_sse: on,
      uni_http_stream: on,
      client: tokenClient({
        allow_anonymous_connect_without_token: true,
        ping_interval: '2s',
        pong_timeout: '1s',
        expired_close_delay: '1ms',
      }),
      channel: {
        without_namespace: { ...open, ...history, force_recovery: true },
        namespaces: [
          { name: 'plain', ...open },
          { name: 'wanted', ...open, ...history, allow_recovery: true },
          { name: 'shut' },
        ],
      },
    })

    // They wait for pings, and for tokens to expire.
    t.jobs = 12
    for (const transport of transports) {
      t.test(`${transport}: sends connect, pushes, pings and disconnect`, async t => {
        const room = `${transport}-room`
        const client = await connect(t, gateway, transport, {
          subs: { [room]: {}, 'shut:x': {}, 'plain:y': {} },
        })
        const { connect: connected } = await client.next()
        t.match(connected, { client: String, version: String, ping: 2, session: String })
        t.notOk('pong' in connected || 'node' in connected)
        t.same(Object.keys(connected.subs).sort(), ['plain:y', room].sort())
        t.match(connected.subs[room], { recoverable: true, positioned: true, epoch: String })
        for (let n = 1; n <= 3; n++) {
          await gateway.api('publish', { channel: room, data: { n }, tags: { kind: 'é' } })
          t.match(await client.next(message => message.channel), {
            channel: room,
            pub: { data: { n }, offset: n, tags: { kind: 'é' } },
          })
        }
        for (const which of ['first', 'second']) t.same(await client.next(), {}, `${which} ping, no pong`)
        const { session } = connected
        const channel = 'plain:later'
        const disconnect = { code: 3503, reason: 'force disconnect' }
        /** @type {[string, object, object][]} */
        const table = [
          ['subscribe', { channel, data: 5 }, { channel, subscribe: { data: 5 } }],
          ['refresh', { expire_at: at(100) }, { refresh: { expires: true } }],
          ['unsubscribe', { channel }, { channel, unsubscribe: { code: 2000 } }],
          ['disconnect', {}, { disconnect }],
        ]
        for (const [method, request, push] of table) {
          await gateway.api(method, { user: '', session, ...request })
          t.match(await client.next(message => message[method]), push)
        }
        const end = await client.closed
        if (transport === 'uni_websocket') t.same(end, disconnect)
      })

      t.test(`${transport}: a refused connect is sent as a disconnect push`, async t => {
        /** @type {[object, number][]} */
        const table = [
          [{ token: 'x.y.z' }, 3500],
          [{ token: token({ sub: 'u', exp: at(-10) }) }, 3005],
          [{ token: token({ sub: 'u', expire_at: at(-10), exp: at(100) }) }, 3005],
          [{ token: token({ sub: 'u', channels: ['nowhere:x'] }) }, 3004],
          [{ subs: { 'nowhere:x': {} } }, 3501],
        ]
        for (const [request, code] of table) {
          const client = await connect(t, gateway, transport, request)
          t.equal((await client.next()).disconnect.code, code)
          await client.closed
        }
      })

      t.test(`${transport}: a token may be in the query, and its expiry ends the connection`, async t => {
        const query = `token=${token({ sub: 'u1', exp: at(5), channels: ['plain:mine'] })}`
        const client = await connect(t, gateway, transport, {}, {}, query)
        const { connect: connected } = await client.next()
        t.match(connected, { expires: true, subs: { 'plain:mine': {} } })
        t.equal((await client.next(message => message.disconnect)).disconnect.code, 3005)
        await client.closed
      })

      t.test(`${transport}: the header Authorization is not read as a token`, async t => {
        for (const value of ['Bearer X', `Bearer ${token({ sub: 'u1', channels: ['plain:mine'] })}`]) {
          const client = await connect(t, gateway, transport, {}, { Authorization: value })
          const { connect: connected } = await client.next()
          t.ok(connected.client, 'the client is anonymous')
          t.equal(connected.subs, undefined)
        }
      })
    }

    t.test('an invalid request is refused', async t => {
      const long = 'x'.repeat(65537)
      for (const [method, path, body, status] of /** @type {[string, string, string, number][]} */ ([
        ['GET', 'uni_sse?cf_connect=%7B', '', 400],
        ['POST', 'uni_sse', '', 400],
        ['POST', 'uni_sse', '{"subs":[]}', 400],
        ['POST', 'uni_sse', long, 413],
        ['DELETE', 'uni_sse', '', 405],
        ['POST', 'uni_http_stream', '', 400],
        ['POST', 'uni_http_stream', '{"token":5}', 400],
        ['POST', 'uni_http_stream', long, 413],
        ['GET', 'uni_http_stream', '', 405],
      ])) {
        const answer = await post(`${gateway.url}/connection/${path}`, body, {}, method)
        t.equal(answer.status, status, `${method} ${path}`)
      }
      const client = await connect(t, gateway, 'uni_websocket', [])
      t.equal((await client.next()).disconnect.code, 3501)
      t.same(await client.closed, { code: 3501, reason: 'bad request' })
    })

    t.test('uni_sse: the last event id recovers several channels', async t => {
      const subs = { left: {}, right: {}, 'plain:z': {} }
      const client = await connect(t, gateway, 'uni_sse', { subs })
      await client.next()
      const begin = await client.id()
      await gateway.api('publish', { channel: 'left', data: 'l1' })
      await gateway.api('publish', { channel: 'right', data: 'r1' })
      await gateway.api('publish', { channel: 'plain:z', data: 'z1' })
      await gateway.api('publish', { channel: 'left', data: 'l2' })
      await client.next(({ pub }) => pub?.data === 'l2')
      const last = await client.id()
      t.not(last, begin)
      await client.close()
      await gateway.api('publish', { channel: 'left', data: 'l3' })
      await gateway.api('publish', { channel: 'right', data: 'r2' })
      const missed = async (/** @type {string} */ id) => {
        const again = await connect(t, gateway, 'uni_sse', { subs }, { 'Last-Event-ID': id })
        const { left, right } = (await again.next()).connect.subs
        return { left: payloads(left.publications), right: payloads(right.publications) }
      }
      t.same(await missed(last), { left: ['l3'], right: ['r2'] })
      t.same(await missed(begin), { left: ['l1', 'l2', 'l3'], right: ['r1', 'r2'] })
      t.same(await missed('rubbish,::,x:1:y'), { left: undefined, right: undefined })
    })

    t.test('uni_sse: the last event id overrides the position in the URL', async t => {
      const channel = 'wanted:stays'
      const first = await connect(t, gateway, 'uni_sse', { subs: { [channel]: { recoverable: true } } })
      const { epoch } = (await first.next()).connect.subs[channel]
      for (let n = 1; n <= 3; n++) await gateway.api('publish', { channel, data: n })
      const subs = { [channel]: { recoverable: true, recover: true, offset: 1, epoch } }
      const begun = await connect(t, gateway, 'uni_sse', { subs })
      t.equal((await begun.next()).connect.subs[channel].publications.length, 2)
      const id = await begun.id()
      await gateway.api('publish', { channel, data: 4 })
      const again = await connect(t, gateway, 'uni_sse', { subs }, { 'Last-Event-ID': id })
      t.match((await again.next()).connect.subs[channel], {
        recovered: true,
        offset: 3,
        publications: [{ data: 4, offset: 4 }],
      })
    })

    t.test('uni_sse: an id is sent with the publication that it includes', async t => {
      const channel = 'wanted:behind'
      const subs = { [channel]: { recoverable: true } }
      const client = await connect(t, gateway, 'uni_sse', { subs })
      await client.next()
      const begin = await client.id()
      await gateway.api('publish', { channel, data: 'missed' })
      const again = await connect(t, gateway, 'uni_sse', { subs }, { 'Last-Event-ID': begin })
      const { epoch } = (await again.next()).connect.subs[channel]
      t.equal((await again.id()).split(':').slice(1).join(':'), `1:${epoch}`)
      const text = Buffer.concat(again.chunks).toString()
      // In a separate event, it could be lost if the connection ends in between.
      t.match(
        text.split('\n\n').find(event => event.includes('"missed"')),
        /"missed".*\nid: /,
        text,
      )
    })

    t.test('uni_sse: ids contain only the recoverable channels of the client', async t => {
      const [one, other] = ['wanted:one', 'wanted:other']
      const wishes = [
        { [one]: { recoverable: true }, [other]: {} },
        { [one]: {}, [other]: { recoverable: true } },
      ]
      const clients = []
      // Some of both are on one worker.
      for (let n = 0; n < 6; n++) {
        const client = await connect(t, gateway, 'uni_sse', { subs: wishes[n % 2] })
        await client.next()
        clients.push({ client, begin: await client.id() })
      }
      await gateway.api('publish', { channel: other, data: 1 })
      for (const { client, begin } of clients) {
        await client.next(message => message.pub)
        t.equal((await client.id()).split(':')[0], begin.split(':')[0])
      }
    })

    t.test('uni_sse: with too many channels the id is empty', async t => {
      const subs = Object.fromEntries(Array.from({ length: 120 }, (_, n) => [`many-${n}`, {}]))
      const client = await connect(t, gateway, 'uni_sse', { subs })
      t.equal(Object.keys((await client.next()).connect.subs).length, 120)
      t.equal(await client.id(), '')
      await gateway.api('publish', { channel: 'many-7', data: 1 })
      t.equal((await client.next(message => message.pub)).pub.offset, 1)
      t.same([...new Set(client.ids)], [''])
    })

    t.test('uni_websocket: each frame has one push; the request may be in the URL', async t => {
      const url = `${gateway.url.replace('http', 'ws')}/connection/uni_websocket`
      const client = new RawClient(new WebSocket(`${url}?${queryOf({ subs: { frames: {} } })}`))
      await client.next()
      for (let n = 0; n < 50; n++) await gateway.api('publish', { channel: 'frames', data: n })
      for (let n = 0; n < 50; n++) t.equal((await client.next(message => message.pub)).pub.data, n)
      t.notOk(client.frames.some(frame => frame.includes('\n')))
    })
  })

  t.test(`connect codes can become HTTP statuses or other disconnects, on ${driver}`, async t => {
    const transforms = [
      { code: 109, to: { status_code: 401 } },
      { code: 3500, to: { status_code: 403, body: 'go away' } },
    ]
    const connect_code_to_http_response = { enabled: true, transforms }
    const old = { token: token({ sub: 'u', exp: at(-10) }) }
    const gateway = await startGateway(t, {
      workers: 1,
      http_server: { driver },
      uni_websocket: { enabled: true, join_push_messages: true },
      uni_sse: { enabled: true, connect_code_to_http_response },
      uni_http_stream: { enabled: true, connect_code_to_http_response },
      client: tokenClient({
        ping_interval: '1s',
        pong_timeout: '500ms',
        connect_code_to_unidirectional_disconnect: {
          enabled: true,
          transforms: [{ code: 109, to: { code: 4109, reason: 'old token' } }],
        },
      }),
      channel: {
        without_namespace: open,
        namespaces: [{ name: 'kept', ...open, ...history, force_recovery: true }],
      },
    })
    for (const transport of /** @type {const} */ (['uni_sse', 'uni_http_stream'])) {
      const url = `${gateway.url}/connection/${transport}`
      const answer = (/** @type {object} */ request) =>
        transport === 'uni_sse'
          ? post(`${url}?${queryOf(request)}`, '', {}, 'GET')
          : post(url, JSON.stringify(request))
      t.match(await answer(old), { status: 401, text: 'token expired' })
      t.match(await answer({ token: 'x.y.z' }), { status: 403, text: 'go away' })
      t.match(await answer({}), { status: 500, text: 'bad request' })
      const claims = { sub: 'u', channels: ['a', 'kept:b'] }
      const good = await connect(t, gateway, transport, { token: token(claims) })
      t.match(await good.next(), { connect: { subs: { a: {}, 'kept:b': { recoverable: true } } } })
      if (transport === 'uni_sse') t.match(await good.id(), /^[\w-]{8}:0:\w+$/)
      await gateway.api('publish', { channel: 'kept:b', data: 1 })
      t.match(await good.next(message => message.channel), { channel: 'kept:b', pub: { data: 1 } })
    }
    const client = await connect(t, gateway, 'uni_websocket', old)
    t.same((await client.next()).disconnect, { code: 4109, reason: 'old token' })
    t.equal((await client.closed).code, 4109)
    const joined = await connect(t, gateway, 'uni_websocket', { token: token({ sub: 'u' }) })
    t.match(await joined.next(), { connect: {} })
    await once(joined.socket, 'ping')
    t.same(await joined.next(), {}, 'with joined pushes, a ping is an empty push and a frame too')
  })
}

t.test('one-way transports with a connect proxy', async t => {
  const backend = await Backend.start(t)
  backend.answer = () => result({ user: '42' })
  const gateway = await startGateway(t, {
    uni_websocket: on,
    uni_sse: on,
    uni_http_stream: on,
    client: tokenClient({
      proxy: {
        connect: { enabled: true, endpoint: `${backend.url}/connect`, http_headers: ['Authorization'] },
      },
    }),
  })
  for (const transport of transports) {
    t.test(`${transport}: the connect proxy gets the header Authorization`, async t => {
      backend.requests.length = 0
      const client = await connect(t, gateway, transport, {}, { Authorization: 'Bearer X' })
      const { connect: connected } = await client.next()
      t.ok(connected?.client)
      t.equal(backend.requests[0]?.headers.authorization, 'Bearer X')
    })
  }
})
