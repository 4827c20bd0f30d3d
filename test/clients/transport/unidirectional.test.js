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

/**
 * @param {import('../../kit/gateway.js').TestGateway} gateway
 * @param {(typeof transports)[number]} transport
 * @param {object} request
 * @param {Record<string, string>} [headers]
 * @param {string} [query]
 * @returns {Promise<any>}
 */
async function connect({ url }, transport, request, headers = {}, query = '') {
  const path = `/connection/${transport}?${query}`
  const text = JSON.stringify(request)
  if (transport === 'uni_websocket') {
    const socket = new WebSocket(`${url.replace('http', 'ws')}${path}`, { headers })
    socket.on('error', () => {})
    socket.on('open', () => socket.send(text))
    return new RawClient(socket)
  }
  if (transport === 'uni_sse') {
    return StreamClient.open(url, `${path}&cf_connect=${encodeURIComponent(text)}`, { headers })
  }
  return StreamClient.open(url, path, { method: 'POST', body: text, headers })
}

for (const driver of drivers) {
  t.test(`one-way transports on ${driver}`, async t => {
    const gateway = await startGateway(t, {
      workers: driver === 'uws' ? 2 : 1,
      http_server: { driver },
      uni_websocket: { enabled: true },
      uni_sse: { enabled: true },
      uni_http_stream: { enabled: true },
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
          { name: 'asked', ...open, ...history, allow_recovery: true },
          { name: 'shut' },
        ],
      },
    })

    // Much of it waits for pings, and for tokens to end.
    t.jobs = 12
    for (const transport of transports) {
      t.test(`${transport}: connect, pushes, pings, disconnect`, async t => {
        const room = `${transport}-room`
        const client = await connect(gateway, transport, {
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
        t.same(await client.next(), {}, 'a ping')
        t.same(await client.next(), {}, 'and another, though no pong came')
        const { session } = connected
        await gateway.api('subscribe', { user: '', session, channel: 'plain:later', data: 5 })
        t.same(await client.next(message => message.subscribe), {
          channel: 'plain:later',
          subscribe: { data: 5 },
        })
        await gateway.api('refresh', { user: '', session, expire_at: at(100) })
        t.match(await client.next(message => message.refresh), { refresh: { expires: true } })
        await gateway.api('unsubscribe', { user: '', session, channel: 'plain:later' })
        t.match(await client.next(message => message.unsubscribe), { unsubscribe: { code: 2000 } })
        await gateway.api('disconnect', { user: '', session })
        t.same(await client.next(message => message.disconnect), {
          disconnect: { code: 3503, reason: 'force disconnect' },
        })
        const end = await client.closed
        if (transport === 'uni_websocket') t.same(end, { code: 3503, reason: 'force disconnect' })
      })

      t.test(`${transport}: what went missing is recovered`, async t => {
        const channel = `asked:${transport}`
        const first = await connect(gateway, transport, { subs: { [channel]: { recoverable: true } } })
        const { epoch } = (await first.next()).connect.subs[channel]
        await first.close()
        for (let n = 1; n <= 5; n++) await gateway.api('publish', { channel, data: n })
        const again = await connect(gateway, transport, {
          subs: { [channel]: { recoverable: true, recover: true, offset: 2, epoch } },
        })
        const sub = (await again.next()).connect.subs[channel]
        t.match(sub, { recovered: true, was_recovering: true, offset: 2 })
        t.same(
          sub.publications.map((/** @type {any} */ { data }) => data),
          [3, 4, 5],
        )
        await again.close()
        const lost = await connect(gateway, transport, {
          subs: { [channel]: { recoverable: true, recover: true, offset: 2, epoch: 'another' } },
        })
        t.notOk((await lost.next()).connect.subs[channel].recovered)
        await lost.close()
      })

      t.test(`${transport}: who may not connect is told so`, async t => {
        const code = async (/** @type {object} */ request) => {
          const client = await connect(gateway, transport, request)
          const { disconnect } = await client.next()
          await client.closed
          return disconnect.code
        }
        t.equal(await code({ token: 'x.y.z' }), 3500)
        t.equal(await code({ token: token({ sub: 'u', exp: at(-10) }) }), 3005)
        t.equal(await code({ token: token({ sub: 'u', expire_at: at(-10), exp: at(100) }) }), 3005)
        t.equal(await code({ token: token({ sub: 'u', channels: ['nowhere:x'] }) }), 3004)
        t.equal(await code({ subs: { 'nowhere:x': {} } }), 3501)
      })

      t.test(`${transport}: a token may come in the query, and ends with its time`, async t => {
        const query = `token=${token({ sub: 'u1', exp: at(5), channels: ['plain:mine'] })}`
        const client = await connect(gateway, transport, {}, {}, query)
        const { connect: connected } = await client.next()
        t.match(connected, { expires: true, subs: { 'plain:mine': {} } })
        t.equal((await client.next(message => message.disconnect)).disconnect.code, 3005)
        await client.closed
      })
    }

    for (const transport of transports) {
      t.test(`${transport}: Authorization is a header, and no token`, async t => {
        for (const value of ['Bearer X', `Bearer ${token({ sub: 'u1', channels: ['plain:mine'] })}`]) {
          const client = await connect(gateway, transport, {}, { Authorization: value })
          const { connect: connected } = await client.next()
          t.ok(connected.client, 'the client is anonymous')
          t.equal(connected.subs, undefined)
          await client.close()
        }
      })
    }

    t.test('a request that makes no sense', async t => {
      const status = async (/** @type {string} */ path, /** @type {string} */ method, body = '') =>
        (await post(`${gateway.url}/connection/${path}`, body, {}, method)).status
      t.equal(await status('uni_sse?cf_connect=%7B', 'GET'), 400)
      t.equal(await status('uni_sse', 'POST', ''), 400)
      t.equal(await status('uni_sse', 'POST', '{"subs":[]}'), 400)
      t.equal(await status('uni_sse', 'POST', 'x'.repeat(65537)), 413)
      t.equal(await status('uni_sse', 'DELETE'), 405)
      t.equal(await status('uni_http_stream', 'POST', ''), 400)
      t.equal(await status('uni_http_stream', 'POST', '{"token":5}'), 400)
      t.equal(await status('uni_http_stream', 'POST', 'x'.repeat(65537)), 413)
      t.equal(await status('uni_http_stream', 'GET'), 405)
      const client = await connect(gateway, 'uni_websocket', [])
      t.equal((await client.next()).disconnect.code, 3501)
      t.same(await client.closed, { code: 3501, reason: 'bad request' })
    })

    t.test(
      'uni_sse: the id of the last event brings back what was missed, over several channels',
      async t => {
        const subs = { left: {}, right: {}, 'plain:z': {} }
        const client = await connect(gateway, 'uni_sse', { subs })
        await client.next()
        const begin = await client.id()
        await gateway.api('publish', { channel: 'left', data: 'l1' })
        await gateway.api('publish', { channel: 'right', data: 'r1' })
        await gateway.api('publish', { channel: 'plain:z', data: 'z1' })
        await gateway.api('publish', { channel: 'left', data: 'l2' })
        while (client.messages.length < 4) {
          const { pub } = await client.next(message => message.pub)
          if (pub.data === 'l2') break
        }
        const last = await client.id()
        t.not(last, begin)
        await client.close()
        await gateway.api('publish', { channel: 'left', data: 'l3' })
        await gateway.api('publish', { channel: 'right', data: 'r2' })
        const missed = async (/** @type {string} */ id) => {
          const again = await connect(gateway, 'uni_sse', { subs }, { 'Last-Event-ID': id })
          const { connect: connected } = await again.next()
          await again.close()
          return ['left', 'right'].map(channel =>
            connected.subs[channel].publications?.map((/** @type {any} */ { data }) => data),
          )
        }
        t.same(await missed(last), [['l3'], ['r2']])
        t.same(await missed(begin), [
          ['l1', 'l2', 'l3'],
          ['r1', 'r2'],
        ])
        t.same(await missed('rubbish,::,x:1:y'), [undefined, undefined])
      },
    )

    t.test('uni_sse: the last event counts more than the position in the URL, which stays', async t => {
      const channel = 'asked:stays'
      const first = await connect(gateway, 'uni_sse', { subs: { [channel]: { recoverable: true } } })
      const { epoch } = (await first.next()).connect.subs[channel]
      for (let n = 1; n <= 3; n++) await gateway.api('publish', { channel, data: n })
      const subs = { [channel]: { recoverable: true, recover: true, offset: 1, epoch } }
      const begun = await connect(gateway, 'uni_sse', { subs })
      t.equal((await begun.next()).connect.subs[channel].publications.length, 2)
      const id = await begun.id()
      await begun.close()
      await gateway.api('publish', { channel, data: 4 })
      const again = await connect(gateway, 'uni_sse', { subs }, { 'Last-Event-ID': id })
      t.match((await again.next()).connect.subs[channel], {
        recovered: true,
        offset: 3,
        publications: [{ data: 4, offset: 4 }],
      })
      await again.close()
      await first.close()
    })

    t.test(
      'uni_sse: an id is part of the event that brings the last of what it counts as received',
      async t => {
        const channel = 'asked:behind'
        const subs = { [channel]: { recoverable: true } }
        const client = await connect(gateway, 'uni_sse', { subs })
        await client.next()
        const begin = await client.id()
        await client.close()
        await gateway.api('publish', { channel, data: 'missed' })
        const again = await connect(gateway, 'uni_sse', { subs }, { 'Last-Event-ID': begin })
        const { epoch } = (await again.next()).connect.subs[channel]
        t.equal((await again.id()).split(':').slice(1).join(':'), `1:${epoch}`)
        const text = Buffer.concat(again.chunks).toString()
        // In an event of its own it would be lost with a connection that ends in between, and all of it would come
        // again.
        t.match(
          text.split('\n\n').find(event => event.includes('"missed"')),
          /"missed".*\nid: /,
          text,
        )
        await again.close()
      },
    )

    t.test('uni_sse: clients of one channel of which only one recovers keep ids of their own', async t => {
      const [one, other] = ['asked:one', 'asked:other']
      const wishes = [
        { [one]: { recoverable: true }, [other]: {} },
        { [one]: {}, [other]: { recoverable: true } },
      ]
      const clients = []
      // Several of each, so that some of both are on one worker.
      for (let n = 0; n < 6; n++) {
        const client = await connect(gateway, 'uni_sse', { subs: wishes[n % 2] })
        await client.next()
        clients.push({ client, begin: await client.id() })
      }
      await gateway.api('publish', { channel: other, data: 1 })
      for (const { client, begin } of clients) {
        await client.next(message => message.pub)
        t.equal((await client.id()).split(':')[0], begin.split(':')[0])
        await client.close()
      }
    })

    t.test('uni_sse: too many channels for one id take back the last one', async t => {
      const subs = Object.fromEntries(Array.from({ length: 120 }, (_, n) => [`many-${n}`, {}]))
      const client = await connect(gateway, 'uni_sse', { subs })
      t.equal(Object.keys((await client.next()).connect.subs).length, 120)
      t.equal(await client.id(), '')
      await gateway.api('publish', { channel: 'many-7', data: 1 })
      t.equal((await client.next(message => message.pub)).pub.offset, 1)
      t.same([...new Set(client.ids)], [''])
      await client.close()
    })

    t.test('uni_websocket: one push in a frame, and the request may stand in the URL', async t => {
      const request = encodeURIComponent(JSON.stringify({ subs: { frames: {} } }))
      const url = gateway.url.replace('http', 'ws')
      const client = new RawClient(new WebSocket(`${url}/connection/uni_websocket?cf_connect=${request}`))
      await client.next()
      for (let n = 0; n < 50; n++) await gateway.api('publish', { channel: 'frames', data: n })
      for (let n = 0; n < 50; n++) t.equal((await client.next(message => message.pub)).pub.data, n)
      t.notOk(client.frames.some(frame => frame.includes('\n')))
      await client.close()
    })
  })

  t.test(`connect codes as HTTP statuses and as other disconnects, on ${driver}`, async t => {
    const transforms = [
      { code: 109, to: { status_code: 401 } },
      { code: 3500, to: { status_code: 403, body: 'go away' } },
    ]
    const gateway = await startGateway(t, {
      workers: 1,
      http_server: { driver },
      uni_websocket: { enabled: true, join_push_messages: true },
      uni_sse: { enabled: true, connect_code_to_http_response: { enabled: true, transforms } },
      uni_http_stream: { enabled: true, connect_code_to_http_response: { enabled: true, transforms } },
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
      const answer = (/** @type {object} */ request) =>
        transport === 'uni_sse'
          ? post(
              `${gateway.url}/connection/uni_sse?cf_connect=${encodeURIComponent(JSON.stringify(request))}`,
              '',
              {},
              'GET',
            )
          : post(`${gateway.url}/connection/uni_http_stream`, JSON.stringify(request))
      t.match(await answer({ token: token({ sub: 'u', exp: at(-10) }) }), {
        status: 401,
        text: 'token expired',
      })
      t.match(await answer({ token: 'x.y.z' }), { status: 403, text: 'go away' })
      t.match(await answer({}), { status: 500, text: 'bad request' })
      const good = await connect(gateway, transport, {
        token: token({ sub: 'u', channels: ['a', 'kept:b'] }),
      })
      t.match(await good.next(), { connect: { subs: { a: {}, 'kept:b': { recoverable: true } } } })
      if (transport === 'uni_sse') t.match(await good.id(), /^[\w-]{8}:0:\w+$/)
      await gateway.api('publish', { channel: 'kept:b', data: 1 })
      t.match(await good.next(message => message.channel), { channel: 'kept:b', pub: { data: 1 } })
      await good.close()
    }
    const client = await connect(gateway, 'uni_websocket', { token: token({ sub: 'u', exp: at(-10) }) })
    t.same((await client.next()).disconnect, { code: 4109, reason: 'old token' })
    t.equal((await client.closed).code, 4109)
    const joined = await connect(gateway, 'uni_websocket', { token: token({ sub: 'u' }) })
    t.match(await joined.next(), { connect: {} })
    await once(joined.socket, 'ping')
    t.same(await joined.next(), {}, 'joined pushes are pinged as others are, with an empty push and a frame')
    await joined.close()
  })
}

t.test('one-way transports with a connect proxy', async t => {
  const backend = await Backend.start(t)
  backend.answer = () => result({ user: '42' })
  const gateway = await startGateway(t, {
    uni_websocket: { enabled: true },
    uni_sse: { enabled: true },
    uni_http_stream: { enabled: true },
    client: tokenClient({
      proxy: {
        connect: { enabled: true, endpoint: `${backend.url}/connect`, http_headers: ['Authorization'] },
      },
    }),
  })
  for (const transport of transports) {
    t.test(`${transport}: the proxy gets the header Authorization`, async t => {
      backend.requests.length = 0
      const client = await connect(gateway, transport, {}, { Authorization: 'Bearer X' })
      const { connect: connected } = await client.next()
      t.ok(connected?.client)
      t.equal(backend.requests[0]?.headers.authorization, 'Bearer X')
      await client.close()
    })
  }
})
