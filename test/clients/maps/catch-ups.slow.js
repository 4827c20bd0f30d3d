// Thousands of catch-ups: by one client, and by many. They are limited in number and time, and leave no memory behind.

import t from 'tap'
import { startGateway } from '../../kit/gateway.js'
import { memory } from '../../kit/memory.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'

t.setTimeout(300_000)

const MAP = {
  subscription_type: 'map',
  allow_subscribe_for_client: true,
  allow_subscribe_for_anonymous: true,
}
const PAGES = { min_page_size: 1, default_page_size: 1 }
const COUNT = 2000
const LIMIT = 128

/** @param {any} t @param {string} timeout */
const start = (t, timeout) =>
  startGateway(t, {
    workers: 1,
    client: { allow_anonymous_connect_without_token: true, channel_limit: LIMIT, concurrency: 8 },
    channel: {
      namespaces: [
        {
          ...{ name: 'ephemeral', ...MAP },
          map: { mode: 'ephemeral', key_ttl: '10m', ...PAGES, subscribe_catch_up_timeout: timeout },
        },
        {
          name: 'persistent',
          ...MAP,
          map: { mode: 'persistent', ...PAGES, subscribe_catch_up_timeout: timeout },
        },
      ],
    },
  })

/** @param {any} gateway @param {string} name of the namespace @param {number} maps */
async function fill(gateway, name, maps) {
  for (let n = 0; n < maps; n += 1000) {
    const commands = Array.from({ length: Math.min(1000, maps - n) }, (_, i) =>
      ['a', 'b', 'c'].map(key => ({ map_publish: { channel: `${name}:${n + i}`, key, data: 1 } })),
    ).flat()
    await gateway.api('batch', { commands })
  }
}

/** @param {RawClient} client @param {string} channel */
const begin = (client, channel) => client.subscribe(channel, { type: 1, phase: 2, limit: 1 })

t.test('one client opens as many as it may have channels', async t => {
  const gateway = await start(t, '1s')
  for (const name of ['ephemeral', 'persistent']) {
    await fill(gateway, name, COUNT)
    const client = await RawClient.connected(gateway.ws)
    t.teardown(() => client.socket.terminate())
    /** @type {Map<number, number>} code -> replies */
    const codes = new Map()
    for (let n = 0; n < COUNT; n++) {
      const { error, subscribe } = await begin(client, `${name}:${n}`)
      const code = error?.code ?? (subscribe.cursor ? 0 : -1)
      codes.set(code, (codes.get(code) ?? 0) + 1)
    }
    t.same([...codes.keys()].sort(), [0, 106], `${name}: ${JSON.stringify([...codes])}`)
    t.equal(client.ended, null, 'the client stays')
    // Those that it left are removed after their time.
    await until(async () => (await begin(client, `${name}:${COUNT + 1}`)).subscribe, 'room')
  }
})

t.test('many clients, and a busy map: memory returns', async t => {
  const gateway = await start(t, '2s')
  const [worker] = gateway.workerPids
  await fill(gateway, 'ephemeral', LIMIT)
  const value = 'x'.repeat(20_000)
  const round = async () => {
    const clients = await Promise.all(Array.from({ length: 80 }, () => RawClient.connected(gateway.ws)))
    for (const client of clients) {
      const replies = await Promise.all(
        Array.from({ length: LIMIT }, (_, n) => begin(client, `ephemeral:${n}`)),
      )
      t.ok(
        replies.every(({ subscribe }) => subscribe?.cursor),
        'all begin',
      )
      // Half of them are abandoned, the others are closed with their connection.
      if (clients.indexOf(client) % 2) client.socket.terminate()
    }
    // Each catch-up keeps the changes.
    for (let n = 0; n < LIMIT; n++)
      await gateway.api('map_publish', { channel: `ephemeral:${n}`, key: 'a', data: value })
    for (const client of clients) client.socket.terminate()
    await until(async () => (await gateway.api('info')).result.nodes[0].num_clients === 0)
    return memory(worker)
  }
  const first = await round()
  let last = 0
  for (let n = 0; n < 4; n++) last = await round()
  t.comment(`${first.toFixed(0)} MB after the first round, ${last.toFixed(0)} MB after five`)
  t.ok(last < first * 1.6 + 50, `${first} MB, then ${last} MB`)
  const client = await RawClient.connected(gateway.ws)
  t.teardown(() => client.socket.terminate())
  t.match(await client.subscribe('ephemeral:0', { type: 1, phase: 2, limit: 5 }), {
    subscribe: { state: { length: 3 } },
  })
})
