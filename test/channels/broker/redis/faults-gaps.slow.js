// A worker loses Redis, and others go on: what it has missed is in history, or not.

import t from 'tap'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { TcpProxy } from '../../../kit/tcp-proxy.js'
import { until } from '../../../kit/wait.js'
import { startNode } from './nodes.js'
import { begin, Listener, SdkListener } from './traffic.js'

needsRedis(t)

/**
 * @param {string} channel
 * @param {number} from
 * @param {number} to
 */
async function publish(channel, from, to) {
  for (let n = from; n <= to; n++) {
    const { error } = await a.api('publish', { channel, data: { id: `n${n}` } })
    if (error) throw new Error(error.message)
  }
}

const redis = await startRedis(t)
const proxy = await TcpProxy.start(t, redis.port)
const [a, b] = await Promise.all([
  startNode(t, redis.address),
  startNode(t, `redis://127.0.0.1:${proxy.port}`, { redis: { client_name: 'cut' } }),
])

/**
 * @param {any} t
 * @param {string} name of the channels
 * @param {() => void | Promise<void>} cut
 */
async function testGap(t, name, cut) {
  const [much, idle, little, short] = ['kept:much', 'kept:idle', 'short:little', 'short:much'].map(
    channel => `${channel}:${name}`,
  )
  const quiet = [much, idle, little, `short:idle:${name}`, `live:much:${name}`]
  const staying = [
    new Listener(() => b.ws, quiet, { stays: true }),
    new SdkListener(() => b.ws, quiet, { stays: true }),
  ]
  const raw = Array.from({ length: 4 }, () => new Listener(() => b.ws, [short, much]))
  const sdk = new SdkListener(() => b.ws, [short, much])
  const everybody = [...staying, ...raw, sdk]
  await begin(t, everybody)
  const kept = [much, little, short]
  for (const channel of kept) await publish(channel, 1, 5)
  const reach = async (/** @type {string} */ channel) => {
    const { result } = await a.api('history', { channel, limit: 0 })
    for (const { tracks } of everybody) await tracks.get(channel)?.reaches(result)
  }
  for (const channel of kept) await reach(channel)

  const lines = b.lines.length
  proxy.refuses = true
  await cut()
  // Both workers say so.
  await until(() => b.lines.slice(lines).filter(({ msg }) => msg === 'redis is out of reach').length === 2)
  for (const channel of [much, short, `live:much:${name}`]) await publish(channel, 6, 50)
  await publish(little, 6, 12)
  proxy.refuses = false
  await until(() => [...raw, sdk].every(({ tracks }) => tracks.get(short)?.unrecovered === 1))
  // Each worker comes back at its own time: none may miss more of `little` than its history holds.
  for (const channel of kept) await reach(channel)
  for (const channel of kept) await publish(channel, 51, 60)
  for (const channel of kept) await reach(channel)

  for (const { faults } of everybody) t.same(faults, [])
  for (const { unsubscribed, closed } of raw) {
    t.same(closed, [], 'the connection stays')
    t.same(unsubscribed, [{ channel: short, code: 2500 }])
  }
  for (const { tracks } of everybody) {
    const track = tracks.get(much)
    t.equal(track?.got.size, 60)
    t.equal(track?.unrecovered, 0)
  }
}

t.test(
  'a gateway is cut off for longer than history reaches back: clients of exactly those channels are told',
  async t => {
    await testGap(t, 'cut', () => proxy.cut())
  },
)

t.test('Redis drops the connections of a gateway: the same', async t => {
  await testGap(t, 'dropped', async () => {
    const list = await redis.call('CLIENT', 'LIST')
    const ids = list.match(/^id=\d+(?=.* name=cut )/gm)
    t.ok(ids.length > 0)
    for (const id of ids) await redis.call('CLIENT', 'KILL', 'ID', id.slice('id='.length))
  })
})
