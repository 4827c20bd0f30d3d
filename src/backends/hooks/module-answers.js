// What handlers of a module return -> answers of the contract. A wrong value is a failed call with a message that names
// the value, so that nothing of it reaches a client.

import { CallFailed, UnknownRestriction } from '../../clients/hooks/contract.js'
import { bytesPayload, textPayload } from '../../clients/protocol/payload.js'

/** @import { Payload } from '../../clients/protocol/payload.js' */
/** @import { ConnectAnswer, Override, PublishAnswer, RefreshAnswer, RpcAnswer, SubscriptionAnswer } from '../../clients/hooks/contract.js' */

/** @param {string} message @returns {CallFailed} */
export const fault = message => new CallFailed(message, 'answer')

/** @param {any} value @returns {string} */
function show(value) {
  const text = typeof value === 'function' ? 'a function' : String(JSON.stringify(value) ?? value)
  return text.length > 100 ? `${text.slice(0, 100)}...` : text
}

/** @param {any} answer @param {readonly string[]} known */
function checkObject(answer, known) {
  if (answer === null || typeof answer !== 'object' || Array.isArray(answer))
    throw fault(`it returned ${show(answer)}, which is no object with an answer`)
  if (answer.serverTagsFilter !== undefined) throw new UnknownRestriction('serverTagsFilter')
  for (const key of Object.keys(answer))
    if (!known.includes(key)) throw fault(`it returned the unknown field ${key}; known: ${known.join(', ')}`)
}

/** @param {any} answer @param {string} name @param {string} type @param {string} said what it must be */
function field(answer, name, type, said) {
  const value = answer[name]
  if (value === undefined) return undefined
  const given = typeof value
  if (given !== type) throw fault(`it returned ${name} ${show(value)}: must be ${said}`)
  return value
}

/** @param {any} value @param {string} name @returns {string} JSON text on one line */
function jsonOf(value, name) {
  let text
  try {
    text = JSON.stringify(value)
  } catch (error) {
    throw fault(`it returned ${name}, which is no JSON value: ${error.message}`)
  }
  if (text === undefined) throw fault(`it returned ${name} ${show(value)}, which is no JSON value`)
  return text
}

/** @param {any} answer @param {string} name @returns {Payload | undefined} */
function payload(answer, name) {
  const value = answer[name]
  if (value === undefined) return undefined
  // A copy: the application may use its memory again.
  if (value instanceof Uint8Array) return bytesPayload(Buffer.from(value))
  return textPayload(jsonOf(value, name))
}

/** @param {any} answer @param {string} name @returns {string | undefined} */
const json = (answer, name) => (answer[name] === undefined ? undefined : jsonOf(answer[name], name))

/** @param {any} answer @returns {number | undefined} unix s */
function expireAt({ expireAt: value }) {
  if (value === undefined) return undefined
  const seconds = value instanceof Date ? Math.ceil(value.getTime() / 1000) : value
  if (!Number.isSafeInteger(seconds))
    throw fault(`it returned expireAt ${show(value)}: must be whole unix seconds, or a Date`)
  if (seconds > 100_000_000_000)
    throw fault(`it returned expireAt ${seconds}: these are ms, not unix seconds`)
  return seconds
}

/** Names in `override` of answers -> names of channel options. */
const OVERRIDES = Object.freeze({
  presence: 'presence',
  joinLeave: 'join_leave',
  forceRecovery: 'force_recovery',
  forcePositioning: 'force_positioning',
  forcePushJoinLeave: 'force_push_join_leave',
})
const SUBSCRIPTION = Object.freeze(['info', 'data', 'expireAt', 'cacheRecover', 'override'])

/** @param {any} answer @returns {SubscriptionAnswer} */
function subscription(answer) {
  checkObject(answer, SUBSCRIPTION)
  return {
    info: json(answer, 'info'),
    data: payload(answer, 'data'),
    expireAt: expireAt(answer),
    cacheRecover: field(answer, 'cacheRecover', 'boolean', 'true or false'),
    override: answer.override === undefined ? undefined : override(answer.override),
  }
}

