import { Presence } from './presence.js'
import { Aged } from './recency.js'
import { Stream } from './stream.js'

/** @import { Present } from './presence.js' */
/** @import { Store } from './store.js' */

/** Bytes of a stream besides its entries, and of a channel without one, as measured; without the name. */
const STREAM_BYTES = 500
const EMPTY_BYTES = 220
/** Bytes of a character of a name, as much as the longest. */
const CHARACTER_BYTES = 2

/** @type {readonly any[]} */
const NO_LINKS = Object.freeze([])

/** One channel in the primary. Why the Redis engine has another table: see redis/channels.js. @template L */
export class Channel extends Aged {
  /** @type {readonly L[]} workers with a subscriber; replaced, never changed: most have one, and an exact size */
  links = NO_LINKS
  /** @type {StoredStream<L> | null} null: never published to under `epoch` */
  stream = null
  /** @type {Presence<L> | null} null: nobody is present */
  presence = null
  /** The epoch that readers were given, also that of `stream`; '' = none yet. */
  epoch = ''

  /** @param {string} name */
  constructor(name) {
    super()
    this.name = name
  }

  get empty() {
    return this.links.length === 0 && this.stream === null && this.presence === null
  }

  /** @param {L} link @returns {boolean} false: it was there */
  addLink(link) {
    if (this.links.includes(link)) return false
    this.links = this.links.length === 0 ? [link] : [...this.links, link]
    return true
  }

  /** @param {L} link @returns {boolean} false: it was not there */
  removeLink(link) {
    if (!this.links.includes(link)) return false
    this.links = this.links.length === 1 ? NO_LINKS : this.links.filter(other => other !== link)
    return true
  }

  /** @param {string} client @param {Present<L>} present */
  addPresent(client, present) {
    this.presence ??= new Presence()
    this.presence.add(client, present)
  }

  /** @param {string} client */
  removePresent(client) {
    this.presence?.remove(client)
    if (this.presence?.clients.size === 0) this.presence = null
  }

  /** Bytes of its stream besides the entries. */
  get streamBytes() {
    return STREAM_BYTES + CHARACTER_BYTES * this.name.length
  }

  /** Bytes of it while it is empty. */
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
