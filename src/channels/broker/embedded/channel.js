import { Aged } from './recency.js'
import { Stream } from './stream.js'

/** @import { ChannelState } from './channel-states.js' */
/** @import { StoredMap } from './map-entries.js' */
/** @import { Store } from './store.js' */

/** Bytes of a stream, excluding entries, and of a channel without one; measured, excluding the name. */
const STREAM_BYTES = 500
const EMPTY_BYTES = 220
/** Maximum bytes per character of a name. */
const CHARACTER_BYTES = 2

/** @type {readonly any[]} */
const NO_LINKS = Object.freeze([])

/**
 * A connection in a channel's presence, through the worker `link`. `info`: ClientInfo as a byte string of JSON text;
 * `leave`: announce a leave if the worker dies.
 * @template L @typedef {{link: L, user: string, info: string, leave: boolean}} Present
 */

/** Clients present in a channel; counts their users, for constant-time statistics. @template L */
export class Presence {
  /** @type {Map<string, Present<L>>} by client id */
  clients = new Map()
  /** @type {ChannelState | null} null: not tracked */
  state = null
  /** @type {Map<string, number> | null} clients per user; null below two clients, as in most (personal) channels */
  #users = null

  get users() {
    return this.#users?.size ?? this.clients.size
  }

  /** @param {string} client @param {Present<L>} present */
  add(client, present) {
    this.#delete(client)
    this.clients.set(client, present)
    if (this.#users !== null) this.#count(present.user, 1)
    else if (this.clients.size > 1) {
      this.#users = new Map()
      for (const { user } of this.clients.values()) this.#count(user, 1)
    }
    this.state?.changed(this.clients.size)
  }

  /** @param {string} client @param {string} info byte string */
  update(client, info) {
    const present = this.clients.get(client)
    if (present !== undefined) present.info = info
  }

  /** @param {string} client */
  remove(client) {
    this.#delete(client)
    this.state?.changed(this.clients.size)
  }

  /** @param {string} client */
  #delete(client) {
    const present = this.clients.get(client)
    if (present === undefined) return
    this.clients.delete(client)
    if (this.clients.size <= 1) this.#users = null
    else this.#count(present.user, -1)
  }

  /** @param {string} user @param {1 | -1} change */
  #count(user, change) {
    const users = /** @type {Map<string, number>} */ (this.#users)
    const count = (users.get(user) ?? 0) + change
    if (count > 0) users.set(user, count)
    else users.delete(user)
  }
}

/** One channel in the primary. For the Redis engine see redis/channels.js. @template L */
export class Channel extends Aged {
  /** @type {readonly L[]} workers with a subscriber, mostly one; replaced, not modified, to have an exact size */
  links = NO_LINKS
  /** @type {StoredStream<L> | null} null: never published to under `epoch` */
  stream = null
  /** @type {Presence<L> | null} null: no client is present */
  presence = null
  /** @type {StoredMap<L> | null} null: no entries */
  map = null
  /** Epoch returned to readers, also that of `stream`; '' = none yet. */
  epoch = ''

  /** @param {string} name */
  constructor(name) {
    super()
    this.name = name
  }

  get empty() {
    return this.links.length === 0 && this.stream === null && this.presence === null && this.map === null
  }

  /** @param {L} link @returns {boolean} false: present */
  addLink(link) {
    if (this.links.includes(link)) return false
    this.links = this.links.length === 0 ? [link] : [...this.links, link]
    return true
  }

  /** @param {L} link @returns {boolean} false: not present */
  removeLink(link) {
    if (!this.links.includes(link)) return false
    this.links = this.links.length === 1 ? NO_LINKS : this.links.filter(other => other !== link)
    return true
  }

  /** @param {string} client @param {Present<L>} present */
  addPresent(client, present) {
    this.presence ??= new Presence()
    this.presence.add(client, present)
    return this.presence
  }

  /** @param {string} client */
  removePresent(client) {
    this.presence?.remove(client)
    if (this.presence?.clients.size === 0) this.presence = null
  }

  get streamBytes() {
    return STREAM_BYTES + CHARACTER_BYTES * this.name.length
  }

  get emptyBytes() {
    return EMPTY_BYTES + CHARACTER_BYTES * this.name.length
  }
}

/** The stream of a channel with publications. @template L */
export class StoredStream extends Stream {
  #store

  /** @param {Store<L>} store @param {Channel<L>} channel */
  constructor(store, channel) {
    super(channel.epoch)
    this.#store = store
    this.channel = channel
  }

  onTimer() {
    this.#store.checkStream(this)
  }
}
