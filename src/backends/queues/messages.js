// Messages as server API calls: from an envelope, from a method and a payload, or, in publication data mode, from raw
// data and headers.

import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import { errors, reasonOf } from '../../base/errors.js'
import { bytesPayload } from '../../clients/protocol/payload.js'
import { isObject, rawMember } from '../../clients/protocol/raw-json.js'
import { countError } from '../api/answers.js'
import { methods } from '../api/methods.js'
import { BadBody, explain, readObject } from '../api/params.js'
import { MAX_BODY } from '../api/wire.js'

/** @import { Config } from '../../config/options.js' */
/** @import { ApiContext } from '../api/context.js' */
/** @import { Payload } from '../../clients/protocol/payload.js' */
/** @import { Message, Outcome } from './contract.js' */

/** @typedef {{outcome: 'done' | 'retry'} | {outcome: 'skipped', reason: string, what: string}} Result */

const METHODS = new Set(
  (
    'publish broadcast subscribe unsubscribe disconnect history_remove refresh map_publish map_remove map_clear ' +
    'shared_poll_publish block_user unblock_user revoke_token invalidate_user_tokens'
  ).split(' '),
)
const MAX_UINT64 = 2n ** 64n - 1n
const TRUE = new Set(['1', 't', 'T', 'TRUE', 'true', 'True'])
const FALSE = new Set(['0', 'f', 'F', 'FALSE', 'false', 'False'])
const ORIGIN = 'halley-origin'
const MAX_SHOWN = 64

/** @type {Result} */
const DONE = Object.freeze({ outcome: 'done' })
/** @type {Result} */
const RETRY = Object.freeze({ outcome: 'retry' })

class Skip extends Error {
  /** @param {string} reason label of the metric @param {string} what is wrong */
  constructor(reason, what) {
    super(what)
    this.reason = reason
  }
}

