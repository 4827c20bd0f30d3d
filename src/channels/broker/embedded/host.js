import { errors } from '../../../base/errors.js'
import { LimitedLog } from '../../../base/log.js'
import { NO_STATUS } from '../contract.js'
import { Surveys } from '../surveys.js'
import { ChannelStates } from './channel-states.js'
import { Calls, Users } from './control.js'
import { HostDenials } from './denials.js'
import { OnlyWorker } from './direct-delivery.js'
import { At, Flag, Frame, FrameReader, FrameWriter } from './frames.js'
import { readMapWrite, writeMapResult } from './map-frames.js'
import { NOT_RECOVERED, recoveryPage, writeEntries } from './pages.js'
import { HostPolls, readPollResult } from './polls.js'
import { beginPublished, HostRepublishing, waitOf } from './republishing.js'
import { Snapshot } from './snapshot.js'
import { StateJournal } from './state-journal.js'
import { MAX_USERS } from './statuses.js'
import { readStatusChange } from './statuses-client.js'
import { Store } from './store.js'

/** @import { Socket } from 'node:net' */
/** @import { Logger } from 'pino' */
/** @import { StateEvent } from '../contract.js' */
/** @import { FrameCursor } from './records.js' */

export { connectWithin } from './loop.js'

const SLICE_MS = 3
/** Unread bytes of a worker above which senders to it wait. */
const BEHIND_BYTES = 16 * 1024 * 1024
/** Ticks (seconds) without a read until a worker with waiting senders is stuck. */
const STUCK_TICKS = 5
const WARN_MS = 60_000

export class Link {
  /** Workers whose frames wait until this one reads its backlog. @type {Set<Link>} */
  senders = new Set()
  #pauses = 0
  idleTicks = 0
  unwritten = 0
  calls = 0

  /**
   * @param {Socket} socket @param {string} name for the log @param {number} worker its number
   * @param {number} number unique among all links @param {boolean} surveyed it responds to surveys
   */
  constructor(socket, name, worker, number, surveyed) {
    this.socket = socket
    this.name = name
    this.worker = worker
    this.number = number
    this.surveyed = surveyed
    this.writer = new FrameWriter(socket)
  }

