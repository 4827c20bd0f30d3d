// Shared by tests of the stats stream: recorded actions, and received messages of a client.

import { until } from '../kit/wait.js'

/** @typedef {import('../../src/metrics/stats-commands.js').StatsActions} StatsActions */

/** @param {Partial<StatsActions>} [more] @returns {{actions: StatsActions, calls: any[]}} calls: name and worker of each */
export function recordedActions(more) {
  /** @type {any[]} */
  const calls = []
  const actions = {
    gc: (/** @type {any} */ worker) => void calls.push(['gc', worker]),
    restart: (/** @type {any} */ worker) => void calls.push(['restart', worker]),
    stop: () => void calls.push(['stop']),
    reload: async () => '',
    log: () => () => {},
    ...more,
  }
  return { actions, calls }
}

/** Messages in the order of their arrival. */
export class Messages {
  /** @type {any[]} */
  all = []

  /** @param {string} type @returns {any[]} */
  of(type) {
    return this.all.filter(message => message.type === type)
  }

  /** @param {number} count @param {string} type @returns {Promise<any[]>} the first messages of a type */
  async take(count, type) {
    await until(
      () => this.of(type).length >= count,
      () => `${count} ${type}, of ${JSON.stringify(this.all).slice(0, 500)}`,
    )
    return this.of(type).slice(0, count)
  }
}
