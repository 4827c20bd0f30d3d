// `connections` and calls with filters over two nodes, with thousands of connections, and through faults.

import t from 'tap'
import { error, open, roundTrip, tokenClient, user } from '../../clients/session/support.js'
import { startGateway } from '../../kit/gateway.js'
import { needsRedis, startRedis } from '../../kit/servers/redis.js'
import { TcpProxy } from '../../kit/tcp-proxy.js'
import { until } from '../../kit/wait.js'

const idOf = client => client.connect.client
const sorted = (...clients) => clients.map(idOf).sort()
const eq = (key, val) => ({ key, cmp: 'eq', val })
const FORCED = { code: 3503, reason: 'force disconnect' }

t.test('two nodes', async t => {
  needsRedis(t)
  const redis = await startRedis(t)
  const proxy = await TcpProxy.start(t, redis.port)
  const start = address =>
    startGateway(t, {
      engine: { type: 'redis', redis: { address } },
      client: tokenClient(),
      channel: { without_namespace: open },
    })
  const [a, b] = await Promise.all([start(redis.address), start(`redis://127.0.0.1:${proxy.port}`)])
  const labels = tier => ({ labels: { tier } })

  t.test('list the connections of both, once each', async t => {
    const clients = await Promise.all([a, b, a, b].map(node => user(t, node, { sub: '42' })))
    await user(t, b, { sub: '43' })
    for (const node of [a, b]) {
      const { result } = await node.api('connections', { user: '42' })
      t.strictSame(Object.keys(result.connections), sorted(...clients))
      t.match(result, { total: 4, truncated: false })
    }
  })

  t.test('a filter selects on both', async t => {
    const matching = await Promise.all(
      [a, b].map((node, n) => user(t, node, { sub: `m${n}`, ...labels('pro') })),
    )
    const others = await Promise.all([a, b].map(node => user(t, node, { sub: 'm0', ...labels('free') })))
    const call = { all_users: true, label_filter: eq('tier', 'pro') }
    t.strictSame(await a.api('disconnect', call), { result: {} })
    for (const client of matching) t.strictSame(await client.closed, FORCED)
    for (const client of others) await roundTrip(client)
  })

  t.test('a node without Redis executes the call later, as it was given', async t => {
    const pro = await user(t, b, { sub: 'late', ...labels('pro') })
    const free = await user(t, b, { sub: 'late', ...labels('free') })
    proxy.refuses = true
    proxy.cut()
    // Whether or not the node counts as dead before the timeout.
    await a.api('disconnect', { all_users: true, label_filter: eq('tier', 'pro') })
    t.notOk(pro.ended)
    proxy.refuses = false
    t.strictSame(await pro.closed, FORCED)
    await roundTrip(free)
  })
})

t.test('thousands of connections', async t => {
  const gateway = await startGateway(t, { client: tokenClient(), channel: { without_namespace: open } })
  const list = async params => (await gateway.api('connections', params)).result
  const ids = []
  for (let n = 0; n < 50; n++) {
    const some = await Promise.all(Array.from({ length: 100 }, () => user(t, gateway, { sub: 'many' })))
    ids.push(...some.map(idOf))
  }
  ids.sort()

  t.test('the default limit lists the first thousand', async t => {
    for (let n = 0; n < 2; n++) {
      const { connections, total, truncated } = await list({ user: 'many' })
      t.strictSame(Object.keys(connections), ids.slice(0, 1000))
      t.strictSame([total, truncated], [5000, true])
    }
    const whole = await list({ where: eq('user', 'many'), limit: 10_000 })
    t.strictSame(Object.keys(whole.connections), ids)
    t.strictSame([whole.total, whole.truncated], [5000, false])
  })

  t.test('a result has at most 16 MiB', async t => {
    const meta = 'x'.repeat(40_000)
    for (let n = 0; n < 21; n++)
      await Promise.all(Array.from({ length: 20 }, () => user(t, gateway, { sub: 'large', meta })))
    const call = { user: 'large', limit: 1000 }
    t.strictSame(await gateway.api('connections', call), { error: error(106, 'limit exceeded') })
    const { connections, total } = await list({ ...call, limit: 400 })
    t.strictSame([Object.keys(connections).length, total], [400, 420])
  })

  t.test('a worker that does not answer fails the call', async t => {
    let codes = []
    // On a busy machine, the stopped worker may be replaced before a survey ends.
    for (let tries = 0; tries < 5 && !codes.includes(100); tries++) {
      const pids = gateway.workerPids
      const pid = /** @type {number} */ (pids.at(-1))
      process.kill(pid, 'SIGSTOP')
      // Some reach the other worker.
      const calls = Array.from({ length: 10 }, () => gateway.api('connections', { user: 'many' }))
      const answers = await Promise.allSettled(calls)
      codes = answers.map(answer => (answer.status === 'fulfilled' ? answer.value.error?.code : undefined))
      await until(() => gateway.workerPids.length > pids.length, 'another worker')
    }
    t.ok(codes.includes(100), String(codes))
  })
})
