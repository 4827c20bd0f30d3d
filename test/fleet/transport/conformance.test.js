import t from 'tap'
import { TRANSPORTS } from '../../../fleet/settings.js'
import { startGateway } from '../../gateway.js'
import { testTransport } from './conformance.js'

const on = { enabled: true }

/** @param {any} t @param {'uws' | 'node'} driver */
async function testDriver(t, driver) {
  const gateway = await startGateway(t, {
    http_server: { driver },
    client: {
      allow_anonymous_connect_without_token: true,
      ping_interval: '2s',
      pong_timeout: '1900ms',
      queue_max_size: 4_000_000,
    },
    websocket: { message_size_limit: 1_000_000 },
    http_stream: on,
    sse: on,
    poll: on,
    uni_websocket: on,
    uni_http_stream: on,
    uni_sse: on,
    channel: {
      without_namespace: {
        allow_subscribe_for_client: true,
        allow_subscribe_for_anonymous: true,
        allow_publish_for_client: true,
        allow_publish_for_anonymous: true,
        presence: true,
      },
    },
  })
  /** @type {Map<string, any>} */
  const all = new Map()
  await t.test('each of them', { jobs: TRANSPORTS.length }, async t => {
    for (const transport of TRANSPORTS)
      t.test(transport, { buffered: true }, async t =>
        all.set(transport, await testTransport(t, gateway, transport)),
      )
  })

  await t.test('workers that are killed end their connections', async t => {
    const connections = []
    for (const [transport, { subscribed, heard }] of all)
      for (let i = 0; i < 4; i++)
        connections.push({ transport, heard, connection: await subscribed(`kill-${transport}`) })
    for (const pid of gateway.workerPids) process.kill(pid, 'SIGKILL')
    for (const { transport, heard, connection } of connections) {
      const { code, reason } = await heard.end(connection)
      t.equal(code, 0, `${transport}: ${reason}`)
      t.ok(reason)
    }
    for (const { heard } of all.values())
      t.equal(new Set(heard.ends.map(({ connection }) => connection)).size, heard.ends.length, 'each once')
  })
}

// They answer HTTP in different ways: with lengths, and in chunks. Most of the time is waiting for pings, so both wait at once.
t.jobs = 2
for (const driver of /** @type {const} */ (['uws', 'node']))
  t.test(`driver ${driver}`, { buffered: true }, t => testDriver(t, driver))
