import { errors } from '../../../base/errors.js'
import { identify } from '../../auth/tokens.js'
import { Operation } from '../../hooks/capabilities.js'
import { PollJsonCodec } from '../../protocol/uni-json.js'
import { retryAfter } from '../../server/contract.js'
import { checkServerFilter } from '../../session/rights.js'
import { bearerToken, trustedUser } from '../http-request.js'
import { NO_CACHE, notAllowed } from '../origin.js'
import { Cursors } from './cursor.js'
import { StartOffset } from './feed.js'
import { Polls } from './polls.js'
import { badName, forbidden, Refusal, refusalFor, refusals, unknownNamespace } from './refusal.js'
import { readRequest } from './request.js'

/** @import { Namespace } from '../../auth/channel-rules.js' */
/** @import { Identity } from '../../auth/tokens.js' */
/** @import { Filter } from '../../protocol/filter.js' */
/** @import { Exchange } from '../../server/contract.js' */
/** @import { TransportParts } from '../index.js' */
/** @import { PollRequest } from './request.js' */

/** @typedef {Readonly<Record<string, string>>} Head */

const METHODS = 'GET, POST, OPTIONS'
/** Shared head of most responses. @type {Head} */
const HEAD = Object.freeze({ ...NO_CACHE, 'Content-Type': 'application/json' })
/** Maximum cached heads with CORS headers. */
const MAX_HEADS = 100

/** Endpoint of one-way long-poll (docs/uni-poll.md). No sessions: each request contains its position. */
export class UniPollEndpoint {
  #context
  #parts
  #cursors
  #polls
  /** @type {Map<string, Head>} */
  #heads = new Map()

  /** @param {TransportParts} parts */
  constructor(parts) {
    const { context, fanout } = parts
    const { max_request_body_size } = context.config.uni_poll
    this.#context = context
    this.#parts = parts
    this.#cursors = new Cursors(Buffer.from(context.cursorKey, 'base64'), max_request_body_size)
    this.#polls = new Polls(context, fanout, this.#cursors, new PollJsonCodec())
  }

  mount() {
    const { handler_prefix } = this.#context.config.uni_poll
    const { server, cors } = this.#parts
    for (const method of ['GET', 'POST'])
      server.route(method, handler_prefix, exchange => this.#request(exchange, method === 'POST'))
    server.route('OPTIONS', handler_prefix, exchange =>
      exchange.reply(204, cors.preflight(exchange, METHODS), ''),
    )
    server.route('*', handler_prefix, exchange =>
      this.#refuse(exchange, { ...this.#head(exchange), Allow: METHODS }, refusals.method),
    )
  }

  reload() {
    this.#cursors.setKey(Buffer.from(this.#context.cursorKey, 'base64'))
  }

  denied() {
    this.#polls.denied()
  }

  /** @returns {import('../index.js').Clients} */
  drain() {
    return { clients: this.#polls.close(), end: poll => this.#polls.release(poll) }
  }

  /** @param {Exchange} exchange headers and query are valid until this returns @param {boolean} posted */
  #request(exchange, posted) {
    const { cors, admission } = this.#parts
    const head = this.#head(exchange)
    if (!cors.admits(exchange))
      return this.#refuse(exchange, head, new Refusal(403, errors.permissionDenied, notAllowed(exchange)))
    if (!admission.admits(exchange, true))
      return this.#refuse(exchange, { ...head, ...retryAfter() }, refusals.tooMany)
    const user = trustedUser(exchange, this.#context.config)
    const client = { bearer: bearerToken(exchange), user, query: exchange.query }
    if (!posted) return this.#begin(exchange, head, client, null, false)
    const json = /\bjson\b/i.test(exchange.header('content-type'))
    exchange.body(this.#context.config.uni_poll.max_request_body_size, body => {
      if (body === null) this.#refuse(exchange, head, refusals.tooLong)
      else this.#begin(exchange, head, client, body, json)
    })
  }

  /** @param {Exchange} exchange @returns {Head} */
  #head(exchange) {
    const head = this.#parts.cors.headers(exchange, HEAD)
    if (head === HEAD) return HEAD
    // Waiting polls share equal heads to save memory.
    const key = Object.values(head).join('\n')
    const known = this.#heads.get(key)
    if (known !== undefined) return known
    if (this.#heads.size === MAX_HEADS) this.#heads.clear()
    this.#heads.set(key, head)
    return head
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
      // Clients with a cursor are not new.
      if (request.cursor === '' && this.#parts.admission.overloaded) {
        this.#context.refusals.add('overload', exchange)
        return this.#refuse(exchange, { ...head, ...retryAfter() }, refusals.tooMany)
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
    if (refusal === null) this.#context.log.error({ err: error }, 'poll failed')
    else if (refusal.status === 401 || refusal.status === 403)
      this.#context.refusals.add(refusal.reason, exchange)
    this.#refuse(exchange, head, refusal ?? refusals.internal)
  }

  /** @param {Exchange} exchange @param {Head} head @param {Refusal} refusal */
  #refuse(exchange, head, { status, head: more, body }) {
    exchange.reply(status, { ...head, ...more }, body)
  }

  /**
   * @param {Exchange} exchange @param {Head} head @param {PollRequest} request @param {string} token
   * @param {Identity} identity
   */
  #poll(exchange, head, request, token, identity) {
    if (exchange.gone) return
    const { client } = this.#context.config
    if (identity.user === '' && token && client.disallow_anonymous_connection_tokens) throw refusals.anonymous
    const { denylist } = this.#context
    if (denylist.size > 0 && denylist.blocks(identity.user)) throw refusals.blocked
    if (request.channels.length > client.channel_limit) throw refusals.tooManyChannels
    const positions = request.cursor === '' ? null : this.#cursors.read(request.cursor)
    if (request.cursor !== '' && positions === null) throw refusals.badCursor
    const channels = request.channels.map(name => {
      const namespace = this.#admit(name, identity)
      const filter = this.#filter(name, namespace, identity)
      const { offset, epoch } = positions?.get(name) ?? this.#start(name, namespace, identity, request)
      return { name, namespace, filter, offset, epoch }
    })
    this.#polls.begin(exchange, head, channels, identity, this.#timeout(request.timeout, identity))
  }

