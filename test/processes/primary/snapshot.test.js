// engine.memory.snapshot_file: state kept over a restart.

import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { Centrifuge } from 'centrifuge'
import t from 'tap'
import WebSocket from 'ws'
import { silence } from '../../kit/fleet.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'
import { publish, runs } from './snapshot-rig.js'

/** The history size: a client that missed all of them recovers. */
const MOST = 90

t.test('a restart loses nothing: clients recover, and a repeated publish gets the same result', async t => {
  const { start, file, folder } = await runs(t)
  const first = await start()
  t.match(await first.line(({ msg }) => /^no snapshot/.test(msg)), { level: 30, file })

  const got = []
  const contexts = []
  const sdk = new Centrifuge(first.ws, {
    websocket: WebSocket,
    minReconnectDelay: 20,
    maxReconnectDelay: 100,
  })
  t.teardown(() => sdk.disconnect())
  const subscription = sdk.newSubscription('news')
  subscription.on('publication', ({ data, offset }) => got.push([data, offset]))
  subscription.on('subscribed', context => contexts.push(context))
  const subscribed = once(/** @type {any} */ (subscription), 'subscribed')
  subscription.subscribe()
  sdk.connect()
  await subscribed
  // It disconnects before the shutdown and reconnects after the restart.
  const away = await RawClient.connected(first.ws)
  const { subscribe: position } = await away.subscribe('news')
  const { subscribe: quiet } = await away.subscribe('quiet')
  await away.close()
  const offsets = []
  for (const data of ['one', 'two']) offsets.push((await publish(first, data)).offset)
  const keyed = await publish(first, 'three', { idempotency_key: 'key' })
  t.strictSame([...offsets, keyed.offset], [1, 2, 3])

  // Publishers continue until they are refused; all accepted publications count.
  const accepted = [keyed]
  const publisher = (async () => {
    while (accepted.length < MOST) {
      try {
        const result = await publish(first, `more ${accepted.length}`)
        if (result) accepted.push(result)
      } catch {
        return
      }
    }
  })()
  first.process.kill('SIGTERM')
  t.strictSame(await first.exited, { code: 0, signal: null })
  await publisher
  await t.rejects(publish(first, 'refused'), 'no publication is accepted meanwhile')
  const written = await first.line(({ msg }) => msg === 'snapshot written')
  t.match(written, { file, streams: 1, results: 1 })
  // The last response may have been cut off.
  const top = written.publications
  const last = accepted.at(-1).offset
  t.ok(top === last || top === last + 1, `${top} of ${last}`)

  const second = await start()
  t.match(await second.line(({ msg }) => msg === 'snapshot restored'), { streams: 1, results: 1 })
  await until(() => contexts.length >= 2)
  t.match(contexts[1], { wasRecovering: true, recovered: true })
  const after = await publish(second, 'after')
  t.strictSame(after, { offset: top + 1, epoch: keyed.epoch })
  await until(() => got.at(-1)?.[0] === 'after')
  t.strictSame(
    got.map(([, offset]) => offset),
    Array.from({ length: top + 1 }, (_, i) => i + 1),
    'each exactly once and in order',
  )
  t.strictSame(await publish(second, 'three', { idempotency_key: 'key' }), keyed)

  const back = await RawClient.connected(second.ws)
  const again = await back.subscribe('news', {
    recover: true,
    offset: position.offset,
    epoch: position.epoch,
  })
  t.match(again.subscribe, { recovered: true, epoch: keyed.epoch })
  t.equal(again.subscribe.publications.length, top + 1)
  t.match((await back.subscribe('quiet', { recover: true, offset: 0, epoch: quiet.epoch })).subscribe, {
    recovered: true,
    epoch: quiet.epoch,
  })

  // A crash: the old snapshot must not be restored. The client may have reconnected before the first gateway exited.
  const before = contexts.length
  second.process.kill('SIGKILL')
  await second.exited
  await silence(second.port)
  const third = await start()
  t.match(await third.line(({ msg }) => /^no snapshot/.test(msg)), {
    level: 40,
    reason: /last run did not exit cleanly/,
    msg: /start a new epoch/,
  })
  await until(() => contexts.length !== before)
  t.match(contexts[before], { wasRecovering: true, recovered: false })
  t.not((await publish(third, 'anew')).epoch, keyed.epoch)
  t.strictSame(await readdir(folder), ['snapshot'])
})
