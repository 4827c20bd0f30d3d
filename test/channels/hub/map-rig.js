// A hub with a map `x`, whose entries and stream are controlled by the test.

import { MapView, withPart } from './map-view.js'
import { answer, PLAIN, POSITIONED, startHub } from './rig.js'

/** @param {{streamed?: boolean}} [options] `streamed`: the map has positions */
export function startMap({ streamed = true } = {}) {
  /** @type {Map<string, {value: string, offset: number}>} */
  const entries = new Map()
  /** Changes, by offset - 1. @type {{key: string, removed: boolean, append: boolean, data: string}[]} */
  const stream = []
  /** Pending reads of entries. @type {{key: string, done: (entry: any) => void, failed: (error: Error) => void}[]} */
  const reads = []
  const readEntry = (/** @type {string} */ _channel, /** @type {string} */ key) =>
    new Promise((done, failed) => reads.push({ key, done, failed }))
  const rig = startHub({ readEntry })
  const epoch = streamed ? 'e' : ''
  const state = () => new Map([...entries].map(([key, { value }]) => [key, value]))

  /** @param {string} key @param {string} data @param {{removed?: boolean, append?: boolean, missed?: boolean}} kind @param {object} rest */
  function change(key, data, { removed = false, append = false, missed = false }, rest = {}) {
    const top = stream.push({ key, removed, append, data })
    const offset = streamed ? top : 0
    const before = entries.get(key)
    if (removed) entries.delete(key)
    else entries.set(key, { value: append && before ? withPart(before.value, data) : data, offset })
    const keyed = { key, removed, append: append && before !== undefined, time: top }
    if (!missed) rig.publish('x', data, { offset, epoch, keyed, ...rest })
    return top
  }

  return {
    ...rig,
    entries,
    stream,
    reads,
    state,
    /** @param {string} key @returns {any} */
    entryOf(key) {
      const entry = entries.get(key)
      if (entry === undefined) return null
      const { value, offset } = entry
      const keyed = { key, removed: false, append: false, time: 1 }
      return { ...publicationOf(value), offset, epoch, keyed }
    },
    /** Answers all reads with the current entries. */
    async answerReads() {
      for (const { key, done } of reads.splice(0)) done(this.entryOf(key))
      await new Promise(setImmediate)
    },
    get published() {
      return rig.published
    },
    get channel() {
      return rig.hub.channels.get('x')
    },
    /**
     * @param {{binary?: boolean, delta?: boolean, parts?: boolean, positioned?: boolean, known?: any[]}} [options]
     * @returns {any} a session with the state of the map, in `view`
     */
    subscriber({ binary = false, delta = false, parts = false, positioned = streamed, ...rest } = {}) {
      const session = rig.session({ binary })
      const wants = positioned ? POSITIONED : PLAIN
      rig.subscribe(session, 'x', wants, { map: true, delta, parts, ...rest })
      for (const { done } of rig.calls.splice(0)) done?.(null, answer(streamed ? stream.length : 0, epoch))
      session.got = []
      session.view = new MapView(state(), stream.length, { delta })
      return session
    },
    put: (/** @type {string} */ key, /** @type {string} */ data, rest = {}) => change(key, data, {}, rest),
    append: (/** @type {string} */ key, /** @type {string} */ data, rest = {}) =>
      change(key, data, { append: true }, rest),
    /** A change that the worker does not receive. */
    miss: (/** @type {string} */ key, /** @type {string} */ data) => change(key, data, { missed: true }),
    remove: (/** @type {string} */ key) => change(key, '', { removed: true }),
  }
}

/** @param {string} value */
const publicationOf = value => ({
  data: Buffer.from(value),
  info: '',
  tags: null,
  version: 0n,
  json: true,
  delta: false,
})

/** Applies what a session got. @param {any} session @returns {string[]} kinds of the pushes */
export function read(session) {
  for (const message of session.got.splice(0)) {
    const { pub } = typeof message === 'string' ? JSON.parse(message.slice('binary '.length)).push : message
    session.view.apply(pub)
  }
  return session.view.taken()
}
