import { errors } from '../../../base/errors.js'
import { branch } from './scripts.js'

/**
 * @typedef {import('./connection.js').Connection} Connection
 * @typedef {import('./connection.js').Done} Done
 * @typedef {import('./scripts.js').Script} Script
 */

/**
 * Channels in one place: all channels of a Redis server, or those of one hash slot of a Redis Cluster. One command may
 * carry requests for several channels of a partition.
 *
 * Its keys are `<prefix>.<kind>.<name>`, in a cluster `<prefix>.{<partition>}.<kind>.<name>`, which puts them in one
 * slot. Its pub/sub topics are `<the same>.channel.<name>`.
 */
export class Partition {
  /** @type {Connection | null} to the server in charge; null: unknown */
  connection = null
  /** @type {string | null} current branch of its streams, see streams.lua; null: unknown, or the connection is down */
  branch = null
  /** Whether it must not be used yet: this worker may have missed orders. */
  held = false

  /** @param {string} prefix with its final dot @param {boolean} sharded uses sharded pub/sub */
  constructor(prefix, sharded) {
    this.prefix = prefix
    this.sharded = sharded
  }

  get up() {
    return !this.held && this.connected
  }

  /** Whether commands reach Redis, be it held or not. */
  get connected() {
    return this.branch !== null && this.connection?.up === true
  }

  /**
   * Reads the branch: first of all on a new connection, and again from time to time.
   * @param {(error: Error | null, changed: boolean) => void} done not called if the connection changes meanwhile
   */
  join(done) {
    const { connection } = this
    connection?.run(branch, [this.key('branch', 'current')], [], (error, reply) => {
      if (connection !== this.connection) return
      const before = this.branch
      if (!error) this.branch = String(reply)
      done(error, this.branch !== before)
    })
  }

  /** @param {string} kind @param {string} name @returns {string} key or topic */
  key(kind, name) {
    return `${this.prefix}${kind}.${name}`
  }

  /**
   * @param {string} name command
   * @param {(string | Buffer | number)[]} args @param {Done} done never called before this returns
   */
  send(name, args, done) {
    if (this.connection === null || this.branch === null)
      return queueMicrotask(() => done(errors.internal, null))
    this.connection.send(name, args, done)
  }

  /**
   * @param {Script} script @param {string[]} keys @param {(string | Buffer | number)[]} args
   * @param {Done} done never called before this returns
   */
  run(script, keys, args, done) {
    if (this.connection === null || this.branch === null)
      return queueMicrotask(() => done(errors.internal, null))
    this.connection.run(script, keys, args, done)
  }

  /** Calls `flush` soon, see Connection.schedule. @param {() => void} flush */
  schedule(flush) {
    if (this.connection === null) setImmediate(flush)
    else this.connection.schedule(flush)
  }

  /** @param {string[]} topics @param {Done} done */
  subscribe(topics, done) {
    this.send(this.sharded ? 'ssubscribe' : 'subscribe', topics, done)
  }

  /** @param {string[]} topics @param {Done} done */
  unsubscribe(topics, done) {
    this.send(this.sharded ? 'sunsubscribe' : 'unsubscribe', topics, done)
  }

  get publishCommand() {
    return this.sharded ? 'spublish' : 'publish'
  }
}

/** @param {(done: Done) => void} send @returns {Promise<any>} reply of Redis */
export function replyTo(send) {
  return new Promise((resolve, reject) => send((error, reply) => (error ? reject(error) : resolve(reply))))
}

const CHANNEL = 0x63 // c

/**
 * Routes a message: topics of channels are `<prefix>channel.<name>`, all others begin with another letter.
 * @param {Buffer} topic @param {Buffer} message @param {number} prefixLength bytes of the partition's prefix
 * @param {import('./placement.js').ShardEvents} events
 */
export function dispatch(topic, message, prefixLength, events) {
  if (topic[prefixLength] === CHANNEL) {
    events.channelMessage(topic.toString('utf8', prefixLength + 'channel.'.length, topic.length), message)
  } else events.controlMessage(topic.toString('utf8', prefixLength, topic.length), message)
}
