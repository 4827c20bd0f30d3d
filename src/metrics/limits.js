/** Thresholds for warning and error, in the terminal dashboard and the admin page; also in docs/dashboard.md. */
export const LIMITS = Object.freeze({
  /** event-loop delay, ms */
  tickAvg: [20, 50],
  tickP90: [50, 200],
  tickMax: [100, 500],
  /** share of the interval */
  loop: [0.7, 0.9],
  /** of a worker's core */
  cpu: [0.7, 0.9],
  /** ms a second */
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
