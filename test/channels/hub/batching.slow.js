// Batched channels of a real gateway, with both engines: frames, conflation, a disconnect, recovery, metrics.

import { once } from 'node:events'
import t from 'tap'
import WebSocket from 'ws'
import { startGateway } from '../../kit/gateway.js'
import { startRedis, withoutRedis } from '../../kit/servers/redis.js'
import { eventually, until } from '../../kit/wait.js'

const open = {
  allow_subscribe_for_client: true,
  allow_subscribe_for_anonymous: true,
  history_size: 100,
  history_ttl: '60s',
  allow_recovery: true,
  batch_max_delay: '60s',
}
const config = {
  client: { allow_anonymous_connect_without_token: true },
  prometheus: { enabled: true },
  channel: {
    namespaces: [
      { name: 'twenty', ...open, batch_max_size: 20 },
      { name: 'keys', ...open, batch_max_size: 10, batch_flush_latest: true, batch_conflate_tag: 'key' },
    ],
  },
}

/** A client that records its frames, each as a list of messages. */
class Client {
  /** @type {any[][]} */
  frames = []
  /** @type {any} */
  socket
  /** @type {Promise<any>} */
  closed
  /** @type {any} the result of subscribe */
  reply

  /** @param {any} t @param {any} gateway @param {string} channel @param {object} [request] */
  static async subscribed(t, gateway, channel, request = {}) {
    const client = new Client()
    client.socket = new WebSocket(`${gateway.ws}`)
    t.teardown(() => client.socket.terminate())
    client.closed = once(client.socket, 'close')
    await once(client.socket, 'open')
    client.socket.on('message', data => {
      const messages = String(data).split('\n')
      if (messages.every(message => message === '{}')) client.socket.send('{}')
      else client.frames.push(messages.map(message => JSON.parse(message)))
    })
    client.socket.send(
      `{"id":1,"connect":{}}\n${JSON.stringify({ id: 2, subscribe: { channel, ...request } })}`,
    )
    client.reply = (await until(() => client.all.find(({ id }) => id === 2))).subscribe
    client.frames = []
    return client
  }

  get all() {
    return this.frames.flat()
  }

  get offsets() {
    return this.all.filter(({ push }) => push?.pub).map(({ push }) => push.pub.offset)
  }
}

/** @param {any} gateway @param {string} channel @param {number} count @param {(n: number) => object} [more] */
async function publish(gateway, channel, count, more = () => ({})) {
  const commands = Array.from({ length: count }, (_, n) => ({
    publish: { channel, data: { n }, ...more(n) },
  }))
  const { replies } = await gateway.api('batch', { commands })
  return replies.map(({ publish: { offset }, error }) => offset ?? error)
}

/** @param {any} t @param {object} engine */
async function testBatches(t, engine) {
  const gateway = await startGateway(t, { ...config, ...engine, workers: 1 })

  await t.test('a full batch is sent in frames of 16 pushes', async t => {
    const client = await Client.subscribed(t, gateway, 'twenty:a', { recoverable: true })
    const offsets = await publish(gateway, 'twenty:a', 19)
    t.same(
      offsets,
      Array.from({ length: 19 }, (_, n) => n + 1),
    )
    t.same(client.frames, [])
    await publish(gateway, 'twenty:a', 1)
    await until(() => client.offsets.length === 20)
    const sizes = client.frames.map(({ length }) => length)
    t.same(sizes, [16, 4])
    t.same(
      client.offsets,
      Array.from({ length: 20 }, (_, n) => n + 1),
    )
  })

  await t.test('the newest publication of each key is sent; history has all', async t => {
    const client = await Client.subscribed(t, gateway, 'keys:a', { recoverable: true })
    const { offset = 0, epoch } = client.reply
    await publish(gateway, 'keys:a', 10, n => ({ tags: { key: `${n % 3}` } }))
    await until(() => client.offsets.length === 3)
    t.same(client.offsets, [8, 9, 10])
    const late = await Client.subscribed(t, gateway, 'keys:a', {
      recover: true,
      recoverable: true,
      offset,
      epoch,
    })
    t.equal(late.reply.recovered, true)
    t.equal(late.reply.publications.length, 10)
  })

  await t.test('a disconnected client gets its batch; an unsubscribed one recovers it', async t => {
    const client = await Client.subscribed(t, gateway, 'twenty:b', { recoverable: true })
    const leaver = await Client.subscribed(t, gateway, 'twenty:b', { recoverable: true })
    const { offset = 0, epoch } = leaver.reply
    await publish(gateway, 'twenty:b', 3)
    leaver.socket.close()
    await leaver.closed
    t.same(leaver.offsets, [])
    await gateway.api('disconnect', { user: '' })
    const [code] = await client.closed
    t.equal(code, 3503)
    t.same(client.offsets, [1, 2, 3])
    const back = await Client.subscribed(t, gateway, 'twenty:b', {
      recover: true,
      recoverable: true,
      offset,
      epoch,
    })
    const recovered = back.reply.publications.map(({ offset }) => offset)
    t.same(recovered, [1, 2, 3])
  })

  await t.test('metrics count flushes and conflated publications', async t => {
    const metrics = [
      /halley_batch_flushes_total\{[^}]*reason="size"[^}]*\} 2\b/,
      /halley_batch_conflated_total\{[^}]*namespace="keys"[^}]*\} 7\b/,
      /halley_batch_items_sum\S* 26\b/,
    ]
    const missing = () =>
      eventually(
        async () => {
          const page = await (await fetch(`http://127.0.0.1:${gateway.port}/metrics`)).text()
          return metrics.filter(metric => !metric.test(page))
        },
        ({ length }) => length === 0,
      )
    t.same(await missing(), [])
  })
}

t.test('engine memory', async t => testBatches(t, {}))

t.test('engine redis', { skip: withoutRedis() }, async t => {
  const redis = await startRedis(t)
  await testBatches(t, { engine: { type: 'redis', redis: { address: redis.address } } })
})
