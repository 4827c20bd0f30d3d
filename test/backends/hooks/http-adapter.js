import { json } from './backend.js'
import { decide } from './rig.js'

/** @import { Backend } from './backend.js' */
/** @import { ConformanceBackend } from './rig.js' */

/** @param {any} request */
const callOf = request => ({ ...request, fields: request.json })

/** @param {Backend} backend of the conformance suite @returns {ConformanceBackend} */
export function httpAdapter(backend) {
  backend.answer = async request => {
    const { status, body, never, hold, ...answer } = decide(request.event, request.json)
    if (never) return null
    await hold
    return body === undefined ? json(answer) : { status, body }
  }
  return {
    protocol: 'http',
    without: {},
    proxy: event => ({ endpoint: `${backend.url}/${event}` }),
    get calls() {
      return backend.requests.map(callOf)
    },
    call: async matches => callOf(await backend.request(request => matches(callOf(request)))),
  }
}
