import t from 'tap'
import { Publisher } from '../../../src/backends/api/publish.js'
import { textPayload } from '../../../src/clients/protocol/payload.js'

t.test('a publication for some users is neither stored nor republished', t => {
  /** @type {any[]} */
  const published = []
  const namespace = {
    kind: 'stream',
    historyOn: true,
    metaTtl: 1000,
    dataFormat: '',
    targeted: true,
    options: { history_size: 5, history_ttl: 100, delta_publish: false },
    republish: { route: () => 'the route' },
  }
  const pubsub = {
    publish: (/** @type {any} */ _channel, /** @type {any} */ _data, /** @type {any} */ options) =>
      published.push(options),
  }
  const publisher = new Publisher(
    { resolve: () => /** @type {any} */ (namespace) },
    /** @type {any} */ (pubsub),
    /** @type {any} */ ({ counts: { publishes: 0 } }),
  )
  const plain = { skip_history: false, tags: null, idempotency_key: '', delta: false, version: 0n }
  const exclude = { excludeClient: '', excludeUser: 'u1', users: null }
  const users = { excludeClient: '', excludeUser: '', users: ['u1'] }
  for (const target of [null, exclude, users])
    publisher.publish('a', textPayload('1'), { ...plain, target }, () => {})
  t.match(published, [
    { historySize: 5, historyTtl: 100, republish: 'the route', target: null },
    { historySize: 5, historyTtl: 100, republish: 'the route', target: exclude },
    { historySize: 0, historyTtl: 0, republish: null, target: users },
  ])
  t.end()
})
