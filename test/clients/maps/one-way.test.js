// Maps of one-way clients: the state in the connect reply, then pushes.

import t from 'tap'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { post, StreamClient } from '../../kit/stream-client.js'

const OPEN = { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true }
const MAP = { ...OPEN, subscription_type: 'map' }

const config = {
  client: { allow_anonymous_connect_without_token: true },
  uni_sse: { enabled: true },
  uni_http_stream: { enabled: true },
  uni_websocket: { enabled: true },
  uni_poll: { enabled: true },
  channel: {
    without_namespace: { ...OPEN, history_size: 10, history_ttl: '60s', force_recovery: true },
    namespaces: [
      { name: 'board', ...MAP, map: { mode: 'persistent' } },
      { name: 'fleeting', ...MAP, map: { mode: 'ephemeral', key_ttl: '60s' } },
      { name: 'who', ...OPEN, subscription_type: 'map_clients', map: { mode: 'ephemeral', key_ttl: '60s' } },
      { name: 'secret', subscription_type: 'map', map: { mode: 'persistent' } },
    ],
  },
}

for (const driver of drivers) {
  t.test(driver, async t => {
    const gateway = await startGateway(t, { ...config, workers: 1, http_server: { driver } })
    const headers = { 'Content-Type': 'application/json' }
    const put = (/** @type {string} */ channel, /** @type {string} */ key, /** @type {any} */ data) =>
      gateway.api('map_publish', { channel, key, data })

    /** @type {Record<string, (t: any, request: object) => Promise<any>>} */
    const transports = {
      async uni_sse(t, request) {
        const query = `cf_connect=${encodeURIComponent(JSON.stringify(request))}`
        const client = await StreamClient.open(gateway.url, `/connection/uni_sse?${query}`)
        t.teardown(() => client.request.destroy())
        return client
      },
      async uni_http_stream(t, request) {
        const body = JSON.stringify(request)
        const path = '/connection/uni_http_stream'
        const client = await StreamClient.open(gateway.url, path, { method: 'POST', body, headers })
        t.teardown(() => client.request.destroy())
        return client
      },
      async uni_websocket(t, request) {
        const client = await RawClient.open(gateway.ws.replace('websocket', 'uni_websocket'))
        t.teardown(() => client.socket.terminate())
        client.sendText(JSON.stringify(request))
        return client
      },
    }

    for (const [name, open] of Object.entries(transports))
      t.test(`${name}: a connect reply has the states of maps`, async t => {
        const [board, fleeting] = [`board:${name}`, `fleeting:${name}`]
        for (let n = 0; n < 1500; n++) await put(board, `k${n}`, n)
        await put(fleeting, 'a', 'b')
        await gateway.api('publish', { channel: `stream-${name}`, data: 1 })
        const subs = { [board]: { type: 1 }, [fleeting]: { type: 1 }, [`stream-${name}`]: {} }
        const client = await open(t, { subs })
        const { connect } = await client.next()
        t.equal(connect.subs[board].state.length, 1500)
        t.match(connect.subs[board], { type: 1, offset: 1500, epoch: String, recoverable: true })
        t.match(connect.subs[fleeting], { type: 1, state: [{ key: 'a', data: 'b' }] })
        t.match(connect.subs[`stream-${name}`], { offset: 1 })
        await put(board, 'new', { n: 1 })
        t.match(await client.next(), { channel: board, pub: { key: 'new', data: { n: 1 }, offset: 1501 } })
        await gateway.api('map_remove', { channel: fleeting, key: 'a' })
        t.match(await client.next(), { channel: fleeting, pub: { key: 'a', removed: true } })
      })

    t.test('a map above the limit is refused, the others stay', async t => {
      const [large, small] = ['board:large', 'board:small']
      for (let n = 0; n < 12; n++) await put(large, `k${n}`, 'x'.repeat(100_000))
      await put(small, 'a', 1)
      const client = await transports.uni_websocket(t, {
        subs: { [large]: { type: 1 }, [small]: { type: 1 } },
      })
      const { connect } = await client.next()
      t.strictSame(Object.keys(connect.subs), [small])
      t.strictSame(await client.next(), {
        channel: large,
        unsubscribe: { code: 110, reason: 'map too large for a one-way connection' },
      })
      await put(large, 'b', 1)
      await put(small, 'b', 1)
      t.match(await client.next(), { channel: small, pub: { key: 'b' } })
      t.strictSame((await gateway.api('channels')).result.channels, { [small]: { num_clients: 1 } })
    })

    t.test('maps that a client may not have are left out', async t => {
      await put('board:x', 'a', 1)
      const subs = { 'secret:1': { type: 1 }, 'board:x': {}, 'board:y': { type: 2 }, 'who:1': { type: 2 } }
      const client = await transports.uni_websocket(t, { subs })
      t.strictSame(Object.keys((await client.next()).connect.subs), ['who:1'])
    })

    t.test('a client that reconnects gets the state again', async t => {
      await put('board:again', 'a', 1)
      const request = { subs: { 'board:again': { type: 1, recover: true, offset: 1, epoch: 'x' } } }
      const client = await transports.uni_websocket(t, request)
      const sub = (await client.next()).connect.subs['board:again']
      t.match(sub, { state: [{ key: 'a' }], offset: 1 })
      t.notHas(sub, 'was_recovering')
    })

    t.test('two-way clients have no server-side maps, one-way polls no maps', async t => {
      const client = await RawClient.open(gateway.ws)
      t.teardown(() => client.socket.terminate())
      const reply = await client.call('connect', { subs: { 'board:x': { type: 1 } } })
      t.match(reply, { error: { code: 107 } })
      const polled = await post(
        `${gateway.url}/connection/uni_poll`,
        JSON.stringify({ channels: ['board:x'] }),
      )
      t.match([polled.status, polled.body], [403, { error: { code: 103 } }])
    })
  })
}
