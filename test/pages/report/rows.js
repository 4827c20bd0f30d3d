// CSV text of simulated runs.

import { CSV_COLUMNS, CSV_HEADER } from '../../../src/metrics/csv-columns.js'

const FACTS = new URLSearchParams({
  version: '0.1.0',
  name: 'gateway-1',
  engine: 'memory',
  driver: 'uws',
  node_version: 'v20.20.0',
  workers: '4',
  cores: '8',
  memory: String(16 * 1024 ** 3),
}).toString()

export const START = Date.UTC(2026, 0, 5, 12)

/**
 * Ten seconds idle, a third of the rest to climb, then steady, and a spike of ticks in the middle. More connections,
 * more load.
 * @param {object} [run] @param {number} [run.seconds] @param {number} [run.connections]
 * @param {number} [run.start] unix ms @returns {string}
 */
export function csvText({ seconds = 120, connections = 10_000, start = START } = {}) {
  const lines = [CSV_HEADER]
  let before = 0
  for (let second = 0; second < seconds; second++) {
    const climb = Math.max(0, Math.min(1, (second - 10) / Math.max(1, (seconds - 10) / 3)))
    const open = Math.round(connections * climb)
    const spike = second === Math.floor(seconds / 2)
    /** @type {Record<string, number | string>} */
    const values = {
      time: start + second * 1000,
      seq: second + 1,
      elapsed_ms: 2000 + second * 1000,
      interval_ms: 1000,
      workers: 4,
      connections: open,
      clients: open,
      accepts: open - before,
      closes: 0,
      messages_in: open,
      messages_out: open * 2,
      tick_avg_ms: 1,
      tick_p90_ms: 1 + connections / 5000,
      tick_max_ms: spike ? 200 : 9,
      heap_used_bytes: 30e6 + open * 3072,
      heap_total_bytes: 40e6 + open * 4096,
      native_bytes: 50e6 + open * 2048,
      rss_bytes: 90e6 + open * 6144,
      gc_minor: 3,
      gc_minor_ms: 2.5,
      gc_major: spike ? 1 : 0,
      gc_major_ms: spike ? 40 : 0,
      cpu_user_pct: 20,
      cpu_system_pct: 10,
      cpu_pct: 10 + connections / 500,
      cores: 8,
      slab_bytes: 300e6 + second * 1e6,
      tcp_memory_bytes: 5e6,
      kernel_bytes: open * 3072,
      net_rx_bytes_s: open * 100,
      net_tx_bytes_s: open * 300,
      facts: second === 0 ? FACTS : '',
    }
    before = open
    lines.push(`${CSV_COLUMNS.map(({ name }) => values[name] ?? '').join(',')}\n`)
  }
  return lines.join('')
}
