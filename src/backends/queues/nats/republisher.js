// NATS JetStream. The id of a message is its `Nats-Msg-Id`: within the duplicate window of its stream a repeat is not
// stored twice.

import { JetStreamApiError, jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect, headers as newHeaders } from '@nats-io/transport-node'
import { reconnectDelay } from '../timing.js'
import { connectionOptions } from './client.js'

/** @import { JetStreamClient, JetStreamManager } from '@nats-io/jetstream' */
/** @import { NatsConnection } from '@nats-io/transport-node' */
/** @import { Destination, DestinationContext, OutgoingMessage } from '../contract.js' */

const CONNECT_TIMEOUT_MS = 5000
/** A server that does not answer within this time counts as lost. */
const IO_TIMEOUT_MS = 10_000
/** Errors of JetStream that pass by themselves: unavailable for a time, without a leader, short of resources. */
const PASSING = new Set([10008, 10009, 10023])
/** What the protocol has no form for, and wildcards. */
const BAD_SUBJECT = /[\s*>\u0000-\u001f\u007f]|^\.|\.$|\.\.|^$|^\$/

/** One connection. @typedef {{connection: NatsConnection, js: JetStreamClient, manager: JetStreamManager}} Link */

/** @implements {Destination} */
class NatsDestination {
  #options
  #context
  #failures = 0
  #stopped = false
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  /** @type {Link | null} */
  #link = null
  /**
   * Subjects that are looked up -> whether a stream takes them. At most one for each message without an outcome.
   * @type {Map<string, Promise<boolean>>}
   */
  #lookups = new Map()

  /** @param {DestinationContext} context */
  constructor(context) {
    this.#context = context
    this.#options = context.options
  }

  start() {
    this.#connect()
  }

  async #connect() {
    /** @type {NatsConnection | null} */
    let connection = null
    try {
      connection = await connect({
        ...(await connectionOptions(this.#options)),
        name: `halley republish ${this.#context.name}`,
        timeout: CONNECT_TIMEOUT_MS,
        // Its own reconnecting would keep messages of unknown outcome.
        reconnect: false,
      })
      const manager = await jetstreamManager(connection, { timeout: IO_TIMEOUT_MS })
      if (this.#stopped) return void connection.close().catch(() => {})
      const link = { connection, manager, js: jetstream(connection, { timeout: IO_TIMEOUT_MS }) }
      connection
        .closed()
        .then(error => this.#lost(link, error || new Error('the server has closed the connection')))
      this.#link = link
      this.#context.up()
    } catch (error) {
      connection?.close().catch(() => {})
      if (this.#stopped) return
      this.#context.down(error)
      this.#retry()
    }
  }

  #retry() {
    this.#timer = setTimeout(() => this.#connect(), reconnectDelay(++this.#failures))
  }

  /** @param {Link} link @param {Error} reason */
  #lost(link, reason) {
    if (this.#link !== link) return
    this.#link = null
    this.#lookups.clear()
    link.connection.close().catch(() => {})
    this.#context.down(reason)
    this.#retry()
  }

  /** @param {OutgoingMessage} message @throws {Error} if NATS has no form for it */
  send(message) {
    const link = this.#link
    if (link === null) return
    if (BAD_SUBJECT.test(message.target)) throw new Error('the channel does not make a subject of NATS')
    const headers = newHeaders()
    for (const name in message.headers) headers.set(name, message.headers[name])
    this.#publish(link, message, headers)
  }

  /** @param {Link} link @param {OutgoingMessage} message @param {import('@nats-io/transport-node').MsgHdrs} headers */
  async #publish(link, message, headers) {
    try {
      await link.js.publish(message.target, message.body, {
        msgID: message.id,
        headers,
        timeout: IO_TIMEOUT_MS,
        retries: 1,
      })
    } catch (error) {
      return void this.#failed(link, message, error)
    }
    if (this.#link !== link) return
    this.#failures = 0
    this.#context.settled(message, 'confirmed')
  }

  /** @param {Link} link @param {OutgoingMessage} message @param {Error} error */
  async #failed(link, message, error) {
    if (this.#link !== link) return
    if (error instanceof JetStreamApiError && !PASSING.has(error.code))
      return this.#context.settled(message, 'refused', error.message)
    if (error.name === 'InvalidArgumentError' || error.name === 'PermissionViolationError')
      return this.#context.settled(message, 'refused', error.message)
    // Nobody has answered: no stream has this subject, or its stream is away for a time.
    const known = await this.#isKnown(link, message.target)
    if (this.#link !== link) return
    if (known) this.#lost(link, error)
    else this.#context.settled(message, 'refused', 'no stream has this subject')
  }

  /** @param {Link} link @param {string} subject @returns {Promise<boolean>} false: no stream has it */
  #isKnown(link, subject) {
    let lookup = this.#lookups.get(subject)
    if (lookup !== undefined) return lookup
    lookup = link.manager.streams
      .find(subject)
      .then(
        () => true,
        error => !/no stream matches/.test(error.message),
      )
      .finally(() => this.#lookups.delete(subject))
    this.#lookups.set(subject, lookup)
    return lookup
  }

  async stop() {
    this.#stopped = true
    clearTimeout(this.#timer)
    const link = this.#link
    this.#link = null
    await link?.connection.close().catch(() => {})
  }
}

/** @param {DestinationContext} context @returns {Destination} */
export const create = context => new NatsDestination(context)
