// Publications between the answer of the broker and the connect reply, with deltas.

import t from 'tap'
import { Plan } from '../../../src/clients/session/plan.js'
import { startHub } from '../../channels/hub/rig.js'
import { makePublication } from '../protocol/publication.js'
import { DeltaReader } from './reader.js'

const FILL = 'what stays the same from one publication to the next, '.repeat(4)
const text = n => JSON.stringify(`${FILL}${n}`)
const at = offset => (offset > 0 ? { offset, epoch: 'epoch' } : {})

const namespace = {
  options: {
    force_recovery: true,
    allowed_delta_types: ['fossil'],
    map_clients_presence_channel_prefix: '',
    map_users_presence_channel_prefix: '',
    map: { remove_client_on_unsubscribe: false },
  },
  kind: 'stream',
  mapRules: null,
  historyOn: true,
  metaTtl: 1000,
}

for (const [name, meanwhile, kinds] of [
  ['nothing', [], ['full', 'delta', 'delta', 'delta']],
  ['one of the stream', [3], ['full', 'delta', 'full', 'full', 'delta']],
  ['one that is not in history', [0], ['full', 'delta', 'full', 'full', 'delta']],
]) {
  t.test(`after recovery and ${name}, the client has the base of every delta`, async t => {
    const rig = startHub()
    const session = Object.assign(rig.session(), {
      context: {
        hub: rig.hub,
        rules: { mayReadHistory: () => false },
        config: { client: { recovery_max_publication_limit: 300 } },
        traffic: { counts: { recoveries: { recovered: 0, failed: 0 } } },
      },
      addSubscription: subscription => session.joined.set('x', subscription),
    })
    const reader = new DeltaReader()
    const request = { delta: 'fossil', recover: true, offset: 0, epoch: '' }
    const plan = new Plan(
      /** @type {any} */ (session),
      'x',
      /** @type {any} */ (namespace),
      request,
      {},
      true,
    )
    /** @type {any} */
    let prepared
    rig.hub.prepare('x', plan.wants(), (_error, channel, answer) => {
      prepared = { channel, result: plan.result(answer), buffer: plan.buffer(channel) }
    })
    const publications = [1, 2].map(offset =>
      makePublication({ data: Buffer.from(text(offset)), offset, epoch: 'epoch', delta: true }),
    )
    rig.calls[0].done(null, { offset: 2, epoch: 'epoch', recovered: true, publications })
    for (const offset of meanwhile) rig.publish('x', text(offset), at(offset))
    const { channel, result, buffer } = prepared
    rig.hub.unbuffer(channel, buffer)
    const reply = JSON.parse(String(session.codec.subscribe(1, result))).subscribe
    const got = reply.publications.map(publication => reader.read(publication))
    for (const message of buffer.messages) got.push(reader.read(JSON.parse(String(message)).push.pub))
    plan.join(channel)
    const next = Math.max(2, .../** @type {number[]} */ (meanwhile)) + 1
    for (const offset of [next, next + 1]) rig.publish('x', text(offset), at(offset))
    for (const { pub } of session.got) got.push(reader.read(pub))
    t.same(got, [1, 2, ...meanwhile, next, next + 1].map(text))
    t.same(reader.taken(), kinds)
  })
}
