// Requirements of a number of connections, and complete files for an unknown machine.

/**
 * @typedef {'server' | 'drone'} Role
 *
 * @typedef {object} Wanted
 * @property {number} connections
 * @property {Role} role
 * @property {number} [rate] connections a second; default RATE
 * @property {number} [workers] default: one per core
 *
 * @typedef {object} Setting of sysctl
 * @property {string} key with dots
 * @property {string} value
 * @property {string} why one line
 */

/** Connections a second, in the published run of a million. */
export const RATE = 5000
/** Files of a process for listeners, pipes, Redis, logs, closing connections. */
export const RESERVED_FILES = 1000
/** The kernel distributes connections by a hash: share of the fullest worker. */
export const UNEVEN = 1.1
/** Connections of a drone process. */
export const DRONE_PROCESS = 18_000
export const FIRST_PORT = 1024
export const LAST_PORT = 65_535
/** Kernel defaults: no line needed. */
const USUAL_NR_OPEN = 1_048_576
const MIN_NOFILE = 65_536
/** Kernel defaults: parts of memory (tcp_init_mem(), net/ipv4/tcp.c); files use 10 %, 1 KB each. */
const USUAL_TCP_MEM = [3 / 64, 1 / 16, 3 / 32]
const USUAL_FILES = 0.1 / 1024
/** systemd's value; memory limits files anyway. */
export const ANY_NUMBER = '9223372036854775807'
export const PAGE = 4096

/** To a power of two. @param {number} number */
const roundUp = number => 2 ** Math.ceil(Math.log2(Math.max(1, number)))

/** Files that one process must open. @param {Wanted} wanted */
export function filesOfProcess({ connections, role, workers = 1 }) {
  if (role === 'drone') return Math.min(connections, DRONE_PROCESS) + RESERVED_FILES
  const share = workers > 1 ? Math.ceil((connections / workers) * UNEVEN) : connections
  return Math.min(share, connections) + RESERVED_FILES
}

/** @param {Wanted} wanted */
export const nofile = wanted => Math.max(MIN_NOFILE, roundUp(filesOfProcess(wanted)))

/**
 * Pages of TCP buffers; a connection with queued data uses at least one. Above the second number the kernel saves
 * memory, above the third it drops: one page per connection, two for a broadcast, at most half of the memory.
 * @param {number} connections @param {{memory?: number, page?: number}} [machine] bytes
 */
export function tcpMemory(connections, { memory = Number.POSITIVE_INFINITY, page = PAGE } = {}) {
  const max = Math.floor(memory / page / 2)
  return [0.5, 1, 2].map(part => Math.min(Math.ceil(connections * part), Math.floor((max * part) / 2)))
}

export const MIGRATION = 'handshakes of a replaced worker move to the others'

/** New connections while an event loop blocks for half a second. @param {number} rate */
export const burst = rate => Math.max(4096, roundUp(rate / 2))

/** SYN, ACK, request and subscription of half a second's connections on one core. @param {number} rate */
export const backlogPackets = rate => Math.max(4096, roundUp(rate * 2))

/** Includes recently closed ones. @param {number} connections */
export const trackedEntries = connections => Math.ceil(connections * 1.2) + 10_000

/** Never below the kernel's default. @param {Wanted & {memory?: number}} wanted memory: bytes */
function settingsFor({ memory, ...wanted }) {
  const { connections, role, rate = RATE } = wanted
  /** @type {Setting[]} */
  const settings = []
  const add = (/** @type {string} */ key, /** @type {string | number} */ value, /** @type {string} */ why) =>
    settings.push({ key, value: String(value), why })
  if (nofile(wanted) > USUAL_NR_OPEN)
    add('fs.nr_open', nofile(wanted), 'files of one process: the maximum of every limit')
  if (connections + RESERVED_FILES > (memory ?? 0) * USUAL_FILES)
    add('fs.file-max', ANY_NUMBER, 'files of all processes: only memory limits them')
  if (memory !== undefined) {
    const need = tcpMemory(connections, { memory })
    const usual = USUAL_TCP_MEM.map(part => Math.ceil((memory / PAGE) * part))
    if (need.some((pages, i) => pages > usual[i]))
      add(
        'net.ipv4.tcp_mem',
        need.map((pages, i) => Math.max(pages, usual[i])).join(' '),
        'pages of all TCP buffers: one per connection, at most two',
      )
  }
  if (role === 'drone') {
    add(
      'net.ipv4.ip_local_port_range',
      `${FIRST_PORT} ${LAST_PORT}`,
      'local ports: connections from one address',
    )
    add('net.ipv4.tcp_tw_reuse', 1, 'reuse ports of closed connections after a second')
  } else {
    add('net.core.somaxconn', burst(rate), 'listen queue: connections of one listener before accept')
    add('net.ipv4.tcp_max_syn_backlog', burst(rate), 'half-open connections of one listener')
    // `-`: no error if the kernel is older than 5.14.
    add('-net.ipv4.tcp_migrate_req', 1, MIGRATION)
  }
  add('net.core.netdev_max_backlog', backlogPackets(rate), 'packets queued for one core')
  // `-`: no error without connection tracking.
  add(
    '-net.netfilter.nf_conntrack_max',
    Math.max(262_144, trackedEntries(connections)),
    'tracked connections',
  )
  return settings
}

/** @param {Setting[]} settings @param {{heading?: string, comments?: boolean}} [options] */
export function sysctlFile(settings, { heading = '', comments = true } = {}) {
  const lines = heading && comments ? heading.split('\n').map(line => `# ${line}`.trimEnd()) : []
  for (const { key, value, why } of settings) {
    if (comments) lines.push('', `# ${why}`)
    lines.push(`${key} = ${value}`)
  }
  return `${lines.join('\n').trimStart()}\n`
}

/** For login sessions, not services. @param {number} files */
export const limitsFile = files =>
  // `*` does not include root.
  ['*', 'root'].flatMap(who => ['soft', 'hard'].map(which => `${who} ${which} nofile ${files}\n`)).join('')

/** systemd ignores limits.d. @param {number} files */
export const serviceFile = files => `[Service]\nLimitNOFILE=${files}\n`

/** For an unknown machine. @param {Wanted & {memory?: number, comments?: boolean}} wanted */
export function recipes({ comments = true, ...wanted }) {
  const files = nofile(wanted)
  return {
    sysctl: sysctlFile(settingsFor(wanted), { comments }),
    limits: limitsFile(files),
    service: serviceFile(files),
    nofile: files,
  }
}
