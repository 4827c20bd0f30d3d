// Occupied and vacated events to a gRPC backend.

import t from 'tap'
import { GrpcBackend } from '../../backends/hooks/grpc-backend.js'
import { startGateway } from '../../kit/gateway.js'
import { until } from '../../kit/wait.js'
import { open } from '../session/support.js'
import { enter } from './rig.js'

t.test('NotifyChannelState: a response without a result is no acceptance', async t => {
  const backend = await GrpcBackend.start(t)
  const answers = [{}, { error: { code: 1000, message: 'not now' } }, { code: 14, details: 'down' }]
  backend.answer = () => answers.shift() ?? { result: {} }
  const gateway = await startGateway(t, {
    workers: 1,
    engine: { memory: { channel_state: { vacated_event_delay: '100ms' } } },
    client: { allow_anonymous_connect_without_token: true },
    channel: {
      proxy: { state: { endpoint: backend.url } },
      namespaces: [{ name: 'room', ...open, state_proxy_enabled: true }],
    },
  })
  const from = Date.now()
  const client = await enter(t, gateway, 'room:1')
  await client.close()
  const { fields } = await backend.request(({ fields }) =>
    fields.events.some(({ type }) => type === 'vacated'),
  )
  await until(() => backend.requests.length >= 4, 'three repetitions')
  const vacated = fields.events.find(({ type }) => type === 'vacated')
  t.match(vacated, { channel: 'room:1', type: 'vacated', id: /^\w+-2$/ })
  t.ok(vacated.time_ms >= from && vacated.time_ms <= Date.now())
  const occupied = backend.requests.flatMap(({ fields: { events } }) =>
    events.filter(({ type }) => type === 'occupied'),
  )
  t.ok(occupied.length >= 4, 'repeated')
  t.equal(new Set(occupied.map(event => JSON.stringify(event))).size, 1)
})
