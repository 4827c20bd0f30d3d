// The conformance suite of republishing for JetStream, and what only JetStream has.

import t from 'tap'
import { startNats, withoutNats } from '../../../kit/servers/nats.js'
import { until } from '../../../kit/wait.js'
import { numbers } from '../../lists.js'
import { conformance } from './conformance.js'
import { republication, startRepublishers } from './rig.js'

conformance(t, 'nats_jetstream')

t.test('NATS JetStream', { skip: withoutNats(), timeout: 120_000 }, async t => {
  const server = await startNats(t)
  await server.with(({ manager }) => manager.streams.add({ name: 's', subjects: ['out.>'] }))
  const nats_jetstream = { url: server.url(), subject: 'out.{channel}', max_in_flight: 50 }
  const { all, figures } = await startRepublishers(t, { type: 'nats_jetstream', nats_jetstream })

  t.test('an invalid subject or one without a stream is refused; others are sent', async t => {
    for (const channel of ['x y', 'x\r\nPUB z 0', '*', 'x..y', 'x.']) all.take(republication(channel, 1))
    all.take(republication('a', 1))
    await until(() => figures().queued === 0)
    t.match(figures(), { refused: 5, confirmed: 1, up: true })
    const lone = await startRepublishers(t, {
      type: 'nats_jetstream',
      nats_jetstream: { ...nats_jetstream, subject: 'nowhere.{channel}' },
    })
    for (const n of numbers(20)) lone.all.take(republication('a', n))
    await until(() => lone.figures().refused === 20)
    t.equal(lone.figures().up, true)
  })
})
