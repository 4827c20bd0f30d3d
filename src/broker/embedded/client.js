import { errors } from '../../errors.js'
import { OwnCalls } from './calls.js'
import { At, Flag, Frame, FrameReader, FrameWriter } from './frames.js'

/**
 * @typedef {import('../contract.js').Publication} Publication
 * @typedef {import('./frames.js').FrameCursor} FrameCursor
 * @typedef {(error: Error | null, cursor: FrameCursor | null) => void} Done takes its answer from the cursor at once
 */

const errorsByCode = new Map(Object.values(errors).map(error => [error.code, error]))

/**
 * Reads what stands behind the channel name of a publication.
 * @param {FrameCursor} cursor
 * @param {number} flags
 * @param {number} offset
 * @param {string} epoch
 * @param {boolean} copy whether the payload must outlive the frame
 * @returns {Publication}
 */
function readPublication(cursor, flags, offset, epoch, copy) {
  const view = cursor.view()
  return {
    data: copy ? Buffer.from(view) : view,
    offset,
    epoch,
    info: flags & Flag.INFO ? cursor.string() : '',
    tags: flags & Flag.TAGS ? JSON.parse(cursor.string()) : null,
    version: flags & Flag.VERSION ? cursor.u64() : 0n,
    json: (flags & Flag.NOT_JSON) === 0,
    delta: (flags & Flag.DELTA) !== 0,
  }
}

/**
 * @param {FrameCursor} cursor
 * @param {string} epoch
 */
function readPublications(cursor, epoch) {
  const publications = []
  for (let count = cursor.u32(); count > 0; count--) {
    const flags = cursor.u8()
    publications.push(readPublication(cursor, flags, cursor.f64(), epoch, true))
  }
  return publications
}

/**
 * The embedded broker's half in a worker: the broker contract over the bus to the primary.
 * @implements {Broker}
 * @typedef {import('../contract.js').Broker} Broker
 */
export class EmbeddedBroker {
  #writer
  #events
  #log
  /** @type {(Done | null)[]} request number -> who waits for the answer */
  #waiting = []
  /** @type {number[]} numbers of #waiting that are free */
  #free = []
  #open = true
  #node
  #onGone
  #calls

  /**
   * @param {import('node:net').Socket} socket to the primary; whoever made it calls `receive` with what it reads
   * @param {import('../contract.js').BrokerEvents} events
   * @param {string} node id of this node
   * @param {import('pino').Logger} log
   * @param {(worker: number) => void} [onGone] called with the index of a worker that has ended, or is being replaced
   */
  constructor(socket, events, node, log, onGone) {
    this.#writer = new FrameWriter(socket)
    this.#node = node
    this.#onGone = onGone
    this.#calls = new OwnCalls(
      this.#writer,
      done => this.#number(done),
      request => this.#answered(request, errors.notFound, null),
    )
    this.#events = events
    this.#log = log
    this.reader = new FrameReader(
      (type, cursor) => this.#handle(type, cursor),
      error => log.error({ err: error }, 'frame from the primary failed'),
    )
    socket.on('error', error => log.debug({ err: error }, 'bus failed'))
    socket.on('close', () => this.#closed())
  }

  ready() {
    return this.#open
  }

  #closed() {
    this.#open = false
    for (const done of this.#waiting.splice(0)) done?.(errors.internal, null)
    this.#free = []
  }

  /**
   * @param {Done} done
   * @returns {number} of the request that `done` waits for
   */
  #number(done) {
    if (!this.#open) queueMicrotask(() => done(errors.internal, null))
    const number = this.#free.pop() ?? this.#waiting.length
    this.#waiting[number] = this.#open ? done : null
    return number
  }

