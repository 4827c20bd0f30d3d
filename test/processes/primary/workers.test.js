// Dead workers are replaced.

import { readFileSync } from 'node:fs'
import t from 'tap'
import { makeToken } from '../../clients/auth/jwt.js'
import { drivers } from '../../kit/drivers.js'
import { config, crowd, health, healthy, silence } from '../../kit/fleet.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'

/** @param {import('../../kit/gateway.js').TestGateway} gateway @returns {any[]} its log lines about deaths */
const died = gateway => gateway.lines.filter(({ msg }) => msg === 'worker died')

for (const driver of drivers) {
  t.test(`${driver}: a worker that has listened is always replaced immediately`, async t => {
    const gateway = await startGateway(t, { ...config, http_server: { driver } })
    const clients = await crowd(gateway)
    const before = (await gateway.api('publish', { channel: 'news', data: 1 })).result
    await healthy(gateway)
    let [, victim] = gateway.workerPids
    const codes = new Set()
    let deaths = 0
    // A worker is missing until the next one listens. A stalled test may request too late: retry.
    while (deaths < 3 || !codes.has(503)) {
      process.kill(victim, 'SIGKILL')
      deaths++
      await until(() => died(gateway).length === deaths)
      await until(async () => {
        codes.add(await health(gateway))
        return gateway.workerPids.length >= 2 + deaths
      })
      victim = gateway.workerPids.at(-1)
    }
    const [{ worker }] = died(gateway)
    t.strictSame(
      died(gateway).map(({ level, worker, reason, restart_in_ms }) => [level, worker, reason, restart_in_ms]),
      Array(deaths).fill([50, worker, 'signal SIGKILL', 0]),
    )
    t.ok(codes.has(503), '/health reports a missing worker')
    await healthy(gateway)

    const after = (await gateway.api('publish', { channel: 'news', data: 2 })).result
    t.strictSame(after, { offset: 2, epoch: before.epoch }, 'no history is lost')
    const survivors = clients.filter(({ ended }) => !ended)
    t.ok(
      survivors.length > 0 && survivors.length < clients.length,
      `${survivors.length} clients are not affected`,
    )
    await Promise.all(survivors.map(client => client.subscribe('news')))
    await gateway.api('publish', { channel: 'news', data: 3 })
    for (const client of survivors) t.equal((await client.push('pub')).pub.offset, 3)
    const back = await crowd(gateway)
    await Promise.all(back.map(client => client.subscribe('news', { recover: true, ...before })))
    await gateway.api('publish', { channel: 'news', data: 4 })
    for (const client of back) t.equal((await client.push('pub')).pub.offset, 4)
  })
}

t.test('the delay grows with failed starts, without affecting other workers', async t => {
  const gateway = await startGateway(t, config)
  const clients = await crowd(gateway)
  const primary = gateway.process.pid
  const starting = () =>
    readFileSync(`/proc/${primary}/task/${primary}/children`, 'latin1')
      .trim()
      .split(' ')
      .map(Number)
      .find(pid => !gateway.workerPids.includes(pid))
  let victim = gateway.workerPids[1]
  // A worker that had listened resets the delay.
  for (let deaths = 1; died(gateway).at(-1)?.failed_starts !== 3; deaths++) {
    const listening = gateway.workerPids.length
    process.kill(victim, 'SIGKILL')
    await until(() => died(gateway).length === deaths)
    victim = await until(() => starting() ?? gateway.workerPids[listening])
  }
  t.strictSame(
    died(gateway)
      .slice(-4)
      .map(({ failed_starts, restart_in_ms }) => [failed_starts, restart_in_ms]),
    [0, 100, 200, 400].map((delay, failed) => [failed, delay]),
  )
  await healthy(gateway)
  t.ok(clients.some(({ ended }) => !ended))
})

t.test('connections of a user are counted across all live workers', async t => {
  const gateway = await startGateway(t, {
    ...config,
    client: { token: { hmac_secret_key: 'secret' }, user_connection_limit: 20 },
  })
  const token = makeToken({ sub: 'u' }, 'secret')
  const clients = await Promise.all(
    Array.from({ length: 20 }, () => RawClient.connected(gateway.ws, { token })),
  )
  const one = await RawClient.open(gateway.ws)
  one.send({ id: 1, connect: { token } })
  t.strictSame(await one.closed, { code: 3504, reason: 'connection limit' })
  process.kill(gateway.workerPids[0], 'SIGKILL')
  const hit = await Promise.all(
    clients.map(client =>
      client.call('rpc', { method: 'x' }).then(
        () => false,
        () => true,
      ),
    ),
  )
  const gone = hit.filter(Boolean).length
  t.ok(gone > 0)
  const connects = async () => {
    const client = await until(() => RawClient.open(gateway.ws).catch(() => null))
    client.send({ id: 1, connect: { token } })
    const reply = await client.next().catch(() => null)
    return reply ? 'connected' : (await client.closed).code
  }
  // Clients may notice the exit before the primary does.
  for (let back = 0; back < gone; ) if ((await connects()) === 'connected') back++
  t.equal(await until(async () => [await connects()].find(code => code !== 1006)), 3504)
})

t.test('workers exit with their primary', async t => {
  const gateway = await startGateway(t, config)
  const clients = await crowd(gateway, 4)
  gateway.process.kill('SIGKILL')
  t.equal((await Promise.all(clients.map(({ closed }) => closed))).length, 4)
  await silence(gateway.port)
})
