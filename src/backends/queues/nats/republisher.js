// The id of a message is its `Nats-Msg-Id`: JetStream drops repeats within the duplicate window of the stream.

import { JetStreamApiError, jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect, headers as newHeaders } from '@nats-io/transport-node'
import { Link } from '../timing.js'
import { connectionOptions } from './client.js'

/** @import { JetStreamClient, JetStreamManager } from '@nats-io/jetstream' */
/** @import { NatsConnection } from '@nats-io/transport-node' */
/** @import { Destination, DestinationContext, OutgoingMessage } from '../contract.js' */

const CONNECT_TIMEOUT_MS = 5000
/** Response timeout after which a server counts as lost. */
const IO_TIMEOUT_MS = 10_000
/** Temporary JetStream errors: unavailable, without a leader, short of resources. */
const PASSING = new Set([10008, 10009, 10023])
/** Invalid subjects, and wildcards. */
const BAD_SUBJECT = /[\s*>\u0000-\u001f\u007f]|^\.|\.$|\.\.|^$|^\$/

/** @typedef {{connection: NatsConnection, js: JetStreamClient, manager: JetStreamManager}} Client */

/** @param {DestinationContext<'nats_jetstream'>} context @returns {Destination} */
export function create(context) {
  /** Pending lookups: subject -> whether a stream has it. @type {Map<string, Promise<boolean>>} */
  const lookups = new Map()
  /** @type {Link<Client>} */
  const link = new Link(context, open, ({ connection }) => connection.close())

  async function open() {
    const connection = await connect({
      ...(await connectionOptions(context.options)),
      name: `halley republish ${context.name}`,
      timeout: CONNECT_TIMEOUT_MS,
      // The library would buffer messages with unknown outcome.
      reconnect: false,
    })
    try {
      const manager = await jetstreamManager(connection, { timeout: IO_TIMEOUT_MS })
      const client = { connection, manager, js: jetstream(connection, { timeout: IO_TIMEOUT_MS }) }
      connection
        .closed()
        .then(error => lost(client, error || new Error('the server has closed the connection')))
      return client
    } catch (error) {
      connection.close().catch(() => {})
      throw error
    }
  }

  /** @param {Client} client @param {Error} reason */
  function lost(client, reason) {
    if (link.current === client) lookups.clear()
    link.lost(client, reason)
  }

  /** @param {Client} client @param {OutgoingMessage} message @param {import('@nats-io/transport-node').MsgHdrs} headers */
  async function publish(client, message, headers) {
    try {
      const options = { msgID: message.id, headers, timeout: IO_TIMEOUT_MS, retries: 1 }
      await client.js.publish(message.target, message.body, options)
    } catch (error) {
      return void failed(client, message, error)
    }
    if (link.current !== client) return
    link.worked()
    context.settled(message, 'confirmed')
  }

  /** @param {Client} client @param {OutgoingMessage} message @param {Error} error */
  async function failed(client, message, error) {
    if (link.current !== client) return
    if (error instanceof JetStreamApiError && !PASSING.has(error.code))
      return context.settled(message, 'refused', error.message)
    if (error.name === 'InvalidArgumentError' || error.name === 'PermissionViolationError')
      return context.settled(message, 'refused', error.message)
    // No response: no stream has this subject, or its stream is unavailable.
    const known = await isKnown(client, message.target)
    if (link.current !== client) return
    if (known) lost(client, error)
    else context.settled(message, 'refused', 'no stream matches this subject')
  }

  /** @param {Client} client @param {string} subject @returns {Promise<boolean>} false: no stream has it */
  function isKnown(client, subject) {
    let lookup = lookups.get(subject)
    if (lookup !== undefined) return lookup
    lookup = client.manager.streams
      .find(subject)
      .then(
        () => true,
        error => !/no stream matches/.test(error.message),
      )
      .finally(() => lookups.delete(subject))
    lookups.set(subject, lookup)
    return lookup
  }

  return {
    start: () => void link.start(),
    stop: () => link.stop(),
    /** @throws {Error} if the subject is invalid */
    send(message) {
      const client = link.current
      if (client === null) return
      if (BAD_SUBJECT.test(message.target)) throw new Error('the subject of the channel is invalid')
      const headers = newHeaders()
      for (const name in message.headers) headers.set(name, message.headers[name])
      publish(client, message, headers)
    },
  }
}
