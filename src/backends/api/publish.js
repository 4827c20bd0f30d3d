import { errors } from '../../base/errors.js'
import { fitsFormat } from '../../clients/protocol/payload.js'
import { singleLine } from '../../clients/protocol/raw-json.js'
import { Source } from '../../config/republish.js'
import { errorText } from './answers.js'
import {
  flag,
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

/** @import { PubSub, PublishOptions, Route } from '../../channels/broker/contract.js' */
/** @import { Payload } from '../../clients/protocol/payload.js' */
/** @import { Traffic } from '../../metrics/traffic.js' */
/** @import { Method, Namespace } from './context.js' */

/** @typedef {(error: Error | null, offset: number, epoch: string) => void} Published */

/** Maximum concurrent publications of a broadcast, and bytes of their payloads. */
const MAX_AT_ONCE = 1024
const MAX_BYTES_AT_ONCE = 64 * 1024 * 1024

/** Unsupported fields: they select subscribers. */
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

/** Parameters of a publication with data only. */
export const NO_PARAMS = Object.freeze({
  skip_history: false,
  tags: null,
  idempotency_key: '',
  delta: false,
  version: 0n,
  version_epoch: '',
})

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
   * @param {string} channel @param {Payload} payload @param {any} params other fields of the request
   * @param {Published} done called synchronously for a rejected publication
   */
  publish(channel, payload, params, done) {
    if (channel === '') return done(errors.badRequest, 0, '')
    const namespace = this.#rules.resolve(channel)
    if (namespace === undefined) return done(errors.unknownChannel, 0, '')
    if (namespace.kind !== 'stream' || !fitsFormat(payload, namespace.dataFormat))
      return done(errors.badRequest, 0, '')
    this.#traffic.counts.publishes++
    const { republish } = namespace
    const route = republish ? republish.route(channel, this.#source) : null
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
      republish === null
    ) {
      return plain
    }
    return {
      historySize: params.skip_history ? 0 : plain.historySize,
      historyTtl: params.skip_history ? 0 : plain.historyTtl,
      metaTtl: plain.metaTtl,
      json: payload.json,
      delta: plain.delta || params.delta,
      tags: params.tags,
      idempotencyKey: params.idempotency_key,
      version: params.version,
      versionEpoch: params.version_epoch,
      republish,
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
    exclude_client: '',
    exclude_user: '',
    users: strings.zero,
  }
}

/** @param {string} body of a publish @returns {any} its fields @throws {Error} */
export function readPublish(body) {
  const plain = readPlain(body)
  if (plain !== null) return plain
  const params = readObject(publish.fields, parseJson(body), body)
  refuseRestrictions(targeting, params, errors.notAvailable)
  return params
}

/** @type {Method} */
export const publish = {
  fields: { channel: string, ...common },
  run(params, { publisher }) {
    refuseRestrictions(targeting, params, errors.notAvailable)
    const payload = readPayload(params.data, params.b64data)
    return new Promise((resolve, reject) => {
      publisher.publish(params.channel, payload, params, (error, offset, epoch) => {
        if (error === null) resolve(publishResult(offset, epoch))
        else reject(error)
      })
    })
  },
}

/** @type {Method} */
export const broadcast = {
  fields: { channels: strings, ...common },
  run(params, context) {
    const { channels } = params
    refuseRestrictions(targeting, params, errors.notAvailable)
    if (channels.length === 0) throw errors.badRequest
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
