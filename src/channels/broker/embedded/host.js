import { errors } from '../../../base/errors.js'
import { LimitedLog } from '../../../base/log.js'
import { Surveys } from '../surveys.js'
import { Calls, Users } from './control.js'
import { At, Flag, Frame, FrameReader } from './frames.js'
import { LimitLog } from './limit-log.js'
import { Link } from './link.js'
import { NOT_RECOVERED, recoveryPage, writeEntries } from './pages.js'
import { beginPublished, HostRepublishing, waitOf } from './republishing.js'
import { Snapshot } from './snapshot.js'
import { SoleWorker } from './sole.js'
import { Store } from './store.js'

export { connectWithin } from './loop.js'

/** Time for the removal of dead workers in one turn of the event loop, ms; the rest follows in the next turns. */
const SLICE_MS = 3

/**
 * The embedded broker's half in the primary. It handles the frames of all workers one after another, which gives every
 * channel its order.
 */
export class BrokerHost {
  /** @type {Set<Link>} */
  #links = new Set()
  /** @type {Store<Link>} */
  #store
  /** @type {Surveys<Link>} */
  #surveys = new Surveys()
  /** @type {Users<Link>} */
  #users = new Users()
  /** @type {Calls<Link>} */
  #calls = new Calls(link => this.#sent(link))
  #sole = new SoleWorker(link => this.#sent(link))
  republishing = new HostRepublishing(this.#links)
  #lastLink = 0
  #log
  /** For errors of requests, which clients may repeat. */
  #limited
  /** The worker whose frame is being handled. @type {Link | null} */
  #sender = null
  #limit
  #maxBytes
  #clock
  #snapshot
  #ending = false
  #onDetached = () => {}

  /**
   * @param {object} options @param {number} options.maxBytes limit of the stored bytes
   * @param {import('pino').Logger} options.log @param {() => number} [options.clock] ms
   * @param {string} [options.snapshotFile] keeps the store from `end` to the next `restore`; '': none
   */
  constructor({ maxBytes, log, clock = Date.now, snapshotFile = '' }) {
    this.#log = log
    this.#limited = new LimitedLog(log)
    this.#maxBytes = maxBytes
    this.#limit = new LimitLog(maxBytes, log, clock)
    this.#clock = clock
    this.#snapshot = snapshotFile === '' ? null : new Snapshot(snapshotFile, maxBytes, log)
    this.#store = this.#newStore()
  }

  /** @returns {Store<Link>} */
  #newStore() {
    return new Store({
      maxBytes: this.#maxBytes,
      clock: this.#clock,
      onFull: (bytes, live) => this.#limit.reached(bytes, live),
      onLeave: ({ name }, info) => this.#announce(name, info, false),
    })
  }

  /**
   * Takes the snapshot of the last run over, before any worker is attached.
   * @throws {Error} if the file can neither be replaced nor removed
   */
  async restore() {
    this.#store = (await this.#snapshot?.take(() => this.#newStore())) ?? this.#store
  }