  /** @param {number} timeout ms @param {Identity} identity @returns {number} ms; a poll ends when its token expires */
  #timeout(timeout, { expireAt }) {
    if (expireAt === 0) return timeout
    return Math.max(0, Math.min(timeout, expireAt * 1000 - this.#context.clock()))
  }

  /** Like `subs` in a connect request. @param {string} channel @param {Identity} identity @returns {Namespace} */
  #admit(channel, { user, subs, caps }) {
    const { config, rules } = this.#context
    const namespace = rules.resolve(channel)
    if (!namespace) throw unknownNamespace(channel)
    if (namespace.kind !== 'stream') throw forbidden(channel, 'not a stream: use another transport')
    const personal = config.client.subscribe_to_user_personal_channel.enabled && user !== ''
    if (subs.has(channel) || (personal && channel === rules.personalChannel(user))) return namespace
    const { max_length } = config.channel
    if (Buffer.byteLength(channel) > max_length || !rules.checkName(channel, namespace))
      throw badName(channel)
    const allowed =
      rules.maySubscribeUnasked(channel, namespace, user) ||
      (caps && caps.of(channel) & Operation.SUBSCRIBE && !rules.isPrivate(channel))
    if (!allowed) throw forbidden(channel, 'permission denied')
    return namespace
  }

  /** @param {string} channel @param {Namespace} namespace @param {Identity} identity @returns {Filter | null} */
  #filter(channel, namespace, { subs }) {
    const filter = subs.get(channel)?.filter
    try {
      checkServerFilter(namespace, filter)
    } catch (error) {
      throw forbidden(channel, error.message)
    }
    return filter ?? null
  }

  /** @param {string} channel @param {Namespace} namespace @param {Identity} identity @param {PollRequest} request */
  #start(channel, namespace, { user, caps }, { since }) {
    if (since === null || !namespace.historyOn) return { offset: StartOffset.NOW, epoch: '' }
    // Earlier publications require recovery or history permission.
    const { options } = namespace
    const { config, rules } = this.#context
    const may =
      options.force_recovery ||
      options.allow_recovery ||
      config.client.insecure ||
      rules.mayReadHistory(namespace, user, true) ||
      (caps && channel.length <= config.channel.max_length && caps.of(channel) & Operation.HISTORY)
    if (!may) throw forbidden(channel, 'since requires access to history')
    return { offset: since === 'earliest' ? StartOffset.EARLIEST : since, epoch: '' }
  }
}