/** @param {string} text */
const shown = text => JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}...` : text)

/** @param {Buffer | string | null} payload @returns {number} bytes, or characters */
const sizeOf = payload => payload?.length ?? 0

/** @param {string} text @returns {any} @throws {Skip} */
function parse(text) {
  try {
    return JSON.parse(text)
  } catch {
    throw new Skip('malformed', text === '' ? 'the payload is empty' : 'the payload is not JSON')
  }
}

/** @param {Message} message @returns {{name: string, value: any, text: string}} method, parsed request and text */
function commandOf({ payload, method }) {
  if (payload === null) throw new Skip('malformed', 'the payload is missing')
  const text = payload.toString()
  const value = parse(text)
  if (!isObject(value)) throw new Skip('malformed', 'the payload is not a JSON object')
  if (method !== '') return { name: method, value, text }
  if (typeof value.method !== 'string' || value.method === '')
    throw new Skip('malformed', 'the envelope has no method')
  const { method: name, payload: request } = value
  if (typeof request !== 'string') {
    if (!isObject(request)) throw new Skip('malformed', 'the payload of the envelope is not a JSON object')
    return { name, value: request, text: /** @type {string} */ (rawMember(text, 'payload')) }
  }
  // CDC connectors write JSON columns as text.
  const inner = parse(request)
  if (!isObject(inner)) throw new Skip('malformed', 'the payload of the envelope is not a JSON object')
  return { name, value: inner, text: request }
}

/** @param {string} name of the header @param {string} text @returns {boolean} @throws {Skip} */
function readFlag(name, text) {
  if (TRUE.has(text)) return true
  if (FALSE.has(text)) return false
  throw new Skip('invalid_header', `${name}: ${shown(text)} is not true or false`)
}

/** @param {string} name of the header @param {string} text @returns {bigint} @throws {Skip} */
function readVersion(name, text) {
  const number = /^\d{1,20}$/.test(text) ? BigInt(text) : -1n
  if (number >= 0n && number <= MAX_UINT64) return number
  throw new Skip('invalid_header', `${name}: ${shown(text)} is not an integer from 0 to 2^64 - 1`)
}

/** Header names from `channels_header`, `channels_value` ... @param {Record<string, any>} mode */
function headerNames(mode) {
  const find = (/** @type {RegExp} */ key) => mode[Object.keys(mode).find(name => key.test(name)) ?? ''] ?? ''
  return {
    channels: find(/^channels_/),
    idempotencyKey: find(/^idempotency_key_/),
    delta: find(/^delta_/),
    version: find(/^version_(?!epoch_)/),
    versionEpoch: find(/^version_epoch_/),
    tags: find(/^tags_.*prefix$/),
  }
}

export class MessageRunner {
  #context
  #names
  #origin

  /**
   * @param {ApiContext} context
   * @param {Readonly<Record<string, any>> | undefined} mode `publication_data_mode` of the consumer, if supported
   * @param {string} [origin] this cluster: skips messages republished by it; '': off
   */
  constructor(context, mode, origin = '') {
    this.#context = context
    this.#origin = origin
    this.#names = mode?.enabled ? headerNames(mode) : null
  }

  /** Runs one message; never rejects. @param {Message} message @returns {Promise<Result>} */
  async run(message) {
    try {
      if (sizeOf(message.payload) > MAX_BODY)
        throw new Skip('too_large', `the payload is larger than ${MAX_BODY} bytes`)
      if (this.#origin !== '' && message.headers[ORIGIN] === this.#origin)
        throw new Skip('own_origin', 'republished by this cluster')
      return this.#names === null ? await this.#command(message) : await this.#data(message, this.#names)
    } catch (error) {
      if (error instanceof Skip) return { outcome: 'skipped', reason: error.reason, what: error.message }
      if (!(error instanceof BadBody)) return this.#failed(error)
      const what = error.message.replace('Bad Request: ', '')
      return { outcome: 'skipped', reason: 'invalid_request', what }
    }
  }

  /** @param {Error} error of a call @returns {Result} */
  #failed(error) {
    const known = countError(error, this.#context)
    if (known.code === errors.internal.code) return RETRY
    // The message may be longer and name the field.
    const base = [errors.badRequest, errors.notAvailable].find(({ code }) => code === known.code) ?? known
    return { outcome: 'skipped', reason: reasonOf(base), what: `error ${known.code}: ${known.message}` }
  }

  /** @param {Message} message @returns {Promise<Result>} */
  async #command(message) {
    const { name, value, text } = commandOf(message)
    const method = METHODS.has(name) ? methods.get(name) : undefined
    if (method === undefined) throw new Skip('unknown_method', `unknown method ${shown(name)}`)
    this.#context.traffic.api(name).count++
    const params = readObject(method.fields, value, text)
    try {
      const answer = await method.run(params, this.#context)
      return name === 'broadcast' ? this.#ofBroadcast(answer) : DONE
    } catch (error) {
      throw explain(error, method.fields, value)
    }
  }

  /** Item errors are already counted. @param {string} answer JSON text @returns {Result} */
  #ofBroadcast(answer) {
    if (!answer.includes('"error"')) return DONE
    /** @type {{responses: {error?: {code: number, message: string}}[]}} */
    const { responses } = JSON.parse(answer)
    const failed = responses.flatMap(({ error }) => (error === undefined ? [] : [error]))
    if (failed.length === 0) return DONE
    if (failed.some(({ code }) => code === errors.internal.code)) return RETRY
    const [{ code, message }] = failed
    const what = `error ${code}: ${message}, in ${failed.length} of ${responses.length} channels`
    return { outcome: 'skipped', reason: message.replaceAll(' ', '_'), what }
  }

  /** @param {Message} message @param {ReturnType<typeof headerNames>} names @returns {Promise<Result>} */
  async #data({ payload, headers }, names) {
    const given = (/** @type {string} */ name) => (name === '' ? undefined : headers[name])
    const list = given(names.channels)
    if (list === undefined || list === '')
      throw new Skip('missing_channels', `${names.channels} is missing or empty`)
    const delta = given(names.delta)
    const version = given(names.version)
    const params = {
      skip_history: false,
      tags: tagsOf(headers, names.tags),
      idempotency_key: given(names.idempotencyKey) ?? '',
      delta: delta === undefined || delta === '' ? false : readFlag(names.delta, delta),
      version: version === undefined || version === '' ? 0n : readVersion(names.version, version),
      version_epoch: given(names.versionEpoch) ?? '',
      target: null,
    }
    const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload
    if (bytes === null || bytes.length === 0) throw new Skip('invalid_data', 'the data is missing or empty')
    const data = bytesPayload(bytes)
    const channels = list.split(',')
    this.#context.traffic.api(channels.length === 1 ? 'publish' : 'broadcast').count++
    const results = await Promise.all(channels.map(channel => this.#publish(channel, data, params)))
    const retry = results.find(({ outcome }) => outcome === 'retry')
    return retry ?? results.find(({ outcome }) => outcome === 'skipped') ?? DONE
  }

  /** @param {string} channel @param {Payload} data @param {any} params @returns {Promise<Result>} */
  #publish(channel, data, params) {
    const format = this.#context.rules.resolve(channel)?.dataFormat
    // The default is JSON: other data would disconnect JSON subscribers.
    if (!data.json && format !== undefined && format !== 'binary') {
      const what = `the data is not JSON, and channel ${shown(channel)} does not have publication_data_format binary`
      return Promise.resolve({ outcome: 'skipped', reason: 'invalid_data', what })
    }
    return new Promise(resolve =>
      this.#context.publisher.publish(channel, data, params, error =>
        resolve(error === null ? DONE : this.#failed(error)),
      ),
    )
  }
}

/** @param {Record<string, string>} headers @param {string} prefix '' = off @returns {Record<string, string> | null} */
function tagsOf(headers, prefix) {
  if (prefix === '') return null
  const tags = Object.keys(headers)
    .filter(name => name.startsWith(prefix))
    .map(name => [name.slice(prefix.length), headers[name]])
  return tags.length === 0 ? null : Object.fromEntries(tags)
}

/** @param {Config} config @returns {string} cluster name in `halley-origin`: stable across nodes and restarts */
export function clusterOrigin({ cluster_name: name, engine, node, http_server: { port } }) {
  if (name !== '') return name
  if (engine.type !== 'redis') return node.name || `${hostname()}_${port}`
  const { address, cluster_address, sentinel_address, prefix } = engine.redis
  // Addresses may contain passwords, and their order may differ between nodes.
  const all = [...address, ...cluster_address, ...sentinel_address].sort()
  const hash = createHash('sha256').update(JSON.stringify([all, prefix]))
  return hash.digest('hex').slice(0, 16)
}

/** Methods that write to one channel. */
const WRITES = ['publish', 'map_publish', 'map_remove', 'shared_poll_publish']

/** @param {Message} message @returns {string | null} channel of a write; null: other or invalid command */
function orderedChannel({ method, payload }) {
  if (method !== '' && !WRITES.includes(method)) return null
  if (payload === null) return null
  try {
    let request = JSON.parse(payload.toString())
    if (method === '') {
      if (!WRITES.includes(request?.method)) return null
      request = request.payload
      if (typeof request === 'string') request = JSON.parse(request)
    }
    return typeof request?.channel === 'string' && request.channel !== '' ? request.channel : null
  } catch {
    return null
  }
}

/**
 * Runs messages of one source in order. Writes to different channels run concurrently; one waits for the previous one
 * of its channel and blocks all later messages. Other commands wait for all before.
 * @template {Message} T
 * @param {readonly T[]} messages
 * @param {(message: T) => Promise<Outcome>} handle never rejects
 * @param {() => boolean} ended whether to start no more messages
 * @returns {Promise<{finished: T[], failed: boolean}>} finished: messages done or skipped, in order; failed: a message
 *   must be retried, and none was started after its failure
 */
export async function runInOrder(messages, handle, ended) {
  /** @type {Map<string, Promise<void>>} the last write of each channel, while it runs */
  const running = new Map()
  /** @type {boolean[]} */
  const finished = new Array(messages.length).fill(false)
  let failed = false
  /** @param {number} index */
  const run = async index => {
    if ((await handle(messages[index])) === 'retry') failed = true
    else finished[index] = true
  }
  for (let i = 0; i < messages.length && !failed && !ended(); i++) {
    const channel = orderedChannel(messages[i])
    if (channel === null) {
      await Promise.all(running.values())
      running.clear()
      if (failed || ended()) break
      await run(i)
      continue
    }
    const before = running.get(channel)
    if (before !== undefined) {
      await before
      if (failed || ended()) break
    }
    running.set(channel, run(i))
  }
  await Promise.all(running.values())
  return { finished: messages.filter((_, i) => finished[i]), failed }
}
