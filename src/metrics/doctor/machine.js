// Checks of memory and processors. Figures are from docs/performance.md and docs/gc.md; those of another machine
// are estimates.

import { bytes } from '../../base/format.js'
import { SOCKET_BYTES } from '../socket-memory.js'
import { checkValue, count, finding } from './finding.js'
import { DRONE_PROCESS } from './recipes.js'

/** @import { Facts } from './facts.js' */
/** @import { Aim, Finding } from './finding.js' */

/** Bytes of a process without connections. */
const PROCESS = 80 * 1024 ** 2
/** User-space bytes per connection: an idle WebSocket, and the published run of a million (10.1 KB with the kernel). */
const USER = { server: [1500, 6450], drone: [4096, 5000] }
/** CPU of an idle connection, microseconds a second: 1.1 with a WebSocket, 2.7 with a stream. */
const IDLE = 2.5
/** CPU of a new connection and of a message, microseconds. */
const CONNECT = { server: 50, drone: 100 }
const MESSAGE = { server: 10, drone: 25 }
/** Share of the cores to plan with. */
const PLANNED = 0.8

/** @param {Facts} facts @param {Aim} aim @returns {Finding} */
function memory(facts, { connections, role, workers }) {
  const processes = role === 'drone' ? Math.ceil(connections / DRONE_PROCESS) : workers + 1
  const [least, most] = USER[role].map(user => user + SOCKET_BYTES)
  const base = processes * PROCESS
  const should = `${bytes(base + connections * most)} (or ${bytes(base + connections * least)})`
  const why = `${count(connections)} x ${bytes(most)} (idle WebSockets: ${bytes(least)}), of which ${bytes(SOCKET_BYTES)} are the kernel's; ${count(processes)} x ${bytes(PROCESS)} for processes`
  if (facts.memory === null) return finding('memory', 'memory', { should, why, status: 'cannot tell' })
  const { available, total, limited } = facts.memory
  return finding('memory', 'memory', {
    is: `${bytes(available)} of ${bytes(total)}${limited ? ' (limit)' : ''}`,
    should,
    why: limited ? `${why}; a control group limits it` : why,
    status: available >= base + connections * most ? 'ok' : 'tight',
    reach: Math.max(0, Math.floor((available - base) / least)),
  })
}

/** @param {Facts} facts @returns {Finding[]} */
function paging(facts) {
  const { swap, hugePages } = facts
  return [
    finding('memory', 'swap', {
      is:
        swap === null ? '?' : swap.total === 0 ? 'none' : `${bytes(swap.used)} of ${bytes(swap.total)} used`,
      should: 'unused',
      why: 'a garbage collection reads the whole heap; swapped-out parts are loaded page by page',
      status: swap === null ? 'cannot tell' : swap.used > 64 * 1024 ** 2 ? 'tight' : 'ok',
    }),
    finding('memory', 'transparent_hugepage', {
      is: hugePages ?? '?',
      should: 'madvise or never',
      why: 'with always, heaps grow by 2 MB at a time and do not shrink',
      status: hugePages === null ? 'cannot tell' : hugePages === 'always' ? 'tight' : 'ok',
    }),
    checkValue('memory', 'vm.max_map_count', facts, {
      is: count,
      should: count(65_530),
      why: 'memory mappings of one process: a few thousand are usual, a connection needs none',
      what: 'memory mappings of one process',
      fits: has => has >= 65_530,
      value: 65_530,
    }),
  ]
}

/** @param {Facts} facts @param {Aim} aim @returns {Finding} */
function processors({ cores, quota }, { connections, role, rate, deliveries }) {
  const connecting = (rate * CONNECT[role]) / 1e6
  const idle = (connections * IDLE) / 1e6
  const messages = (deliveries * MESSAGE[role]) / 1e6
  const need = idle + Math.max(messages, connecting)
  const should = `${need < 10 ? need.toFixed(1) : Math.ceil(need)} at ${PLANNED * 100} %`
  const parts = `estimate: ${IDLE} us a second for each connection, ${CONNECT[role]} us to connect (${count(rate)}/s), ${MESSAGE[role]} us a message`
  const have = Math.min(cores ?? Number.POSITIVE_INFINITY, quota ?? Number.POSITIVE_INFINITY)
  if (!Number.isFinite(have))
    return finding('processor', 'cores', { should, why: parts, status: 'cannot tell' })
  const spare = Math.max(0, have * PLANNED - idle)
  const room = Math.floor((spare * 1e6) / MESSAGE[role] / 1000) * 1000
  return finding('processor', 'cores', {
    is: quota !== null && have === quota ? `${quota.toFixed(1)} of ${cores ?? '?'} (limit)` : count(have),
    should,
    why: `${parts}${deliveries > 0 ? ` (${count(deliveries)}/s)` : ''}: room for about ${count(room)} messages/s`,
    status: need > have * PLANNED ? 'tight' : 'ok',
    reach: Math.max(0, Math.floor(((have - messages) * 1e6) / IDLE)),
  })
}

/** @param {Facts} facts @returns {Finding[]} */
function interrupts({ interfaces, cores }) {
  if (interfaces.length === 0)
    return [
      finding('processor', 'interrupts', {
        should: 'a core per queue',
        why: 'no network card is visible here: its interrupts belong to the host',
        status: 'cannot tell',
      }),
    ]
  return interfaces.map(card => {
    const { name, receive, send, steered, chosen } = card
    const serving = card.interrupts.map(({ core }) => core).filter(core => core !== null)
    const spread = new Set(serving).size
    const want = Math.min(cores ?? 1, Math.max(1, receive))
    const queues = `${count(receive)} receive, ${count(send)} send ${receive + send > 2 ? 'queues' : 'queue'}`
    const software = `RPS on ${count(steered)}, XPS on ${count(chosen)} of them`
    /** @param {Partial<Finding> & {why: string}} rest */
    const findingOf = rest =>
      finding('processor', `interrupts of ${name}`, {
        is:
          serving.length > 0
            ? `${count(serving.length)} on ${count(spread)} ${spread === 1 ? 'core' : 'cores'}`
            : '?',
        should: `on ${count(want)} ${want === 1 ? 'core' : 'cores'}, or more`,
        ...rest,
      })
    if (serving.length === 0)
      return findingOf({
        why: `${queues}; ${software}; /proc/interrupts does not list the queues`,
        status: 'cannot tell',
      })
    if (spread < want)
      return findingOf({
        why: `${queues}: one core serves several queues; use irqbalance, or one core per queue in /proc/irq/N/smp_affinity_list`,
        status: 'tight',
      })
    if (receive < (cores ?? 1) && steered < receive)
      return findingOf({
        why: `${queues} for ${count(cores ?? 1)} cores; ${software}: /sys/class/net/${name}/queues/rx-*/rps_cpus spreads packets in software`,
        // With two or three cores, the others are busy enough.
        status: (cores ?? 1) > 4 * receive ? 'tight' : 'ok',
      })
    return findingOf({ why: `${queues}; ${software}` })
  })
}

/** @param {Facts} facts @param {Aim} aim @returns {Finding[]} */
export const checkMachine = (facts, aim) => [
  memory(facts, aim),
  ...paging(facts),
  processors(facts, aim),
  ...interrupts(facts),
]
