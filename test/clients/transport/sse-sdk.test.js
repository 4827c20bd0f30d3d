// The JavaScript SDK over SSE, with two versions of EventSource: version 2 of the npm package drops the first event when
// the preamble is in the same chunk.

import { once } from 'node:events'
import { Centrifuge } from 'centrifuge'
import { EventSource } from 'eventsource'
import EventSource2 from 'eventsource2'
import t from 'tap'
import { drivers, onDriver } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { StreamClient } from '../../kit/stream-client.js'
import { history, open, SECRET, token } from '../session/support.js'

const config = {
  client: { token: { hmac_secret_key: SECRET } },
  sse: { enabled: true },
  uni_sse: { enabled: true },
  channel: { without_namespace: { ...open, ...history, force_recovery: true } },
}

const versions = [
  { name: 'eventsource 4', eventsource: EventSource },
  { name: 'eventsource 2.0.2', eventsource: EventSource2 },
]

for (const driver of drivers) {
  t.test(driver, async t => {
    const gateway = await startGateway(t, onDriver(driver, config))

    for (const { name, eventsource } of versions) {
      t.test(name, async t => {
        const client = new Centrifuge(
          [{ transport: 'sse', endpoint: /** @type {any} */ (`${gateway.url}/connection/sse`) }],
          {
            eventsource,
            fetch,
            emulationEndpoint: `${gateway.url}/emulation`,
            token: token({ sub: 'u1' }),
          },
        )
        t.teardown(() => client.disconnect())
        const subscription = client.newSubscription(name.replaceAll(' ', '-'))
        const subscribed = once(/** @type {any} */ (subscription), 'subscribed')
        const published = once(/** @type {any} */ (subscription), 'publication')
        subscription.subscribe()
        client.connect()
        await client.ready()
        await subscribed
        await subscription.publish({ hello: name })
        t.match((await published)[0], { data: { hello: name }, offset: 1, info: { user: 'u1' } })
      })
    }

    t.test('the preamble is a separate chunk, also for one-way clients', async t => {
      const command = JSON.stringify({ id: 1, connect: { token: token({ sub: 'u1' }) } })
      const paths = [
        `/connection/sse?cf_connect=${encodeURIComponent(command)}`,
        `/connection/uni_sse?token=${token({ sub: 'u1' })}`,
      ]
      for (const path of paths) {
        const client = await StreamClient.open(gateway.url, path)
        t.teardown(() => client.request.destroy())
        t.ok((await client.next()).connect)
        t.equal(String(client.chunks[0]), '\r\n')
        t.match(String(client.chunks[1]), /^data: /)
      }
    })
  })
}
