// The driver with the interface of uWebSockets.js since v20.67.0 (its type definitions): the installed library behind
// proxies that are as strict, and refuse strings.

import t from 'tap'
import { skipDriver } from '../../kit/drivers.js'
import { skipFile } from '../../kit/needs.js'
import { httpConformance } from './conformance/http.js'
import { library } from './conformance/rig.js'
import { textConformance } from './conformance/text.js'
import { webSocketConformance } from './conformance/websocket.js'

skipFile(t, skipDriver('uws'))

const { default: uws } = await import('uWebSockets.js')

/** Proxies by object: the driver sets properties on them, and compares them. */
const proxies = new WeakMap()
const originals = new WeakMap()

function checked(argument, method) {
  if (typeof argument === 'string') throw new TypeError(`${method} got a string: ${argument}`)
  if (typeof argument !== 'function') return originals.get(argument) ?? argument
  return (...given) => argument(...given.map(strict))
}

/** @returns {any} the object of the library behind a proxy */
function strict(object) {
  if (object === null || typeof object !== 'object') return object
  // Chunks are bytes; tokens are passed back as they are.
  if (object instanceof ArrayBuffer || typeof object.constructor !== 'function' || !isHandle(object))
    return object
  if (proxies.has(object)) return proxies.get(object)
  const proxy = new Proxy(object, {
    get(target, name) {
      const value = target[name]
      if (typeof value !== 'function') return value
      return (...given) => {
        if (name === 'ws') given[1] = behaviour(given[1])
        const result = value.apply(
          target,
          given.map(argument => checked(argument, String(name))),
        )
        // Of a target without `?`.
        if (name === 'getQuery' && result === '') return undefined
        return result === target ? proxy : result
      }
    },
  })
  proxies.set(object, proxy)
  originals.set(proxy, object)
  return proxy
}

const isHandle = object =>
  ['cork', 'getHeader', 'numSubscribers'].some(name => typeof object[name] === 'function')

/** Checks the options of a WebSocket route. */
function behaviour(options) {
  t.type(options.closeOnBackpressureLimit, 'boolean')
  const wrapped = Object.entries(options).map(([name, value]) => [
    name,
    typeof value === 'function' ? checked(value, name) : value,
  ])
  return Object.fromEntries(wrapped)
}

library.load = async () => ({ default: { ...uws, App: () => strict(uws.App()) } })

t.test('text', async t => textConformance(t, 'uws'))
t.test('HTTP', async t => httpConformance(t, 'uws'))
t.test('WebSocket', async t => webSocketConformance(t, 'uws'))
