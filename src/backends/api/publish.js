import { errors, ReplyError } from '../../base/errors.js'
import { fitsFormat } from '../../clients/protocol/payload.js'
import { singleLine } from '../../clients/protocol/raw-json.js'
import { Source } from '../../config/republish.js'
import { errorText } from './answers.js'
import {
  flag,
  ignored,
  object,
  parseJson,
  payload,
  readObject,
  readPayload,
  refuseRestrictions,
  string,
  strings,
  tags,
  uint64,
} from './params.js'
import { askChannel, readWait, waitFields } from './requests.js'

/** @import { Target } from '../../channels/broker/target.js' */
/** @import { PubSub, PublishOptions, Route } from '../../channels/broker/contract.js' */
/** @import { Payload } from '../../clients/protocol/payload.js' */
/** @import { Traffic } from '../../metrics/traffic.js' */
/** @import { ApiContext, Method, Namespace } from './context.js' */

/** @typedef {(error: Error | null, offset: number, epoch: string) => void} Published */

/** Maximum concurrent publications of a broadcast, and bytes of their payloads. */
const MAX_AT_ONCE = 1024
const MAX_BYTES_AT_ONCE = 64 * 1024 * 1024

/** Maximum `users` of a publication. */
const MAX_USERS = 100

const targeting = { exclude_client: string, exclude_user: string, users: strings }

const common = {
  data: payload,
  b64data: string,
  skip_history: flag,
  tags,
  idempotency_key: string,
  delta: flag,
  version: uint64,
  version_epoch: string,
  ...targeting,
}

/** @param {ReplyError} error @param {string} what is wrong */
const refusal = ({ code, message, temporary, status }, what) =>
  new ReplyError(code, `${message}: ${what}`, temporary, status)

const targetingOff = () => refusal(errors.notAvailable, 'needs channel.targeted_publications')

/**
 * @param {any} params fields of a request @returns {Target | null} null: all subscribers
 * @throws {ReplyError} 107
 */
function targetOf({ exclude_client: excludeClient, exclude_user: excludeUser, users }) {
  if (users !== strings.zero) {
    // An empty list would otherwise reach all subscribers, and '' the anonymous ones.
    if (users.length === 0 || users.length > MAX_USERS || users.includes(''))
      throw refusal(errors.badRequest, `users must have 1 to ${MAX_USERS} user ids`)
    if (excludeClient !== '' || excludeUser !== '')
      throw refusal(errors.badRequest, 'users excludes exclude_client and exclude_user')
    return { excludeClient: '', excludeUser: '', users }
  }
  return excludeClient === '' && excludeUser === '' ? null : { excludeClient, excludeUser, users: null }
}

/** @param {any} params fields of a request @returns {any} with its `target` @throws {ReplyError} 107 */
function withTarget(params) {
  params.target = targetOf(params)
  return params
}

/** Publications of the API. Calls reach the broker synchronously, in order. */
export class Publisher {
  #rules
  #pubsub
  #traffic
  #source
  /** Cached options of plain publications. @type {WeakMap<Namespace, PublishOptions>} */
  #plain = new WeakMap()

  /**
   * @param {{resolve: (channel: string) => Namespace | undefined}} rules @param {PubSub} pubsub
   * @param {Traffic} traffic @param {number} [source] of the publications, for republishers
   */
  constructor(rules, pubsub, traffic, source = Source.API) {
    this.#rules = rules
    this.#pubsub = pubsub
    this.#traffic = traffic
    this.#source = source
  }

  /**
   * @param {string} channel @param {Payload} payload @param {any} params other fields of the request, and its `target`
   * @param {Published} done called synchronously for a rejected publication
   */
  publish(channel, payload, params, done) {
    if (channel === '') return done(errors.badRequest, 0, '')
    const namespace = this.#rules.resolve(channel)
    if (namespace === undefined) return done(errors.unknownChannel, 0, '')
    if (namespace.kind !== 'stream' || !fitsFormat(payload, namespace.dataFormat))
      return done(errors.badRequest, 0, '')
    if (params.target !== null && !namespace.targeted) return done(targetingOff(), 0, '')
    this.#traffic.counts.publishes++
    const { republish } = namespace
    const route = republish && !params.target?.users ? republish.route(channel, this.#source) : null
    this.#pubsub.publish(channel, payload.data, this.#options(namespace, payload, params, route), done)
  }

  /** @param {Namespace} namespace @param {Payload} payload @param {any} params @param {Route | null} republish */
  #options(namespace, payload, params, republish) {
    let plain = this.#plain.get(namespace)
    if (plain === undefined) {
      plain = Object.freeze({
        historySize: namespace.historyOn ? namespace.options.history_size : 0,
        historyTtl: namespace.historyOn ? namespace.options.history_ttl : 0,
        metaTtl: namespace.metaTtl,
        json: true,
        delta: namespace.options.delta_publish === true,
      })
      this.#plain.set(namespace, plain)
    }
    if (
      payload.json &&
      !params.skip_history &&
      params.tags === null &&
      params.idempotency_key === '' &&
      !params.delta &&
      params.version === 0n &&
      params.target === null &&
      republish === null
    ) {
      return plain
    }
    const { target } = params
    const stored = !params.skip_history && !target?.users
    return {
      historySize: stored ? plain.historySize : 0,
      historyTtl: stored ? plain.historyTtl : 0,
      metaTtl: plain.metaTtl,
      json: payload.json,
      delta: plain.delta || params.delta,
      tags: params.tags,
      idempotencyKey: params.idempotency_key,
      version: params.version,
      versionEpoch: params.version_epoch,
      republish,
      target,
    }
  }
}

