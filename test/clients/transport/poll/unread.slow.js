// Long-poll clients request much and acknowledge nothing, from workers with a small heap.

import t from 'tap'
import { skipDriver } from '../../../kit/drivers.js'
import { startGateway } from '../../../kit/gateway.js'
import { memory } from '../../../kit/memory.js'
import { PollClient } from '../../../kit/poll-client.js'
import { history, open } from '../../session/support.js'

const SESSIONS = 30
const WORKERS = 2
const MB = 1024 * 1024

/** Bytes of each session's reply, by channel. */
const sizes = new Map([
  ['kept:huge', 6 * MB],
  ['kept:large', 0.8 * MB],
])

/** @param {number} count @param {(index: number) => Promise<void>} work */
async function inParallel(count, work) {
  let next = 0
  const run = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: 3 }, run))
}

for (const driver of /** @type {const} */ (['uws', 'node'])) {
  t.test(
    `${driver}: ${SESSIONS} sessions with large replies without an acknowledgement`,
    { skip: skipDriver(driver) },
    async t => {
      const gateway = await startGateway(
        t,
        {
          workers: WORKERS,
          http_server: { driver },
          poll: { enabled: true, session_timeout: '5m', replies_max_size: 8 * MB },
          client: { allow_anonymous_connect_without_token: true },
          channel: {
            namespaces: [{ name: 'kept', ...open, ...history, history_size: 300, force_recovery: true }],
          },
        },
        { env: { NODE_OPTIONS: '--max-old-space-size=80' } },
      )
      const { workerPids } = gateway
      const before = workerPids.map(memory)
      const epochs = new Map()
      for (const [channel, size] of sizes) {
        const { result } = await gateway.api('publish', { channel, data: 'x'.repeat(size) })
        epochs.set(channel, result.epoch)
      }
      for (const [channel, epoch] of epochs) {
        const connect = { id: 1, connect: {} }
        const subscribe = { id: 2, subscribe: { channel, recover: true, offset: 0, epoch } }
        /** @type {PollClient[]} */
        const clients = []
        await inParallel(SESSIONS, async () => {
          const client = await PollClient.open(gateway)
          clients.push(client)
          await client.send(connect, subscribe)
          // Nothing acknowledges the reply after its arrival; the session may have ended instead.
          await client
            .next(({ id }) => id === 2)
            .catch(({ message }) => t.equal(message, 'closed with 3008 slow'))
        })
        let ended = 0
        await inParallel(SESSIONS, async index => {
          const { headers } = await clients[index].post('ack=0&timeout=0')
          if (headers['halley-close'] === '3008 slow') ended++
        })
        if (channel === 'kept:huge') t.equal(ended, SESSIONS, 'each is longer than a queue may be')
        else t.ok(ended > 0 && ended < SESSIONS, `${ended} of ${SESSIONS} have made room for others`)
      }
      t.same(gateway.workerPids, workerPids, 'no worker has exited')
      const grown = workerPids.map((pid, index) => memory(pid) - before[index])
      t.ok(Math.max(...grown) < 200, `workers have grown by ${grown.map(Math.round).join(' and ')} MB`)
      const back = await PollClient.connected(gateway)
      const reply = await back.call('subscribe', {
        channel: 'kept:large',
        recover: true,
        offset: 0,
        epoch: epochs.get('kept:large'),
      })
      t.equal(reply.subscribe.publications.length, 1, 'a client that reads recovers')
    },
  )
}
