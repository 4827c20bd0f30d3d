// Publications with a target (broker/target.js). The connections that it names are looked up, not searched:
//
//   exclude_*   they follow ASIDE instead of their fan-out topic during the publish
//   users       they also follow ONLY, and the publish goes to it

import { reaches } from '../broker/target.js'

/** @import { Publication } from '../broker/contract.js' */
/** @import { Target } from '../broker/target.js' */
/** @import { Channel, Cohort } from './channel.js' */
/** @import { Hub, Member, Subscriber } from './hub.js' */

/**
 * Connected sessions of this worker. `of`: of a user, not anonymous; `client`: by client id.
 * @typedef {{of: (user: string) => Iterable<Member>, client: (id: string) => Member | undefined}} SessionLookup
 *
 * One-way polls of a channel: one subscriber for `clients` of them, which checks the target for each.
 * @typedef {{subscriber: Subscriber, cohort: Cohort, clients: number}} PollGroup
 *
 * @typedef {{subscribers: Subscriber[], clients: number}} Group of a cohort
 */

/** Topics that no cohort has: `Hub.newTopic` makes letters and digits. */
const ASIDE = '-aside'
const ONLY = '-only'

/** @type {Group} */
const NOBODY = Object.freeze({ subscribers: [], clients: 0 })

export class TargetFanout {
  /** @type {(channel: string) => PollGroup | null} null: no one-way poll waits */
  polls = () => null
  #hub
  #sessions

  /** @param {Hub} hub @param {SessionLookup} sessions */
  constructor(hub, sessions) {
    this.#hub = hub
    this.#sessions = sessions
  }

  /** @param {Channel} channel @param {Publication} publication @param {Target} target of the publication */
  publish(channel, publication, target) {
    const { batches } = this.#hub
    batches.flush(channel, 'target')
    const groups = this.#named(channel.name, target)
    const { deltas } = channel
    for (const cohort of channel.cohorts) {
      const hidden = cohort.events || (cohort.filter && !cohort.filter.matches(publication.tags))
      if (!hidden) this.#send(channel, cohort, groups.get(cohort) ?? NOBODY, publication, target)
    }
    if (deltas === null) return
    for (const cohort of deltas.cohorts)
      this.#send(channel, cohort, groups.get(cohort) ?? NOBODY, publication, target)
    // Not all subscribers have it.
    deltas.clear()
  }

  /** @param {string} name of a channel @param {Target} target @returns {Map<Cohort, Group>} named by the target */
  #named(name, { excludeClient, excludeUser, users }) {
    /** @type {Map<Cohort, Group>} */
    const groups = new Map()
    const add = (/** @type {Cohort} */ cohort, /** @type {Subscriber} */ subscriber, clients = 1) => {
      const group = groups.get(cohort) ?? { subscribers: [], clients: 0 }
      groups.set(cohort, group)
      group.subscribers.push(subscriber)
      group.clients += clients
    }
    for (const user of users === null ? [excludeUser] : new Set(users)) {
      if (user === '') continue
      for (const session of this.#sessions.of(user)) {
        const cohort = session.subscription(name)?.cohort
        if (cohort !== undefined) add(cohort, session)
      }
    }
    if (users !== null) {
      const polls = this.polls(name)
      if (polls !== null) add(polls.cohort, polls.subscriber, polls.clients)
    } else if (excludeClient !== '') {
      const session = this.#sessions.client(excludeClient)
      const cohort =
        session?.user === excludeUser && excludeUser !== '' ? undefined : session?.subscription(name)?.cohort
      if (session !== undefined && cohort !== undefined) add(cohort, session)
    }
    return groups
  }

  /**
   * @param {Channel} channel @param {Cohort} cohort @param {Group} named of the cohort @param {Publication} publication
   * @param {Target} target
   */
  #send({ name }, cohort, { subscribers, clients }, publication, target) {
    const { codec, channelId } = cohort
    const only = target.users !== null
    const count = only ? clients : cohort.count - clients
    if (count === 0) return
    if (!publication.json && !codec.binary) return this.#disconnectJson(name, cohort, target)
    const bytes = cohort.delta
      ? codec.deltaPublication(channelId || name, publication, null)
      : codec.publication(channelId || name, publication)
    for (const subscriber of subscribers) {
      // Follow first: a session without any topic may lose messages in transit from the old one.
      subscriber.follow(only ? ONLY : ASIDE)
      if (!only) subscriber.unfollow(cohort.topic)
    }
    this.#hub.fanout.publish({ topic: only ? ONLY : cohort.topic, codec, count }, bytes, publication)
    this.#hub.delivered += count
    for (const subscriber of subscribers) {
      if (!only) subscriber.follow(cohort.topic)
      subscriber.unfollow(only ? ONLY : ASIDE)
    }
  }

  /** The payload is not JSON. @param {string} name @param {Cohort} cohort @param {Target} target */
  #disconnectJson(name, cohort, target) {
    for (const session of this.#hub.members(name, other => other === cohort))
      if (reaches(target, session.user, session.id)) session.inappropriateProtocol()
  }
}