  /** Pauses reading until `resume` has been called as often. */
  pause() {
    if (++this.#pauses === 1) this.socket.pause()
  }

  resume() {
    if (--this.#pauses === 0) this.socket.resume()
  }

  get behind() {
    return this.writer.backlog > BEHIND_BYTES
  }

  /** Call once a second while it is behind. @returns {boolean} whether it is stuck */
  check() {
    // `writableLength` falls only after a whole write, possibly megabytes. The handle's queue has no public API;
    // Node.js uses it for socket timeouts (net.Socket, _onTimeout). Without it, liveness.js detects blocked workers.
    const { writeQueueSize } = /** @type {any} */ (this.socket)._handle ?? {}
    if (typeof writeQueueSize !== 'number') return false
    this.idleTicks = this.unwritten === writeQueueSize ? this.idleTicks + 1 : 0
    this.unwritten = writeQueueSize
    return this.idleTicks >= STUCK_TICKS
  }
}

/** The broker in the primary. It handles all frames sequentially, which determines the order of each channel. */
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
  #onlyWorker = new OnlyWorker(link => this.#sent(link))
  republishing = new HostRepublishing(this.#links)
  polls = new HostPolls(link => this.#sent(link))
  denials
  #states
  #stateJournal
  #lastLink = 0
  #log
  #limited
  /** The sender of the current frame. @type {Link | null} */
  #sender = null
  #maxBytes
  #clock
  #warnedAt = [0, 0]
  #snapshot
  #ending = false
  #onDetached = () => {}

  /**
   * @param {object} options @param {number} options.maxBytes limit of the stored bytes
   * @param {Logger} options.log @param {() => number} [options.clock] ms
   * @param {string} [options.snapshotFile] stores the data from `end` to `restore`; '': none
   * @param {number} [options.vacatedDelay] ms @param {(event: StateEvent) => void} [options.onState] a channel is
   *   occupied or vacated
   */
  constructor({
    maxBytes,
    log,
    clock = Date.now,
    snapshotFile = '',
    vacatedDelay = 5000,
    onState = () => {},
  }) {
    this.#log = log
    this.#limited = new LimitedLog(log)
    this.#maxBytes = maxBytes
    this.#clock = clock
    this.#snapshot = snapshotFile === '' ? null : new Snapshot(snapshotFile, maxBytes, log)
    this.#stateJournal =
      snapshotFile === '' ? null : new StateJournal(`${snapshotFile}.channels`, this.#limited)
    this.#states = new ChannelStates({
      delay: vacatedDelay,
      links: this.#links,
      sent: link => this.#sent(link),
      clock,
      onEvent: onState,
      log: this.#limited,
    })
    this.#store = this.#newStore()
    this.denials = new HostDenials(link => this.#sent(link), clock)
  }

  /** @returns {Store<Link>} */
  #newStore() {
    return new Store({
      maxBytes: this.#maxBytes,
      clock: this.#clock,
      onFull: (bytes, live) => this.#warnFull(bytes, live),
      onLeave: ({ name }, info) => this.#announce(name, info, false),
      onChange: ({ name, links }, flags, body, { offset, epoch }) => {
        for (const link of links) {
          const writer = link.writer.begin(Frame.PUBLICATION).u32(0).u16(flags)
          writer.f64(offset).epoch(epoch).string(name).byteString(body)
          this.#sent(link)
        }
      },
      onMapsFull: () =>
        this.#limited.warn(
          { max_bytes: this.#maxBytes },
          'engine.memory.max_bytes reached: rejecting new map keys and larger values',
        ),
      onStatusesFull: () =>
        this.#limited.warn(
          { max_users: MAX_USERS },
          'too many users with a status: dropping the least recently updated ones',
        ),
      mayExpire: ({ links }) => !links.some(link => link.behind),
    })
  }

  /** @param {number} bytes @param {boolean} live history of subscribed channels is dropped */
  #warnFull(bytes, live) {
    const now = this.#clock()
    if (now - this.#warnedAt[Number(live)] < WARN_MS) return
    this.#warnedAt[Number(live)] = now
    const dropped = live ? 'the history of channels with subscribers' : 'unused channels and idempotency keys'
    const fields = { bytes, max_bytes: this.#maxBytes }
    this.#log.warn(fields, `engine.memory.max_bytes reached: dropping ${dropped}`)
  }

  /**
   * Restores the snapshot of the last run, before any worker is attached.
   * @throws {Error} if the file can neither be replaced nor removed
   */
  async restore() {
    this.#store = (await this.#snapshot?.take(() => this.#newStore())) ?? this.#store
    if (this.#stateJournal !== null) await this.#states.restore(this.#stateJournal)
  }

  /** Call before the workers disconnect their clients, who may return after the next start. */
  stopping() {
    this.#states.stopping()
  }

  /** Stops the polls, and writes the snapshot once all workers have exited and all their frames are handled. */
  async end() {
    this.polls.end()
    if (this.#snapshot === null) return this.#states.end()
    this.#ending = true
    // Unlike workers, the embedding program keeps running.
    for (const { socket, surveyed } of this.#links) if (!surveyed) socket.destroy()
    while (this.#links.size > 0) {
      // A paused socket never reports its end.
      for (const link of this.#links) link.socket.resume()
      await new Promise(resolve => {
        this.#onDetached = () => resolve(undefined)
      })
    }
    this.#store.removeSome(Infinity)
    await this.#states.end()
    await this.#snapshot.write(this.#store)
  }

  get subscribed() {
    return this.#store.subscribed
  }

  /** Keys of maps and polls, entries of the denylist, and counts since the last call. */
  drain() {
    const { keys, counter } = this.#store.maps
    const maps = { keys, counts: counter.drain() }
    return { maps, polls: this.polls.drain(), denylist: this.denials.figures }
  }

  /**
   * Serves a worker until its socket closes.
   * @param {Socket} socket @param {string} name for the log
   * @param {number} worker number for calls from other workers; -1: not callable
   * @param {{surveyed?: boolean, republishes?: boolean}} [options] `surveyed`: it subscribes and responds to surveys;
   *   `republishes`: it has the republishers
   */
  attach(socket, name, worker, { surveyed = true, republishes = false } = {}) {
    this.#lastLink = (this.#lastLink + 1) >>> 0
    const link = new Link(socket, name, worker, this.#lastLink, surveyed)
    const reader = new FrameReader(
      (type, cursor) => this.#handle(link, type, cursor),
      error => this.#limited.error({ err: error, worker: name }, 'handling a frame from a worker failed'),
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
    socket.on('error', error => this.#log.debug({ err: error, worker: name }, 'bus failed'))
    socket.on('close', () => this.#detach(link))
    if (!surveyed) return
    this.#onlyWorker.addLink(link)
    this.denials.addLink(link)
  }

  /** @param {Link} link */
  #detach(link) {
    if (!this.#links.delete(link)) return
    this.#store.removeLink(link)
    this.#removeLinks()
    this.#surveys.removeWorker(link)
    const { republishing, polls, denials } = this
    for (const part of [
      this.#users,
      this.#calls,
      this.#onlyWorker,
      republishing,
      polls,
      denials,
      this.#states,
    ])
      part.removeLink(link)
    for (const other of this.#links) other.senders.delete(link)
    this.#release(link)
    this.#onDetached()
  }

  /** Removes channels and clients of exited workers, up to 100,000, in slices. */
  #removeLinks() {
    if (this.#store.removeSome(SLICE_MS)) setImmediate(() => this.#removeLinks())
  }

  /** Call once a second: expiry, slow surveys, stuck workers. @returns {string[]} names of stuck workers */
  tick() {
    this.#store.sweep()
    this.#surveys.tick()
    this.republishing.tick()
    this.polls.tick()
    this.denials.sweep()
    const stuck = []
    for (const link of this.#links) {
      if (!link.behind) link.idleTicks = 0
      else if (link.check()) stuck.push(link.name)
    }
    return stuck
  }

  /** Ends a frame to a worker. If it is far behind, pauses the current sender. @param {Link} link */
  #sent(link) {
    link.writer.end()
    if (link.behind) this.#await(link)
  }

  /** Pauses the current sender until a worker has read its backlog. @param {Link} link */
  #await(link) {
    const sender = this.#sender
    // An exited worker reads nothing, but its channels are removed later.
    if (sender === null || this.#ending || link.senders.has(sender) || !this.#links.has(link)) return
    link.senders.add(sender)
    sender.pause()
  }

  /** @param {Link} link its backlog is read, or it exited */
  #release(link) {
    for (const sender of link.senders) sender.resume()
    link.senders.clear()
  }

  /** Frames without response. @type {Record<number, (link: Link, cursor: FrameCursor) => void>} */
  #commands = {
    [Frame.UNSUBSCRIBE]: (link, cursor) => this.#store.unsubscribe(cursor.string(), link),
    [Frame.ANNOUNCE]: (_link, cursor) => {
      const joined = cursor.u8() === 1
      this.#announce(cursor.string(), cursor.bytes(), joined)
    },
    [Frame.REMOVE_PRESENCE]: (_link, cursor) => this.#store.removePresence(cursor.string(), cursor.string()),
    [Frame.UPDATE_PRESENCE]: (_link, cursor) =>
      this.#store.channels.get(cursor.string())?.presence?.update(cursor.string(), cursor.bytes()),
    [Frame.RELEASE_USER]: (link, cursor) => this.#users.release(cursor.string(), link),
    [Frame.CALL]: (link, cursor) => this.#calls.call(link, cursor),
    [Frame.RETURN]: (link, cursor) => this.#calls.answer(link, cursor, Frame.ANSWER),
    [Frame.REFUSE]: (link, cursor) => this.#calls.answer(link, cursor, Frame.FAILED),
    [Frame.REPUBLISH]: (link, cursor) => this.republishing.take(link, cursor),
    [Frame.CONFIRM]: (link, cursor) => this.republishing.confirmed(link, cursor.u32(), cursor.u8() === 1),
    [Frame.REPUBLISH_FULL]: (link, cursor) => this.republishing.report(link, cursor.u32()),
    [Frame.SHARED]: link => this.#onlyWorker.shared(link),
    [Frame.POLL_CLOSE]: (link, cursor) => this.polls.close(link, cursor.string()),
    [Frame.POLL_UNTRACK]: (link, cursor) => this.polls.untrack(link, cursor),
    [Frame.POLL_PUBLISHED]: (_link, cursor) =>
      this.polls.published(cursor.string(), cursor.string(), cursor.u64(), cursor.string()),
    [Frame.POLL_REFRESHED]: (link, cursor) =>
      this.polls.refreshed(link, cursor.u32(), readPollResult(cursor)),
    [Frame.STATES_DONE]: (link, cursor) => this.#states.done(link, cursor.u32(), cursor.u8() === 1),
    [Frame.SURVEY_ANSWER]: (link, cursor) => this.#surveys.answered(cursor.u32(), link, cursor.string()),
  }

  /**
   * Requests with an ANSWER or FAILED (error code) response. Each reads its fields, then writes its response.
   * @type {Record<number, (link: Link, request: number, cursor: FrameCursor) => void>}
   */
  #requests = {
    [Frame.SUBSCRIBE]: (link, request, cursor) => this.#subscribe(link, request, cursor),
    [Frame.HISTORY]: (link, request, cursor) => this.#history(link, request, cursor),
    [Frame.REMOVE_HISTORY]: (link, request, cursor) => {
      this.#store.removeHistory(cursor.string())
      begin(link, request)
      this.#sent(link)
    },
    [Frame.PRESENCE]: (link, request, cursor) => {
      const clients = this.#store.presence(cursor.string())?.clients
      begin(link, request).u32(clients?.size ?? 0)
      for (const [client, present] of clients ?? []) link.writer.string(client).bytes(present.info)
      this.#sent(link)
    },
    [Frame.PRESENCE_STATS]: (link, request, cursor) => {
      const presence = this.#store.presence(cursor.string())
      const clients = presence?.clients.size ?? 0
      begin(link, request)
        .u32(clients)
        .u32(presence?.users ?? 0)
      this.#sent(link)
    },
    [Frame.MAP_WRITE]: (link, request, cursor) => {
      const write = readMapWrite(cursor, this.#clock())
      const { name, idempotencyKey } = write
      const known = idempotencyKey === '' ? undefined : this.#store.result(name, idempotencyKey)
      const written = known
        ? { ...known, suppressed: /** @type {const} */ ('idempotency'), current: null }
        : this.#store.maps.write(write, link)
      if (idempotencyKey !== '' && written.suppressed === '')
        this.#store.keepResult(name, idempotencyKey, written.offset, written.epoch)
      writeMapResult(begin(link, request), written, written.current)
      this.#sent(link)
    },
    [Frame.MAP_STATE]: (link, request, cursor) => {
      const name = cursor.string()
      const { query, rules } = JSON.parse(cursor.string())
      const bytes = { cursor: toByteString(query.cursor), key: toByteString(query.key) }
      const page = this.#store.maps.page(name, { ...query, ...bytes }, rules)
      begin(link, request).f64(page.offset).epoch(page.epoch).bytes(page.cursor)
      link.writer.u8(page.text === null ? 0 : 1)
      if (page.text === null) writeEntries(link.writer, page.entries)
      else link.writer.payload(page.text)
      this.#sent(link)
    },
    [Frame.MAP_STATS]: (link, request, cursor) => {
      begin(link, request).u32(this.#store.maps.size(cursor.string()))
      this.#sent(link)
    },
    [Frame.MAP_CLEAR]: (link, request, cursor) => {
      const name = cursor.string()
      const links = [...(this.#store.channels.get(name)?.links ?? [])]
      this.#store.clear(name)
      for (const subscribed of links) {
        subscribed.writer.begin(Frame.CLEARED).string(name)
        this.#sent(subscribed)
      }
      begin(link, request)
      this.#sent(link)
    },
    [Frame.POLL_OPEN]: (link, request, cursor) => {
      const epoch = this.polls.open(link, cursor.string(), JSON.parse(cursor.string()))
      begin(link, request).string(epoch)
      this.#sent(link)
    },
    [Frame.POLL_TRACK]: (link, request, cursor) => {
      this.polls.track(link, cursor)
      begin(link, request)
      this.#sent(link)
    },
    [Frame.STATUS_UPDATE]: (link, request, cursor) => {
      const { change, ttl } = readStatusChange(cursor)
      const now = this.#seconds()
      const expireAt = Math.ceil(now + ttl / 1000)
      for (let count = cursor.u32(); count > 0; count--)
        this.#store.statuses.update(cursor.string(), change, now, expireAt)
      begin(link, request)
      this.#sent(link)
    },
    [Frame.STATUS_GET]: (link, request, cursor) => {
      const now = this.#seconds()
      begin(link, request)
      for (let count = cursor.u32(); count > 0; count--) {
        const { active, online, state } = this.#store.statuses.get(cursor.string(), now) ?? NO_STATUS
        link.writer.f64(active).f64(online).string(state)
      }
      this.#sent(link)
    },
    [Frame.STATUS_REMOVE]: (link, request, cursor) => {
      for (let count = cursor.u32(); count > 0; count--) this.#store.statuses.remove(cursor.string())
      begin(link, request)
      this.#sent(link)
    },
    [Frame.CLAIM_USER]: (link, request, cursor) => {
      const admitted = this.#users.claim(cursor.string(), cursor.u32(), link)
      begin(link, request).u8(admitted ? 1 : 0)
      this.#sent(link)
    },
    [Frame.DENY]: (link, request, cursor) => {
      this.denials.change(JSON.parse(cursor.string()), (error, kept) => {
        if (!this.#links.has(link)) return
        if (error) link.writer.begin(Frame.FAILED).u32(request).u32(error.code)
        else begin(link, request).string(JSON.stringify(kept))
        this.#sent(link)
      })
    },
    [Frame.SURVEY]: (link, request, cursor) => {
      const [op, params] = [cursor.string(), cursor.string()]
      const links = [...this.#links].filter(({ surveyed }) => surveyed)
      const answer = (/** @type {string[] | null} */ answers) => this.#answerSurvey(link, request, answers)
      const survey = this.#surveys.start(links, null, answer)
      for (const target of links) {
        target.writer.begin(Frame.SURVEY_QUESTION).u32(survey).string(op).string(params)
        this.#sent(target)
      }
    },
  }

  #seconds() {
    return Math.floor(this.#clock() / 1000)
  }

  /** @param {Link} link @param {number} type @param {FrameCursor} cursor */
  #handle(link, type, cursor) {
    if (type === Frame.PUBLISH) return this.#publish(link, cursor)
    const command = this.#commands[type]
    if (command !== undefined) return command(link, cursor)
    const request = cursor.u32()
    try {
      if (this.#requests[type] === undefined) throw new Error(`unknown frame type ${type}`)
      this.#requests[type](link, request, cursor)
    } catch (error) {
      const code = error.code ?? errors.internal.code
      // errors.internal itself: a full memory, logged where it is found.
      if (code === errors.internal.code && error !== errors.internal)
        this.#limited.error({ err: error, worker: link.name }, 'broker request failed')
      link.writer.begin(Frame.FAILED).u32(request).u32(code)
      this.#sent(link)
    }
  }

  /** @param {Link} link @param {FrameCursor} cursor */
  #publish(link, cursor) {
    const request = cursor.u32()
    const flags = cursor.u16()
    cursor.at = cursor.start + At.CHANNEL
    const name = cursor.string()
    const bodyStart = cursor.at
    let frameEnd = cursor.end
    let offset = 0
    let epoch = ''
    let result = null // of a publication with an idempotency key
    let wait = -1 // timeout of republishers' confirms, ms; -1: no republishers
    if (flags & (Flag.HISTORY | Flag.IDEMPOTENT | Flag.REPUBLISH)) {
      cursor.skip()
      if (flags & Flag.INFO) cursor.skip()
      if (flags & Flag.TAGS) cursor.skip()
      const version = flags & Flag.VERSION ? cursor.u64() : 0n
      if (flags & Flag.TARGET) cursor.skip()
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
      // Not confirmed: retries only republishing.
      if (known) return this.republishing.forward(link, request, cursor, known, wait, known)
      if (flags & Flag.HISTORY) {
        const body = cursor.buffer.toString('latin1', bodyStart, frameEnd)
        const kept = flags & ~Flag.REPUBLISH
        const appended = this.#store.append(name, {
          flags: kept,
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

  /** @param {Link} link @param {number} request @param {FrameCursor} cursor */
  #subscribe(link, request, cursor) {
    const name = cursor.string()
    const wants = JSON.parse(cursor.string())
    const user = wants.client ? JSON.parse(wants.info).user : ''
    if (wants.first) this.#store.subscribe(name, link)
    if (wants.client) {
      const info = Buffer.from(wants.info).toString('latin1')
      const present = { link, user, info, leave: wants.leave }
      const presence = this.#store.addPresence(name, wants.client, present)
      if (wants.tracking !== undefined) this.#states.track(presence, name, wants.tracking)
    }
    const stream = wants.position ? this.#store.stream(name, wants.metaTtl) : null
    const recovers = stream !== null && wants.recover !== null
    const answer = recovers ? recoveryPage(stream, wants.recover, wants.latest, wants.room) : NOT_RECOVERED
    const writer = begin(link, request)
    writer
      .f64(stream?.top ?? 0)
      .epoch(stream?.epoch ?? '')
      .u8(answer.page)
      .f64(answer.since)
    writeEntries(writer, answer.entries)
    this.#sent(link)
  }

  /** @param {Link} link @param {number} request @param {FrameCursor} cursor */
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
      const writer = link.writer.begin(Frame.EVENT).u8(joined ? 1 : 0)
      writer.string(name).bytes(info)
      this.#sent(link)
    }
  }

  /** @param {Link} link @param {number} request @param {string[] | null} answers null: the survey failed */
  #answerSurvey(link, request, answers) {
    if (!this.#links.has(link)) return
    if (answers === null) link.writer.begin(Frame.FAILED).u32(request).u32(errors.internal.code)
    else begin(link, request).string(`[${answers.join(',')}]`)
    this.#sent(link)
  }
}

/** @param {string} text @returns {string} its UTF-8 bytes */
const toByteString = text => Buffer.from(text).toString('latin1')

/** Begins a response. @param {Link} link @param {number} request */
const begin = (link, request) => link.writer.begin(Frame.ANSWER).u32(request)