  /** Writes the snapshot, after all workers have ended and all their frames were handled. */
  async end() {
    if (this.#snapshot === null) return
    this.#ending = true
    // Unlike a worker, the embedding program does not end.
    for (const { socket, surveyed } of this.#links) if (!surveyed) socket.destroy()
    while (this.#links.size > 0) {
      // A paused socket would never report its end.
      for (const link of this.#links) link.socket.resume()
      await new Promise(resolve => {
        this.#onDetached = () => resolve(undefined)
      })
    }
    this.#store.removeSome(Infinity)
    await this.#snapshot.write(this.#store)
  }

  /** Channels with subscribers in any worker. */
  get subscribed() {
    return this.#store.subscribed
  }

  /**
   * Serves a worker until its socket closes.
   * @param {import('node:net').Socket} socket @param {string} name for the log
   * @param {number} worker number by which other workers call it; -1: cannot be called
   * @param {{surveyed?: boolean, republishes?: boolean}} [options] `surveyed`: whether it subscribes and answers
   *   surveys; `republishes`: whether it has the republishers
   */
  attach(socket, name, worker, { surveyed = true, republishes = false } = {}) {
    this.#lastLink = (this.#lastLink + 1) >>> 0
    const link = new Link(socket, name, worker, this.#lastLink, surveyed)
    const reader = new FrameReader(
      (type, cursor) => this.#handle(link, type, cursor),
      error => this.#limited.error({ err: error, worker: name }, 'frame from a worker failed'),
    )
    this.#links.add(link)
    this.#calls.addLink(link)
    this.republishing.addLink(link, republishes)
    socket.on('data', chunk => {
      this.#sender = link
      reader.push(/** @type {Buffer} */ (chunk))
      this.#sender = null
    })
    socket.on('drain', () => this.#release(link))
    socket.on('error', error => this.#log.debug({ err: error }, `bus to ${name} failed`))
    socket.on('close', () => this.#detach(link))
    if (surveyed) this.#sole.addLink(link)
  }

  /** @param {Link} link */
  #detach(link) {
    if (!this.#links.delete(link)) return
    this.#store.removeLink(link)
    this.#removeLinks()
    this.#surveys.removeWorker(link)
    for (const part of [this.#users, this.#calls, this.#sole, this.republishing]) part.removeLink(link)
    for (const other of this.#links) other.senders.delete(link)
    this.#release(link)
    this.#onDetached()
  }

  /** What a worker leaves behind may be 100,000 channels and clients: their removal shares the event loop. */
  #removeLinks() {
    if (this.#store.removeSome(SLICE_MS)) setImmediate(() => this.#removeLinks())
  }

  /** Called once a second: expiry, slow surveys, stuck workers. @returns {string[]} names of stuck workers */
  tick() {
    this.#store.sweep()
    this.#surveys.tick()
    this.republishing.tick()
    const stuck = []
    for (const link of this.#links) {
      if (!link.behind) link.silent = 0
      else if (link.check()) stuck.push(link.name)
    }
    return stuck
  }

  /** Ends a frame to a worker. If that one is far behind, the worker that caused the frame waits. @param {Link} link */
  #sent(link) {
    link.writer.end()
    if (link.behind) this.#await(link)
  }

  /** Stops reading from the sender of the current frame until a worker has read its backlog. @param {Link} link */
  #await(link) {
    const sender = this.#sender
    // One that has ended reads nothing, but its channels are removed later.
    if (sender === null || this.#ending || link.senders.has(sender) || !this.#links.has(link)) return
    link.senders.add(sender)
    sender.pause()
  }

  /** @param {Link} link that has read its backlog, or has ended */
  #release(link) {
    for (const sender of link.senders) sender.resume()
    link.senders.clear()
  }

  /** @param {Link} link @param {number} type @param {import('./records.js').FrameCursor} cursor */
  #handle(link, type, cursor) {
    switch (type) {
      case Frame.PUBLISH:
        return this.#publish(link, cursor)
      case Frame.UNSUBSCRIBE:
        return this.#store.unsubscribe(cursor.string(), link)
      case Frame.ANNOUNCE: {
        const joined = cursor.u8() === 1
        return this.#announce(cursor.string(), cursor.bytes(), joined)
      }
      case Frame.REMOVE_PRESENCE:
        return this.#store.removePresence(cursor.string(), cursor.string())
      case Frame.UPDATE_PRESENCE:
        return this.#store.channels.get(cursor.string())?.presence?.update(cursor.string(), cursor.bytes())
      case Frame.RELEASE_USER:
        return this.#users.release(cursor.string(), link)
      case Frame.CALL:
        return this.#calls.call(link, cursor)
      case Frame.RETURN:
        return this.#calls.answer(link, cursor, Frame.ANSWER)
      case Frame.REFUSE:
        return this.#calls.answer(link, cursor, Frame.FAILED)
      case Frame.REPUBLISH:
        return this.republishing.take(link, cursor)
      case Frame.CONFIRM:
        return this.republishing.confirmed(link, cursor.u32(), cursor.u8() === 1)
      case Frame.REPUBLISH_FULL:
        return this.republishing.report(link, cursor.u32())
      case Frame.SHARED:
        return this.#sole.shared(link)
      case Frame.SURVEY_ANSWER:
        return this.#surveys.answered(cursor.u32(), link, cursor.string())
      default:
        return this.#request(link, type, cursor.u32(), cursor)
    }
  }

  /**
   * Handles the requests that get an ANSWER, or FAILED with an error's code.
   * @param {Link} link @param {number} type @param {number} request @param {import('./records.js').FrameCursor} cursor
   */
  #request(link, type, request, cursor) {
    try {
      switch (type) {
        case Frame.SUBSCRIBE:
          return this.#subscribe(link, request, cursor)
        case Frame.HISTORY:
          return this.#history(link, request, cursor)
        case Frame.REMOVE_HISTORY:
          this.#store.removeHistory(cursor.string())
          begin(link, request)
          return this.#sent(link)
        case Frame.PRESENCE: {
          const clients = this.#store.presence(cursor.string())?.clients
          begin(link, request).u32(clients?.size ?? 0)
          for (const [client, present] of clients ?? []) link.writer.string(client).bytes(present.info)
          return this.#sent(link)
        }
        case Frame.PRESENCE_STATS: {
          const presence = this.#store.presence(cursor.string())
          begin(link, request)
            .u32(presence?.clients.size ?? 0)
            .u32(presence?.users ?? 0)
          return this.#sent(link)
        }
        case Frame.CLAIM_USER: {
          const admitted = this.#users.claim(cursor.string(), cursor.u32(), link)
          begin(link, request).u8(admitted ? 1 : 0)
          return this.#sent(link)
        }
        case Frame.SURVEY: {
          const [op, params] = [cursor.string(), cursor.string()]
          const links = [...this.#links].filter(({ surveyed }) => surveyed)
          const survey = this.#surveys.start(links, null, answers =>
            this.#answerSurvey(link, request, answers),
          )
          for (const asked of links) {
            asked.writer.begin(Frame.SURVEY_QUESTION).u32(survey).string(op).string(params)
            this.#sent(asked)
          }
          return
        }
        default:
          throw new Error(`unknown frame type ${type}`)
      }
    } catch (error) {
      const code = error.code ?? errors.internal.code
      if (code === errors.internal.code)
        this.#limited.error({ err: error, worker: link.name }, 'broker request failed')
      link.writer.begin(Frame.FAILED).u32(request).u32(code)
      this.#sent(link)
    }
  }

  /** @param {Link} link @param {import('./records.js').FrameCursor} cursor */
  #publish(link, cursor) {
    const request = cursor.u32()
    const flags = cursor.u8()
    cursor.at = cursor.start + At.CHANNEL
    const name = cursor.string()
    const bodyStart = cursor.at
    let frameEnd = cursor.end
    let offset = 0
    let epoch = ''
    let result = null // of a publication with an idempotency key
    let wait = -1 // ms that the answer waits for republishers; -1: there are none
    if (flags & (Flag.HISTORY | Flag.IDEMPOTENT | Flag.REPUBLISH)) {
      cursor.skip()
      if (flags & Flag.INFO) cursor.skip()
      if (flags & Flag.TAGS) cursor.skip()
      const version = flags & Flag.VERSION ? cursor.u64() : 0n
      frameEnd = cursor.at
      const size = cursor.u32()
      const ttl = cursor.f64()
      const metaTtl = cursor.f64()
      const versionEpoch = cursor.string()
      const key = cursor.string()
      if (flags & Flag.REPUBLISH) wait = waitOf(cursor)
      const known = flags & Flag.IDEMPOTENT ? this.#store.result(name, key) : undefined
      if (known?.confirmed || (known && wait <= 0))
        return this.#published(link, request, known.offset, known.epoch)
      // Its queue has not confirmed it: only that is tried again.
      if (known) return this.republishing.forward(link, request, cursor, known, wait, known)
      if (flags & Flag.HISTORY) {
        const body = cursor.buffer.toString('latin1', bodyStart, frameEnd)
        const appended = this.#store.append(name, {
          flags: flags & ~Flag.REPUBLISH,
          body,
          size,
          ttl,
          metaTtl,
          version,
          versionEpoch,
        })
        ;({ offset, epoch } = appended)
        if (!appended.added) return this.#published(link, request, offset, epoch)
      }
      if (flags & Flag.IDEMPOTENT) result = this.#store.keepResult(name, key, offset, epoch, wait <= 0)
    }
    const channel = this.#store.channels.get(name)
    if (channel) {
      const { links } = channel
      for (let i = 0; i < links.length; i++) {
        links[i].writer.beginRaw().raw(cursor.buffer, cursor.start, frameEnd)
        links[i].writer.patchPublication(offset, epoch)
        this.#sent(links[i])
      }
    }
    if (wait !== -1) {
      this.republishing.forward(link, request, cursor, { offset, epoch }, wait, result)
      if (wait > 0) return
    }
    this.#published(link, request, offset, epoch)
  }

  /** @param {Link} link @param {number} request @param {number} offset @param {string} epoch */
  #published(link, request, offset, epoch) {
    beginPublished(link, request, offset, epoch)
    this.#sent(link)
  }

  /** @param {Link} link @param {number} request @param {import('./records.js').FrameCursor} cursor */
  #subscribe(link, request, cursor) {
    const name = cursor.string()
    const wants = JSON.parse(cursor.string())
    const user = wants.client ? JSON.parse(wants.info).user : ''
    if (wants.first) this.#store.subscribe(name, link)
    if (wants.client) {
      const info = Buffer.from(wants.info).toString('latin1')
      this.#store.addPresence(name, wants.client, { link, user, info, leave: wants.leave })
    }
    const stream = wants.position ? this.#store.stream(name, wants.metaTtl) : null
    const recovers = stream !== null && wants.recover !== null
    const answer = recovers ? recoveryPage(stream, wants.recover, wants.latest, wants.room) : NOT_RECOVERED
    begin(link, request)
      .f64(stream?.top ?? 0)
      .epoch(stream?.epoch ?? '')
      .u8(answer.page)
      .f64(answer.since)
    writeEntries(link.writer, answer.entries)
    this.#sent(link)
  }

  /** @param {Link} link @param {number} request @param {import('./records.js').FrameCursor} cursor */
  #history(link, request, cursor) {
    const name = cursor.string()
    const { filter, metaTtl, continued, room } = JSON.parse(cursor.string())
    const { stream, page, entries } = this.#store.history(name, filter, metaTtl, continued, room)
    begin(link, request).f64(stream.top).epoch(stream.epoch).u8(page)
    writeEntries(link.writer, entries)
    this.#sent(link)
  }

  /** @param {string} name of a channel @param {string} info byte string @param {boolean} joined */
  #announce(name, info, joined) {
    for (const link of this.#store.channels.get(name)?.links ?? []) {
      link.writer
        .begin(Frame.EVENT)
        .u8(joined ? 1 : 0)
        .string(name)
        .bytes(info)
      this.#sent(link)
    }
  }

  /** @param {Link} link @param {number} request @param {string[] | null} answers null: the survey has failed */
  #answerSurvey(link, request, answers) {
    if (!this.#links.has(link)) return
    if (answers === null) link.writer.begin(Frame.FAILED).u32(request).u32(errors.internal.code)
    else begin(link, request).string(`[${answers.join(',')}]`)
    this.#sent(link)
  }
}

/** Begins the answer to a request. @param {Link} link @param {number} request */
const begin = (link, request) => link.writer.begin(Frame.ANSWER).u32(request)
