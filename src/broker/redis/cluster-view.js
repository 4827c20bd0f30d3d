/**
 * @typedef {object} ClusterServer
 * @property {string} id the one that it has in the cluster
 * @property {string} host
 * @property {number} port
 *
 * @typedef {object} SlotRange slots that are one master's
 * @property {number} first
 * @property {number} last
 * @property {ClusterServer} master
 *
 * @typedef {object} ClusterView what one server says of its cluster
 * @property {boolean} ok whether it takes commands: it sees most of the masters, and all slots are served
 * @property {boolean} sharded whether it knows sharded pub/sub
 * @property {SlotRange[]} ranges
 * @property {{host: string, port: number}[]} servers all that it names, replicas too
 *
 * @typedef {import('./line.js').Done} Done
 */

const SLOTS = 16_384

/**
 * @param {string} tag what stands between the braces of a key
 * @returns {number} its hash slot: CRC16 (XMODEM) of its bytes, as the cluster specification has it
 */
export function slotOf(tag) {
  let crc = 0
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : crc << 1
  }
  return crc % SLOTS
}

/**
 * Asks a server of a cluster for its view.
 * @param {(name: string, args: string[], done: Done) => void} send
 * @param {string} host under which it is reached: a server may not know its own
 * @param {(error: Error | null, view: ClusterView) => void} done
 */
export function askView(send, host, done) {
  /** @type {ClusterView} */
  const view = { ok: false, sharded: false, ranges: [], servers: [] }
  /** @type {Error | null} */
  let failed = null
  let left = 3
  /** @type {(read: (reply: any) => void) => Done} */
  const part = read => (error, reply) => {
    if (error) failed ??= error
    else read(reply)
    if (--left === 0) done(failed, view)
  }
  send(
    'cluster',
    ['info'],
    part(reply => {
      view.ok = /^cluster_state:ok\b/m.test(String(reply))
    }),
  )
  send(
    'command',
    ['info', 'spublish'],
    part(reply => {
      view.sharded = Array.isArray(reply) && Array.isArray(reply[0])
    }),
  )
  send(
    'cluster',
    ['slots'],
    part(reply => readSlots(reply, host, view)),
  )
}

/**
 * @param {any} reply of CLUSTER SLOTS: first, last, master, replicas; each server as host, port, id, more names
 * @param {string} host that was asked
 * @param {ClusterView} view gets what is in it
 */
function readSlots(reply, host, view) {
  /** @type {Map<string, ClusterServer>} */
  const servers = new Map()
  for (const [first, last, ...serving] of reply) {
    for (const [i, entry] of serving.entries()) {
      const server = readServer(entry, host)
      if (server.port > 0) servers.set(server.id, server)
      if (i === 0) view.ranges.push({ first: Number(first), last: Number(last), master: server })
    }
  }
  view.servers = [...servers.values()]
}

/**
 * @param {any[]} entry
 * @param {string} asked
 * @returns {ClusterServer}
 */
function readServer([endpoint, port, id, names], asked) {
  let host = String(endpoint ?? '')
  if (host === '?') {
    // It shall be known by a name that it has not got: its address is among the other names.
    const at = Array.isArray(names) ? names.findIndex((name, i) => i % 2 === 0 && String(name) === 'ip') : -1
    host = at < 0 ? '' : String(names[at + 1])
  }
  host ||= asked
  return { id: String(id ?? `${host}:${port}`), host, port: Number(port) }
}
