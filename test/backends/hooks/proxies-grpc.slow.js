import t from 'tap'
import { conformance } from './conformance.js'
import { GrpcBackend } from './grpc-backend.js'
import { decide } from './rig.js'

const backend = await GrpcBackend.start(t)
backend.answer = async ({ event, fields }) => {
  const { never, hold, ...answer } = decide(event, fields)
  if (never) return null
  await hold
  return answer
}

await conformance(t, {
  protocol: 'grpc',
  without: {
    'headers are forwarded byte for byte': 'metadata has ASCII only',
    'shared_poll_refresh: invalid answers': 'Protobuf has no other versions',
    'cache_empty: error': 'the message has no error',
  },
  proxy: () => ({ endpoint: backend.url }),
  get calls() {
    return backend.requests
  },
  call: matches => backend.request(matches),
})
