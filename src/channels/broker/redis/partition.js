import { errors } from '../../../base/errors.js'
import { branch } from './scripts.js'

/** @import { Connection, Done } from './connection.js' */
/** @import { ShardEvents } from './placement.js' */
/** @import { Script } from './scripts.js' */

/**
 * All channels of a Redis server, or of one hash slot of a cluster: one command may include several of them. Keys are
 * `<prefix>.<kind>.<name>`, in a cluster `<prefix>.{<partition>}.<kind>.<name>`, which puts them in one slot. Pub/sub
 * topics are `<the same>.channel.<name>`.
 */
export class Partition {
  /** @type {Connection | null} to the owning server; null: unknown */
  connection = null
  /** @type {string | null} current branch of its streams, see streams.lua; null: unknown or disconnected */
  branch = null
  /** Not usable yet: this worker may have missed orders. */
  held = false

  /** @param {string} prefix with its final dot @param {boolean} sharded uses sharded pub/sub */
  constructor(prefix, sharded) {
    this.prefix = prefix
    this.sharded = sharded
  }

  get up() {
    return !this.held && this.connected
  }

  /** Whether commands reach Redis, even if held. */
  get connected() {
    return this.branch !== null && this.connection?.up === true
  }

  /** @param {(error: Error | null, changed: boolean) => void} done not called if the connection changes */
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

  /** @param {string} name @param {(string | Buffer | number)[]} args @param {Done} done not before this returns */
  send(name, args, done) {
    if (this.connection === null || this.branch === null)
      return queueMicrotask(() => done(errors.internal, null))
    this.connection.send(name, args, done)
  }

  /**
   * @param {Script} script @param {string[]} keys @param {(string | Buffer | number)[]} args
   * @param {Done} done not called before this returns
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
 * Routes a message: channel topics are `<prefix>channel.<name>`, others begin with another letter.
 * @param {Buffer} topic @param {Buffer} message @param {number} prefixLength bytes of the partition's prefix
 * @param {ShardEvents} events
 */
export function dispatch(topic, message, prefixLength, events) {
  if (topic[prefixLength] === CHANNEL) {
    events.channelMessage(topic.toString('utf8', prefixLength + 'channel.'.length, topic.length), message)
  } else events.controlMessage(topic.toString('utf8', prefixLength, topic.length), message)
}
