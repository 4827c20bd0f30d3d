// What comes over the line is checked here, before anything is done with it.

import { parseSubject } from '../subjects.js'

/** @typedef {(value: any) => boolean} Check */

/** @type {Check} */
const number = value => typeof value === 'number' && value >= 0 && value < 1e15
/** @type {Check} */
const whole = value => number(value) && Number.isInteger(value)
/** @type {Check} */
const text = value => typeof value === 'string' && value.length < 1000
/** @type {Check} */
const texts = value => Array.isArray(value) && value.length <= 1000 && value.every(text)
/** @param {RegExp} words @returns {Check} */
const word = words => value => text(value) && words.test(value)
/** @param {Record<string, Check>} shape @returns {(value: any) => string | undefined} the name of what is wrong */
const fault = shape => value => Object.keys(shape).find(key => !shape[key](value?.[key]))

const publishFault = fault({
  via: word(/^(api|client)$/),
  channels: text,
  order: word(/^(random|sequential)$/),
  rate: number,
  size: value => whole(value) && value <= 1e6,
  part: whole,
  parts: whole,
})

const settingsFault = fault({
  targets: texts,
  transport: text,
  connections: whole,
  first: whole,
  total: whole,
  concurrency: whole,
  rate: number,
  addresses: texts,
  ports: text,
  channels: texts,
  recover: value => typeof value === 'boolean',
  user: text,
  churn: number,
  backoff: value => number(value?.min) && number(value.max),
  publish: value => value === null || !publishFault(value),
  publishFrom: number,
})

/** @type {Record<string, (message: any) => string | undefined>} */
const ORDERS = {
  settings: message => (whole(message.revision) ? settingsFault(message.settings) : 'revision'),
  cut: fault({ share: value => number(value) && value <= 1, how: word(/^(close|reset)$/) }),
  ledgers: fault({}),
  reckon: fault({ ledgers: Array.isArray }),
  restart: fault({}),
  stop: fault({}),
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
 * @param {number} capacity connections
 * @throws {Error} with one line
 */
export function checkOrder(message, allow, capacity) {
  const { type } = message
  if (!Object.hasOwn(ORDERS, type)) throw new Error(`no such order: ${`${type}`.slice(0, 50)}`)
  const wrong = ORDERS[type](message)
  if (wrong) throw new Error(`${type}: "${wrong}" is not what it has to be`)
  if (type !== 'settings') return
  /** @type {import('../schema.js').Settings} */
  const { targets, connections, publish, channels, user } = message.settings
  for (const target of targets)
    if (!allowed(target, allow)) throw new Error(`${target} is no target that this drone was launched for`)
  if (targets.length === 0 && (connections > 0 || publish)) throw new Error('there is no target')
  if (connections > capacity)
    throw new Error(`this drone can hold ${capacity} connections, not ${connections}`)
  const templates = [...channels, user, publish?.channels]
  for (const template of templates) if (template) parseSubject(template)
}
