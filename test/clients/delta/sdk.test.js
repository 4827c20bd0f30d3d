// The official SDK reads deltas; sdk.slow.js has longer runs.

import { Centrifuge } from 'centrifuge'
import { Centrifuge as ProtobufCentrifuge } from 'centrifuge/build/protobuf'
import t from 'tap'
import WebSocket from 'ws'
import { defaultDriver, skipDriver } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { until } from '../../kit/wait.js'
import { chance } from './chance.js'
import { config, testEdits } from './sdk.js'

const gateways = {}
await Promise.all(
  [...new Set([defaultDriver, 'node'])].map(async driver => {
    gateways[driver] = await startGateway(t, { ...config, workers: 1, http_server: { driver } })
  }),
)
const gateway = gateways[defaultDriver]

for (const driver of ['uws', 'node']) {
  const options = { skip: skipDriver(driver) }
  t.test(`${driver}: the SDK follows the edits of a document`, options, t =>
    testEdits(t, gateways[driver], 'doc', { publications: 120, seed: 100 }),
  )
  t.test(`${driver}: the SDK follows edits that are not in history`, options, t =>
    testEdits(t, gateways[driver], 'passing', { publications: 40, seed: 100 }),
  )
  t.test(`${driver}: the SDK follows edits with deltas in a channel without history`, options, t =>
    testEdits(t, gateways[driver], 'latest', { publications: 80, seed: 100 }),
  )
}

t.test('binary payloads are sent as deltas in Protobuf', async t => {
  const random = chance(5)
  const client = new ProtobufCentrifuge(gateway.ws, { websocket: WebSocket })
  t.teardown(() => client.disconnect())
  const subscription = client.newSubscription('bytes:1', { delta: 'fossil' })
  const published = []
  const got = []
  subscription.on('publication', ({ data }) => got.push(Buffer.from(data).toString('base64')))
  subscription.subscribe()
  client.connect()
  await subscription.ready()
  let data = Buffer.from(Array.from({ length: 2000 }, () => random.below(256)))
  for (let n = 0; n < 100; n++) {
    data = Buffer.from(data)
    for (let edits = random.below(5); edits > 0; edits--) data[random.below(data.length)] = random.below(256)
    if (random.hit(0.1)) data = Buffer.concat([data.subarray(700), data.subarray(0, 700)])
    published.push(data.toString('base64'))
    await gateway.api('publish', { channel: 'bytes:1', b64data: published[n] })
  }
  await until(() => got.length === published.length)
  t.strictSame(got, published)
  t.equal(subscription.deltaStats().numDeltaPayloads, 99)
})

for (const [name, Client] of [
  ['JSON', Centrifuge],
  ['Protobuf', ProtobufCentrifuge],
]) {
  t.test(`${name}: a client still reads deltas after the server API has subscribed it again`, async t => {
    const channel = `doc:${name}`
    const client = new /** @type {any} */ (Client)(gateway.ws, { websocket: WebSocket })
    t.teardown(() => client.disconnect())
    const subscription = client.newSubscription(channel, { delta: 'fossil' })
    const got = []
    subscription.on('publication', ({ offset, data }) => {
      t.equal(name === 'JSON' ? data.n : JSON.parse(Buffer.from(data).toString()).n, offset)
      got.push(offset)
    })
    const id = new Promise(resolve => client.on('connected', ({ client }) => resolve(client)))
    subscription.subscribe()
    client.connect()
    await subscription.ready()
    const publish = n => gateway.api('publish', { channel, data: { fill: 'x'.repeat(200), n }, delta: true })
    for (const n of [1, 2]) await publish(n)
    await gateway.api('subscribe', { user: '', client: await id, channel })
    for (const n of [3, 4, 5]) await publish(n)
    await until(() => got.at(-1) === 5)
    t.strictSame(got, [1, 2, 3, 4, 5])
    const { numFullPayloads, numDeltaPayloads } = subscription.deltaStats()
    t.strictSame([numFullPayloads, numDeltaPayloads], [2, 3])
  })
}
