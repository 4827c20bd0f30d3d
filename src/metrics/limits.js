// Thresholds that colour the terminal dashboard and the admin page.

/** Warning and error threshold of each figure; docs/dashboard.md has the same table. */
export const LIMITS = Object.freeze({
  /** ms, wait for the event loop */
  tickAvg: [20, 50],
  tickP90: [50, 200],
  tickMax: [100, 500],
  /** busy share of the interval */
  loop: [0.7, 0.9],
  /** of one core, of a worker */
  cpu: [0.7, 0.9],
  /** ms of garbage collection in a second */
  gc: [50, 200],
  /** of the machine's cores */
  machine: [0.8, 0.95],
  steal: [0.02, 0.1],
  /** share of memory, files, a heap's limit */
  full: [0.8, 0.95],
  /** unsent bytes of the slowest client */
  outbox: [512 * 1024, 4 * 1024 * 1024],
  /** connections a second that overflowed a listen queue */
  overflows: [1, 100],
})
