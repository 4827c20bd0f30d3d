// Needs of a machine for a number of connections: formulas, and complete files for a machine without facts.

/**
 * @typedef {'server' | 'drone'} Role
 *
 * @typedef {object} Wanted
 * @property {number} connections
 * @property {Role} role
 * @property {number} [rate] new connections a second; default RATE
 * @property {number} [workers] processes that share the connections; default: one per core
 *
 * @typedef {object} Setting a line of a file in /etc/sysctl.d
 * @property {string} key with dots
 * @property {string} value
 * @property {string} why one line
 */

/** Default rate of new connections a second: that of the published run of a million. */
export const RATE = 5000
/** Open files of a process beside its connections: listeners, pipes, Redis, logs, closing connections. */
export const RESERVED_FILES = 1000
/** The kernel distributes connections to workers by a hash: factor of the fullest worker. */
export const UNEVEN = 1.1
/** Maximum connections of one drone process. */
export const DRONE_PROCESS = 18_000
/** First unprivileged port. */
export const FIRST_PORT = 1024
export const LAST_PORT = 65_535
/** Kernel defaults: a setting within them needs no line. */
const USUAL_NR_OPEN = 1_048_576
const LEAST_NOFILE = 65_536
/** Kernel defaults: `tcp_mem` as parts of memory (tcp_init_mem(), net/ipv4/tcp.c); files use 10 %, 1 KB each. */
const USUAL_TCP_MEM = [3 / 64, 1 / 16, 3 / 32]
const USUAL_FILES = 0.1 / 1024
/** The number that systemd writes; memory limits files anyway. */
export const ANY_NUMBER = '9223372036854775807'
export const PAGE = 4096

/** The next power of two: easy to recognize as a limit. @param {number} number @returns {number} */
const roundUp = number => 2 ** Math.ceil(Math.log2(Math.max(1, number)))

/**
 * Files that one process must be able to open; without `workers`: as the only process.
 * @param {Wanted} wanted @returns {number}
 */
export function filesOfProcess({ connections, role, workers = 1 }) {
  if (role === 'drone') return Math.min(connections, DRONE_PROCESS) + RESERVED_FILES
  const share = workers > 1 ? Math.ceil((connections / workers) * UNEVEN) : connections
  return Math.min(share, connections) + RESERVED_FILES
}

/** @param {Wanted} wanted @returns {number} the limit to write */
export const nofile = wanted => Math.max(LEAST_NOFILE, roundUp(filesOfProcess(wanted)))

/**
 * Memory of TCP buffers, in pages; a connection with queued data uses at least one. Above the second number the
 * kernel saves memory, above the third it drops. So: one page per connection, twice that for a message to all, at
 * most half of the memory. (The published run of 12 million had half a page each.)
 * @param {number} connections @param {{memory?: number, page?: number}} [machine] bytes
 * @returns {number[]}
 */
export function tcpMemory(connections, { memory = Number.POSITIVE_INFINITY, page = PAGE } = {}) {
  const most = Math.floor(memory / page / 2)
  return [0.5, 1, 2].map(part => Math.min(Math.ceil(connections * part), Math.floor((most * part) / 2)))
}

/** Reason of net.ipv4.tcp_migrate_req. */
export const MIGRATION = 'handshakes of a replaced worker move to the others'

/** Connections that arrive while an event loop is blocked for half a second. @param {number} rate @returns {number} */
export const burst = rate => Math.max(4096, roundUp(rate / 2))

/**
 * SYN, ACK, request and subscription of half a second's connections on one core.
 * @param {number} rate @returns {number}
 */
export const backlogPackets = rate => Math.max(4096, roundUp(rate * 2))

/** Entries, including those of connections that just ended. @param {number} connections @returns {number} */
export const trackedEntries = connections => Math.ceil(connections * 1.2) + 10_000

/**
 * Settings for any machine: none is below the kernel's default.
 * @param {Wanted & {memory?: number}} wanted memory, bytes: settings that depend on it need it
 * @returns {Setting[]}
 */
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
    // The dash: no error if the kernel is older than 5.14.
    add('-net.ipv4.tcp_migrate_req', 1, MIGRATION)
  }
  add('net.core.netdev_max_backlog', backlogPackets(rate), 'packets queued for one core')
  // The dash: no error if connection tracking is not loaded.
  add(
    '-net.netfilter.nf_conntrack_max',
    Math.max(262_144, trackedEntries(connections)),
    'tracked connections',
  )
  return settings
}

/**
 * A file for /etc/sysctl.d.
 * @param {Setting[]} settings @param {{heading?: string, comments?: boolean}} [options] @returns {string}
 */
export function sysctlFile(settings, { heading = '', comments = true } = {}) {
  const lines = heading && comments ? heading.split('\n').map(line => `# ${line}`.trimEnd()) : []
  for (const { key, value, why } of settings) {
    if (comments) lines.push('', `# ${why}`)
    lines.push(`${key} = ${value}`)
  }
  return `${lines.join('\n').trimStart()}\n`
}

/** A file for /etc/security/limits.d: for login sessions, not services. @param {number} files @returns {string} */
export const limitsFile = files =>
  // `*` does not include root.
  ['*', 'root'].flatMap(who => ['soft', 'hard'].map(which => `${who} ${which} nofile ${files}\n`)).join('')

/** A drop-in for a systemd service, which ignores limits.d. @param {number} files @returns {string} */
export const serviceFile = files => `[Service]\nLimitNOFILE=${files}\n`

/**
 * The files for a machine without facts, such as one that is not launched yet.
 * @param {Wanted & {memory?: number, comments?: boolean}} wanted
 * @returns {{sysctl: string, limits: string, service: string, nofile: number}}
 */
export function recipes({ comments = true, ...wanted }) {
  const files = nofile(wanted)
  return {
    sysctl: sysctlFile(settingsFor(wanted), { comments }),
    limits: limitsFile(files),
    service: serviceFile(files),
    nofile: files,
  }
}
