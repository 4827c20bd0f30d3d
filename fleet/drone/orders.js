// What comes over the line is checked here, before anything is done with it.

import { parseSubject } from '../subjects.js'

/** @typedef {import('../schema.js').Settings} Settings */
/** @typedef {(value: any) => boolean} Check */

/** @param {number} most @returns {Check} */
const whole = most => value => Number.isInteger(value) && value >= 0 && value <= most
/** @param {number} most @returns {Check} */
const number = most => value => typeof value === 'number' && value >= 0 && value <= most
/** @type {Check} */
const text = value => typeof value === 'string' && value.length < 1000
/** @type {Check} */
const texts = value => Array.isArray(value) && value.length <= 1000 && value.every(text)
/** @param {...string} words @returns {Check} */
const oneOf =
  (...words) =>
  value =>
    words.includes(value)
/** @param {Record<string, Check>} shape @returns {Check} */
const object = shape => value =>
  value?.constructor === Object && Object.keys(shape).every(key => shape[key](value[key]))

const PUBLISH = {
  via: oneOf('api', 'client'),
  channels: text,
  order: oneOf('random', 'sequential'),
  rate: number(1e7),
  size: whole(1e6),
  part: whole(1e5),
  parts: whole(1e5),
}

/** @type {Record<string, Check>} */
const SETTINGS = {
  targets: texts,
  transport: text,
  connections: whole(1e7),
  first: whole(1e9),
  total: whole(1e9),
  concurrency: whole(1e5),
  rate: number(1e7),
  addresses: texts,
  ports: text,
  channels: texts,
  recover: value => typeof value === 'boolean',
  user: text,
  churn: number(1e6),
  backoff: object({ min: number(1e7), max: number(1e7) }),
  publish: value => value === null || object(PUBLISH)(value),
  publishFrom: number(1e14),
}

/** @type {Record<string, Record<string, Check>>} */
const ORDERS = {
  settings: { revision: whole(Number.MAX_SAFE_INTEGER), settings: object(SETTINGS) },
  cut: { share: number(1), how: oneOf('close', 'reset') },
  ledgers: {},
  reckon: { ledgers: Array.isArray },
  restart: {},
  stop: {},
}

/**
 * @param {string} target URL
 * @param {string[]} allow `host` or `host:port`
 */
function allowed(target, allow) {
  if (!URL.canParse(target)) return false
  const { protocol, hostname, port } = new URL(target)
  const place = `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`
  return /^https?:$/.test(protocol) && (allow.includes(hostname) || allow.includes(place))
}

/**
 * @param {any} message an object
 * @param {string[]} allow
 * @throws {Error} with one line
 */
export function checkOrder(message, allow) {
  const { type, settings } = message
  if (!Object.hasOwn(ORDERS, type)) throw new Error(`unknown order ${JSON.stringify(type)?.slice(0, 50)}`)
  for (const [key, check] of Object.entries(ORDERS[type]))
    if (!check(message[key])) {
      const wrong =
        key === 'settings' && Object.keys(SETTINGS).find(name => !SETTINGS[name](settings?.[name]))
      throw new Error(`${type}: "${wrong || key}" is not what it has to be`)
    }
  if (type !== 'settings') return
  const { targets, connections, publish, channels, user } = /** @type {Settings} */ (settings)
  for (const target of targets)
    if (!allowed(target, allow)) throw new Error(`${target} is no target that this drone was launched for`)
  if (targets.length === 0 && (connections > 0 || publish)) throw new Error('there is no target')
  for (const template of channels) parseSubject(template)
  if (user) parseSubject(user)
  if (publish) parseSubject(publish.channels)
}
