// The fleet's figures as a CSV file, a row per second, and every five seconds a line of statistics.

import { appendFile, open, stat, truncate } from 'node:fs/promises'
import { RATES } from '../statistics/counters.js'
import { Distribution } from '../statistics/distribution.js'

/** @import { FleetSnapshot } from '../schema.js' */

const MAX_WAITING = 600

/** @param {number} value @param {number} [digits] */
const rounded = (value, digits = 3) => Math.round(value * 10 ** digits) / 10 ** digits

/** Counters, in the order of their columns. @type {(keyof import('../schema.js').Counters)[]} */
const COUNTED = /** @type {any} */ (
  (
    'opened failed ended closed reconnects refused pings received published unpublished gaps lost duplicates disordered damaged ' +
    'missed recovered unrecovered'
  ).split(' ')
)

/** @type {Record<keyof import('../schema.js').Rates, string>} */
const RATE_NAMES = {
  opened: 'opened_s',
  failed: 'failed_s',
  ended: 'ended_s',
  received: 'received_s',
  published: 'published_s',
  bytesIn: 'in_bytes_s',
  bytesOut: 'out_bytes_s',
}

/** @param {Distribution} of @returns {Record<string, number>} ms, of the last 5 s; empty without messages */
function latencyColumns(of) {
  const some = of.count > 0
  const ms = (/** @type {number} */ value) => (some ? rounded(value) : Number.NaN)
  const [ninety, more] = [of.confidence(0.9), of.confidence(0.95)]
  return {
    latency_count: of.count,
    latency_min_ms: ms(of.min),
    latency_mean_ms: ms(of.mean),
    latency_sd_ms: ms(of.deviation),
    latency_ci90_low_ms: ms(ninety.low),
    latency_ci90_high_ms: ms(ninety.high),
    latency_ci95_low_ms: ms(more.low),
    latency_ci95_high_ms: ms(more.high),
    latency_p50_ms: ms(of.percentile(50)),
    latency_p90_ms: ms(of.percentile(90)),
    latency_p99_ms: ms(of.percentile(99)),
    latency_max_ms: ms(of.max),
  }
}

/**
 * Usage of drones and machines; a machine with several drones counts once.
 * @param {FleetSnapshot} snapshot
 * @param {Map<string, {at: number, machine: import('../schema.js').DroneMachine}>} before by boot id; updated here
 */
function machineColumns({ drones }, before) {
  const up = drones.filter(({ state }) => state === 'up')
  const processes = up.flatMap(({ sample }) => sample?.processes ?? [])
  const sums = { busy: 0, free: 0, netIn: 0, netOut: 0, tcp: 0, timeWait: 0 }
  /** @type {Set<string>} */
  const seen = new Set()
  for (const { facts, sample } of up) {
    if (facts === null || !sample?.machine || seen.has(facts.bootId)) continue
    seen.add(facts.bootId)
    const { at, machine } = sample
    const last = before.get(facts.bootId)
    const span = last === undefined ? 0 : at - last.at
    if (last !== undefined && span > 0) {
      sums.busy += (machine.cpuBusy - last.machine.cpuBusy) / span
      sums.netIn += ((machine.netIn - last.machine.netIn) * 1000) / span
      sums.netOut += ((machine.netOut - last.machine.netOut) * 1000) / span
    }
    before.set(facts.bootId, { at, machine })
    sums.free += machine.memoryFree
    sums.tcp += machine.tcpMemory
    sums.timeWait += machine.timeWait
  }
  const weighed = up.filter(({ bytesPerConnection }) => bytesPerConnection > 0)
  const held = weighed.reduce((sum, { sample }) => sum + (sample?.gauges.open ?? 0), 0)
  const bytes = weighed.reduce(
    (sum, { sample, bytesPerConnection }) => sum + bytesPerConnection * (sample?.gauges.open ?? 0),
    0,
  )
  return {
    drones: drones.length,
    drones_up: up.length,
    drones_cpu_pct: rounded(100 * up.reduce((sum, { cpu }) => sum + cpu, 0), 1),
    drones_private_bytes: processes.reduce((sum, process) => sum + process.private, 0),
    connection_bytes: held > 0 ? Math.round(bytes / held) : Number.NaN,
    machines: seen.size,
    machines_busy_pct: rounded(100 * sums.busy, 1),
    machines_free_bytes: sums.free,
    net_in_bytes_s: Math.round(sums.netIn),
    net_out_bytes_s: Math.round(sums.netOut),
    tcp_bytes: sums.tcp,
    time_wait: sums.timeWait,
  }
}

