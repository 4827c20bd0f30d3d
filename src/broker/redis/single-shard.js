import { Line } from './line.js'
import { Partition } from './partition.js'
import { dispatch } from './topic.js'

/**
 * One Redis server, or the one that a sentinel set names.
 * @implements {Shard}
 * @typedef {import('./placement.js').Shard} Shard
 */
export class SingleShard {
  #line
  #told = false

  /**
   * @param {import('./address.js').Target} target
   * @param {string} prefix
   * @param {import('./placement.js').ShardEvents} events
   * @param {import('pino').Logger} log
   */
  constructor({ name, options }, prefix, events, log) {
    this.name = name
    const partition = new Partition(`${prefix}.`, false)
    const prefixLength = Buffer.byteLength(partition.prefix)
    this.#line = new Line(
      name,
      options,
      {
        up: () => events.up(partition),
        down: () => events.down(partition),
        message: (topic, message) => dispatch(topic, message, prefixLength, events),
        misplaced: (_line, reason) => {
          if (this.#told) return
          this.#told = true
          log.error(
            { redis: name, reason },
            'this redis is a node of a cluster: its address wants redis+cluster://',
          )
        },
      },
      log,
    )
    partition.line = this.#line
    this.partitions = [partition]
  }

  get up() {
    return this.#line.up
  }

  connect() {
    this.#line.connect()
  }

  close() {
    this.#line.close()
  }
}
