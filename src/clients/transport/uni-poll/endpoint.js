import { identify } from '../../auth/tokens.js'
import { PollJsonCodec } from '../../protocol/uni-json.js'
import { retryAfter } from '../../server/contract.js'
import { bearerToken, trustedUser } from '../http-request.js'
import { NO_CACHE } from '../origin.js'
import { Cursors } from './cursor.js'
import { StartOffset } from './poll.js'
import { Polls } from './polls.js'
import {
  badName,
  forbidden,
  foreignOrigin,
  RETRY,
  Refusal,
  refusalFor,
  refusals,
  unknownNamespace,
} from './refusal.js'
import { readRequest } from './request.js'

/** @import { Namespace } from '../../auth/channel-rules.js' */
/** @import { Identity } from '../../auth/tokens.js' */
/** @import { Exchange } from '../../server/contract.js' */
/** @import { TransportParts } from '../index.js' */
/** @import { Position } from './cursor.js' */
/** @import { PollRequest } from './request.js' */

/** @typedef {Readonly<Record<string, string>>} Head */

const METHODS = 'GET, POST, OPTIONS'
/** Shared head of most answers. @type {Head} */
const HEAD = Object.freeze({ ...NO_CACHE, 'Content-Type': 'application/json' })
/** Limit of cached heads with CORS headers. */
const MAX_HEADS = 100

/** The endpoint of one-way long-poll (docs/uni-poll.md): each request carries its position; there are no sessions. */
export class UniPollEndpoint {
  #context
  #server
  #cors
  #admission
  #cursors
  #polls
  /** @type {Map<string, Head>} */
  #heads = new Map()

  /** @param {TransportParts} parts */
  constructor({ context, server, fanout, cors, admission }) {
    const { max_request_body_size } = context.config.uni_poll
    this.#context = context
    this.#server = server
    this.#cors = cors
    this.#admission = admission
    this.#cursors = new Cursors(Buffer.from(context.cursorKey, 'base64'), max_request_body_size)
    this.#polls = new Polls(context, fanout, this.#cursors, new PollJsonCodec())
  }

