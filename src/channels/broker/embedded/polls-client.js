import { errors } from '../../../base/errors.js'
import { Frame } from './frames.js'
import { readPollUpdate, writePollChange } from './poll-frames.js'

/** @import { BrokerEvents, PollItem, PollResult, Polls } from '../contract.js' */
/** @import { Bus } from './client.js' */
/** @import { FrameCursor } from './records.js' */

/** Shared polls in a worker: requests to the primary and its calls. @implements {Polls} */
export class LocalPolls {
  #bus
  #events

  /** @param {Bus} bus @param {BrokerEvents} events */
  constructor(bus, events) {
    this.#bus = bus
    this.#events = events
  }

  /** @type {Polls['open']} */
  open(channel, rules, done) {
    const writer = this.#bus.request(Frame.POLL_OPEN, (error, cursor) => {
      if (error || !cursor) done(error ?? errors.internal, '')
      else done(null, cursor.string())
    })
    writer.string(channel).string(JSON.stringify(rules)).end()
  }

  /** @type {Polls['close']} */
  close(channel) {
    this.#bus.writer.begin(Frame.POLL_CLOSE).string(channel).end()
  }

  /** @type {Polls['track']} */
  track(channel, items, done) {
    const writer = this.#bus.request(Frame.POLL_TRACK, error => done(error))
    writer.string(channel).u32(items.length)
    for (const { key, version } of items) writer.string(key).u64(version)
    writer.end()
  }

  /** @type {Polls['untrack']} */
  untrack(channel, keys) {
    const writer = this.#bus.writer.begin(Frame.POLL_UNTRACK).string(channel).u32(keys.length)
    for (const key of keys) writer.string(key)
    writer.end()
  }

  /** @type {Polls['published']} */
  published(channel, key, version, epoch) {
    const writer = this.#bus.writer.begin(Frame.POLL_PUBLISHED).string(channel).string(key)
    writer.u64(version).string(epoch).end()
  }

  /** @param {FrameCursor} cursor of a POLL_REFRESH */
  refresh(cursor) {
    const [number, channel, all] = [cursor.u32(), cursor.string(), cursor.u8() === 1]
    /** @type {PollItem[]} */
    const items = []
    for (let count = cursor.u32(); count > 0; count--)
      items.push({ key: cursor.string(), version: cursor.u64(), hash: cursor.bytes() })
    this.#events.refresh?.(channel, items, all, result => this.#refreshed(number, result))
  }

  /** @param {number} number @param {PollResult | null} result */
  #refreshed(number, result) {
    const writer = this.#bus.writer.begin(Frame.POLL_REFRESHED).u32(number)
    writer.u8(result === null ? 0 : 1)
    if (result !== null) {
      writer.string(result.epoch).u32(result.changes.length)
      for (const change of result.changes) writePollChange(this.#bus.writer, change)
    }
    writer.end()
  }

  /** @param {FrameCursor} cursor of a POLL_UPDATE */
  update(cursor) {
    const { channel, update } = readPollUpdate(cursor)
    this.#events.pollUpdate?.(channel, update)
  }

  /** @param {FrameCursor} cursor of a POLL_EPOCH */
  epoch(cursor) {
    this.#events.pollEpoch?.(cursor.string(), cursor.string())
  }
}
