// A hub with a broker that replies when the test requires, and sessions that record their messages.

import { Hub } from '../../../src/channels/hub/hub.js'
import { Filter } from '../../../src/clients/protocol/filter.js'
import { JsonCodec } from '../../../src/clients/protocol/json.js'
import { makePublication } from '../../clients/protocol/publication.js'

export const PLAIN = {
  position: false,
  recover: null,
  latest: false,
  metaTtl: 1000,
  client: '',
  info: '',
  leave: false,
}
export const POSITIONED = { ...PLAIN, position: true }

const binaryCodec = Object.assign(new JsonCodec(), { name: 'other', binary: true })

class TestSession {
  id = ''
  user = ''
  got = []
  topics = new Set()
  /** Channel name -> result of `join`. */
  joined = new Map()
  codec = new JsonCodec()
  lost = []
  refused = false
  follow(topic) {
    this.topics.add(topic)
  }
  unfollow(topic) {
    this.topics.delete(topic)
  }
  subscription(name) {
    return this.joined.get(name)
  }
  inappropriateProtocol() {
    this.refused = true
  }
}

/** @param {{batch?: any, readEntry?: any}} [options] `batch`: of the batches of all channels */
export function startHub({ batch = null, readEntry } = {}) {
  let now = 1000
  /** @type {{at: number, call: () => void}[]} */
  let timers = []
  let rules = { batches: batch !== null, resolve: () => ({ batch }) }
  /** Calls of the broker, in order. */
  const calls = []
  const sessions = []
  /** Messages passed to the socket server. */
  let published = 0
  const broker = {
    subscribe: (channel, wants, done) => calls.push({ op: 'subscribe', channel, wants, done }),
    unsubscribe: channel => calls.push({ op: 'unsubscribe', channel }),
    position: (channel, metaTtl, done) => calls.push({ op: 'position', channel, metaTtl, done }),
  }
  const fanout = {
    publish({ topic, codec: { binary } }, data) {
      published++
      for (const session of sessions)
        if (session.topics.has(topic))
          session.got.push(binary ? `binary ${data}` : JSON.parse(String(data)).push)
    },
  }
  /** Messages of batches: the pushes in each. */
  const frames = []
  const publishBatch = (cohort, pushes, from, to, sending) => {
    frames.push(to - from)
    for (let index = from; index < to; index++) {
      sending(pushes.publications[index])
      fanout.publish(cohort, pushes.frame(index, index + 1))
    }
  }
  const hub = new Hub({
    pubsub: /** @type {any} */ (broker),
    fanout: { ...fanout, publishBatch },
    readEntry,
    clock: () => now,
    monotonic: { now: () => now, after: (call, ms) => timers.push({ at: now + ms, call }) },
    forEachSession: visit => {
      for (const session of sessions) visit(session)
    },
    sessions: {
      of: user => sessions.filter(session => session.user === user),
      client: id => sessions.find(session => session.id === id),
    },
  })

  hub.batches.use(rules)

  return {
    hub,
    frames,
    /** Changes the batch options, as a reload does. */
    reload(options) {
      rules = { batches: options !== null, resolve: () => ({ batch: options }) }
      hub.batches.use(rules)
    },
    calls,
    get published() {
      return published
    },
    pass: ms => {
      const end = now + ms
      const due = () => timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0]
      for (let next = due(); next !== undefined; next = due()) {
        timers = timers.filter(timer => timer !== next)
        now = Math.max(now, next.at)
        next.call()
      }
      now = end
    },
    /** Calls of the broker since the last time. */
    taken: () =>
      calls
        .splice(0)
        .map(({ op, channel, wants }) => (wants?.first ? `${op} ${channel} first` : `${op} ${channel}`)),

    /** @returns {any} */
    session({ binary = false } = {}) {
      const session = /** @type {any} */ (new TestSession())
      if (binary) session.codec = binaryCodec
      session.positionLost = name => {
        session.lost.push(name)
        leave(session, name)
      }
      sessions.push(session)
      return session
    },

    /** Subscribes like a command: joins at the reply. */
    subscribe(
      session,
      name,
      wants = PLAIN,
      /** @type {any} */ {
        events = false,
        filter = null,
        delta = false,
        received = null,
        compact = false,
        ...more
      } = {},
    ) {
      hub.prepare(name, wants, (error, channel, answer) => {
        if (error) {
          session.got.push({ error })
          return
        }
        session.got.push({ reply: name, offset: answer.offset })
        const cohorts = hub.join(session, channel, {
          positioned: wants.position,
          events,
          filter: filter && new Filter(filter),
          delta,
          received,
          channelId: compact ? hub.idOf(name) : 0,
          ...more,
        })
        session.joined.set(name, { channel, ...cohorts })
      })
    },

    unsubscribe: leave,

    publish(name, data, rest = {}) {
      hub.publication(name, makePublication({ data: Buffer.from(data), delta: true, ...rest }))
    },
  }

  function leave(session, name) {
    const { channel, cohort, events } = session.joined.get(name)
    session.joined.delete(name)
    hub.leave(session, channel, cohort, events)
  }
}

export const answer = (offset = 0, epoch = '') => ({ offset, epoch, recovered: false, publications: [] })
