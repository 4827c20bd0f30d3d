// Checks of the kernel's network settings: buffers, queues, ports, connection tracking.

import { atLeast, bytes, count, finding } from './finding.js'
import { burst, FIRST_PORT, LAST_PORT, packets, tcpMemory, tracked } from './recipes.js'

/** @import { Facts } from './facts.js' */
/** @import { Aim, Finding } from './finding.js' */

/** Length of a listen queue of uWebSockets.js, and queues per worker. */
const QUEUE = 512
const QUEUES = 8
/** Shares of dropped connections and packets above which a queue is too short. */
const OVERFLOWS = 0.001
const DROPS = 0.0001
/** Send buffer for a whole message, bytes; a larger message needs several writes. */
const WHOLE_MESSAGE = 64 * 1024

/** @param {Facts} facts @param {Aim} aim @returns {Finding[]} */
function buffers(facts, { connections }) {
  const { page, memory } = facts
  const all = atLeast(
    'network',
    'net.ipv4.tcp_mem',
    facts,
    tcpMemory(connections, { page, memory: memory?.total }),
    {
      why: `pages of ${bytes(page)}, of all sockets: idle ones take none, a message to all one or two for each; half of memory at most`,
      what: 'pages of all TCP buffers: one for each connection, two at most',
      // The published run of 12 million had half a page per connection.
      reach: has => (has.length > 2 ? has[2] * 2 : null),
    },
  )
  const one = ['rmem', 'wmem'].map(name => {
    const id = `net.ipv4.tcp_${name}`
    const has = facts.settings[id]
    const should = `up to ${count(WHOLE_MESSAGE)} or more`
    const why =
      name === 'rmem'
        ? 'least, first and largest buffer of a socket: idle ones take nothing, so small ones save only with clients that send much'
        : 'the same for sending: idle sockets take nothing; a client that does not read takes as much as the largest'
    if (has?.length !== 3) return finding('network', id, { should, why, status: 'cannot tell' })
    const enough = has[2] >= WHOLE_MESSAGE
    const setting = {
      key: id,
      value: [...has.slice(0, 2), Math.max(has[2], WHOLE_MESSAGE)].join(' '),
      why: `buffer of a socket: least, first, largest`,
    }
    return finding('network', id, {
      is: has.map(count).join(' '),
      should,
      why,
      status: enough ? 'ok' : 'tight',
      setting,
      changes: !enough,
    })
  })
  const grows = facts.settings['net.ipv4.tcp_moderate_rcvbuf']?.[0]
  const moderate = finding('network', 'net.ipv4.tcp_moderate_rcvbuf', {
    is: grows === undefined ? '?' : String(grows),
    should: '0 or 1',
    why: '1 lets a receive buffer grow to tcp_rmem while its client sends much; idle ones stay small either way',
    status: grows === undefined ? 'cannot tell' : 'ok',
  })
  return [all, ...one, moderate]
}

/** @param {Facts} facts @param {Aim} aim @returns {Finding[]} */
function queues(facts, { rate, workers }) {
  const limit = facts.settings['net.core.somaxconn']?.[0]
  const room = limit === undefined ? 0 : Math.min(limit, QUEUE) * QUEUES * workers
  const accept = atLeast('network', 'net.core.somaxconn', facts, [burst(rate)], {
    why: `${count(rate)}/s come, and wait while a loop is busy: ${QUEUES} queues of ${Math.min(QUEUE, limit ?? QUEUE)} in each of ${count(workers)} workers hold ${count(room)}`,
    what: 'connections that wait for accept, of one listener',
  })
  const opening = atLeast('network', 'net.ipv4.tcp_max_syn_backlog', facts, [burst(rate)], {
    why: 'half-open connections of a listener; above it cookies are sent, or they are dropped',
    what: 'connections that are being opened, of one listener',
  })
  const cookies = facts.settings['net.ipv4.tcp_syncookies']?.[0]
  const cookie = finding('network', 'net.ipv4.tcp_syncookies', {
    is: cookies === undefined ? '?' : String(cookies),
    should: '1',
    why: 'when a queue is full, clients get in all the same',
    status: cookies === undefined ? 'cannot tell' : cookies > 0 ? 'ok' : 'tight',
    setting: {
      key: 'net.ipv4.tcp_syncookies',
      value: String(cookies || 1),
      why: 'a full queue turns nobody away',
    },
    changes: cookies === 0,
  })
  return [accept, opening, cookie, overflows(facts)]
}

/** @param {Facts} facts @returns {Finding} */
function overflows({ listen }) {
  const why = 'connections since boot that found a listen queue full: they try again after 1, 3, 7 s'
  const should = `below ${OVERFLOWS * 100} %`
  if (listen === null) return finding('network', 'ListenOverflows', { should, why, status: 'cannot tell' })
  const { overflows, accepted } = listen
  const often = overflows > (accepted ?? 0) * OVERFLOWS
  const of = accepted === null ? '' : ` of ${count(accepted)}`
  return finding('network', 'ListenOverflows', {
    is: `${count(overflows)}${of}`,
    should,
    why,
    status: often ? 'tight' : 'ok',
  })
}

