import { Timer } from '../../base/timers.js'
import { SubscriptionType } from '../protocol/requests.js'
import { Plan } from './plan.js'
import { Kind } from './subscription.js'

/** @import { Namespace } from '../auth/channel-rules.js' */
/** @import { PollRules } from '../../channels/broker/contract.js' */
/** @import { Channel } from '../../channels/hub/channel.js' */
/** @import { Tracking } from '../../channels/hub/polls.js' */
/** @import { Config } from '../../config/options.js' */
/** @import { SubscribeResult } from '../protocol/contract.js' */
/** @import { Grant } from './plan.js' */
/** @import { Session } from './session.js' */

/** Removes keys whose signatures were not renewed. */
class TrackExpiry extends Timer {
  /** @param {Session} session @param {Tracking} tracking @param {number} delay ms */
  constructor(session, tracking, delay) {
    super()
    this.session = session
    this.tracking = tracking
    this.delay = delay
  }

  /** Schedules the next expiry, if any key expires. */
  schedule() {
    const { timers } = this.session.context
    let first = Infinity
    for (const { expireAt } of this.tracking.keys.values())
      if (expireAt > 0 && expireAt < first) first = expireAt
    timers.cancel(this)
    if (first < Infinity) timers.schedule(this, first * 1000 + this.delay)
  }

  onTimer() {
    const end = (this.session.context.clock() - this.delay) / 1000
    const expired = []
    for (const [key, { expireAt }] of this.tracking.keys)
      if (expireAt > 0 && expireAt <= end) expired.push(key)
    this.tracking.untrack(expired)
    this.schedule()
  }
}

/**
 * The shared polls of a session. `pending`: keys of track requests without a reply, which count as tracked.
 * @extends {Map<string, {tracking: Tracking, expiry: TrackExpiry, pending: Set<Map<string, unknown>>}>}
 */
export class SessionPolls extends Map {
  /** @param {Session} session @param {string} channel @param {Tracking} tracking @param {number} delay ms */
  add(session, channel, tracking, delay) {
    this.set(channel, {
      tracking,
      expiry: new TrackExpiry(session, tracking, delay),
      pending: new Set(),
    })
  }

  /** @param {Session} session @param {string} channel */
  end({ context }, channel) {
    const poll = this.get(channel)
    if (poll === undefined) return
    context.timers.cancel(poll.expiry)
    poll.tracking.end()
    this.delete(channel)
  }
}

/** @param {Namespace} namespace @param {Config} config @returns {PollRules} */
export const pollRulesOf = ({ options: { shared_poll: poll } }, config) => ({
  interval: poll.refresh_interval,
  batchSize: poll.refresh_batch_size,
  concurrency: config.shared_poll.concurrency_limit,
  shutdownDelay: poll.channel_shutdown_delay,
  versioned: poll.mode === 'versioned',
})

/** A subscription to a shared poll: without positions and history, its publications are updates of tracked keys. */
export class PollPlan extends Plan {
  /** @type {Tracking | null} null: not open yet, or abandoned */
  #tracking = null
  #negotiated

  /**
   * @param {Session} session @param {string} channel @param {Namespace} namespace
   * @param {any} request fields of a SubscribeRequest @param {Grant} grant
   */
  constructor(session, channel, namespace, request, grant) {
    super(session, channel, namespace, request, grant, false)
    this.kind = (this.kind & ~(Kind.POSITIONED | Kind.RECOVERABLE)) | Kind.POLL
    this.recovering = this.wasRecovering = this.rejectUnrecovered = this.cache = false
    // Updates of keys have the channel's name.
    this.compact = false
    // The hub has no part in the deltas of keys.
    this.#negotiated = this.delta
    this.delta = false
  }

  /** Opens the poll of the node. @param {(error: Error | null) => void} done */
  open(done) {
    const { session, namespace } = this
    const { hub, config } = session.context
    const rules = pollRulesOf(namespace, config)
    hub.polls.subscribe(session, this.channel, rules, this.#negotiated, (error, tracking, epoch) => {
      this.#tracking = tracking
      this.epoch = epoch
      if (error || session.closed) this.drop()
      done(error)
    })
  }

  /** @override */
  result() {
    /** @type {SubscribeResult} */
    const result = { type: SubscriptionType.SHARED_POLL }
    // The channel may have changed since it was opened.
    const epoch = this.#tracking?.channel.epoch
    if (epoch) result.epoch = epoch
    if (this.#negotiated) result.delta = true
    return this.terms(result)
  }

  /** @override @param {Channel} channel */
  join(channel) {
    super.join(channel)
    if (this.#tracking === null) return
    const { session, namespace } = this
    const extra = session.needExtra()
    extra.polls ??= new SessionPolls()
    extra.polls.add(
      session,
      channel.name,
      this.#tracking,
      namespace.options.shared_poll.track_expired_extra_delay,
    )
    this.#tracking = null
  }

  /** @override */
  drop() {
    this.#tracking?.end()
    this.#tracking = null
  }
}
