// Figures are from docs/performance.md and docs/gc.md: estimates for other machines.

import { bytes } from '../../base/format.js'
import { SOCKET_BYTES } from '../socket-memory.js'
import { checkValue, count, countOf, finding, unknown } from './finding.js'
import { DRONE_PROCESS } from './recipes.js'

/** @import { Facts, Interface } from './facts.js' */
/** @import { Aim, Check } from './finding.js' */

/** Memory of a process without connections, bytes. */
const PROCESS = 80 * 1024 ** 2
/** User-space bytes per connection: idle WebSocket, and the published run of a million (10.1 KB with the kernel). */
const USER = { server: [1500, 6450], drone: [4096, 5000] }
/** CPU time per idle connection, us/s: 1.1 with a WebSocket, 2.7 with a stream. */
const IDLE = 2.5
/** CPU time of a new connection and of a message, us. */
const CONNECT = { server: 50, drone: 100 }
const MESSAGE = { server: 10, drone: 25 }
/** Share of the cores to plan with. */
const PLANNED = 0.8

/** @param {Facts} facts @param {Aim} aim @returns {Check} */
function memory(facts, { connections, role, workers }) {
  const processes = role === 'drone' ? Math.ceil(connections / DRONE_PROCESS) : workers + 1
  const [min, max] = USER[role].map(user => user + SOCKET_BYTES)
  const base = processes * PROCESS
  const should = `${bytes(base + connections * max)} (or ${bytes(base + connections * min)})`
  const why = `${count(connections)} x ${bytes(max)} (idle WebSockets: ${bytes(min)}), of which ${bytes(SOCKET_BYTES)} are the kernel's; ${count(processes)} x ${bytes(PROCESS)} for processes`
  if (facts.memory === null) return unknown('memory', should, why)
  const { available, total, limited } = facts.memory
  return finding('memory', {
    is: `${bytes(available)} of ${bytes(total)}${limited ? ' (limit)' : ''}`,
    should,
    why: limited ? `${why}; a control group limits it` : why,
    status: available >= base + connections * max ? 'ok' : 'tight',
    reach: Math.max(0, Math.floor((available - base) / min)),
  })
}

/** @param {Facts} facts @param {Aim} aim @returns {Check[]} */
export function checkMemory(facts, aim) {
  const { swap, hugePages } = facts
  const unused = swap?.total === 0 ? 'none' : `${bytes(swap?.used ?? 0)} of ${bytes(swap?.total ?? 0)} used`
  return [
    memory(facts, aim),
    finding('swap', {
      is: swap === null ? '?' : unused,
      should: 'unused',
      why: 'a garbage collection reads the whole heap; swapped-out parts are loaded page by page',
      status: swap === null ? 'cannot tell' : swap.used > 64 * 1024 ** 2 ? 'tight' : 'ok',
    }),
    finding('transparent_hugepage', {
      is: hugePages ?? '?',
      should: 'madvise or never',
      why: 'with always, heaps grow by 2 MB at a time and do not shrink',
      status: hugePages === null ? 'cannot tell' : hugePages === 'always' ? 'tight' : 'ok',
    }),
    checkValue('vm.max_map_count', facts, {
      is: count,
      should: count(65_530),
      why: 'memory mappings of one process: a few thousand are usual, a connection needs none',
      what: 'memory mappings of one process',
      fits: has => has >= 65_530,
      value: 65_530,
    }),
  ]
}

/** @param {Facts} facts @param {Aim} aim @returns {Check} */
function processors({ cores, quota }, { connections, role, rate, deliveries }) {
  const connecting = (rate * CONNECT[role]) / 1e6
  const idle = (connections * IDLE) / 1e6
  const messages = (deliveries * MESSAGE[role]) / 1e6
  const need = idle + Math.max(messages, connecting)
  const should = `${need < 10 ? need.toFixed(1) : Math.ceil(need)} at ${PLANNED * 100} %`
  const parts = `estimate: ${IDLE} us a second for each connection, ${CONNECT[role]} us to connect (${count(rate)}/s), ${MESSAGE[role]} us a message`
  const have = Math.min(cores ?? Infinity, quota ?? Infinity)
  if (!Number.isFinite(have)) return unknown('cores', should, parts)
  const spare = Math.max(0, have * PLANNED - idle)
  const room = Math.floor((spare * 1e6) / MESSAGE[role] / 1000) * 1000
  return finding('cores', {
    is: quota !== null && have === quota ? `${quota.toFixed(1)} of ${cores ?? '?'} (limit)` : count(have),
    should,
    why: `${parts}${deliveries > 0 ? ` (${count(deliveries)}/s)` : ''}: room for about ${count(room)} messages/s`,
    status: need > have * PLANNED ? 'tight' : 'ok',
    reach: Math.max(0, Math.floor(((have - messages) * 1e6) / IDLE)),
  })
}

/** @param {Interface} card @param {number} cores @returns {Check} */
function interrupts({ name, receive, send, steered, chosen, interrupts: all }, cores) {
  const serving = all.map(({ core }) => core).filter(core => core !== null)
  const spread = new Set(serving).size
  const want = Math.min(cores, Math.max(1, receive))
  const queues = `${count(receive)} receive, ${count(send)} send ${receive + send > 2 ? 'queues' : 'queue'}`
  const software = `RPS on ${count(steered)}, XPS on ${count(chosen)} of them`
  const id = `interrupts of ${name}`
  const should = `on ${countOf(want, 'core')}, or more`
  const is = `${count(serving.length)} on ${countOf(spread, 'core')}`
  if (serving.length === 0)
    return unknown(id, should, `${queues}; ${software}; /proc/interrupts does not list the queues`)
  if (spread < want) {
    const why = `${queues}: one core serves several queues; use irqbalance, or one core per queue in /proc/irq/N/smp_affinity_list`
    return finding(id, { is, should, why, status: 'tight' })
  }
  if (receive >= cores || steered >= receive)
    return finding(id, { is, should, why: `${queues}; ${software}` })
  const why = `${queues} for ${count(cores)} cores; ${software}: /sys/class/net/${name}/queues/rx-*/rps_cpus spreads packets in software`
  // Up to 4 cores per queue are fine.
  return finding(id, { is, should, why, status: cores > 4 * receive ? 'tight' : 'ok' })
}

/** @param {Facts} facts @param {Aim} aim @returns {Check[]} */
export function checkProcessors(facts, aim) {
  const hidden = 'no network card is visible here: its interrupts belong to the host'
  const cards = facts.interfaces.map(card => interrupts(card, facts.cores ?? 1))
  return [
    processors(facts, aim),
    ...(cards.length > 0 ? cards : [unknown('interrupts', 'a core per queue', hidden)]),
  ]
}
