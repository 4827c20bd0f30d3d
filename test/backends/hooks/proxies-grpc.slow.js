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
    'headers keep their bytes': 'metadata has ASCII only',
    'statuses and bodies': 'those of HTTP',
  },
  proxy: () => ({ endpoint: backend.url }),
  get calls() {
    return backend.requests
  },
  call: matches => backend.request(matches),
})