/** @param {FleetSnapshot} snapshot @param {Parameters<typeof machineColumns>[1]} before */
function columnsOf(snapshot, before) {
  const { time, gauges, counters, rates, latencyNow } = snapshot
  return {
    time,
    connections: gauges.open,
    wanted: gauges.wanted,
    opening: gauges.opening,
    ...Object.fromEntries(COUNTED.map(name => [name, counters[name]])),
    ...Object.fromEntries(RATES.map(name => [RATE_NAMES[name], rounded(rates[name], 1)])),
    ...latencyColumns(Distribution.from(latencyNow)),
    ...machineColumns(snapshot, before),
  }
}

/** Appends a row for each snapshot. A write error is reported once, and the file has no partial rows. */
export class FleetCsv {
  #file
  #onFault
  /** @type {Parameters<typeof machineColumns>[1]} */
  #before = new Map()
  #header = false
  #length = 0
  #waiting = 0
  #failing = false
  /** @type {Promise<void>} */
  #turn = Promise.resolve()

  /** @param {string} file @param {number} length bytes; 0: write a header @param {(text: string) => void} onFault */
  constructor(file, length, onFault) {
    this.#file = file
    this.#length = length
    this.#header = length > 0
    this.#onFault = onFault
  }

  /**
   * @param {string} file @param {object} [options]
   * @param {boolean} [options.append] keep existing rows
   * @param {(text: string) => void} [options.onFault] one line, once until a row is written again
   */
  static async open(file, { append = false, onFault = () => {} } = {}) {
    const handle = await open(file, append ? 'a' : 'w', 0o600)
    await handle.close()
    return new FleetCsv(file, (await stat(file)).size, onFault)
  }

  /** @param {FleetSnapshot} snapshot */
  write(snapshot) {
    if (this.#waiting >= MAX_WAITING) return
    const columns = columnsOf(snapshot, this.#before)
    const row = `${Object.values(columns)
      .map(value => (Number.isFinite(value) ? String(value) : ''))
      .join(',')}\n`
    this.#waiting++
    this.#turn = this.#turn
      .then(() => this.#append(this.#header ? row : `${Object.keys(columns).join(',')}\n${row}`))
      .finally(() => this.#waiting--)
  }

  /** @param {string} text */
  async #append(text) {
    try {
      await appendFile(this.#file, text)
      this.#length += text.length
      this.#header = true
      this.#failing = false
    } catch (error) {
      await truncate(this.#file, this.#length).catch(() => {})
      if (!this.#failing) this.#onFault(`${this.#file} cannot be written: ${error.message}`)
      this.#failing = true
    }
  }

  /** @returns {Promise<void>} when all rows are written */
  close() {
    return this.#turn
  }
}

/** @param {FleetSnapshot} snapshot @returns {string} message statistics of the last 5 s; '': no messages */
export function statisticsLine({ latencyNow, gauges }) {
  const of = Distribution.from(latencyNow)
  if (of.count === 0) return ''
  const ms = (/** @type {number} */ value) => rounded(value, value < 10 ? 2 : 1)
  const half = of.mean - of.confidence(0.95).low
  return (
    `${gauges.open} connections; latency of the last 5 s: ${of.count} messages, min ${ms(of.min)}, mean ${ms(of.mean)} ± ${ms(half)} ` +
    `(95 %), sd ${ms(of.deviation)}, p50 ${ms(of.percentile(50))}, p90 ${ms(of.percentile(90))}, p99 ${ms(of.percentile(99))}, ` +
    `max ${ms(of.max)} ms`
  )
}
