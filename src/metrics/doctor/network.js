// Checks of the kernel's network settings: buffers, queues, ports, connection tracking.

import { bytes } from '../../base/format.js'
import { checkMinimum, checkValue, count, finding } from './finding.js'
import {
  backlogPackets,
  burst,
  FIRST_PORT,
  LAST_PORT,
  MIGRATION,
  tcpMemory,
  trackedEntries,
} from './recipes.js'

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
  const all = checkMinimum(
    'network',
    'net.ipv4.tcp_mem',
    facts,
    tcpMemory(connections, { page, memory: memory?.total }),
    {
      why: `buffers of all sockets, in pages of ${bytes(page)}: an idle socket needs none, a message to all clients one or two per socket; at most half of the memory`,
      what: 'pages of all TCP buffers: one per connection, at most two',
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
        ? 'receive buffer of a socket (minimum, initial, maximum): an idle socket has none, so small buffers save memory only with clients that send much'
        : 'send buffer of a socket (minimum, initial, maximum): an idle socket has none, a client that does not read fills the maximum'
    if (has?.length !== 3) return finding('network', id, { should, why, status: 'cannot tell' })
    const enough = has[2] >= WHOLE_MESSAGE
    const setting = {
      key: id,
      value: [...has.slice(0, 2), Math.max(has[2], WHOLE_MESSAGE)].join(' '),
      why: `buffer of a socket: minimum, initial, maximum`,
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
    why: '1 lets the receive buffer of a busy socket grow up to tcp_rmem; idle ones stay small either way',
    status: grows === undefined ? 'cannot tell' : 'ok',
  })
  return [all, ...one, moderate]
}

/** @param {Facts} facts @param {Aim} aim @returns {Finding[]} */
function queues(facts, { rate, workers }) {
  const limit = facts.settings['net.core.somaxconn']?.[0]
  const room = limit === undefined ? 0 : Math.min(limit, QUEUE) * QUEUES * workers
  const accept = checkMinimum('network', 'net.core.somaxconn', facts, [burst(rate)], {
    why: `${count(rate)} new connections/s wait in listen queues while an event loop is busy: ${QUEUES} queues of ${Math.min(QUEUE, limit ?? QUEUE)} in each of ${count(workers)} workers hold ${count(room)}`,
    what: 'listen queue: connections of one listener before accept',
  })
  const opening = checkMinimum('network', 'net.ipv4.tcp_max_syn_backlog', facts, [burst(rate)], {
    why: 'half-open connections of a listener; further ones get SYN cookies or are dropped',
    what: 'half-open connections of one listener',
  })
  const cookie = checkValue('network', 'net.ipv4.tcp_syncookies', facts, {
    should: '1',
    why: 'with SYN cookies, clients can connect while a queue is full',
    what: 'SYN cookies: a full queue refuses no client',
    fits: has => has > 0,
    value: 1,
  })
  const migration = checkValue('network', 'net.ipv4.tcp_migrate_req', facts, {
    should: '1',
    why: 'with uWebSockets.js, 1 moves the handshakes in the queues of a replaced worker to other workers; with 0 they are reset (Linux 5.14 or newer)',
    what: MIGRATION,
    fits: has => has > 0,
    value: 1,
  })
  return [accept, opening, cookie, migration, overflows(facts)]
}

/** @param {Facts} facts @returns {Finding} */
function overflows({ listen }) {
  const why = 'connections since boot that overflowed a listen queue; their clients try again after 1, 3, 7 s'
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

/** @param {Facts} facts @param {Aim} aim @returns {Finding} */
function backlog(facts, { rate }) {
  const { packets: seen } = facts
  const dropped = seen !== null && seen.dropped > seen.packets * DROPS
  return checkMinimum('network', 'net.core.netdev_max_backlog', facts, [backlogPackets(rate)], {
    why: `packets queued for one core: four for each of ${count(rate / 2)} connections${
      seen === null
        ? ''
        : `; dropped since boot: ${count(seen.dropped)}${dropped ? ', which is too many' : ''}`
    }`,
    what: 'packets queued for one core',
  })
}

/** @param {Facts} facts @param {Aim} aim @returns {Finding} */
function conntrack(facts, { connections }) {
  const [key, used, buckets] = ['max', 'count', 'buckets'].map(name => `net.netfilter.nf_conntrack_${name}`)
  const why = 'a tracked connection is an entry of about 320 bytes; a full table drops packets'
  if (!facts.settings[key]) {
    // Not visible inside a container.
    if (facts.container !== null)
      return finding('network', key, {
        should: count(trackedEntries(connections)),
        why: `${why}; only visible on the host`,
        status: 'cannot tell',
      })
    return finding('network', key, {
      is: 'not loaded',
      should: 'not loaded',
      why: 'connections are not tracked, so no full table drops packets',
    })
  }
  const now = facts.settings[used]?.[0]
  const lists = facts.settings[buckets]?.[0]
  return checkMinimum('network', key, facts, [trackedEntries(connections)], {
    is: `${facts.settings[key].map(count).join(' ')}${now === undefined ? '' : ` (${count(now)} used)`}`,
    why: `${why}${lists && trackedEntries(connections) > lists * 8 ? `; ${count(lists)} buckets make look-ups slow: raise nf_conntrack_buckets` : ''}`,
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
  const each = `at most ${count(most)} connections from one address to one port of the target`
  const why =
    needed > addresses
      ? `${each}: ${count(connections)} need ${count(needed)} addresses, but there ${addresses === 1 ? 'is' : 'are'} ${count(addresses)} (--addresses)`
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
            why: 'local ports: connections from one address',
          },
          changes: has[0] > FIRST_PORT || has[1] < LAST_PORT,
        })
  return [result, ...reuse(facts, addresses)]
}

/** @param {Facts} facts @param {number} addresses @returns {Finding[]} */
function reuse(facts, addresses) {
  const words = ['0: never', '1: always', '2: on loopback only']
  const reused = checkValue('network', 'net.ipv4.tcp_tw_reuse', facts, {
    is: has => words[has] ?? String(has),
    should: '1: always',
    why: 'the port of a closed connection can be used again after a second instead of a minute (tcp_tw_recycle no longer exists)',
    what: 'reuse ports of closed connections after a second',
    fits: has => has === 1,
    value: 1,
  })
  const range = facts.settings['net.ipv4.ip_local_port_range']
  const { timeWait } = facts
  const half = range?.length === 2 ? ((range[1] - range[0] + 1) * addresses) / 2 : null
  const waiting = finding('network', 'TIME_WAIT', {
    is: timeWait === null ? '?' : count(timeWait),
    should: half === null ? '' : `below ${count(half)}`,
    why: 'ports of connections closed within the last minute: at most half of all ports',
    status:
      timeWait === null || half === null
        ? 'cannot tell'
        : timeWait > half && reused.status !== 'ok'
          ? 'tight'
          : 'ok',
  })
  return [reused, waiting]
}

/** @param {Facts} facts @param {Aim} aim @returns {Finding[]} */
export const checkNetwork = (facts, aim) => [
  ...buffers(facts, aim),
  ...(aim.role === 'server' ? queues(facts, aim) : ports(facts, aim)),
  backlog(facts, aim),
  conntrack(facts, aim),
]
