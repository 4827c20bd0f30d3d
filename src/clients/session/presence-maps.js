import { SlicedWork } from '../../base/slices.js'
import { Kind, list } from './subscription.js'

/** @import { MapPublish } from '../../channels/broker/contract.js' */
/** @import { Session } from './session.js' */
/** @import { Subscription } from './subscription.js' */

/** Parts of an interval, to spread the renewals. */
const PARTS = 16
const NO_OPTIONS = Object.freeze({})
const LISTED = Kind.IN_CLIENTS_MAP | Kind.IN_USERS_MAP

/** Renewals of existing keys are neither in the stream nor delivered. @type {MapPublish} */
const IF_NEW = Object.freeze({ keyMode: 'if_new', refresh: true })

const PREFIXES = Object.freeze({
  clients: 'map_clients_presence_channel_prefix',
  users: 'map_users_presence_channel_prefix',
})

/**
 * Maps of the clients and users of channels (`map_clients_presence_channel_prefix` ...), and keys that are removed with
 * their client (`map.remove_client_on_unsubscribe`). Renews the keys in each `client.presence_update_interval`.
 */
export class PresenceMaps {
  /** With entries in maps, or until recently. @type {Set<Session>} */
  #sessions = new Set()
  #round = this.#sessions.values()
  /** Users renewed in this round: channel and user. @type {Set<string>} */
  #renewed = new Set()
  /** Sessions to visit in this part of the interval. */
  #due = 0
  #work = new SlicedWork(() => this.#visit())
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /** @param {Session} session @param {Subscription} subscription with a bit of MAPPED */
  enter(session, subscription) {
    if ((subscription.kind & LISTED) === 0) return
    this.#write(session, subscription, subscription.kind, IF_NEW)
    this.#sessions.add(session)
    const interval = session.context.config.client.presence_update_interval
    if (this.#timer !== undefined || interval === 0) return
    this.#timer = setInterval(() => this.#tick(), Math.max(1, interval / PARTS))
  }

  /** Keys of users stay until they expire. @param {Session} session @param {Subscription} subscription */
  leave(session, { kind, channel: { name } }) {
    if (kind & Kind.IN_CLIENTS_MAP) this.#remove(session, this.#mapOf(session, name, 'clients'))
    if (kind & Kind.REMOVES_KEY) this.#remove(session, name)
  }

  /** The client's info has changed. @param {Session} session @param {Subscription} subscription */
  changed(session, subscription) {
    this.#write(session, subscription, subscription.kind & Kind.IN_CLIENTS_MAP, NO_OPTIONS)
  }

  /** @param {Session} session @param {string} channel @param {keyof typeof PREFIXES} of */
  #mapOf({ context: { rules } }, channel, of) {
    const prefix = rules.resolve(channel)?.options[PREFIXES[of]] ?? ''
    return prefix === '' ? '' : prefix + channel
  }

  /**
   * @param {Session} session @param {Subscription} subscription @param {number} kind bits of the maps
   * @param {MapPublish} options of the client's key
   */
  #write(session, { channel: { name }, details }, kind, options) {
    if (kind & Kind.IN_CLIENTS_MAP) {
      const own = { ...options, info: session.clientInfo(details.info), owned: true }
      this.#publish(session, this.#mapOf(session, name, 'clients'), session.id, own)
    }
    if (kind & Kind.IN_USERS_MAP && session.user !== '')
      this.#publish(session, this.#mapOf(session, name, 'users'), session.user, IF_NEW)
  }

  /** @param {Session} session @param {string} map '' = none @param {string} key @param {MapPublish} options */
  #publish({ context }, map, key, options) {
    const rules = context.rules.resolve(map)?.mapRules
    if (map === '' || !rules) return
    context.broker.maps.publish(map, key, '', rules, options, error => {
      if (error) context.log.warn({ err: error, channel: map }, 'presence map update failed')
    })
  }

  /** @param {Session} session @param {string} map '' = none */
  #remove({ id, context }, map) {
    const rules = context.rules.resolve(map)?.mapRules
    if (map === '' || !rules) return
    context.broker.maps.remove(map, id, rules, NO_OPTIONS, error => {
      if (error) context.log.warn({ err: error, channel: map }, 'presence map update failed')
    })
  }

  #tick() {
    if (this.#sessions.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
      return
    }
    this.#due = Math.ceil(this.#sessions.size / PARTS)
    this.#work.run()
  }

  /** Visits the next session of the round, which includes sessions added meanwhile. */
  #visit() {
    if (this.#due-- <= 0) return false
    const { value: session, done } = this.#round.next()
    if (done) {
      this.#round = this.#sessions.values()
      this.#renewed.clear()
      return false
    }
    const listed = session.closed ? [] : list(session.subscriptions).filter(({ kind }) => kind & LISTED)
    if (listed.length === 0) this.#sessions.delete(session)
    for (const subscription of listed) this.#renew(session, subscription)
    return true
  }

  /** @param {Session} session @param {Subscription} subscription */
  #renew(session, subscription) {
    let { kind } = subscription
    if (kind & Kind.IN_USERS_MAP) {
      const entry = `${subscription.channel.name}\0${session.user}`
      if (this.#renewed.has(entry)) kind &= ~Kind.IN_USERS_MAP
      this.#renewed.add(entry)
    }
    this.#write(session, subscription, kind, IF_NEW)
  }
}
