import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { testdir } from '../../kit/folders.js'
import { httpAdapter } from './http-adapter.js'

/** @import { Backend } from './backend.js' */
/** @import { ConformanceBackend } from './rig.js' */

const HOOKS = fileURLToPath(new URL('conformance-module.js', import.meta.url))
const WIRE = 'a module answers with values, not with a message'
const ONE_LIMIT = 'hooks.timeout is the same for all handlers: module.test.js has it'

/** Rows of the table that are not of a module. */
const without = Object.freeze({
  'connect: other forms of answers': WIRE,
  'connect: disconnects win over errors and results': 'a handler throws one thing or returns',
  'connect: codes that a close frame cannot have, and missing reasons':
    'disconnect() refuses them at its call',
  'connect: a client with a token is not asked about': 'a module is: module.test.js has it',
  'subscribe: other forms of answers': WIRE,
  'subscribe: an end that the client knows': 'subRefresh of a module is for all subscriptions',
  'subscribe: the flags of the client have no effect': 'with a module they have',
  'subscribe: no answer in time': ONE_LIMIT,
  'publish: other forms of answers': WIRE,
  'publish: no answer in time': ONE_LIMIT,
  'rpc: no answer in time': ONE_LIMIT,
  'rpc: namespaces of methods': 'they are options of proxies',
  'refresh: other forms of answers': WIRE,
  'sub_refresh: other forms of answers': WIRE,
  'headers keep their bytes': 'nothing is sent',
  'statuses and bodies': 'those of HTTP',
  'figures of proxies': 'test/metrics/prometheus has those of modules',
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