/** @param {number} offset @param {string} epoch @returns {string} the result as JSON text */
export function publishResult(offset, epoch) {
  if (offset === 0) return epoch === '' ? '{}' : `{"epoch":${JSON.stringify(epoch)}}`
  return `{"offset":${offset},"epoch":${JSON.stringify(epoch)}}`
}

const BACKSLASH = 92
const SPACE = 32

/** @param {string} text @param {string} word @param {number} at @returns {number} index after it and a space; -1 */
function after(text, word, at) {
  if (!text.startsWith(word, at)) return -1
  const end = at + word.length
  return text.charCodeAt(end) === SPACE ? end + 1 : end
}

/**
 * Parses the common form `{"channel":"NAME","data":JSON}`, compact or as written by Python; readObject() takes
 * twice the time.
 * @param {string} body @returns {any} the fields of `publish`; null: another form, or an error
 */
export function readPlain(body) {
  const open = after(body, '{"channel":', 0)
  if (open === -1 || body[open] !== '"' || !body.endsWith('}')) return null
  const close = body.indexOf('"', open + 1)
  for (let at = open + 1; at < close; at++) {
    const code = body.charCodeAt(at)
    if (code < SPACE || code === BACKSLASH) return null
  }
  const next = after(body, ',', close + 1)
  const from = next === -1 ? -1 : after(body, '"data":', next)
  if (from === -1) return null
  const data = body.slice(from, -1)
  // White space is not part of the value.
  if (data.charCodeAt(0) <= SPACE || data.charCodeAt(data.length - 1) <= SPACE) return null
  try {
    // Fails if other members follow the value.
    JSON.parse(data)
  } catch {
    return null
  }
  return {
    channel: body.slice(open + 1, close),
    data: singleLine(data),
    b64data: '',
    skip_history: false,
    tags: null,
    idempotency_key: '',
    delta: false,
    version: 0n,
    version_epoch: '',
    target: null,
    ack: null,
  }
}

/** @param {string} body of a publish @returns {any} its fields @throws {Error} */
export function readPublish(body) {
  const plain = readPlain(body)
  if (plain !== null) return plain
  return withTarget(readObject(publish.fields, parseJson(body), body))
}

/** @type {Method} */
export const publish = {
  fields: { channel: string, ...common, ack: object(waitFields) },
  run(params, context) {
    withTarget(params)
    const payload = readPayload(params.data, params.b64data)
    const { publisher } = context
    if (params.ack !== null) return publishForAcks(params, payload, context)
    return new Promise((resolve, reject) => {
      publisher.publish(params.channel, payload, params, (error, offset, epoch) => {
        if (error === null) resolve(publishResult(offset, epoch))
        else reject(error)
      })
    })
  },
}

/**
 * @param {any} params @param {Payload} payload @param {ApiContext} context
 * @returns {Promise<string>} the result as JSON text
 */
async function publishForAcks(params, payload, context) {
  let published = '{}'
  const wait = readWait(params.ack)
  const acks = await askChannel(params, payload, wait, '', context, (offset, epoch) => {
    published = publishResult(offset, epoch)
  })
  return `${published.slice(0, -1)}${published === '{}' ? '' : ','}"acks":${acks}}`
}

/** Unsupported in `broadcast`. */
const acks = { ack: ignored }

/** @type {Method} */
export const broadcast = {
  fields: { channels: strings, ...common, ...acks },
  run(params, context) {
    const { channels } = params
    const { target } = withTarget(params)
    refuseRestrictions(acks, params, errors.notAvailable)
    if (channels.length === 0) throw errors.badRequest
    if (
      target !== null &&
      channels.some((/** @type {string} */ name) => context.rules.resolve(name)?.targeted === false)
    )
      throw targetingOff()
    const payload = readPayload(params.data, params.b64data)
    const width = Math.max(
      1,
      Math.min(MAX_AT_ONCE, Math.floor(MAX_BYTES_AT_ONCE / (payload.data.length + 1))),
    )
    return new Promise(resolve => {
      /** @type {string[]} */
      const responses = new Array(channels.length)
      let next = 0
      let open = 0
      let finished = 0
      let feeding = false

      /** @param {number} index */
      const start = index => {
        open++
        context.publisher.publish(channels[index], payload, params, (error, offset, epoch) => {
          responses[index] =
            error === null
              ? `{"result":${publishResult(offset, epoch)}}`
              : `{"error":${errorText(error, context)}}`
          open--
          finished++
          if (finished === channels.length) resolve(`{"responses":[${responses.join(',')}]}`)
          else feed()
        })
      }
      // Not reentrant: for a rejected channel `publish` calls back synchronously.
      const feed = () => {
        if (feeding) return
        feeding = true
        while (next < channels.length && open < width) start(next++)
        feeding = false
      }
      feed()
    })
  },
}
