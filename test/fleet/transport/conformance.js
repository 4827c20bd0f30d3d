// The contract of transports for the engine: the same tests over each transport, against a real gateway.

import { TRANSPORTS } from '../../../fleet/settings.js'
import { startGateway } from '../../kit/gateway.js'
import { until } from '../../kit/wait.js'
import { start } from './support.js'

/** Long enough for frames of 64 KiB and more, and for data that arrives in several reads. */
const SIZES = [0, 1, 100, 125, 126, 600, 65_500, 65_536, 200_000]
const MANY = 300

/** @param {number} n @param {number} size */
const payload = (n, size) => ({ n, p: `${'ä'.repeat(Math.floor(size / 2))}${'x'.repeat(size % 2)}` })

const on = { enabled: true }

/** @param {any} t @param {'uws' | 'node'} driver @param {object} [clients] more settings of them */
export const startAll = (t, driver, clients) =>
  startGateway(t, {
    workers: 1,
    http_server: { driver },
    client: { allow_anonymous_connect_without_token: true, queue_max_size: 4_000_000, ...clients },
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

/** @param {string} transport */
const isOneWay = transport => transport.startsWith('uni_')

/** @param {import('../../kit/gateway.js').TestGateway} gateway @param {string} transport */
function client(gateway, transport) {
  const oneWay = isOneWay(transport)
  const { dialer, received } = start({ targets: [gateway.url], transport: /** @type {any} */ (transport) })
  let slot = 0

  /** A connection that is subscribed. @param {string} channel */
  async function subscribed(channel) {
    const connection = dialer.dial(slot++, slot, oneWay ? { subs: { [channel]: {} } } : {})
    // Before the connection is open: commands are sent when it is.
    connection.send(JSON.stringify({ id: 2, subscribe: { channel } }))
    const reply = JSON.parse(await received.message1(connection, text => text.includes('"connect":')))
    if (oneWay ? !reply.connect.subs[channel] : reply.id !== 1) throw new Error(JSON.stringify(reply))
    if (!oneWay) await received.message1(connection, text => text.startsWith('{"id":2,"subscribe":{'))
    return connection
  }
  return { dialer, received, subscribed }
}

/**
 * @param {any} t
 * @param {import('../../kit/gateway.js').TestGateway} gateway
 * @param {string} transport
 */
export async function testTransport(t, gateway, transport) {
  const { dialer, received, subscribed } = client(gateway, transport)

  await t.test('publications arrive complete and in order', async t => {
    const channel = `${transport}-order`
    const connection = await subscribed(channel)
    for (const [n, size] of SIZES.entries()) await gateway.api('publish', { channel, data: payload(n, size) })
    for (let n = 0; n < MANY; n += 100)
      await gateway.api('batch', {
        commands: Array.from({ length: 100 }, (_, i) => ({
          publish: { channel, data: payload(SIZES.length + n + i, 50) },
        })),
      })
    const all = await received.until(() => {
      const found = received.open(connection).published
      return found.length >= SIZES.length + MANY && found
    })
    t.same(
      all.map(({ n }) => n),
      Array.from({ length: SIZES.length + MANY }, (_, n) => n),
    )
    for (const [n, size] of SIZES.entries())
      t.ok(all[n].p === payload(n, size).p, `a message of ${size} bytes is complete`)
    t.ok(dialer.bytes.bytesIn > 300_000 && dialer.bytes.bytesOut > 100, 'bytes are counted')
    connection.close()
    t.match(await received.end(connection), { code: 0, reason: 'closed' })
  })

  if (!isOneWay(transport))
    await t.test('commands arrive once and in order', async t => {
      const channel = `${transport}-commands`
      const connection = await subscribed(channel)
      for (let n = 0; n < MANY; n++)
        connection.send(JSON.stringify({ id: 10 + n, publish: { channel, data: { n } } }))
      const all = await received.until(() => {
        const found = received.open(connection).published
        return found.length >= MANY && found
      })
      t.same(
        all.map(({ n }) => n),
        Array.from({ length: MANY }, (_, n) => n),
      )
      // A publication may overtake the reply to its publisher.
      const ids = await received.until(() => {
        const found = received.of(connection).map(text => JSON.parse(text).id)
        return found.includes(9 + MANY) && found.filter(id => id >= 10)
      })
      t.same(
        ids,
        Array.from({ length: MANY }, (_, n) => 10 + n),
        'and so do the replies',
      )
      connection.close()
      await received.end(connection)
    })

  await t.test('a disconnect has code and reason', async t => {
    const channel = `${transport}-disconnect`
    const connection = await subscribed(channel)
    const { client } = JSON.parse(received.of(connection)[0]).connect
    await gateway.api('disconnect', { user: '', client, disconnect: { code: 4321, reason: 'go "away"' } })
    t.same(await received.end(connection), { code: 4321, reason: 'go "away"' })
  })

  await t.test('reset and close end a connection once, at both ends', async t => {
    const channel = `${transport}-gone`
    const connections = await Promise.all(Array.from({ length: 6 }, () => subscribed(channel)))
    connections.forEach((connection, i) => {
      if (i % 2) connection.close()
      else connection.reset()
      // Repeated calls have no effect.
      connection.reset()
      connection.close()
      connection.send('{}')
    })
    for (const [i, connection] of connections.entries())
      t.match(await received.end(connection), { code: 0, reason: i % 2 ? 'closed' : 'reset' })
    // A long-poll session whose connection was cut ends only after a while.
    const left = transport === 'long_poll' ? 3 : 0
    await until(async () => (await gateway.api('presence_stats', { channel })).result.num_clients <= left)
    t.equal(received.ends.filter(({ connection }) => connections.includes(connection)).length, 6)
  })

  return { dialer, received, subscribed }
}

/**
 * @param {any} t
 * @param {import('../../kit/gateway.js').TestGateway} gateway that pings often
 * @param {string} transport
 */
export async function testPings(t, gateway, transport) {
  const { received, subscribed } = client(gateway, transport)

  await t.test('a connection that answers pings stays open', async t => {
    const connection = await subscribed(`${transport}-pings`)
    await received.until(() => received.open(connection).texts.filter(text => text === '{}').length >= 2)
    t.notOk(
      received.ends.find(each => each.connection === connection),
      'is there after them',
    )
    connection.close()
    await received.end(connection)
  })

  if (!isOneWay(transport))
    await t.test('a connection that sends no pongs is closed with the code of the gateway', async t => {
      received.pong = false
      const connection = await subscribed(`${transport}-silence`)
      t.same(await received.end(connection), { code: 3012, reason: 'no pong' })
      received.pong = true
    })
}

/** @param {any} t @param {'uws' | 'node'} driver @param {readonly string[]} [transports] */
export async function testDriver(t, driver, transports = TRANSPORTS) {
  const gateway = await startAll(t, driver)
  /** @type {Map<string, any>} */
  const all = new Map()
  for (const transport of transports)
    await t.test(transport, async t => {
      all.set(transport, await testTransport(t, gateway, transport))
    })

  await t.test('killed workers end their connections', async t => {
    const connections = []
    for (const [transport, { subscribed, received }] of all)
      for (let i = 0; i < 4; i++)
        connections.push({ transport, received, connection: await subscribed(`kill-${transport}`) })
    for (const pid of gateway.workerPids) process.kill(pid, 'SIGKILL')
    for (const { transport, received, connection } of connections) {
      const { code, reason } = await received.end(connection)
      t.equal(code, 0, `${transport}: ${reason}`)
      t.ok(reason)
    }
    for (const { received } of all.values())
      t.equal(
        new Set(received.ends.map(({ connection }) => connection)).size,
        received.ends.length,
        'each once',
      )
  })
}
