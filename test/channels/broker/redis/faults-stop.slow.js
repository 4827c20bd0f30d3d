// Redis stands still, and goes on.

import t from 'tap'
import { memory } from '../../../kit/memory.js'
import { RawClient } from '../../../kit/raw-client.js'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { pause, until } from '../../../kit/wait.js'
import { channels, namespaces, open, startNode } from './nodes.js'
import { audit, begin, Listener, Load, SdkListener } from './traffic.js'

needsRedis(t)

const IO_TIMEOUT = 2500
const options = { redis: { io_timeout: `${IO_TIMEOUT}ms` } }

t.test(
  'Redis stands still for a while: clients notice nothing, and get everything that was acknowledged',
  async t => {
    const redis = await startRedis(t)
    const [a, b] = await Promise.all([
      startNode(t, redis.address, { ...options, workers: 1 }),
      startNode(t, redis.address, { ...options, workers: 1 }),
    ])
    const kept = channels('kept', 6)
    const listeners = [a, b].flatMap(({ ws }) => [
      new Listener(() => ws, kept, { stays: true }),
      new SdkListener(() => ws, kept, { stays: true }),
    ])
    await begin(t, listeners)
    const load = new Load(() => [a.url, b.url], kept)

    await load.acked(200)
    redis.stop()
    await pause(IO_TIMEOUT / 10)
    redis.cont()
    await load.acked(200)
    t.equal(load.failed, 0, 'shorter than io_timeout: nothing fails')

    for (let round = 0; round < 2; round++) {
      redis.stop()
      await load.lost(100)
      redis.cont()
      await load.acked(200)
    }
    t.ok(load.failed > 0, 'longer: publications fail')
    await load.stop()
    t.equal(load.unanswered, 0)
    await audit(t, load, listeners, a)
  },
)

t.test(
  'Redis stands still while clients go on publishing: each publication is answered, and memory has a bound',
  async t => {
    const redis = await startRedis(t)
    const gateway = await startNode(t, redis.address, {
      ...options,
      config: {
        channel: {
          namespaces: [
            ...namespaces,
            { name: 'out', ...open, allow_publish_for_client: true, allow_publish_for_anonymous: true },
          ],
        },
      },
    })
    const clients = await Promise.all(Array.from({ length: 8 }, () => RawClient.connected(gateway.ws)))
    const data = { x: 'x'.repeat(1000) }
    let answered = 0
    const codes = new Set()
    /** Commands of each client without an answer: a client with more than 1 MB of them is closed (3013). */
    const unanswered = clients.map(() => 0)
    for (const [i, { socket }] of clients.entries()) {
      socket.on('message', text => {
        for (const line of text.toString().split('\n')) {
          const { id, error } = JSON.parse(line)
          if (!id) continue
          answered++
          unanswered[i]--
          codes.add(error?.code ?? 0)
        }
      })
    }
    const before = gateway.workerPids.map(memory)
    const ended = Promise.race(clients.map(({ closed }) => closed)).then(({ code }) => {
      throw new Error(`closed with ${code}`)
    })
    ended.catch(() => {})
    let sent = 0
    redis.stop()
    const end = performance.now() + 2 * IO_TIMEOUT
    // On a busy machine the first of them may get there late, and fail late.
    while (performance.now() < end || !codes.has(100)) {
      for (const [i, client] of clients.entries()) {
        if (unanswered[i] > 500) continue
        unanswered[i] += 20
        const commands = Array.from({ length: 20 }, () => ({
          id: ++sent + 10,
          publish: { channel: `out:${i}`, data },
        }))
        client.send(...commands)
      }
      await pause(10)
    }
    const grown = gateway.workerPids.map((pid, i) => memory(pid) - before[i])
    redis.cont()
    await Promise.race([until(() => answered >= sent), ended])
    t.same(
      [...codes].filter(code => code !== 0 && code !== 100),
      [],
    )
    t.ok(codes.has(100))
    t.ok(
      grown.every(mb => mb < 150),
      `${sent} publications of 1 KB, workers grew by ${grown.map(mb => mb.toFixed()).join(' and ')} MB`,
    )
  },
)
