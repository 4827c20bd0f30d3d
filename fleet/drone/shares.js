// A drone's settings are shared out among its processes: each has a stretch of the connections' slots, which it keeps.

/** @typedef {import('../schema.js').Settings} Settings */

/** Ports that a process has for each connection: those it has just closed are not free at once. */
const PORTS_EACH = 1.5
/** What a process without missing connections has of the rate: it may lose some. */
const LEAST = 0.02

/**
 * @param {string} ports `1024-65535`
 * @param {number} index of the process
 * @param {number} processes
 * @param {number} need ports of one process
 * @returns {string} its own ones: two processes that take the same would wait for each other
 */
function portsOf(ports, index, processes, need) {
  const [, from, to] = /^(\d+)-(\d+)$/.exec(ports)?.map(Number) ?? []
  if (!(to >= from)) return ports
  const width = Math.max(1, Math.min(Math.floor((to - from + 1) / processes), Math.ceil(need)))
  const first = from + index * width
  return `${first}-${first + width - 1}`
}

/** @param {string[]} addresses `127.0.1.1-127.0.1.50` @returns {number} how many they are */
const countAddresses = addresses =>
  addresses.reduce((sum, range) => {
    const [from, to = from] = range
      .split('-')
      .map(address => address.split('.').reduce((value, part) => value * 256 + Number(part), 0))
    return sum + (to - from + 1 || 1)
  }, 0) || 1

/**
 * @param {Settings} settings of the drone
 * @param {number} perProcess connections
 * @param {number[]} missing connections that are not open yet, of each process
 * @returns {{share: number, settings: Settings}[]} one for each process that holds connections; `share`: of what is opened in a second
 */
export function shareOut(settings, perProcess, missing) {
  const { connections, concurrency, rate, churn, addresses, ports } = settings
  const processes = Math.ceil(connections / perProcess)
  const counts = Array.from({ length: processes }, (_, i) =>
    Math.min(perProcess, connections - i * perProcess),
  )
  const absent = counts.map((count, i) => Math.min(count, missing[i] ?? count))
  const all = absent.reduce((sum, count) => sum + count, 0)
  const need = (perProcess * PORTS_EACH) / countAddresses(addresses)
  return counts.map((count, i) => {
    const share = Math.max(LEAST, all > 0 ? absent[i] / all : count / connections)
    return {
      share,
      settings: {
        ...settings,
        connections: count,
        first: settings.first + i * perProcess,
        concurrency: Math.max(1, Math.round(concurrency * share)),
        rate: rate * share,
        churn: (churn * count) / connections,
        ports: portsOf(ports, i, processes, need),
        publish: null,
      },
    }
  })
}
