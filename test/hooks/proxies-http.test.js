import t from 'tap'
import { Backend, json } from './backend.js'
import { conformance } from './conformance.js'
import { decide } from './rig.js'

const backend = await Backend.start(t)
backend.answer = async request => {
  const { status, body, never, hold, ...answer } = decide(request.event, request.json)
  if (never) return null
  await hold
  return body === undefined ? json(answer) : { status, body }
}

/** @param {any} request */
const callOf = request => ({ ...request, fields: request.json })

await conformance(t, {
  protocol: 'http',
  notices: true,
  statuses: true,
  proxy: event => ({ endpoint: `${backend.url}/${event}` }),
  get calls() {
    return backend.requests.map(callOf)
  },
  call: async matches => callOf(await backend.request(request => matches(callOf(request)))),
})
