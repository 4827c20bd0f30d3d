// Subscribers that recover from an empty cache: the backend may publish to the channel first.
//
//   prepare -- no publication --> call of the backend, one a channel, shared --> prepare again: with the publication,
//                                 '- "not populated" within a second --.         or with later ones
//                                                                      '-------> as without a backend

import { errors } from '../../base/errors.js'
import { Timer } from '../../base/timers.js'
import { NOT_SUBSCRIBED } from '../../channels/broker/contract.js'
import { CacheEmptyEvent } from '../hooks/events.js'

/** @import { SubscribeAnswer } from '../../channels/broker/contract.js' */
/** @import { Channel } from '../../channels/hub/channel.js' */
/** @import { CacheEmptyAnswer, Handler } from '../hooks/contract.js' */
/** @import { WorkerContext } from './context.js' */
/** @import { Plan } from './plan.js' */

/** @typedef {(error: Error | null, channel: Channel, answer: SubscribeAnswer) => void} Prepared as of `hub.prepare` */

/** Time for which an answer `populated: false` holds, ms. */
const KEEP_MS = 1000

/** The call for a channel, and then its answer, if it is false. */
class Entry extends Timer {
  /** Called at the end of the call; null: it has ended. @type {((error: Error | null) => void)[] | null} */
  waiting = []
  #owner
  #channel

  /** @param {EmptyCaches} owner @param {string} channel */
  constructor(owner, channel) {
    super()
    this.#owner = owner
    this.#channel = channel
  }

  onTimer() {
    this.#owner.forget(this.#channel)
  }
}

/** Channels without a publication whose backend is asked, or has answered that it does not publish. */
export class EmptyCaches {
  /** @type {Map<string, Entry>} */
  #entries = new Map()

  /** @param {string} channel */
  forget(channel) {
    this.#entries.delete(channel)
  }

  /**
   * @param {WorkerContext} context @param {string} channel @param {Handler<CacheEmptyEvent, CacheEmptyAnswer>} handler
   * @param {(error: Error | null) => void} done called later, when the backend has answered
   * @returns {boolean} false: it has answered within the last second that it does not publish
   */
  ask(context, channel, handler, done) {
    const running = this.#entries.get(channel)
    if (running !== undefined) {
      running.waiting?.push(done)
      return running.waiting !== null
    }
    const entry = new Entry(this, channel)
    entry.waiting = [done]
    this.#entries.set(channel, entry)
    // The handler may answer at once.
    queueMicrotask(() =>
      context.hookCalls.ask(null, handler, new CacheEmptyEvent(channel, context), (error, answer) =>
        this.#answered(context, channel, entry, error, answer?.populated === true),
      ),
    )
    return true
  }

  /**
   * @param {WorkerContext} context @param {string} channel @param {Entry} entry @param {Error | null} error
   * @param {boolean} populated
   */
  #answered({ timers, clock, log }, channel, entry, error, populated) {
    const waiting = entry.waiting ?? []
    entry.waiting = null
    if (error !== null || populated) this.forget(channel)
    else timers.schedule(entry, clock() + KEEP_MS)
    for (const done of waiting) {
      try {
        done(error)
      } catch (thrown) {
        log.error({ err: thrown, channel }, 'subscribe failed')
      }
    }
  }
}

/**
 * As `hub.prepare` for a plan, but the backend may fill an empty cache first. A failed call is errors.internal.
 * @param {Plan} plan @param {Prepared} done
 */
export function prepareCached(plan, done) {
  const { session, namespace } = plan
  const { context } = session
  const { hub, emptyCaches } = context
  const handler = namespace.handlers.cacheEmpty
  if (handler === null || !plan.cache) return hub.prepare(plan.channel, plan.wants(), done)
  hub.prepare(plan.channel, plan.wants(), (error, channel, answer) => {
    if (error || session.closed || !plan.findsNothing(answer)) return done(error, channel, answer)
    /** @param {Error} failure */
    const fail = failure => {
      // `abandon` would also remove the presence of a subscription that the server API has made meanwhile.
      if (session.subscription(plan.channel)) hub.release(channel)
      else plan.abandon(channel)
      done(failure, channel, NOT_SUBSCRIBED)
    }
    const asked = emptyCaches.ask(context, plan.channel, handler, failure => {
      if (failure !== null || session.closed) return fail(errors.internal)
      // The first one keeps the channel.
      hub.prepare(plan.channel, plan.wants(), (error, again, answer) => {
        if (error) return fail(error)
        hub.release(channel)
        done(null, again, answer)
      })
    })
    if (!asked) done(null, channel, answer)
  })
}
