// Families of the machine. Figures from /proc are absent on systems other than Linux.

import { byName, counter, gauge, one, seconds } from './family.js'

/**
 * @typedef {import('../stats/schema.js').MachineSample} MachineSample
 * @typedef {import('../stats/schema.js').Lifetimes['machine']} Sums
 * @typedef {import('./family.js').PlainFamily} PlainFamily
 */

/**
 * @param {string} name without `halley_machine_`
 * @param {string} help @param {(machine: MachineSample) => number | null | undefined} read
 */
const now = (name, help, read) =>
  gauge(
    `halley_machine_${name}`,
    help,
    [],
    one(({ snapshot }) => read(snapshot.machine)),
  )

/**
 * @param {string} name without `halley_machine_`
 * @param {string} help @param {(sums: Sums) => number | undefined} read
 */
const sum = (name, help, read) =>
  counter(
    `halley_machine_${name}`,
    help,
    [],
    one(({ snapshot }) => read(snapshot.lifetimes.machine)),
  )

/** @type {readonly PlainFamily[]} */
export const machine = Object.freeze([
  now('cores', 'CPU cores.', ({ cores }) => cores),
  counter(
    'halley_machine_cpu_seconds_total',
    'CPU time of all cores since the gateway started, by mode (user, system, idle, iowait, steal).',
    ['mode'],
    ({ snapshot }) =>
      byName(snapshot.lifetimes.machine.cpu ?? {}).map(([ms, mode]) => [seconds(Number(ms)), mode]),
  ),
  gauge(
    'halley_machine_load',
    'Load average over the last 1, 5 and 15 minutes.',
    ['minutes'],
    ({ snapshot }) => (snapshot.machine.load ?? []).map((load, i) => [load, [1, 5, 15][i]]),
  ),
  now('memory_total_bytes', 'Total memory.', ({ memory }) => memory.total),
  gauge(
    'halley_machine_memory_bytes',
    'Memory by kind: "used", "caches" (page cache, buffers, reclaimable slab) and "free". Their sum is the total.',
    ['kind'],
    ({ snapshot: { machine } }) => [
      [machine.memory.used, 'used'],
      [machine.memory.caches, 'caches'],
      [machine.memory.free, 'free'],
    ],
  ),
  now(
    'memory_available_bytes',
    'Memory available to programs without swapping.',
    ({ memory }) => memory.available,
  ),
  now('slab_bytes', 'Kernel slab memory of the whole machine.', ({ memory }) => memory.slab),
  now('sockets', 'Sockets in use.', ({ sockets }) => sockets?.used),
  now('tcp_sockets', 'TCP sockets in use.', ({ sockets }) => sockets?.tcp.inuse),
  now('tcp_orphans', 'TCP sockets without a process.', ({ sockets }) => sockets?.tcp.orphan),
  now('tcp_time_wait', 'TCP sockets in TIME_WAIT.', ({ sockets }) => sockets?.tcp.time_wait),
  now('tcp_allocated', 'Allocated TCP sockets, in all states.', ({ sockets }) => sockets?.tcp.alloc),
  now('tcp_memory_bytes', 'Buffers of all TCP sockets of the machine.', ({ sockets }) => sockets?.tcp.memory),
  sum(
    'network_received_bytes_total',
    'Bytes received since the gateway started, without the loopback interface (unless it is the only one).',
    ({ network }) => network?.rx_bytes,
  ),
  sum('network_sent_bytes_total', 'Bytes sent, counted the same way.', ({ network }) => network?.tx_bytes),
  sum(
    'network_received_packets_total',
    'Packets received, counted the same way.',
    ({ network }) => network?.rx_packets,
  ),
  sum(
    'network_sent_packets_total',
    'Packets sent, counted the same way.',
    ({ network }) => network?.tx_packets,
  ),
  sum(
    'listen_overflows_total',
    'Connections that overflowed a listen queue since the gateway started.',
    ({ listen }) => listen?.overflows,
  ),
  sum(
    'listen_drops_total',
    'Connections dropped by listening sockets for any reason since the gateway started.',
    ({ listen }) => listen?.drops,
  ),
  now('open_files', 'Open files of all processes.', ({ files }) => files?.open),
  now('max_files', 'Maximum open files of all processes.', ({ files }) => files?.limit),
])
