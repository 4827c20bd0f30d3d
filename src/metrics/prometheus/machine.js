// Families of the machine. Figures from /proc are absent on systems other than Linux.

import { byName, counter, gauge, plainCounter, plainGauge, seconds } from './family.js'

/** @import { Lifetimes, MachineSample } from '../schema.js' */
/** @import { PlainFamily } from './family.js' */

/** @typedef {Lifetimes['machine']} Sums */

/**
 * A current figure.
 * @param {string} name without `halley_machine_` @param {string} help
 * @param {(machine: MachineSample) => number | null | undefined} read
 */
const current = (name, help, read) =>
  plainGauge(`halley_machine_${name}`, help, ({ snapshot }) => read(snapshot.machine))

/**
 * A sum since the start.
 * @param {string} name without `halley_machine_` @param {string} help @param {(sums: Sums) => number | undefined} read
 */
const total = (name, help, read) =>
  plainCounter(`halley_machine_${name}`, help, ({ snapshot }) => read(snapshot.lifetimes.machine))

/** @type {readonly PlainFamily[]} */
export const machine = Object.freeze([
  current('cores', 'CPU cores.', ({ cores }) => cores),
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
  current('memory_total_bytes', 'Total memory.', ({ memory }) => memory.total),
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
  current(
    'memory_available_bytes',
    'Memory available to programs without swapping.',
    ({ memory }) => memory.available,
  ),
  current('slab_bytes', 'Kernel slab memory of the whole machine.', ({ memory }) => memory.slab),
  current('sockets', 'Sockets in use.', ({ sockets }) => sockets?.used),
  current('tcp_sockets', 'TCP sockets in use.', ({ sockets }) => sockets?.tcp.inuse),
  current('tcp_orphans', 'TCP sockets without a process.', ({ sockets }) => sockets?.tcp.orphan),
  current('tcp_time_wait', 'TCP sockets in TIME_WAIT.', ({ sockets }) => sockets?.tcp.time_wait),
  current('tcp_allocated', 'Allocated TCP sockets, in all states.', ({ sockets }) => sockets?.tcp.alloc),
  current(
    'tcp_memory_bytes',
    'Buffers of all TCP sockets of the machine.',
    ({ sockets }) => sockets?.tcp.memory,
  ),
  total(
    'network_received_bytes_total',
    'Bytes received since the gateway started, without the loopback interface (unless it is the only one).',
    ({ network }) => network?.rx_bytes,
  ),
  total('network_sent_bytes_total', 'Bytes sent, counted the same way.', ({ network }) => network?.tx_bytes),
  total(
    'network_received_packets_total',
    'Packets received, counted the same way.',
    ({ network }) => network?.rx_packets,
  ),
  total(
    'network_sent_packets_total',
    'Packets sent, counted the same way.',
    ({ network }) => network?.tx_packets,
  ),
  total(
    'listen_overflows_total',
    'Connections that overflowed a listen queue since the gateway started.',
    ({ listen }) => listen?.overflows,
  ),
  total(
    'listen_drops_total',
    'Connections dropped by listening sockets for any reason since the gateway started.',
    ({ listen }) => listen?.drops,
  ),
  current('open_files', 'Open files of all processes.', ({ files }) => files?.open),
  current('max_files', 'Maximum open files of all processes.', ({ files }) => files?.limit),
])
