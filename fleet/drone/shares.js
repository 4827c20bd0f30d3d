// A drone's settings are shared out among its processes: each has a stretch of the connections' slots, which it keeps.

/** What a process without missing connections has of the rate: it may lose some. */
const LEAST = 0.02

/**
 * @param {import('../schema.js').Settings} settings of the drone
 * @param {number} perProcess connections
 * @param {number[]} missing connections that are not open yet, of each process
 * @returns {import('../schema.js').Settings[]} one for each process that holds connections; who has more to open may open more at once
 */
export function shareOut(settings, perProcess, missing) {
  const { connections, concurrency, rate, churn, first } = settings
  const counts = []
  for (let left = connections; left > 0; left -= perProcess) counts.push(Math.min(perProcess, left))
  const absent = counts.map((count, i) => Math.min(count, missing[i] ?? count))
  const all = absent.reduce((sum, count) => sum + count, 0)
  return counts.map((count, i) => {
    const share = Math.max(LEAST, all > 0 ? absent[i] / all : count / connections)
    return {
      ...settings,
      connections: count,
      first: first + i * perProcess,
      concurrency: Math.max(1, Math.round(concurrency * share)),
      rate: rate * share,
      churn: (churn * count) / connections,
      publish: null,
    }
  })
}
