import { NO_HANDLERS } from '../hooks/contract.js'
import { EmptyCaches } from './cache-empty.js'
import { DetailsSets } from './details.js'
import { PresenceMaps } from './presence-maps.js'
import { SingleConnections } from './single-connections.js'

/** @import { Config } from '../../config/options.js' */
/** @import { ChannelRules } from '../auth/channel-rules.js' */
/** @import { Tokens } from '../auth/tokens.js' */
/** @import { Broker } from '../../channels/broker/contract.js' */
/** @import { Denylist } from '../../channels/broker/denylist.js' */
/** @import { HookCalls } from './hook-calls.js' */
/** @import { Handlers, Lifecycle } from '../hooks/contract.js' */
/** @import { Hub } from '../../channels/hub/hub.js' */
/** @import { Log } from '../../base/log.js' */
/** @import { Codec } from '../protocol/contract.js' */
/** @import { Acks } from './acks.js' */
/** @import { RateLimits } from './rate-limits.js' */
/** @import { ReplyBatch } from './replies.js' */
/** @import { Sessions } from './sessions.js' */
/** @import { Refusals } from '../../metrics/refusals.js' */
/** @import { CounterWindow, Traffic } from '../../metrics/traffic.js' */
/** @import { TimerWheel } from '../../base/timers.js' */
/** @import { UserStatus } from './user-status.js' */

/** Maximum `ttl` sent to a client: 365 days, s. */
const MAX_TTL = 365 * 24 * 3600

/**
 * @typedef {object} Parts of one worker
 * @property {Config} config frozen
 * @property {string} cursorKey base64
 * @property {ChannelRules} rules
 * @property {Tokens} tokens
 * @property {Handlers} handlers hook handlers
 * @property {HookCalls} hookCalls
 * @property {Lifecycle | null} lifecycle
 * @property {RateLimits | null} rateLimits null: no limit is configured
 * @property {UserStatus | null} userStatus null: off
 * @property {Acks | null} acks null: `client.acks` is off
 * @property {Denylist} denylist
 * @property {Broker} broker
 * @property {Hub} hub
 * @property {{json: Codec, protobuf: Codec, uniJson: Codec}} codecs
 * @property {Sessions} sessions
 * @property {ReplyBatch} replies
 * @property {TimerWheel} timers
 * @property {() => string} newClientId
 * @property {() => string} newSessionId for sessions with POSTs
 * @property {string} node id
 * @property {number} worker number, in calls and session ids: unique among all current and former workers of this node
 * @property {number} index slot: the worker's number in logs and metrics
 * @property {CounterWindow} metrics for `info` of the server API
 * @property {Traffic} traffic
 * @property {Refusals} refusals
 * @property {Log} log
 * @property {string} version sent to clients
 * @property {() => number} clock ms
 * @typedef {object} Derived
 * @property {SingleConnections} singles
 * @property {PresenceMaps} presenceMaps
 * @property {EmptyCaches} emptyCaches
 * @property {DetailsSets} details
 * @property {boolean} observed whether handlers, republishers or the lifecycle need SessionExtra
 * @property {boolean} keepsMeta whether anything reads the metadata of connections
 * @property {(expireAt: number) => number} ttl seconds from now to `expireAt` (unix s), 1 s to 365 days
 * @property {() => number} now unix s
 * @typedef {Parts & Readonly<Derived>} WorkerContext changed only by reloads (live-config.js)
 */

/** @param {Parts} parts @returns {WorkerContext} */
export const createContext = parts => ({
  ...parts,
  singles: new SingleConnections(parts.broker.control, parts.log),
  presenceMaps: new PresenceMaps(),
  emptyCaches: new EmptyCaches(),
  details: new DetailsSets(),
  get observed() {
    return this.handlers !== NO_HANDLERS || this.lifecycle !== null || this.rules.republishesMeta
  },
  get keepsMeta() {
    return this.config.client.keep_connection_details || this.observed
  },
  ttl(expireAt) {
    return Math.min(MAX_TTL, Math.max(1, Math.ceil(expireAt - this.clock() / 1000)))
  },
  now() {
    return Math.floor(this.clock() / 1000)
  },
})
