// Requests to the clients of two nodes with Redis, and limits that take time or memory.

import t from 'tap'
import { startNode } from '../../channels/broker/redis/nodes.js'
import { drivers, onDriver } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { startRedis, withoutRedis } from '../../kit/servers/redis.js'
import { until } from '../../kit/wait.js'
import { error, open, token, tokenClient } from './support.js'

const acks = { enabled: true }
/** @param {object} [more] of `client.acks` */
const configWith = more => ({
  client: tokenClient({ allow_anonymous_connect_without_token: true, acks: { ...acks, ...more } }),
  websocket: { message_size_limit: 131_072 },
  channel: { without_namespace: open },
})

/** @param {any} t @param {{ws: string}} gateway @param {string} sub */
async function enter(t, gateway, sub) {
  const client = await RawClient.connected(gateway.ws, { token: token({ sub }) })
  t.teardown(() => client.socket.terminate())
  return client
}

/** @param {any} client */
const asked = async client => (await client.push('message')).message.data.$req.id
/** @param {any} client @param {object} data */
const ack = (client, data) => client.call('rpc', { method: '$ack', data })

/** @param {any} node */
async function kill(node) {
  const workers = node.workerPids
  node.process.kill('SIGKILL')
  for (const pid of workers) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has exited with its primary.
    }
  }
  await node.exited
}

t.test('two nodes', { skip: withoutRedis() }, async t => {
  const redis = await startRedis(t)
  const node = () => startNode(t, redis.address, { config: configWith({ max_pending: 1, max_targets: 3 }) })

  t.test('all connections of a user, and all subscribers of a channel', async t => {
    const [a, b] = await Promise.all([node(), node()])
    const clients = await Promise.all([a, a, b].map(gateway => enter(t, gateway, 'u')))
    const result = a.api('request', { user: 'u', timeout_ms: 60_000 })
    for (const [n, client] of clients.entries())
      t.ok((await ack(client, { id: await asked(client), data: n })).rpc)
    const { sent, answered, complete, answers } = (await result).result
    t.match({ sent, answered, complete }, { sent: 3, answered: 3, complete: true })
    for (const [n, { connect }] of clients.entries())
      t.strictSame(answers[connect.client], { user: 'u', data: n })

    for (const client of clients) await client.subscribe('room')
    const published = b.api('publish', { channel: 'room', data: 1, ack: { timeout_ms: 60_000 } })
    for (const client of clients) {
      const { pub } = await client.push('pub')
      t.ok((await ack(client, { id: pub.tags.$ack })).rpc)
    }
    t.match((await published).result, { acks: { sent: 3, answered: 3, complete: true } })

    const one = b.api('request', { client: clients[0].connect.client })
    await ack(clients[0], { id: await asked(clients[0]) })
    t.match((await one).result, { sent: 1, answered: 1 })
    const fourth = await enter(t, b, 'u')
    t.match(
      (await a.api('request', { user: 'u' })).error,
      error(106, 'limit exceeded'),
      'together above the limit',
    )
    fourth.socket.terminate()
    await Promise.all([a.stop(), b.stop()])
  })

  t.test('clients of a killed node are gone', async t => {
    const [a, b] = await Promise.all([node(), node()])
    const [first, second] = await Promise.all([enter(t, a, 'u'), enter(t, b, 'u')])
    const result = b.api('request', { user: 'u', timeout_ms: 60_000 })
    await asked(first)
    await ack(second, { id: await asked(second) })
    await kill(a)
    t.match((await result).result, { sent: 2, answered: 1, gone: 1, complete: true })
    await b.stop()
  })

  t.test('after the end of the caller, workers forget its request 1 s after the timeout', async t => {
    const [a, b] = await Promise.all([node(), node()])
    const client = await enter(t, b, 'u')
    a.api('request', { user: 'u', timeout_ms: 8000 }).catch(() => {})
    const id = await asked(client)
    await kill(a)
    const again = () => b.api('request', { user: 'u', timeout_ms: 1 })
    // Calls fail with error 100 until the lease of the dead node has expired.
    const limited = await until(async () => {
      const { error, result } = await again()
      return (error?.code !== 100 || result) && { error }
    })
    t.comment(limited.error ? 'still registered' : 'already forgotten')
    await until(async () => (await again()).result)
    t.strictSame((await ack(client, { id })).error, error(104, 'not found'))
    await b.stop()
  })

  t.test('answers wait while Redis is unreachable', async t => {
    const [a, b] = await Promise.all([node(), node()])
    const client = await enter(t, b, 'u')
    const result = a.api('request', { user: 'u', timeout_ms: 60_000 })
    const id = await asked(client)
    await redis.kill()
    t.ok((await ack(client, { id, data: 'kept' })).rpc)
    await redis.start()
    const { answers, ...rest } = (await result).result
    t.match(rest, { sent: 1, answered: 1, complete: true })
    t.match(Object.values(answers), [{ data: 'kept' }])
    await Promise.all([a.stop(), b.stop()])
  })
})

t.test('answers above 16 MB are counted, but not returned', async t => {
  const gateway = await startGateway(t, configWith())
  const clients = await Promise.all(Array.from({ length: 300 }, () => enter(t, gateway, 'many')))
  const result = gateway.api('request', { user: 'many', timeout_ms: 60_000 })
  const data = 'x'.repeat(60 * 1024)
  await Promise.all(clients.map(async client => ack(client, { id: await asked(client), data })))
  const { answers, ...rest } = (await result).result
  t.strictSame(rest, { sent: 300, answered: 300, gone: 0, complete: true, truncated: true })
  const { length } = Object.keys(answers)
  t.ok(length > 200 && length * data.length <= 16 * 1024 * 1024, `${length} answers`)
  // The next request has all the room again.
  const next = gateway.api('request', { user: 'many', timeout_ms: 60_000 })
  await Promise.all(clients.map(async client => ack(client, { id: await asked(client), data: 1 })))
  t.match((await next).result, { answered: 300, truncated: false })
})

for (const driver of drivers) {
  t.test(`${driver}: a request may take longer than idle timeouts of sockets`, async t => {
    const gateway = await startGateway(t, onDriver(driver, configWith()))
    const client = await enter(t, gateway, 'slow')
    const result = gateway.api('request', { user: 'slow', timeout_ms: 20_000 })
    await asked(client)
    t.match((await result).result, { sent: 1, answered: 0, complete: false })
  })

  t.test(`${driver}: a client that leaves, and a stop, end requests`, async t => {
    const gateway = await startGateway(t, onDriver(driver, configWith()))
    /** Calls of both workers, which the client has got. @param {any} client */
    const ask = async client => {
      const calls = Array.from({ length: 6 }, () => gateway.api('request', { user: 'u', timeout_ms: 60_000 }))
      for (const _ of calls) await asked(client)
      return calls
    }
    const leaves = await enter(t, gateway, 'u')
    const calls = await ask(leaves)
    leaves.socket.terminate()
    for (const call of calls) t.match((await call).result, { sent: 1, gone: 1, complete: true })
    const last = await ask(await enter(t, gateway, 'u'))
    const stopped = gateway.stop()
    for (const call of last) t.match((await call).result, { sent: 1, gone: 1, complete: true })
    await stopped
  })
}
