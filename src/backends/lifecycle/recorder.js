import { Socket } from 'node:net'

/** @import { StateEvent } from '../../channels/broker/contract.js' */
/** @import { Session } from '../../clients/session/session.js' */

/** Descriptor of the pipe to the primary. */
const FD = 5
/** Maximum bytes unread by the primary; further events are dropped and counted. */
const MAX_WAITING = 4 * 1024 * 1024

/**
 * Sends the lifecycle events of a worker's sessions to the primary, one JSON array per line:
 *
 *   ["c", time, client, user, transport]                     connected
 *   ["s", time, client, user, channel]                       subscribed
 *   ["u", time, client, user, channel, code, reason]         unsubscribed
 *   ["d", time, client, user, transport, code, reason, connected at, [channel ...]]
 *   ["o", {id, channel, type, time_ms}]                   a channel is occupied or vacated
 *   ["x", number, since, until]                              dropped events
 *
 * Starts are written before their reply is sent, so that the primary can log the end if the worker dies. Ends are
 * written once per turn. A message takes 5 us of the worker over the `cluster` channel, 3 us over this pipe.
 */
class LifecycleRecorder {
  #socket
  #clock
  #text = ''
  #events = 0
  #scheduled = false
  #dropped = 0
  #droppedSince = 0
  #flushSoon = () => {
    this.#scheduled = false
    this.#flush()
  }

  /** @param {() => number} clock unix ms */
  constructor(clock) {
    this.#clock = clock
    this.#socket = new Socket(/** @type {any} */ ({ fd: FD, readable: false, writable: true }))
    this.#socket.on('error', () => {})
    // Report dropped events now: no later event may follow.
    this.#socket.on('drain', () => this.#reportDropped())
    this.#socket.unref()
  }

  /** @param {Session} session */
  connected({ id, user, transport }) {
    this.#add(`["c",${this.#clock()},"${id}",${JSON.stringify(user)},"${transport.name}"]\n`)
    this.#flush()
  }

  /** @param {Session} session @param {string} channel */
  subscribed({ id, user }, channel) {
    this.#add(`["s",${this.#clock()},"${id}",${JSON.stringify(user)},${JSON.stringify(channel)}]\n`)
    this.#flush()
  }

  /** @param {Session} session @param {string} channel @param {number} code @param {string} reason */
  unsubscribed({ id, user }, channel, code, reason) {
    this.#add(`${JSON.stringify(['u', this.#clock(), id, user, channel, code, reason])}\n`)
    this.#soon()
  }

  /** @param {any} session @param {{code: number, reason: string}} end @param {string[]} channels */
  disconnected({ id, user, transport, extra }, { code, reason }, channels) {
    const { name } = transport
    const since = extra?.connectedAt ?? 0
    this.#add(`${JSON.stringify(['d', this.#clock(), id, user, name, code, reason, since, channels])}\n`)
    this.#soon()
  }

  /** Written at once: the engine may forget the event. @param {StateEvent} event */
  channelState(event) {
    this.#add(`["o",${JSON.stringify(event)}]\n`)
    this.#flush()
  }

  /** @param {string} line */
  #add(line) {
    this.#text += line
    this.#events++
  }

  #soon() {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(this.#flushSoon)
  }

  #flush() {
    if (this.#events === 0) return
    const text = this.#text
    const events = this.#events
    this.#text = ''
    this.#events = 0
    if (this.#socket.writableLength + text.length > MAX_WAITING) {
      if (this.#dropped === 0) this.#droppedSince = this.#clock()
      this.#dropped += events
      return
    }
    this.#reportDropped()
    this.#socket.write(text)
  }

  /** One line, which may exceed the limit. */
  #reportDropped() {
    if (this.#dropped === 0) return
    this.#socket.write(`["x",${this.#dropped},${this.#droppedSince},${this.#clock()}]\n`)
    this.#dropped = 0
  }

  /** @returns {Promise<void>} when all is written */
  end() {
    this.#flush()
    this.#reportDropped()
    return new Promise(resolve => {
      this.#socket.ref()
      this.#socket.end(() => resolve())
    })
  }
}

/** @param {boolean} read whether the primary reads events @param {() => number} clock unix ms */
export const openRecorder = (read, clock) => (read ? new LifecycleRecorder(clock) : null)
