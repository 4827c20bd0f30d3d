import { disconnects, errors } from '../../base/errors.js'

/** @import { Plan } from '../../clients/session/plan.js' */
/** @import { Session } from '../../clients/session/session.js' */

/** Until a subscription is tried again, ms: at first, and at most. */
const FIRST_RETRY_MS = 50
const MAX_RETRY_MS = 1000
/** Tries of half a minute; then the client has to reconnect. */
const MAX_TRIES = 30

/** Subscriptions made by the server API. */
export class ServerSubscribes {
  /** @type {Map<Session, Set<{channel: string, cancelled: boolean}>>} subscriptions not made yet */
  #underway = new Map()

  /**
   * Subscribes a client; tries again while the broker is out of reach.
   * @param {Session} session @param {string} channel @param {() => Plan} newPlan
   */
  start(session, channel, newPlan) {
    const entry = { channel, cancelled: false }
    const own = this.#underway.get(session) ?? new Set()
    this.#underway.set(session, own.add(entry))
    this.#try(session, entry, newPlan, 1)
  }

  /** An unsubscribe follows: what is under way comes to nothing. @param {Session} session @param {string} channel */
  cancel(session, channel) {
    for (const entry of this.#underway.get(session) ?? [])
      if (entry.channel === channel) entry.cancelled = true
  }

  /** @param {Session} session @param {{channel: string, cancelled: boolean}} entry */
  #finish(session, entry) {
    const own = this.#underway.get(session)
    own?.delete(entry)
    if (own?.size === 0) this.#underway.delete(session)
  }

  /**
   * @param {Session} session @param {{channel: string, cancelled: boolean}} entry @param {() => Plan} newPlan
   * @param {number} tries
   */
  #try(session, entry, newPlan, tries) {
    const { hub, config, log } = session.context
    const held = session.subscription(entry.channel) !== undefined
    if (!held && session.subscriptionCount >= config.client.channel_limit) {
      this.#finish(session, entry)
      return session.close(disconnects.channelLimit)
    }
    const plan = newPlan()
    hub.prepare(plan.channel, plan.wants(), (error, channel, answer) => {
      const dropped = session.closed || entry.cancelled
      if (error && !dropped && error === errors.internal && tries < MAX_TRIES) {
        const delay = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** (tries - 1))
        setTimeout(() => {
          if (session.closed || entry.cancelled) this.#finish(session, entry)
          else this.#try(session, entry, newPlan, tries + 1)
        }, delay)
        return
      }
      this.#finish(session, entry)
      if (error) {
        if (dropped) return
        log.error({ err: error, channel: plan.channel }, 'server-side subscribe failed')
        return session.close(disconnects.insufficientState)
      }
      if (dropped) return plan.abandon(channel)
      this.#join(session, plan, channel, answer)
    })
  }

  /**
   * @param {Session} session @param {Plan} plan @param {import('../../channels/hub/channel.js').Channel} channel
   * @param {import('../../channels/broker/contract.js').SubscribeAnswer} answer
   */
  #join(session, plan, channel, answer) {
    const { hub } = session.context
    const { publications, ...result } = plan.result(answer)
    if (!session.canReceive(publications)) {
      plan.abandon(channel)
      return session.inappropriateProtocol()
    }
    // An existing subscription becomes server-side: it moves to the new one in one step.
    const former = session.subscription(plan.channel)
    if (former) {
      // Its client gets everything before the new position.
      hub.batches.flush(channel, 'subscribe')
      // The batch may have had a payload that its codec cannot carry.
      if (session.closed) return plan.abandon(channel)
      session.detachSubscription(former)
      plan.withdraw(former)
    }
    session.send(session.codec.subscribed(plan.channel, result))
    // A push cannot negotiate deltas; the client goes on reading the channel as negotiated before.
    plan.delta = former?.cohort.delta ?? false
    // A subscribe push has no field for publications: they follow as separate pushes.
    for (const publication of publications ?? []) {
      const message = plan.delta
        ? session.codec.deltaPublication(plan.channel, publication, null)
        : session.codec.publication(plan.channel, publication)
      session.send(message)
    }
    plan.join(channel)
  }
}
