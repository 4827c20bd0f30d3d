// Workers and whole gateways die, and their clients come back elsewhere.

import t from 'tap'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'
import { channels, startNode } from './nodes.js'
import { audit, begin, Listener, Load, SdkListener } from './traffic.js'

needsRedis(t)

const RATE = 500
/** Publications between two kills. */
const BETWEEN = 300

/** @param {import('../../../kit/gateway.js').TestGateway} gateway */
function killAll(gateway) {
  for (const pid of [gateway.process.pid, ...gateway.workerPids]) {
    try {
      process.kill(/** @type {number} */ (pid), 'SIGKILL')
    } catch {
      // A worker that was killed before.
    }
  }
}

const redis = await startRedis(t)
const options = { redis: { presence_ttl: '4s' } }
const [a, b] = await Promise.all([startNode(t, redis.address, options), startNode(t, redis.address, options)])

t.test('workers are killed: their clients have everything from the next ones', async t => {
  const kept = channels('kept:workers', 8)
  const listeners = [a, b].flatMap(({ ws }) => [
    new Listener(() => ws, kept),
    new Listener(() => ws, kept),
    new SdkListener(() => ws, kept),
  ])
  await begin(t, listeners)
  const load = new Load(() => [a.url, b.url], kept, { rate: RATE })
  for (const gateway of [a, b, a]) {
    await load.acked(BETWEEN)
    const [victim] = gateway.workerPids.slice(-2)
    process.kill(victim, 'SIGKILL')
    await until(() => gateway.workerPids.length > gateway.workerPids.indexOf(victim) + 2)
  }
  await load.acked(BETWEEN)
  await load.stop()
  await audit(t, load, listeners, a)
  t.ok(
    listeners.every(({ tracks }) => [...tracks.values()].every(({ unrecovered }) => unrecovered === 0)),
    'nobody was told that something is missing',
  )
})

t.test('a gateway is killed: another one has everything for its clients', async t => {
  const kept = channels('kept:moved', 8)
  let home = a
  const wandering = [
    ...Array.from({ length: 6 }, () => new Listener(() => home.ws, kept)),
    new SdkListener(() => home.ws, kept),
    new SdkListener(() => home.ws, kept),
  ]
  const staying = [new Listener(() => b.ws, kept, { stays: true })]
  // They are on the first gateway and do not come back.
  const lost = [new Listener(() => a.ws, ['kept:present']), new Listener(() => a.ws, ['kept:present'])]
  const present = [new Listener(() => b.ws, ['kept:present'], { stays: true })]
  await begin(t, [...wandering, ...staying, ...lost, ...present])
  const presence = async () => {
    const { result } = await b.api('presence', { channel: 'kept:present' })
    return Object.keys(result.presence).sort()
  }
  t.same(await presence(), [...lost, ...present].map(({ client }) => client).sort())

  let urls = [a.url, b.url]
  const load = new Load(() => urls, kept, { rate: RATE })
  await load.acked(BETWEEN)
  home = b
  urls = [b.url]
  killAll(a)
  await until(async () => (await presence()).length === 1)
  t.same(await presence(), [present[0].client])
  await load.acked(BETWEEN)
  await load.stop()
  await audit(t, load, [...wandering, ...staying], b)
  t.ok(
    wandering.every(({ returns }) => returns > 0),
    'they did have to move',
  )
  t.ok(
    wandering.every(({ tracks }) => [...tracks.values()].every(({ unrecovered }) => unrecovered === 0)),
    'and nobody was told that something is missing',
  )
  await until(async () => (await b.api('info')).result.nodes.length === 1)
})
