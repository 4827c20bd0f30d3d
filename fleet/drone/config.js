// The launch configuration of a drone; requests cannot change it.

import { listOf, matching, number, text, whole } from '../link/shape.js'

const name = matching(/^[\w.-]{1,64}$/, '1 to 64 letters, digits, dots, dashes or underscores')
const place = matching(/^$|^(?:[^:[\]]+|\[[\da-f:.]+\]):\d{1,5}$/i, 'host:port')
const seconds = number(0, 1e9)

/** Keys and their checks. @type {Record<string, import('../link/shape.js').Shape>} */
const SHAPES = {
  id: name,
  run: name,
  secret: matching(/^[\da-f]{64}$/i, '64 hex digits'),
  controller: place,
  listen: place,
  status: place,
  allow: listOf(text(300, 1)),
  apiKey: text(),
  tokenSecret: text(10_000),
  perProcess: whole(1, 1e6),
  orphanAfter: seconds,
  exitAfter: seconds,
  hangAfter: number(1, 1e9),
}

const DEFAULTS = {
  controller: '',
  listen: '',
  status: '',
  apiKey: '',
  tokenSecret: '',
  perProcess: 18_000,
  orphanAfter: 30,
  exitAfter: 600,
  hangAfter: 20,
}

/** @typedef {{host: string, port: number}} Address */

/** @param {string} place host:port @param {string} key @returns {Address} */
function addressOf(place, key) {
  const [, host, port] = /** @type {string[]} */ (/^\[?(.+?)\]?:(\d+)$/.exec(place))
  if (Number(port) > 65_535) throw new Error(`${key} has port ${port}: it must be at most 65535`)
  return { host, port: Number(port) }
}

/**
 * @param {string} json
 * @returns {Required<import('../schema.js').LaunchConfig> & Address & {statusAddress: Address | null}} with the address
 *   to dial or listen on, and that of the status port
 */
export function parseConfig(json) {
  let given
  try {
    given = JSON.parse(json)
  } catch (error) {
    throw new Error(`not valid JSON: ${error.message}`)
  }
  if (given?.constructor !== Object) throw new Error('not a JSON object')
  for (const key in given)
    if (!Object.hasOwn(SHAPES, key))
      throw new Error(`unknown key ${key}; known keys are ${Object.keys(SHAPES).join(', ')}`)
  const config = { ...DEFAULTS, ...given }
  for (const [key, check] of Object.entries(SHAPES)) check(config[key], key)
  const { controller, listen, status } = config
  if (!controller === !listen)
    throw new Error(`${listen ? 'only ' : ''}one of controller and listen must be host:port`)
  const address = addressOf(controller || listen, listen ? 'listen' : 'controller')
  const statusAddress = status ? addressOf(status, 'status') : null
  if (listen && address.port > 0 && statusAddress?.port === address.port)
    throw new Error(`status and listen both have port ${address.port}`)
  return { ...config, ...address, statusAddress }
}
