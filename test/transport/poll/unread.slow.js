// Long-poll clients ask for much and acknowledge nothing, at workers with a small heap.

import t from 'tap'
import { startGateway } from '../../gateway.js'
import { memory } from '../../memory.js'
import { PollClient } from '../../poll-client.js'
import { history, open } from '../../session/support.js'
import { post } from '../../stream-client.js'

const SESSIONS = 300
const WORKERS = 2
const MB = 1024 * 1024

/** @param {number} count @param {(index: number) => Promise<void>} work */
async function inParallel(count, work) {
  let next = 0
  const run = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: 20 }, run))
}

for (const driver of /** @type {const} */ (['uws', 'node'])) {
  t.test(`${driver}: 300 sessions with large replies that nobody acknowledges`, async t => {
    const gateway = await startGateway(
      t,
      {
        workers: WORKERS,
        http_server: { driver },
        rpc: { ping: { enabled: true } },
        poll: { enabled: true, replies_max_size: 32 * MB },
        client: { allow_anonymous_connect_without_token: true },
        channel: {
          namespaces: [{ name: 'kept', ...open, ...history, history_size: 300, force_recovery: true }],
        },
      },
      { env: { NODE_OPTIONS: '--max-old-space-size=400' } },
    )
    const { workerPids } = gateway
    const before = workerPids.map(memory)
    const data = 'x'.repeat(20_000)
    const epochs = new Map()
    for (const [channel, count] of /** @type {const} */ ([
      ['kept:huge', 300],
      ['kept:large', 40],
    ])) {
      for (let i = 0; i < count; i += 20) {
        const commands = Array.from({ length: 20 }, () => ({ publish: { channel, data } }))
        const { replies } = await gateway.api('batch', { commands })
        epochs.set(channel, replies[0].publish.result.epoch)
      }
    }
    const healthy = await PollClient.connected(gateway)
    /** @type {PollClient[]} */
    const silent = []
    for (const [channel, epoch] of epochs) {
      await inParallel(SESSIONS, async () => {
        const client = await PollClient.open(gateway)
        const commands = [
          { id: 1, connect: {} },
          { id: 2, subscribe: { channel, recover: true, offset: 0, epoch } },
        ]
        silent.push(client)
        await client.send(...commands)
      })
      t.match(await healthy.call('rpc', { method: 'ping' }), { rpc: {} }, 'another client is served')
    }
    // Each is asked again without an acknowledgement, over and over.
    const ended = new Set()
    for (let round = 0; round < 4; round++) {
      await inParallel(silent.length, async index => {
        const { headers, status } = await silent[index].post('ack=0&timeout=0')
        if (headers['halley-close'] === '3008 slow') ended.add(index)
        else t.equal(status, 200)
      })
    }
    t.ok(ended.size > SESSIONS / 2, `${ended.size} sessions have ended with 3008`)
    t.same(gateway.workerPids, workerPids, 'no worker has died')
    const grown = workerPids.map((pid, index) => memory(pid) - before[index])
    t.comment(`${driver}: workers have grown by ${grown.map(Math.round).join(' and ')} MB`)
    t.ok(Math.max(...grown) < 400, `MB: ${grown}`)
    t.match(await healthy.call('rpc', { method: 'ping' }), { rpc: {} })
    const back = await PollClient.connected(gateway)
    const reply = await back.call('subscribe', {
      channel: 'kept:large',
      recover: true,
      offset: 0,
      epoch: epochs.get('kept:large'),
    })
    t.equal(reply.subscribe.publications.length, 40, 'a client that reads recovers')
    t.equal((await post(`${gateway.url}/connection/poll`, '', {})).status, 200)
  })
}
