// Redis is stopped and continues.

import t from 'tap'
import { memory } from '../../../kit/memory.js'
import { RawClient } from '../../../kit/raw-client.js'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { pause, until } from '../../../kit/wait.js'
import { namespaces, open, startNode } from './nodes.js'

needsRedis(t)

const IO_TIMEOUT = 2500
const options = { redis: { io_timeout: `${IO_TIMEOUT}ms` } }

t.test('publications to a stopped Redis are answered within a memory limit', async t => {
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
  /** Pending commands of each client: a client with more than 1 MB of them is closed (3013). */
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
  // On a busy machine the first of them may arrive and fail late.
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
  const others = [...codes].filter(code => code !== 0 && code !== 100)
  t.same(others, [])
  t.ok(codes.has(100))
  t.ok(
    grown.every(mb => mb < 150),
    `${sent} publications of 1 KB, workers grew by ${grown.map(mb => mb.toFixed()).join(' and ')} MB`,
  )
})
