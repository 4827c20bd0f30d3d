// Thresholds of healthy figures, for the colours of the terminal dashboard and the admin page.

/** Warning and error threshold of each figure. docs/dashboard.md has the same table. */
export const LIMITS = Object.freeze({
  /** ms that events waited for the loop */
  tickAvg: [20, 50],
  tickP90: [50, 200],
  tickMax: [100, 500],
  /** share of the interval in which the loop was busy */
  loop: [0.7, 0.9],
  /** share of one core, of a worker */
  cpu: [0.7, 0.9],
  /** ms of garbage collection in a second */
  gc: [50, 200],
  /** share of the machine's cores */
  machine: [0.8, 0.95],
  steal: [0.02, 0.1],
  /** share of memory, files, a heap's limit */
  full: [0.8, 0.95],
  /** unsent bytes of the slowest client */
  outbox: [512 * 1024, 4 * 1024 * 1024],
  /** connections in a second that did not fit into a listen queue */
  overflows: [1, 100],
})