/** @param {any} given @returns {Override} */
function override(given) {
  checkObject(given, Object.keys(OVERRIDES))
  /** @type {Override} */
  const options = {}
  for (const [name, option] of Object.entries(OVERRIDES)) {
    const on = field(given, name, 'boolean', 'true or false')
    if (on !== undefined) options[/** @type {keyof Override} */ (option)] = on
  }
  return options
}

/** @param {any} given list of channels, or channel -> options @returns {Map<string, SubscriptionAnswer> | undefined} */
function subscriptions(given) {
  if (given === undefined) return undefined
  const entries = Array.isArray(given) ? given.map(channel => [channel, {}]) : Object.entries(given ?? {})
  /** @type {Map<string, SubscriptionAnswer>} */
  const subs = new Map()
  for (const [channel, options] of entries) {
    if (typeof channel !== 'string' || channel === '')
      throw fault(`it returned subscriptions with ${show(channel)}, which is no name of a channel`)
    subs.set(channel, subscription(options))
  }
  return subs
}

const CONNECT = Object.freeze(['user', 'info', 'data', 'expireAt', 'meta', 'subscriptions'])
const REFRESH = Object.freeze(['expired', 'expireAt', 'info', 'meta'])
const PUBLISH = Object.freeze([
  'data',
  'skipHistory',
  'tags',
  'idempotencyKey',
  'delta',
  'version',
  'versionEpoch',
])
/** Past, for connections and subscriptions alike: 0 has two meanings. @type {RefreshAnswer} */
const EXPIRED = Object.freeze({ expireAt: 1 })
const MAX_VERSION = 2n ** 64n - 1n

/** By event. `null` and `undefined` of the module never arrive here, except `null` of `rpc`. */
export const answers = Object.freeze({
  /** @param {any} answer @returns {ConnectAnswer} */
  connect(answer) {
    checkObject(answer, CONNECT)
    return {
      user: field(answer, 'user', 'string', 'text'),
      info: json(answer, 'info'),
      data: payload(answer, 'data'),
      expireAt: expireAt(answer),
      meta: json(answer, 'meta'),
      subs: subscriptions(answer.subscriptions),
    }
  },

  /** @param {any} answer @returns {SubscriptionAnswer} */
  subscribe: answer => subscription(answer),

  /** @param {any} answer @returns {RefreshAnswer} */
  refresh(answer) {
    checkObject(answer, REFRESH)
    // An answer, unlike none: no proxy is asked after it.
    if (field(answer, 'expired', 'boolean', 'true or false')) return EXPIRED
    return { expireAt: expireAt(answer) ?? 0, info: json(answer, 'info'), meta: json(answer, 'meta') }
  },

  /** @param {any} answer @returns {PublishAnswer} */
  publish(answer) {
    checkObject(answer, PUBLISH)
    const { tags, version } = answer
    const isTags =
      tags === undefined ||
      (tags !== null &&
        typeof tags === 'object' &&
        Object.values(tags).every(value => typeof value === 'string'))
    if (!isTags) throw fault(`it returned tags ${show(tags)}: must be an object with texts`)
    return {
      data: payload(answer, 'data'),
      skipHistory: field(answer, 'skipHistory', 'boolean', 'true or false'),
      tags: tags === undefined || Object.keys(tags).length === 0 ? undefined : { ...tags },
      idempotencyKey: field(answer, 'idempotencyKey', 'string', 'text'),
      delta: field(answer, 'delta', 'boolean', 'true or false'),
      version: version === undefined ? undefined : versionOf(version),
      versionEpoch: field(answer, 'versionEpoch', 'string', 'text'),
    }
  },

  /** A method answers with its data. @param {any} answer @returns {RpcAnswer} */
  rpc: answer => ({ data: payload({ data: answer }, 'data') }),
})

/** @param {any} value @returns {bigint} */
function versionOf(value) {
  const whole = typeof value === 'bigint' || Number.isSafeInteger(value)
  const version = whole ? BigInt(value) : -1n
  if (version < 0n || version > MAX_VERSION)
    throw fault(`it returned version ${show(String(value))}: must be a whole number from 0`)
  return version
}
