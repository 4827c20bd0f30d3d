import { NO_HANDLERS } from '../hooks/contract.js'
import { SingleConnections } from './single-connections.js'

/** @import { Config } from '../../config/options.js' */
/** @import { ChannelRules } from '../auth/channel-rules.js' */
/** @import { Tokens } from '../auth/tokens.js' */
/** @import { Broker } from '../../channels/broker/contract.js' */
/** @import { HookCalls } from './hook-calls.js' */
/** @import { Handlers, Lifecycle } from '../hooks/contract.js' */
/** @import { Hub } from '../../channels/hub/hub.js' */
/** @import { Log } from '../../base/log.js' */
/** @import { Codec } from '../protocol/contract.js' */
/** @import { ReplyBatch } from './replies.js' */
/** @import { Sessions } from './sessions.js' */
/** @import { Refusals } from '../../metrics/refusals.js' */
/** @import { CounterWindow, Traffic } from '../../metrics/traffic.js' */
/** @import { TimerWheel } from '../../base/timers.js' */

/** Maximum `ttl` sent to a client: 365 days, s. */
const MAX_TTL = 365 * 24 * 3600

/** @typedef {{json: Codec, protobuf: Codec, uniJson: Codec}} Codecs the hub encodes once per codec */

/** The parts of one worker, for rooms that need several of them. Only a reload changes it, see live-config.js. */
export class WorkerContext {
  /**
   * @param {object} parts @param {Config} parts.config frozen @param {string} parts.cursorKey base64
   * @param {ChannelRules} parts.rules
   * @param {Handlers} parts.handlers of hooks @param {HookCalls} parts.hookCalls
   * @param {Lifecycle | null} parts.lifecycle null: nobody observes sessions
   * @param {Tokens} parts.tokens @param {Broker} parts.broker @param {Hub} parts.hub
   * @param {Codecs} parts.codecs @param {Sessions} parts.sessions @param {ReplyBatch} parts.replies
   * @param {TimerWheel} parts.timers @param {Log} parts.log
   * @param {() => string} parts.newClientId
   * @param {() => string} parts.newSessionId for sessions that posts refer to
   * @param {{id: string, worker: number, index: number}} parts.place id of this node, number and slot of this
   *   worker
   * @param {CounterWindow} parts.metrics for `info` of the server API
   * @param {Traffic} parts.traffic @param {Refusals} parts.refusals @param {string} parts.version sent to clients
   * @param {() => number} parts.clock ms
   */
  constructor(parts) {
    this.config = parts.config
    this.cursorKey = parts.cursorKey
    this.rules = parts.rules
    this.tokens = parts.tokens
    this.handlers = parts.handlers
    this.hookCalls = parts.hookCalls
    this.lifecycle = parts.lifecycle
    this.broker = parts.broker
    this.singles = new SingleConnections(parts.broker.control, parts.log)
    this.hub = parts.hub
    this.codecs = parts.codecs
    this.sessions = parts.sessions
    this.replies = parts.replies
    this.timers = parts.timers
    this.newClientId = parts.newClientId
    this.newSessionId = parts.newSessionId
    this.node = parts.place.id
    /** Unique among all workers that this node ever has: calls and session ids name it. */
    this.worker = parts.place.worker
    /** Of the slot: the number in logs and figures. */
    this.index = parts.place.index
    this.metrics = parts.metrics
    this.traffic = parts.traffic
    this.refusals = parts.refusals
    this.log = parts.log
    this.version = parts.version
    this.clock = parts.clock
  }

  /** Whether handlers, republishers or the lifecycle need to know more of a session than its transport. */
  get observed() {
    return this.handlers !== NO_HANDLERS || this.lifecycle !== null || this.rules.republishesMeta
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
