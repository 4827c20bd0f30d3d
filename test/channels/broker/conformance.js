// The contract of src/channels/broker/contract.js as tests that run with every implementation.

import { calls } from './conformance/calls.js'
import { control, presence } from './conformance/control.js'
import { delivery, order } from './conformance/delivery.js'
import { mapLifetimes } from './conformance/map-lifetimes.js'
import { mapAppends, mapModel, mapPages, mapWrites } from './conformance/maps.js'
import { pages } from './conformance/pages.js'
import { Peer } from './conformance/peer.js'
import { history, lifetimes, recovery, repetition } from './conformance/streams.js'

/**
 * What an implementation brings along.
 *
 * @typedef {object} Rig
 * @property {(events: import('../../../src/channels/broker/contract.js').BrokerEvents, worker?: number) =>
 *   Promise<import('../../../src/channels/broker/contract.js').Broker>} join the broker of one more worker, or of the next one in
 *   the place of `worker`
 * @property {(broker: import('../../../src/channels/broker/contract.js').Broker) => {node: string, worker: number}} place by
 *   which others call it
 * @property {(broker: import('../../../src/channels/broker/contract.js').Broker) => void} cut puts everything out of this
 *   broker's reach
 * @property {(ms: number) => void | Promise<void>} pass lets time go by
 */

/**
 * Runs suites of the contract.
 * @param {any} t @param {(t: any) => Promise<Rig>} start a fresh broker without any worker; ends with the test
 * @param {((test: any) => void)[]} suites @param {string[]} [skip] titles
 */
export function conform(t, start, suites, skip = []) {
  /** @param {(t: any, rig: Rig, ...peers: Peer[]) => Promise<void>} body */
  const test = (name, count, body) => {
    if (skip.includes(name)) return
    t.test(name, async t => {
      const rig = await start(t)
      const peers = []
      for (let i = 0; i < count; i++) peers.push(await Peer.join(rig))
      await body(t, rig, ...peers)
    })
  }
  for (const suite of suites) suite(test)
}

const STREAMS = [delivery, order, recovery, history, pages, lifetimes, repetition]
const MAPS = [mapWrites, mapAppends, mapPages, mapLifetimes, mapModel]

/** @param {any} t @param {Parameters<typeof conform>[1]} start */
export const brokerConformance = (t, start) =>
  conform(t, start, [...STREAMS, ...MAPS, presence, control, calls])
