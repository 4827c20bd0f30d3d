// Recovery of streams by the official SDK, with and without deltas, against a gateway with any engine and socket
// server.

import { Centrifuge } from 'centrifuge'
import { Centrifuge as ProtobufCentrifuge } from 'centrifuge/build/protobuf'
import WebSocket from 'ws'
import { startGateway } from '../../kit/gateway.js'
import { until } from '../../kit/wait.js'

const STREAM = {
  ...{ history_size: 100, history_ttl: '60s', force_recovery: true },
  ...{ allowed_delta_types: ['fossil'], delta_publish: true },
}
const TEXT = 'what stays the same in each message, '.repeat(12)

const config = {
  workers: 2,
  client: { insecure: true },
  channel: {
    namespaces: [
      { name: 'kept', ...STREAM },
      { name: 'small', ...STREAM, history_size: 2 },
    ],
  },
}

/** @param {any} t @param {object} more configuration */
export async function testRecovery(t, more) {
  const gateway = await startGateway(t, { ...config, ...more })
  t.jobs = 4
  for (const protobuf of [false, true])
    for (const delta of [undefined, /** @type {const} */ ('fossil')])
      t.test(`${protobuf ? 'Protobuf' : 'JSON'}${delta ? ' with deltas' : ''}`, t =>
        testCodec(t, gateway, protobuf, delta),
      )
}

/** @param {any} t @param {any} gateway @param {boolean} protobuf @param {'fossil' | undefined} delta */
async function testCodec(t, gateway, protobuf, delta) {
  let channels = 0
  const Client = protobuf ? ProtobufCentrifuge : Centrifuge
  const decode = data => (protobuf ? JSON.parse(new TextDecoder().decode(data)) : data)

  /** A subscriber, and what it gets. @param {any} t @param {string} namespace */
  const watch = async (t, namespace) => {
    const channel = `${namespace}:${protobuf}-${delta}-${++channels}`
    const client = new Client(gateway.ws, { websocket: WebSocket, minReconnectDelay: 10 })
    t.teardown(() => client.disconnect())
    const subscription = client.newSubscription(channel, { minResubscribeDelay: 10, delta })
    const seen = {
      client,
      subscription,
      got: /** @type {number[]} */ ([]),
      events: /** @type {any[]} */ ([]),
    }
    subscription.on('subscribed', context => seen.events.push(context))
    subscription.on('publication', ({ data }) => {
      const { n, text } = decode(data)
      seen.got.push(text === TEXT ? n : NaN)
    })
    subscription.subscribe()
    client.connect()
    await subscription.ready()
    let last = 0
    return {
      ...seen,
      publish: async (count = 1) => {
        for (let end = last + count; last < end; )
          await gateway.api('publish', { channel, data: { text: TEXT, n: ++last } })
      },
      has: async (t, expected) => {
        await until(
          () => seen.got.length >= expected.length,
          () => `${expected}, got ${seen.got}`,
        )
        t.same(seen.got, expected)
      },
    }
  }
  const unsubscribed = ({ subscription }) =>
    new Promise(resolve => subscription.once('unsubscribed', resolve))

  t.test('successive messages', async t => {
    const one = await watch(t, 'kept')
    await one.publish(10)
    await one.has(t, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    if (!delta) return
    const { numFullPayloads, numDeltaPayloads, bytesReceived, bytesDecoded } = one.subscription.deltaStats()
    t.same([numFullPayloads, numDeltaPayloads], [1, 9])
    t.ok(bytesReceived < bytesDecoded / 4, `${bytesReceived} of ${bytesDecoded} bytes`)
  })

  for (const [how, leave, enter] of /** @type {[string, (one: any) => void, (one: any) => void][]} */ ([
    ['a disconnect', ({ client }) => client.disconnect(), ({ client }) => client.connect()],
    ['an unsubscribe', one => one.subscription.unsubscribe(), one => one.subscription.subscribe()],
  ])) {
    t.test(`after ${how} the missed messages come, then the next ones`, async t => {
      const one = await watch(t, 'kept')
      await one.publish()
      await one.has(t, [1])
      leave(one)
      await one.publish(3)
      enter(one)
      await one.has(t, [1, 2, 3, 4])
      t.match(one.events[1], { wasRecovering: true, recovered: true })
      await one.publish(2)
      await one.has(t, [1, 2, 3, 4, 5, 6])
    })

    t.test(`after ${how} for longer than the history lasts, new messages come`, async t => {
      const one = await watch(t, 'small')
      await one.publish()
      await one.has(t, [1])
      leave(one)
      await one.publish(10)
      enter(one)
      await until(() => one.events.length === 2)
      t.match(one.events[1], { wasRecovering: true, recovered: false })
      await one.publish(2)
      await until(() => one.got.includes(13))
      t.same(one.got.slice(-2), [12, 13])
      t.equal(new Set(one.got).size, one.got.length)
    })
  }

  for (const event of /** @type {const} */ (['subscribed', 'publication']))
    t.test(`messages that a handler of '${event}' did not get come with the next subscribe`, async t => {
      const one = await watch(t, 'kept')
      one.subscription.unsubscribe()
      await one.publish(3)
      one.subscription.once(event, () => one.subscription.unsubscribe())
      const ended = unsubscribed(one)
      one.subscription.subscribe()
      await ended
      const before = event === 'subscribed' ? [] : [1]
      t.same(one.got, before)
      one.subscription.subscribe()
      await one.has(t, [1, 2, 3])
    })
}
