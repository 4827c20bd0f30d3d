// A drone's settings are shared out among its processes: each has a stretch of the connections' slots, which it keeps.

/** A process that has all of its connections may lose some: it counts as if this share of them were missing. */
const LEAST = 0.02

/**
 * @param {import('../schema.js').Settings} settings of the drone
 * @param {number} perProcess connections
 * @param {number[]} open connections of each process
 * @returns {import('../schema.js').Settings[]} one for each process that holds connections; who has more to open may open more at once
 */
export function shareOut(settings, perProcess, open) {
  const { connections, concurrency, rate, churn, first } = settings
  const counts = []
  for (let left = connections; left > 0; left -= perProcess) counts.push(Math.min(perProcess, left))
  const missing = counts.map((count, i) => Math.max(count * LEAST, count - (open[i] ?? 0)))
  const all = missing.reduce((sum, count) => sum + count, 0)
  return counts.map((count, i) => ({
    ...settings,
    connections: count,
    first: first + i * perProcess,
    concurrency: Math.max(1, Math.floor((concurrency * missing[i]) / all)),
    rate: (rate * missing[i]) / all,
    churn: (churn * count) / connections,
    publish: null,
  }))
}
