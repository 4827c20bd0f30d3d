import { errors } from '../../errors.js'
import { Begin } from './poll.js'

/**
 * @typedef {import('./poll.js').Place} Place
 * @typedef {import('../../broker/contract.js').Publication} Publication
 *
 * @typedef {object} Entry a publication, encoded
 * @property {string} text byte string
 * @property {number} offset 0: not in history
 */

const State = Object.freeze({ NEW: 0, OPENING: 1, LIVE: 2, CLOSED: 3 })

/** What a feed keeps of what has not been told yet: so many publications, so many bytes. */
const MAX_KEPT = 256
const MAX_KEPT_BYTES = 1024 * 1024
/** About so many bytes are read from history at once. */
const MAX_READ = 1024 * 1024

/**
 * A channel in this worker, as far as polls are concerned: one subscriber of the hub for all of them.
 *
 *            first         seq
 *      ......[n-2][n-1][n]       entries, by the feed's own count: it also counts what is not in history
 *                  ^ a poll that stands here is told [n-1] and [n]
 *
 * Between two polls of a client nobody may wait here, but the feed stays for a while, and knows the position of the
 * stream: so a poll that has missed nothing can wait without the broker being asked. What has been missed is read from
 * history. Entries are kept only until those who wait have been told.
 * @implements {Subscriber}
 * @typedef {import('../../hub/hub.js').Subscriber} Subscriber
 */
export class Feed {
  /** The stream's position, as this worker knows it. */
  offset = 0
  epoch = ''
  /** @type {Entry[]} */
  entries = []
  /** Number of the first one of them. */
  first = 1
  #bytes = 0
  /** @type {Set<Place>} those of polls that wait for news; the later ones are never behind the earlier ones */
  waiting = new Set()
  /** Places of polls that are not answered yet. */
  count = 0
  /** Whether it is on the list of those with news. */
  noted = false
  #state = /** @type {number} */ (State.NEW)
  /** @type {import('../../hub/channel.js').Channel | null} */
  #channel = null
  /** @type {import('../../hub/channel.js').Cohort | null} */
  #cohort = null
  /** @type {Place[]} those that wait until the feed is live */
  #opening = []
  /** @type {Map<string, Place[]> | null} position -> those whose history is being read */
  #reads = null
  /** Publications to read at once. */
  #page
  #polls

  /**
   * @param {import('./polls.js').Polls} polls
   * @param {string} name
   * @param {boolean} positioned whether the channel keeps history
   * @param {number} metaTtl ms
   */
  constructor(polls, name, positioned, metaTtl) {
    this.#polls = polls
    this.#page = polls.pageSize
    this.name = name
    this.positioned = positioned
    this.metaTtl = metaTtl
  }

  /** Number of the last entry. */
  get seq() {
    return this.first + this.entries.length - 1
  }

  // Polls

  /** One more poll is here. */
  enter() {
    if (++this.count > 1) this.#weigh(1)
  }

  /** @param {Place} place whose poll is over */
  leave(place) {
    this.waiting.delete(place)
    if (--this.count > 0) return this.#weigh(-1)
    this.#forget()
    this.#polls.idle(this)
  }

  /** @param {number} change of the number of clients that it stands for */
  #weigh(change) {
    if (this.#channel && this.#cohort) this.#polls.hub.weigh(this.#channel, this.#cohort, change)
  }

