import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { testdir } from '../../kit/folders.js'
import { json } from './backend.js'
import { decide } from './rig.js'

/** @import { Backend } from './backend.js' */
/** @import { ConformanceBackend } from './rig.js' */

const callOf = request => ({ ...request, fields: request.json })

/** @param {Backend} backend of the conformance suite @returns {ConformanceBackend} */
export function httpAdapter(backend) {
  backend.answer = async request => {
    const { never, hold, ...answer } = decide(request.event, request.json)
    if (never) return null
    await hold
    return json(answer)
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

const HOOKS = fileURLToPath(new URL('conformance-module.js', import.meta.url))
const WIRE = 'a module answers with values, not with a message'
const ONE_LIMIT = 'hooks.timeout is the same for all handlers: module.test.js has it'

/** Rows of the table that are not of a module. */
const without = Object.freeze({
  'connect: base64 fields, duplicate channels': WIRE,
  'connect: disconnects win over errors and results': 'a handler throws one thing or returns',
  'connect: invalid close codes, missing and long reasons': 'disconnect() refuses them at its call',
  'connect: no call for a client with a token': 'a module is: module.test.js has it',
  'subscribe: base64 data': WIRE,
  'subscribe: the reply contains the ttl': 'subRefresh of a module is for all subscriptions',
  'subscribe: the flags of the client have no effect': 'with a module they have',
  'subscribe: timeout': ONE_LIMIT,
  'publish: base64 data': WIRE,
  'publish: timeout': ONE_LIMIT,
  'map_publish: base64 data': WIRE,
  'rpc: timeout': ONE_LIMIT,
  'rpc: namespaces of methods': 'they are options of proxies',
  'refresh: invalid base64': WIRE,
  'sub_refresh: invalid base64': WIRE,
  'headers are forwarded byte for byte': 'nothing is sent',
  'proxy metrics': 'test/metrics/prometheus has those of modules',
})

/** @param {import('tap').Test} t @param {Backend} backend of the conformance suite @returns {ConformanceBackend} */
export function moduleAdapter(t, backend) {
  const folder = testdir(t, {
    'package.json': '{"type":"module"}',
    'hooks.js': `import { hooksOf } from ${JSON.stringify(HOOKS)}
      export default hooksOf(${JSON.stringify(backend.url)})`,
  })
  const { proxy, ...http } = Object.getOwnPropertyDescriptors(httpAdapter(backend))
  const adapter = /** @type {any} */ (Object.defineProperties({}, http))
  return Object.assign(adapter, { protocol: 'module', module: join(folder, 'hooks.js'), without })
}
