import { bytes } from '../../base/format.js'
import { checkMinimum, checkValue, count, finding, unknown } from './finding.js'
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
/** @import { Aim, Check } from './finding.js' */

/** Listen queue of uWebSockets.js, and queues per worker. */
const QUEUE = 512
const QUEUES = 8
/** Tolerated shares of dropped connections and packets. */
const OVERFLOWS = 0.001
const DROPS = 0.0001
/** Bytes; a larger message needs several writes. */
const WHOLE_MESSAGE = 64 * 1024

const BUFFERS = {
  'net.ipv4.tcp_rmem':
    'receive buffer of a socket (minimum, initial, maximum): an idle socket has none, so small buffers save memory only with clients that send much',
  'net.ipv4.tcp_wmem':
    'send buffer of a socket (minimum, initial, maximum): an idle socket has none, a client that does not read fills the maximum',
}

/** @param {Facts} facts @param {Aim} aim @returns {Check[]} */
function buffers(facts, { connections }) {
  const { page, memory, settings } = facts
  const all = checkMinimum(
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
  const one = Object.entries(BUFFERS).map(([key, why]) => {
    const has = settings[key]
    const should = `up to ${count(WHOLE_MESSAGE)} or more`
    if (has?.length !== 3) return unknown(key, should, why)
    const value = [...has.slice(0, 2), Math.max(has[2], WHOLE_MESSAGE)].join(' ')
    const changes = has[2] < WHOLE_MESSAGE
    return finding(key, {
      is: has.map(count).join(' '),
      should,
      why,
      status: changes ? 'tight' : 'ok',
      setting: { key, value, why: 'buffer of a socket: minimum, initial, maximum' },
      changes,
    })
  })
  const grows = settings['net.ipv4.tcp_moderate_rcvbuf']?.[0]
  const moderate = finding('net.ipv4.tcp_moderate_rcvbuf', {
    is: String(grows ?? '?'),
    should: '0 or 1',
    why: '1 lets the receive buffer of a busy socket grow up to tcp_rmem; idle ones stay small either way',
    status: grows === undefined ? 'cannot tell' : 'ok',
  })
  return [all, ...one, moderate]
}

/** @param {Facts} facts @param {Aim} aim @returns {Check[]} */
function queues(facts, { rate, workers }) {
  const limit = facts.settings['net.core.somaxconn']?.[0]
  const room = limit === undefined ? 0 : Math.min(limit, QUEUE) * QUEUES * workers
  const isOn = { should: '1', fits: (/** @type {number} */ has) => has > 0, value: 1 }
  return [
    checkMinimum('net.core.somaxconn', facts, [burst(rate)], {
      why: `${count(rate)} new connections/s wait in listen queues while an event loop is busy: ${QUEUES} queues of ${Math.min(QUEUE, limit ?? QUEUE)} in each of ${count(workers)} workers hold ${count(room)}`,
      what: 'listen queue: connections of one listener before accept',
    }),
    checkMinimum('net.ipv4.tcp_max_syn_backlog', facts, [burst(rate)], {
      why: 'half-open connections of a listener; further ones get SYN cookies or are dropped',
      what: 'half-open connections of one listener',
    }),
    checkValue('net.ipv4.tcp_syncookies', facts, {
      ...isOn,
      why: 'with SYN cookies, clients can connect while a queue is full',
      what: 'SYN cookies: a full queue refuses no client',
    }),
    checkValue('net.ipv4.tcp_migrate_req', facts, {
      ...isOn,
      why: 'with uWebSockets.js, 1 moves the handshakes in the queues of a replaced worker to other workers; with 0 they are reset (Linux 5.14 or newer)',
      what: MIGRATION,
    }),
    overflows(facts),
  ]
}

/** @param {Facts} facts @returns {Check} */
function overflows({ listen }) {
  const why = 'connections since boot that overflowed a listen queue; their clients try again after 1, 3, 7 s'
  const should = `below ${OVERFLOWS * 100} %`
  if (listen === null) return unknown('ListenOverflows', should, why)
  const { overflows, accepted } = listen
  const is = `${count(overflows)}${accepted === null ? '' : ` of ${count(accepted)}`}`
  const status = overflows > (accepted ?? 0) * OVERFLOWS ? 'tight' : 'ok'
  return finding('ListenOverflows', { is, should, why, status })
}

/** @param {Facts} facts @param {Aim} aim @returns {Check} */
function backlog(facts, { rate }) {
  const { packets: seen } = facts
  const tooMany = seen !== null && seen.dropped > seen.packets * DROPS ? ', which is too many' : ''
  const dropped = seen === null ? '' : `; dropped since boot: ${count(seen.dropped)}${tooMany}`
  return checkMinimum('net.core.netdev_max_backlog', facts, [backlogPackets(rate)], {
    why: `packets queued for one core: four for each of ${count(rate / 2)} connections${dropped}`,
    what: 'packets queued for one core',
  })
}

/** @param {Facts} facts @param {Aim} aim @returns {Check} */
function conntrack(facts, { connections }) {
  const [key, used, buckets] = ['max', 'count', 'buckets'].map(name => `net.netfilter.nf_conntrack_${name}`)
  const { settings } = facts
  const why = 'a tracked connection is an entry of about 320 bytes; a full table drops packets'
  const need = trackedEntries(connections)
  if (!settings[key]) {
    // Invisible inside a container.
    if (facts.container !== null) return unknown(key, count(need), `${why}; only visible on the host`)
    const off = 'connections are not tracked, so no full table drops packets'
    return finding(key, { is: 'not loaded', should: 'not loaded', why: off })
  }
  const now = settings[used]?.[0]
  const lists = settings[buckets]?.[0]
  const slow =
    lists && need > lists * 8
      ? `; ${count(lists)} buckets make look-ups slow: raise nf_conntrack_buckets`
      : ''
  return checkMinimum(key, facts, [need], {
    is: `${settings[key].map(count).join(' ')}${now === undefined ? '' : ` (${count(now)} used)`}`,
    why: why + slow,
    what: 'tracked connections',
    // Tracking may start with a new firewall rule.
    reach: ([limit]) => (now === 0 ? null : Math.max(0, limit - (now ?? 0))),
  })
}

/** @param {Facts} facts @param {Aim} aim @returns {Check[]} */
function ports(facts, { connections, addresses: given }) {
  const key = 'net.ipv4.ip_local_port_range'
  const max = LAST_PORT - FIRST_PORT + 1
  const addresses = Math.max(1, given ?? facts.addresses ?? 1)
  const needed = Math.ceil(connections / max)
  const are = `there ${addresses === 1 ? 'is' : 'are'} ${count(addresses)} (--addresses)`
  const from = `from ${addresses === 1 ? 'one address' : `${count(addresses)} addresses`}`
  const each = `at most ${count(max)} connections from one address to one port of the target`
  const why =
    needed > addresses
      ? `${each}: ${count(connections)} need ${count(needed)} addresses, but ${are}`
      : `${each}; ${from}`
  const should = `${FIRST_PORT}-${LAST_PORT}`
  const [first, last, more] = facts.settings[key] ?? []
  if (last === undefined || more !== undefined) return [unknown(key, should, why), ...reuse(facts, null)]
  const reach = (last - first + 1) * addresses
  const range = finding(key, {
    is: `${first}-${last}`,
    should,
    why,
    status: reach < connections * 1.05 ? 'tight' : 'ok',
    reach,
    setting: {
      key,
      value: `${Math.min(first, FIRST_PORT)} ${Math.max(last, LAST_PORT)}`,
      why: 'local ports: connections from one address',
    },
    changes: first > FIRST_PORT || last < LAST_PORT,
  })
  return [range, ...reuse(facts, reach)]
}

/** @param {Facts} facts @param {number | null} allPorts of all addresses @returns {Check[]} */
function reuse(facts, allPorts) {
  const words = ['0: never', '1: always', '2: on loopback only']
  const reused = checkValue('net.ipv4.tcp_tw_reuse', facts, {
    is: has => words[has] ?? String(has),
    should: '1: always',
    why: 'the port of a closed connection can be used again after a second instead of a minute (tcp_tw_recycle no longer exists)',
    what: 'reuse ports of closed connections after a second',
    fits: has => has === 1,
    value: 1,
  })
  const { timeWait } = facts
  const half = allPorts === null ? null : allPorts / 2
  const why = 'ports of connections closed within the last minute: at most half of all ports'
  const is = timeWait === null ? '?' : count(timeWait)
  const should = half === null ? '' : `below ${count(half)}`
  if (timeWait === null || half === null) return [reused, { ...unknown('TIME_WAIT', should, why), is }]
  const status = timeWait > half && reused.status !== 'ok' ? 'tight' : 'ok'
  return [reused, finding('TIME_WAIT', { is, should, why, status })]
}

/** @param {Facts} facts @param {Aim} aim @returns {Check[]} */
export const checkNetwork = (facts, aim) => [
  ...buffers(facts, aim),
  ...(aim.role === 'server' ? queues(facts, aim) : ports(facts, aim)),
  backlog(facts, aim),
  conntrack(facts, aim),
]
