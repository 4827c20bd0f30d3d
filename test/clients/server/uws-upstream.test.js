// The driver on the interface that releases of uWebSockets.js have since v20.67.0, by their type definitions. The
// stand-in is the installed library behind proxies that are as strict as that interface, and stricter: no strings.

import t from 'tap'
import { skipDriver } from '../../kit/drivers.js'
import { skipFile } from '../../kit/needs.js'
import { httpConformance } from './conformance/http.js'
import { library } from './conformance/rig.js'
import { textConformance } from './conformance/text.js'
import { webSocketConformance } from './conformance/websocket.js'

skipFile(t, skipDriver('uws'))

const { default: uws } = await import('uWebSockets.js')

/** Proxies by their objects: the driver keeps properties on them, and compares them. @type {WeakMap<object, any>} */
const proxies = new WeakMap()
/** @type {WeakMap<object, any>} */
const originals = new WeakMap()

/** @param {any} value @returns {any} without its proxy */
const plain = value => originals.get(value) ?? value

/** @param {any} argument @param {string} method @returns {any} */
function checked(argument, method) {
  if (typeof argument === 'string') throw new TypeError(`${method} got a string: ${argument}`)
  if (typeof argument !== 'function') return plain(argument)
  return (/** @type {any[]} */ ...given) => argument(...given.map(strict))
}

/** @param {any} object of the library @returns {any} */
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
      return (/** @type {any[]} */ ...given) => {
        if (name === 'ws') given[1] = behaviour(given[1])
        const result = value.apply(
          target,
          given.map(argument => checked(argument, String(name))),
        )
        // It has changed: that of a target without `?`.
        if (name === 'getQuery' && result === '') return undefined
        return result === target ? proxy : result
      }
    },
  })
  proxies.set(object, proxy)
  originals.set(proxy, object)
  return proxy
}

/** @param {any} object */
const isHandle = object =>
  ['cork', 'getHeader', 'numSubscribers'].some(name => typeof object[name] === 'function')

/** @param {any} options of a WebSocket route */
function behaviour(options) {
  t.type(options.closeOnBackpressureLimit, 'boolean')
  return Object.fromEntries(
    Object.entries(options).map(([name, value]) => [
      name,
      typeof value === 'function' ? checked(value, name) : value,
    ]),
  )
}

library.load = async () => ({
  default: {
    ...uws,
    App: () => strict(uws.App()),
    us_listen_socket_close: uws.us_listen_socket_close,
  },
})

t.test('text', async t => textConformance(t, 'uws'))
t.test('HTTP', async t => httpConformance(t, 'uws'))
t.test('WebSocket', async t => webSocketConformance(t, 'uws'))