  mount() {
    const { handler_prefix } = this.#context.config.uni_poll
    this.#server.route('GET', handler_prefix, exchange => this.#get(exchange))
    this.#server.route('POST', handler_prefix, exchange => this.#post(exchange))
    this.#server.route('OPTIONS', handler_prefix, exchange =>
      exchange.reply(204, this.#cors.preflight(exchange, METHODS), ''),
    )
    this.#server.route('*', handler_prefix, exchange =>
      this.#refuse(exchange, { ...this.#head(exchange), Allow: METHODS }, refusals.method),
    )
  }

  /** Uses the new configuration of the context. */
  reload() {
    this.#cursors.setKey(Buffer.from(this.#context.cursorKey, 'base64'))
  }

  /** From now on no poll waits. @returns {import('../index.js').Clients} the waiting ones */
  drain() {
    return { clients: this.#polls.close(), end: poll => this.#polls.release(poll) }
  }

  /** @param {Exchange} exchange */
  #get(exchange) {
    const head = this.#head(exchange)
    if (!this.#cors.admits(exchange)) return this.#refuse(exchange, head, foreignOrigin(exchange))
    if (!this.#admission.admits(exchange, true)) return this.#refuse(exchange, head, refusals.tooMany)
    this.#begin(exchange, head, this.#clientOf(exchange), null, false)
  }

  /** @param {Exchange} exchange */
  #post(exchange) {
    const head = this.#head(exchange)
    if (!this.#cors.admits(exchange)) return this.#refuse(exchange, head, foreignOrigin(exchange))
    if (!this.#admission.admits(exchange, true)) return this.#refuse(exchange, head, refusals.tooMany)
    const client = this.#clientOf(exchange)
    const json = /\bjson\b/i.test(exchange.header('content-type'))
    exchange.body(this.#context.config.uni_poll.max_request_body_size, body => {
      if (body === null) this.#refuse(exchange, head, refusals.tooLong)
      else this.#begin(exchange, head, client, body, json)
    })
  }

  /** @param {Exchange} exchange @returns {Head} */
  #head(exchange) {
    const head = this.#cors.headers(exchange, HEAD)
    if (head === HEAD) return HEAD
    // Waiting polls keep their head in memory: share equal ones.
    const key = Object.values(head).join('\n')
    const known = this.#heads.get(key)
    if (known !== undefined) return known
    if (this.#heads.size === MAX_HEADS) this.#heads.clear()
    this.#heads.set(key, head)
    return head
  }

  /** Reads headers and query, which are valid only until the handler returns. @param {Exchange} exchange */
  #clientOf(exchange) {
    const user = trustedUser(exchange, this.#context.config)
    return { bearer: bearerToken(exchange), user, query: exchange.query }
  }

  /**
   * @param {Exchange} exchange @param {Head} head @param {{bearer: string, user: string, query: string}} client
   * @param {Buffer | null} body @param {boolean} json whether the content type is JSON
   */
  #begin(exchange, head, client, body, json) {
    const { config, tokens, traffic } = this.#context
    try {
      const request = readRequest(client.query, body, json, config.uni_poll)
      traffic.of('uni_poll').received(1, client.query.length + (body?.length ?? 0))
      // A client with a cursor is no new one.
      if (request.cursor === '' && this.#admission.overloaded) {
        this.#context.refusals.add('overload', exchange)
        throw refusals.tooMany
      }
      const token = client.bearer || request.token
      const identity = identify({ client: config.client, tokens }, token, client.user)
      if (!(identity instanceof Promise)) return this.#poll(exchange, head, request, token, identity)
      identity
        .then(identity => this.#poll(exchange, head, request, token, identity))
        .catch(error => this.#failed(exchange, head, error))
    } catch (error) {
      this.#failed(exchange, head, error)
    }
  }

  /** @param {Exchange} exchange @param {Head} head @param {Error} error */
  #failed(exchange, head, error) {
    const refusal = refusalFor(error)
    if (refusal === null) this.#context.log.error({ err: error }, 'a poll failed')
    else if (refusal.status === 401 || refusal.status === 403)
      this.#context.refusals.add(refusal.reason, exchange)
    this.#refuse(exchange, head, refusal ?? refusals.internal)
  }

  /** @param {Exchange} exchange @param {Head} head @param {Refusal} refusal */
  #refuse(exchange, head, refusal) {
    const { status, body } = refusal
    const more =
      refusal === refusals.tooMany
        ? retryAfter()
        : status === 503
          ? RETRY
          : status === 401
            ? { 'WWW-Authenticate': 'Bearer' }
            : null
    exchange.reply(status, more ? { ...head, ...more } : head, body)
  }

  /**
   * @param {Exchange} exchange @param {Head} head @param {PollRequest} request @param {string} token
   * @param {Identity} identity
   */
  #poll(exchange, head, request, token, identity) {
    if (exchange.gone) return
    const { client } = this.#context.config
    if (identity.user === '' && token && client.disallow_anonymous_connection_tokens) throw refusals.anonymous
    if (request.channels.length > client.channel_limit) throw refusals.tooManyChannels
    const positions = request.cursor === '' ? null : this.#cursors.read(request.cursor)
    if (request.cursor !== '' && positions === null) throw refusals.badCursor
    const channels = request.channels.map(name => {
      const namespace = this.#admit(name, identity)
      const { offset, epoch } = positions?.get(name) ?? this.#start(name, namespace, identity.user, request)
      return { name, namespace, offset, epoch }
    })
    this.#polls.begin(exchange, head, channels, this.#timeout(request.timeout, identity))
  }

  /** @param {number} timeout ms @param {Identity} identity @returns {number} ms; a poll ends when its token expires */
  #timeout(timeout, { expireAt }) {
    if (expireAt === 0) return timeout
    return Math.max(0, Math.min(timeout, expireAt * 1000 - this.#context.clock()))
  }

  /**
   * Applies the rules for channels that a connect request names.
   * @param {string} channel @param {Identity} identity
   * @returns {Namespace}
   */
  #admit(channel, { user, subs }) {
    const { config, rules } = this.#context
    const namespace = rules.resolve(channel)
    if (!namespace) throw unknownNamespace(channel)
    const personal = config.client.subscribe_to_user_personal_channel.enabled && user !== ''
    if (subs.has(channel) || (personal && channel === rules.personalChannel(user))) return namespace
    const { max_length } = config.channel
    if (Buffer.byteLength(channel) > max_length || !rules.checkName(channel, namespace))
      throw badName(channel)
    if (!rules.maySubscribeUnasked(channel, namespace, user)) throw forbidden(channel, 'permission denied')
    return namespace
  }

  /**
   * Start position in a channel that the cursor does not contain.
   * @param {string} channel @param {Namespace} namespace @param {string} user @param {PollRequest} request
   * @returns {Position}
   */
  #start(channel, namespace, user, { since }) {
    if (since === null || !namespace.historyOn) return { offset: StartOffset.NOW, epoch: '' }
    // Earlier publications require permission to recover or to read history.
    const { options } = namespace
    const { config, rules } = this.#context
    const may =
      options.force_recovery ||
      options.allow_recovery ||
      config.client.insecure ||
      rules.mayReadHistory(namespace, user, true)
    if (!may) throw forbidden(channel, 'since requires access to history')
    return { offset: since === 'earliest' ? StartOffset.EARLIEST : since, epoch: '' }
  }
}