  /**
   * Finds out where a place is: now, or later.
   * @param {Place} place
   */
  find(place) {
    if (this.#state !== State.LIVE) {
      this.#opening.push(place)
      if (this.#state === State.NEW) this.#open(place.offset, place.epoch)
      return
    }
    const { offset, epoch } = place
    if (!this.positioned || offset === Begin.NOW) return place.stand(this.seq, this.offset, this.epoch)
    if (offset === this.offset && (epoch === this.epoch || epoch === ''))
      return place.stand(this.seq, offset, this.epoch)
    this.#read(place)
  }

  /**
   * @param {number} seq
   * @returns {Entry[]} those after it, as far as they are here. Where there is history, nothing may be left out: then
   *   there are none
   */
  after(seq) {
    const from = seq + 1 - this.first
    if (!this.reaches(seq)) return []
    return from <= 0 ? this.entries : this.entries.slice(from)
  }

  /**
   * @param {number} seq
   * @returns {boolean} whether what comes after it is here; what is not in history cannot be looked for elsewhere
   */
  reaches(seq) {
    return !this.positioned || seq + 1 >= this.first
  }

  /** @param {Place} place of a poll that waits, but has been waiting for too long */
  lookAgain(place) {
    this.waiting.delete(place)
    place.seq = -1
    place.poll.missing++
    this.find(place)
  }

  // The stream

  /**
   * Subscribes.
   * @param {number} offset where somebody wants to go on, or a Begin
   * @param {string} epoch
   */
  #open(offset, epoch) {
    const { positioned, metaTtl } = this
    this.#state = State.OPENING
    const recover =
      positioned && offset !== Begin.NOW ? { offset: Math.max(0, offset), epoch, limit: this.#page } : null
    const wants = {
      position: positioned,
      recover,
      latest: false,
      metaTtl,
      client: '',
      info: '',
      leave: false,
    }
    this.#polls.hub.prepare(this.name, wants, (error, channel, answer) => {
      if (this.#state === State.CLOSED) {
        if (!error) this.#polls.hub.release(channel)
        return
      }
      if (error) return this.#fail()
      this.#joined(channel, answer)
      // What was missed has come with the answer: for those who stand there.
      const { publications } = answer
      const whole = recover && answer.recovered && publications.length > 0
      const entries = whole ? this.#encode(publications) : []
      if (whole) this.#limit(entries)
      for (const place of this.#opening.splice(0)) {
        if (place.poll.exchange === null) continue
        if (whole && place.offset === offset && place.epoch === epoch)
          place.tell(entries, publications[0].offset - 1, answer.epoch)
        else this.find(place)
      }
    })
  }

  /**
   * @param {import('../../hub/channel.js').Channel} channel
   * @param {import('../../broker/contract.js').SubscribeAnswer} answer
   */
  #joined(channel, { offset, epoch }) {
    const { positioned } = this
    this.#state = State.LIVE
    this.#channel = channel
    this.#cohort = this.#polls.hub.join(this, channel, { positioned, events: false, filter: null }).cohort
    if (this.count > 1) this.#weigh(this.count - 1)
    this.#forget()
    this.offset = offset
    this.epoch = epoch
  }

  #fail() {
    this.#state = State.NEW
    for (const place of this.#opening.splice(0)) this.#polls.fail(place.poll)
  }

  /** @param {Publication[]} publications */
  #encode(publications) {
    const { codec } = this
    return publications.map(publication => ({
      text: codec.text(this.name, publication),
      offset: publication.offset,
    }))
  }

  /**
   * Reads what comes after a place from history. Those who stand at the same place share what is read.
   * @param {Place} place
   */
  #read(place) {
    const { offset, epoch } = place
    const key = `${offset} ${epoch}`
    this.#reads ??= new Map()
    const sharing = this.#reads.get(key)
    if (sharing) {
      sharing.push(place)
      return
    }
    const places = [place]
    this.#reads.set(key, places)
    const filter = {
      limit: this.#page,
      sinceOffset: offset === Begin.EARLIEST ? undefined : offset,
      sinceEpoch: epoch,
    }
    const over = () => {
      this.#reads?.delete(key)
      if (this.#reads?.size === 0) this.#reads = null
      return places.filter(({ poll }) => poll.exchange !== null)
    }
    this.#polls.broker.pubsub.history(this.name, filter, this.metaTtl).then(
      answer => this.#tell(over(), offset, answer),
      error => {
        for (const place of over()) {
          if (error !== errors.unrecoverablePosition) this.#polls.fail(place.poll)
          else this.#restart(place)
        }
      },
    )
  }

  /**
   * The stream that a place was in is gone: it goes on with what is there of the new one.
   * @param {Place} place
   */
  #restart(place) {
    place.lost = true
    place.offset = Begin.EARLIEST
    place.epoch = ''
    this.find(place)
  }

  /**
   * @param {Place[]} places that stand at the same offset
   * @param {number} offset
   * @param {{publications: Publication[], offset: number, epoch: string}} answer
   */
  #tell(places, offset, { publications, offset: top, epoch }) {
    const start = publications.length > 0 ? publications[0].offset - 1 : top
    const lost = offset !== Begin.EARLIEST && start !== offset
    if (lost) for (const place of places) place.lost = true
    if (publications.length > 0) {
      const entries = this.#encode(publications)
      this.#limit(entries)
      for (const place of places) place.tell(entries, start, epoch)
      return
    }
    // The answer comes in the order of the stream: if there is more in it than this worker has seen, it has missed
    // something.
    if (this.#state === State.LIVE && (epoch !== this.epoch || top > this.offset)) this.positionLost()
    for (const place of places) {
      place.offset = top
      place.epoch = epoch
      this.find(place)
    }
  }

  /** @param {Entry[]} entries that were read: large ones are read in small pages */
  #limit(entries) {
    let bytes = 0
    for (const { text } of entries) bytes += text.length
    const fitting = Math.ceil((MAX_READ * entries.length) / bytes)
    this.#page = Math.max(1, Math.min(this.#polls.pageSize, fitting))
  }

  /**
   * @param {Publication} publication
   * @param {string} text encoded
   */
  add({ offset, epoch }, text) {
    if (offset > 0) {
      this.offset = offset
      this.epoch = epoch
    }
    if (this.count === 0) {
      this.first++
      return
    }
    this.entries.push({ text, offset })
    this.#bytes += text.length
    // One at least, however long it is.
    while (this.entries.length > MAX_KEPT || (this.#bytes > MAX_KEPT_BYTES && this.entries.length > 1)) {
      this.#bytes -= /** @type {Entry} */ (this.entries.shift()).text.length
      this.first++
    }
  }

  /** Those who wait have been told. */
  told() {
    // Some may not have come to wait yet.
    if (this.count === this.waiting.size) this.#forget()
  }

  #forget() {
    this.first += this.entries.length
    this.entries = []
    this.#bytes = 0
  }

  // What the hub asks of a subscriber

  get codec() {
    return this.#polls.codec
  }

  /** @param {string} topic */
  follow(topic) {
    this.#polls.fanout.follow(this.#polls, this, topic)
  }

  /** @param {string} topic */
  unfollow(topic) {
    this.#polls.fanout.unfollow(this.#polls, this, topic)
  }

  /** This worker has missed something of the stream: everybody finds out anew where they stand. */
  positionLost() {
    const { offset, epoch } = this
    this.#quit()
    for (const place of this.waiting) {
      place.seq = -1
      place.poll.missing++
      this.#opening.push(place)
    }
    this.waiting.clear()
    this.#open(offset, epoch)
  }

  #quit() {
    if (this.#channel === null || this.#cohort === null) return
    if (this.count > 1) this.#weigh(1 - this.count)
    this.#polls.hub.leave(this, this.#channel, this.#cohort, null)
    this.#channel = this.#cohort = null
  }

  /** Nobody needs it any more. */
  close() {
    this.#quit()
    this.#state = State.CLOSED
    this.#forget()
  }
}
