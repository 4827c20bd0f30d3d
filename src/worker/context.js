/** Maximum `ttl` sent to a client: 365 days, s. */
const MAX_TTL = 365 * 24 * 3600

/**
 * @typedef {import('../protocol/contract.js').Codec} Codec
 * @typedef {{json: Codec, protobuf: Codec, uniJson: Codec}} Codecs the hub encodes once per codec
 */

/** The parts of one worker, for rooms that need several of them. Only a reload changes it: config, rules, tokens. */
export class WorkerContext {
  /**
   * @param {object} parts @param {any} parts.config frozen
   * @param {import('../auth/channel-rules.js').ChannelRules} parts.rules
   * @param {import('../auth/tokens.js').Tokens} parts.tokens
   * @param {import('../broker/contract.js').Broker} parts.broker @param {import('../hub/hub.js').Hub} parts.hub
   * @param {Codecs} parts.codecs @param {import('../session/sessions.js').Sessions} parts.sessions
   * @param {import('../session/reply-batch.js').ReplyBatch} parts.replies
   * @param {import('../timer-wheel.js').TimerWheel} parts.timers @param {import('pino').Logger} parts.log
   * @param {() => string} parts.newClientId
   * @param {() => string} parts.newSessionId for sessions that posts refer to
   * @param {{id: string, worker: number}} parts.place id of this node, index of this worker
   * @param {import('../stats/traffic.js').CounterWindow} parts.metrics for `info` of the server API
   * @param {import('../stats/traffic.js').Traffic} parts.traffic @param {string} parts.version sent to clients
   * @param {() => number} parts.clock ms
   */
  constructor({
    config,
    rules,
    tokens,
    broker,
    hub,
    codecs,
    sessions,
    replies,
    timers,
    newClientId,
    newSessionId,
    place,
    metrics,
    traffic,
    log,
    version,
    clock,
  }) {
    this.config = config
    this.rules = rules
    this.tokens = tokens
    this.broker = broker
    this.hub = hub
    this.codecs = codecs
    this.sessions = sessions
    this.replies = replies
    this.timers = timers
    this.newClientId = newClientId
    this.newSessionId = newSessionId
    this.node = place.id
    this.worker = place.worker
    this.metrics = metrics
    this.traffic = traffic
    this.log = log
    this.version = version
    this.clock = clock
  }

  /** @param {number} expireAt unix s @returns {number} seconds left, 1 s to 365 days */
  ttl(expireAt) {
    return Math.min(MAX_TTL, Math.max(1, Math.ceil(expireAt - this.clock() / 1000)))
  }

  /** @returns {number} unix s */
  now() {
    return Math.floor(this.clock() / 1000)
  }
}
