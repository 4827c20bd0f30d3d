// Memory limits of the embedded broker that clients can reach.

import t from 'tap'
import { config, kept, open } from './kit/fleet.js'
import { startGateway } from './kit/gateway.js'
import { RawClient } from './kit/raw-client.js'

const KB = 1024
/** Commands in one frame. */
const BATCH = 200

t.test('reading many channels as an anonymous client evicts no history', async t => {
  const gateway = await startGateway(t, {
    ...config,
    channel: { without_namespace: { ...open, ...kept, history_ttl: '600s' } },
    engine: { type: 'memory', memory: { max_bytes: 128 * KB } },
  })
  const client = await RawClient.connected(gateway.ws)
  const { subscribe } = await client.subscribe('own')
  const publish = async () =>
    (await gateway.api('publish', { channel: 'test', data: 'x'.repeat(100) })).result
  const results = await Promise.all(Array.from({ length: 100 }, publish))
  const last = results.find(({ offset }) => offset === 100)
  // More channels than the limit can hold.
  for (let from = 0; from < 1000; from += BATCH) {
    const commands = []
    for (let i = from; i < from + BATCH; i++) {
      commands.push(
        { id: ++client.lastId, subscribe: { channel: `name${i}`, recover: true, offset: 0, epoch: '' } },
        { id: ++client.lastId, unsubscribe: { channel: `name${i}` } },
      )
    }
    client.send(...commands)
    const [{ error }] = await Promise.all(commands.map(({ id }) => client.next(message => message.id === id)))
    t.notOk(error)
  }
  const { result } = await gateway.api('history', { channel: 'test', limit: 100 })
  t.equal(result.publications.length, 100)
  t.match(result, last)
  t.notOk(gateway.lines.some(({ msg }) => /max_bytes/.test(msg)))

  await gateway.api('publish', { channel: 'own', data: 1 })
  t.match(await client.push('pub'), { channel: 'own', pub: { offset: 1 } })
  const other = await RawClient.connected(gateway.ws)
  const again = await other.subscribe('own', { recover: true, offset: 0, epoch: subscribe.epoch })
  t.match(again.subscribe, { recovered: true, publications: [{ offset: 1 }] })
})
