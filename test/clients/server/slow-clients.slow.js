import t from 'tap'
import { skipDriver } from '../../kit/drivers.js'
import { get, RawClient, serve } from './conformance/rig.js'
import { slowClientConformance } from './conformance/slow-clients.js'

t.jobs = 2
for (const driver of /** @type {const} */ (['uws', 'node'])) {
  t.test(driver, { skip: skipDriver(driver) }, async t => slowClientConformance(t, driver))
}

t.test('node: a client that reads none of many small responses is disconnected', async t => {
  let handled = 0
  const { port, server } = await serve(t, 'node', server => {
    server.route('GET', '/small', exchange => {
      handled++
      exchange.reply(200, null, 'x'.repeat(1000))
    })
  })
  const client = await RawClient.connect(t, port)
  client.socket.pause()
  const gone = client.gone()
  client.write(get('/small').repeat(20_000))
  // A paused socket does not see its end, but its data is refused.
  const pump = setInterval(() => client.write(get('/small')), 100)
  t.teardown(() => clearInterval(pump))
  await gone
  t.ok(handled < 20_000, `${handled} responses`)
  t.equal(server.unanswered, 0)
})
