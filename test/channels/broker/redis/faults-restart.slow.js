// Redis is killed and comes back with what it had, again and again, while everybody publishes.

import t from 'tap'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { channels, startNode } from './nodes.js'
import { audit, begin, Listener, Load, SdkListener } from './traffic.js'

needsRedis(t)

const ROUNDS = 10
/** Publications between two kills. */
const BETWEEN = 300

t.test(
  'Redis killed and restarted: clients notice nothing, and get everything that was acknowledged',
  async t => {
    const redis = await startRedis(t, { aof: 'always' })
    const options = { redis: { io_timeout: '5s' }, workers: 1 }
    const [a, b] = await Promise.all([
      startNode(t, redis.address, options),
      startNode(t, redis.address, options),
    ])
    const kept = channels('kept', 10)
    const listeners = [a, b].flatMap(({ ws }) => [
      new Listener(() => ws, kept, { stays: true }),
      new Listener(() => ws, kept.slice(0, 3), { stays: true }),
      new SdkListener(() => ws, kept.slice(2), { stays: true }),
    ])
    await begin(t, listeners)
    const load = new Load(() => [a.url, b.url], kept, { rate: 800 })
    for (let round = 0; round < ROUNDS; round++) {
      await load.acked(BETWEEN)
      await redis.kill()
      await load.lost(20)
      await redis.restart()
    }
    await load.acked(BETWEEN)
    await load.stop()
    await audit(t, load, listeners, a)
    t.equal(load.unanswered, 0)
    t.ok(load.failed > 0, `${load.acks} acknowledged, ${load.failed} failed`)
    for (const { lines } of [a, b]) {
      t.same(
        lines.filter(({ level }) => level > 40),
        [],
        'nothing is said to be wrong, but that Redis is out of reach',
      )
    }
  },
)