  /**
   * Starts a request.
   * @param {number} type
   * @param {Done} done
   */
  #request(type, done) {
    return this.#writer.begin(type).u32(this.#number(done))
  }

  /**
   * @template T
   * @param {number} type
   * @param {(writer: FrameWriter) => void} write
   * @param {(cursor: FrameCursor) => T} read
   * @returns {Promise<T>}
   */
  #ask(type, write, read) {
    return new Promise((resolve, reject) => {
      const writer = this.#request(type, (error, cursor) => {
        if (error) reject(error)
        else resolve(read(/** @type {FrameCursor} */ (cursor)))
      })
      write(writer)
      writer.end()
    })
  }

  /** @type {Broker['publish']} */
  publish(channel, data, options, done) {
    const { historySize, info, tags, idempotencyKey, version, json, delta } = options
    const history = historySize > 0
    let flags = 0
    if (history) flags |= Flag.HISTORY
    if (info) flags |= Flag.INFO
    if (tags) flags |= Flag.TAGS
    if (version) flags |= Flag.VERSION
    if (json === false) flags |= Flag.NOT_JSON
    if (idempotencyKey) flags |= Flag.IDEMPOTENT
    if (delta) flags |= Flag.DELTA
    const writer = this.#request(Frame.PUBLISH, (error, cursor) => {
      if (error || !cursor) done(error, 0, '')
      else if (cursor.at === cursor.end) done(null, 0, '')
      else done(null, cursor.f64(), cursor.epoch())
    })
    writer.u8(flags).f64(0).epoch('').string(channel).payload(data)
    if (info) writer.string(info)
    if (tags) writer.string(JSON.stringify(tags))
    if (version) writer.u64(version)
    if (history || idempotencyKey) {
      writer.u32(historySize).f64(options.historyTtl).f64(options.metaTtl)
      writer.string(options.versionEpoch ?? '').string(idempotencyKey ?? '')
    }
    writer.end()
  }

  /** @type {Broker['subscribe']} */
  subscribe(channel, wants, done) {
    const writer = this.#request(Frame.SUBSCRIBE, (error, cursor) => {
      if (error || !cursor) {
        return done(error ?? errors.internal, { offset: 0, epoch: '', recovered: false, publications: [] })
      }
      const offset = cursor.f64()
      const epoch = cursor.epoch()
      const recovered = cursor.u8() === 1
      done(null, { offset, epoch, recovered, publications: readPublications(cursor, epoch) })
    })
    writer.string(channel).string(JSON.stringify(wants)).end()
  }

  /** @type {Broker['unsubscribe']} */
  unsubscribe(channel) {
    this.#writer.begin(Frame.UNSUBSCRIBE).string(channel).end()
  }

  /** @type {Broker['announce']} */
  announce(channel, info, joined) {
    this.#writer
      .begin(Frame.ANNOUNCE)
      .u8(joined ? 1 : 0)
      .string(channel)
      .string(info)
      .end()
  }

  /** @type {Broker['removePresence']} */
  removePresence(channel, client) {
    this.#writer.begin(Frame.REMOVE_PRESENCE).string(channel).string(client).end()
  }

  /** @type {Broker['presence']} */
  presence(channel) {
    return this.#ask(
      Frame.PRESENCE,
      writer => writer.string(channel),
      cursor => {
        const presence = new Map()
        for (let count = cursor.u32(); count > 0; count--) presence.set(cursor.string(), cursor.string())
        return presence
      },
    )
  }

  /** @type {Broker['presenceStats']} */
  presenceStats(channel) {
    return this.#ask(
      Frame.PRESENCE_STATS,
      writer => writer.string(channel),
      cursor => ({ clients: cursor.u32(), users: cursor.u32() }),
    )
  }

  /**
   * @param {string} channel
   * @param {import('../contract.js').HistoryFilter} filter
   * @param {number} metaTtl
   * @param {Done} done
   */
  #history(channel, filter, metaTtl, done) {
    this.#request(Frame.HISTORY, done).string(channel).string(JSON.stringify({ filter, metaTtl })).end()
  }

  /** @type {Broker['history']} */
  history(channel, filter, metaTtl) {
    return new Promise((resolve, reject) =>
      this.#history(channel, filter, metaTtl, (error, cursor) => {
        if (error || !cursor) return reject(error)
        const offset = cursor.f64()
        const epoch = cursor.epoch()
        resolve({ offset, epoch, publications: readPublications(cursor, epoch) })
      }),
    )
  }

  /** @type {Broker['position']} */
  position(channel, metaTtl, done) {
    this.#history(channel, { limit: 0 }, metaTtl, (error, cursor) => {
      if (error || !cursor) done(error, 0, '')
      else done(null, cursor.f64(), cursor.epoch())
    })
  }

  /** @type {Broker['removeHistory']} */
  removeHistory(channel) {
    return this.#ask(
      Frame.REMOVE_HISTORY,
      writer => writer.string(channel),
      () => undefined,
    )
  }

  /** @type {Broker['survey']} */
  survey(op, params) {
    return this.#ask(
      Frame.SURVEY,
      writer => writer.string(op).string(JSON.stringify(params)),
      cursor => JSON.parse(cursor.string()),
    )
  }

  /** @type {Broker['call']} */
  call(node, worker, request, done) {
    // There are no other nodes.
    if (node === '' || node === this.#node) return this.#calls.call(worker, request, done)
    if (done) queueMicrotask(() => done(errors.notFound, Buffer.alloc(0)))
  }

  /** @type {Broker['claimUser']} */
  claimUser(user, limit, done) {
    this.#request(Frame.CLAIM_USER, (error, cursor) => done(error, cursor?.u8() === 1))
      .string(user)
      .u32(limit)
      .end()
  }

  /** @type {Broker['releaseUser']} */
  releaseUser(user) {
    this.#writer.begin(Frame.RELEASE_USER).string(user).end()
  }

  /**
   * @param {number} type
   * @param {FrameCursor} cursor
   */
  #handle(type, cursor) {
    switch (type) {
      case Frame.PUBLICATION: {
        const flags = (cursor.at = cursor.start + At.FLAGS) && cursor.u8()
        const offset = cursor.f64()
        const epoch = cursor.epoch()
        const channel = cursor.string()
        return this.#events.publication(channel, readPublication(cursor, flags, offset, epoch, false))
      }
      case Frame.PUBLISHED:
      case Frame.ANSWER:
        return this.#answered(cursor.u32(), null, cursor)
      case Frame.FAILED:
        return this.#answered(cursor.u32(), errorsByCode.get(cursor.u32()) ?? errors.internal, null)
      case Frame.EVENT: {
        const joined = cursor.u8() === 1
        return this.#events.presence(cursor.string(), cursor.string(), joined)
      }
      case Frame.ASK: {
        const survey = cursor.u32()
        // Before the frame is begun, because the operation may write frames of its own.
        const answer = this.#tell(cursor.string(), cursor.string())
        this.#writer.begin(Frame.TOLD).u32(survey).string(answer).end()
        return
      }
      case Frame.CALLED:
        return this.#calls.called(cursor, this.#events)
      case Frame.GONE: {
        const worker = this.#calls.gone(cursor)
        return this.#onGone?.(worker)
      }
      default:
        this.#log.error({ type }, 'unknown frame from the primary')
    }
  }

  /**
   * @param {number} number
   * @param {Error | null} error
   * @param {FrameCursor | null} cursor
   */
  #answered(number, error, cursor) {
    const done = this.#waiting[number]
    if (!done) return
    this.#waiting[number] = null
    this.#free.push(number)
    done(error, cursor)
  }

  /**
   * @param {string} op
   * @param {string} params
   * @returns {string} the answer as JSON text, '' if there is none
   */
  #tell(op, params) {
    try {
      return JSON.stringify(this.#events.survey(op, JSON.parse(params)) ?? null)
    } catch (error) {
      this.#log.error({ err: error, op }, 'survey failed')
      return ''
    }
  }
}