/** @param {Facts} facts @param {Aim} aim @returns {Finding[]} */
function backlog(facts, { rate }) {
  const { packets: seen } = facts
  const dropped = seen !== null && seen.dropped > seen.packets * DROPS
  const queue = atLeast('network', 'net.core.netdev_max_backlog', facts, [packets(rate)], {
    why: `packets that wait for one core: four for each of ${count(rate / 2)} connections${
      seen === null
        ? ''
        : `; dropped since boot: ${count(seen.dropped)}${dropped ? ', which is too many' : ''}`
    }`,
    what: 'packets that wait for one core',
  })
  return [queue]
}

/** @param {Facts} facts @param {Aim} aim @returns {Finding} */
function conntrack(facts, { connections }) {
  const [key, used, buckets] = ['max', 'count', 'buckets'].map(name => `net.netfilter.nf_conntrack_${name}`)
  const why = 'a tracked connection is an entry of about 320 bytes; a full table drops packets'
  if (!facts.settings[key]) {
    // Not visible inside a container.
    if (facts.container !== null)
      return finding('network', key, {
        should: count(tracked(connections)),
        why: `${why}; the host knows`,
        status: 'cannot tell',
      })
    return finding('network', key, {
      is: 'not loaded',
      should: 'not loaded',
      why: 'connections are not tracked: none is lost to a full table',
    })
  }
  const now = facts.settings[used]?.[0]
  const lists = facts.settings[buckets]?.[0]
  return atLeast('network', key, facts, [tracked(connections)], {
    is: `${facts.settings[key].map(count).join(' ')}${now === undefined ? '' : ` (${count(now)} used)`}`,
    why: `${why}${lists && tracked(connections) > lists * 8 ? `; with ${count(lists)} buckets each look-up is long: nf_conntrack_buckets` : ''}`,
    what: 'tracked connections',
    // Tracking may start with a new firewall rule; until then it is no obstacle.
    reach: ([limit]) => (now === 0 ? null : Math.max(0, limit - (now ?? 0))),
  })
}

/** @param {Facts} facts @param {Aim} aim @returns {Finding[]} */
function ports(facts, { connections, addresses: asked }) {
  const id = 'net.ipv4.ip_local_port_range'
  const most = LAST_PORT - FIRST_PORT + 1
  const addresses = Math.max(1, asked ?? facts.addresses ?? 1)
  const needed = Math.ceil(connections / most)
  const each = `${count(most)} connections at most from one address to one port of the target`
  const why =
    needed > addresses
      ? `${each}: ${count(connections)} take ${count(needed)} addresses, and there ${addresses === 1 ? 'is' : 'are'} ${count(addresses)} (--addresses)`
      : `${each}; from ${addresses === 1 ? 'one address' : `${count(addresses)} addresses`}`
  const has = facts.settings[id]
  const should = `${FIRST_PORT}-${LAST_PORT}`
  const result =
    has?.length !== 2
      ? finding('network', id, { should, why, status: 'cannot tell' })
      : finding('network', id, {
          is: `${has[0]}-${has[1]}`,
          should,
          why,
          status: (has[1] - has[0] + 1) * addresses < connections * 1.05 ? 'tight' : 'ok',
          reach: (has[1] - has[0] + 1) * addresses,
          setting: {
            key: id,
            value: `${Math.min(has[0], FIRST_PORT)} ${Math.max(has[1], LAST_PORT)}`,
            why: 'connections from one address',
          },
          changes: has[0] > FIRST_PORT || has[1] < LAST_PORT,
        })
  return [result, ...reuse(facts, addresses)]
}

/** @param {Facts} facts @param {number} addresses @returns {Finding[]} */
function reuse(facts, addresses) {
  const id = 'net.ipv4.tcp_tw_reuse'
  const has = facts.settings[id]?.[0]
  const words = ['0: never', '1: always', '2: on loopback only']
  const reused = finding('network', id, {
    is: has === undefined ? '?' : (words[has] ?? String(has)),
    should: '1: always',
    why: 'a port is free again a second after its connection was closed, not a minute (tcp_tw_recycle is gone)',
    status: has === undefined ? 'cannot tell' : has === 1 ? 'ok' : 'tight',
    setting: { key: id, value: '1', why: 'ports of closed connections, after a second' },
    changes: has !== undefined && has !== 1,
  })
  const range = facts.settings['net.ipv4.ip_local_port_range']
  const { timeWait } = facts
  const half = range?.length === 2 ? ((range[1] - range[0] + 1) * addresses) / 2 : null
  const waiting = finding('network', 'TIME_WAIT', {
    is: timeWait === null ? '?' : count(timeWait),
    should: half === null ? '' : `below ${count(half)}`,
    why: 'ports of connections that were closed within the last minute: half of all, at most',
    status:
      timeWait === null || half === null ? 'cannot tell' : timeWait > half && has !== 1 ? 'tight' : 'ok',
  })
  return [reused, waiting]
}

/** @param {Facts} facts @param {Aim} aim @returns {Finding[]} */
export const checkNetwork = (facts, aim) => [
  ...buffers(facts, aim),
  ...(aim.role === 'server' ? queues(facts, aim) : ports(facts, aim)),
  ...backlog(facts, aim),
  conntrack(facts, aim),
]
