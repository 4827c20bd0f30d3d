import { bytes, count, milliseconds, plural, share, short, UNKNOWN, whole } from '../../../base/format.js'
import { makeCharts } from '../../web/charts.js'
import { byId, make } from '../../web/dom.js'
import { Table } from '../../web/table.js'

/** @import { ChartDefinition } from '../../web/definitions.js' */

const CHANNEL = 'demo:vitals'
const HISTORY = 50
const WINDOW_MS = 60_000
/** Samples further apart are not joined: some are missing between them. */
const GAP_MS = 2500

/**
 * @typedef {object} Vitals the publication of src/pages/demo/feed.js
 * @property {number} time ms
 * @property {number | null} cpu 0-1
 * @property {number} cores
 * @property {{used: number, total: number}} memory bytes
 * @property {number[] | null} load
 * @property {Worker[]} workers
 *
 * @typedef {{worker: number, pid: number, connections: number, messages: number, memory: number,
 *   delay: {mean: number, max: number}}} Worker messages: per second; memory: bytes; delay: ms
 */

/**
 * Anybody may publish to this channel in the development profile, so publications are validated.
 * @param {any} data
 * @returns {data is Vitals}
 */
const isVitals = data =>
  [data?.time, data?.memory?.used, data?.memory?.total].every(Number.isFinite) &&
  Array.isArray(data.workers) &&
  data.workers.length > 0 &&
  data.workers.every((/** @type {any} */ one) =>
    [
      one?.worker,
      one?.pid,
      one?.connections,
      one?.messages,
      one?.memory,
      one?.delay?.max,
      one?.delay?.mean,
    ].every(Number.isFinite),
  )

/** @param {Vitals} vitals @param {(worker: Worker) => number} value */
const sumOf = ({ workers }, value) => workers.reduce((sum, worker) => sum + value(worker), 0)
/** @param {Vitals} vitals */
const longest = ({ workers }) => Math.max(...workers.map(({ delay }) => delay.max))
/** @param {Vitals} vitals */
const mean = vitals => sumOf(vitals, ({ delay }) => delay.mean) / vitals.workers.length
/** @param {Vitals} vitals */
const delivered = vitals => sumOf(vitals, ({ messages }) => messages)

/**
 * @typedef {object} Tile
 * @property {string} id of its chart, and its column
 * @property {string} title
 * @property {import('../../../base/format.js').Unit} unit
 * @property {number} [least] lowest upper end of the axis
 * @property {(vitals: Vitals) => number | null} value
 * @property {(vitals: Vitals) => string} text
 * @property {(vitals: Vitals) => string} note
 */

/** @type {Tile[]} */
const TILES = [
  {
    id: 'cpu',
    title: 'CPU',
    unit: 'pct',
    least: 98,
    value: ({ cpu }) => (cpu === null ? null : cpu * 100),
    text: ({ cpu }) => share(cpu),
    note: ({ cores, load }) => `${plural(cores, 'core')}${load ? ` · load ${count(load[0])}` : ''}`,
  },
  {
    id: 'delay',
    title: 'Event-loop delay',
    unit: 'ms',
    least: 4.5,
    value: longest,
    text: vitals => milliseconds(longest(vitals)),
    note: vitals => `longest · ${milliseconds(mean(vitals))} on average`,
  },
  {
    id: 'messages',
    title: 'Messages',
    unit: 'count_s',
    least: 9,
    value: delivered,
    text: vitals => `${short(delivered(vitals))}/s`,
    note: vitals =>
      `delivered to ${plural(
        sumOf(vitals, ({ connections }) => connections),
        'connection',
      )}`,
  },
  {
    id: 'memory',
    title: 'Memory',
    unit: 'bytes',
    value: ({ memory }) => memory.used,
    text: ({ memory }) => bytes(memory.used),
    note: vitals =>
      `of ${bytes(vitals.memory.total)} · workers ${bytes(sumOf(vitals, ({ memory }) => memory))}`,
  },
]

/** @type {import('../../web/table.js').TableColumn<Worker>[]} */
const COLUMNS = [
  { label: 'Worker', value: ({ worker }) => worker },
  { label: 'Process', value: ({ pid }) => pid },
  { label: 'Connections', value: one => one.connections, text: one => whole(one.connections) },
  { label: 'Messages/s', value: ({ messages }) => messages, text: ({ messages }) => short(messages) },
  { label: 'Memory', value: ({ memory }) => memory, text: ({ memory }) => bytes(memory) },
  { label: 'Longest delay', value: ({ delay }) => delay.max, text: ({ delay }) => milliseconds(delay.max) },
]

/** Line, area of recovered samples over it, and the average of the delay. @param {Tile} tile @returns {ChartDefinition} */
const chartOf = ({ id, title, unit, least }) => ({
  id,
  title,
  unit,
  least,
  note: '',
  plain: true,
  series: [
    { label: title, column: id, color: 'in', area: true },
    { label: 'Recovered', column: `${id}:recovered`, color: 'recovered', area: true },
    ...(id === 'delay' ? [{ label: 'Average', column: 'mean', color: 'quiet' }] : []),
  ],
})

/** The tiles with their charts of the last minute, and the table of workers. */
export class VitalsPanel {
  /** @type {{vitals: Vitals, recovered: boolean}[]} oldest first */
  #samples = []
  #workers = new Table(byId('workers'), 'Workers', COLUMNS, {
    key: ({ worker, pid }) => `${worker} ${pid}`,
  })
  /** @type {import('../../web/charts.js').Charts[]} made with the first sample, by tile */
  #charts = []
  #tiles = TILES.map(({ id, title }) => {
    const value = make('p', 'value', UNKNOWN)
    const note = make('p', 'note', '\u00a0')
    const chart = make('div', 'minute')
    chart.id = `${id}-chart`
    chart.setAttribute('role', 'img')
    byId('vitals').append(make('article', 'card tile', make('h2', '', title), value, note, chart))
    return { value, note, chart }
  })

  /** @param {import('./connection.js').Connection} connection @param {import('./recovery.js').Recovery} recovery */
  constructor(connection, recovery) {
    // Samples are similar: a delta is a fraction of the size. Without deltas in the gateway, they arrive whole.
    const channel = connection.channel(CHANNEL, { delta: 'fossil' })
    recovery.watch(channel, (data, recovered) => this.#receive([data], recovered))
    channel.on('subscribed', async ({ recovered }) => {
      if (recovered) return
      // A new page shows the previous minute, too.
      const publications = await channel.last(HISTORY).catch(() => [])
      this.#receive(
        publications.map(({ data }) => data),
        false,
      )
    })
  }

  /** @param {any[]} list @param {boolean} recovered */
  #receive(list, recovered) {
    const known = new Set(this.#samples.map(({ vitals }) => vitals.time))
    const added = list.filter(data => isVitals(data) && !known.has(data.time))
    if (added.length === 0) return
    this.#samples.push(...added.map(vitals => ({ vitals, recovered })))
    this.#samples.sort((a, b) => a.vitals.time - b.vitals.time)
    const { vitals } = this.#samples[this.#samples.length - 1]
    this.#samples = this.#samples.filter(sample => sample.vitals.time >= vitals.time - WINDOW_MS)
    this.#draw(vitals)
    this.#workers.show(vitals.workers)
    const hint = make('code', '', `kill -9 ${vitals.workers[vitals.workers.length - 1].pid}`)
    byId('kill-hint').replaceChildren('Try ', hint, ': it is replaced, and nothing is missed.')
  }

  /** @param {Vitals} newest */
  #draw(newest) {
    const columns = this.#columns()
    for (const [at, tile] of TILES.entries()) {
      const { value, note, chart } = this.#tiles[at]
      value.textContent = tile.text(newest)
      note.textContent = tile.note(newest)
      chart.setAttribute('aria-label', `${tile.title}, last minute, now ${tile.text(newest)}`)
      // The whole memory is the end of its axis.
      /** @type {Record<string, {left: number, right: number}>} */
      const most = tile.id === 'memory' ? { memory: { left: newest.memory.total * 0.98, right: 0 } } : {}
      const options = { charts: [chartOf(tile)], live: true, span: WINDOW_MS / 1000, most }
      if (this.#charts[at]) this.#charts[at].setData(columns)
      else this.#charts[at] = makeCharts(chart, columns, options)
    }
  }

  /** One row per sample, and one without values in each gap. */
  #columns() {
    /** @type {Record<string, (number | null)[]>} */
    const columns = { time: [], mean: [] }
    for (const { id } of TILES) Object.assign(columns, { [id]: [], [`${id}:recovered`]: [] })
    for (const [at, { vitals, recovered }] of this.#samples.entries()) {
      const before = this.#samples[at - 1]
      if (before && vitals.time - before.vitals.time > GAP_MS) {
        for (const values of Object.values(columns)) values.push(null)
        columns.time[columns.time.length - 1] = before.vitals.time + 1
      }
      columns.time.push(vitals.time)
      columns.mean.push(mean(vitals))
      // A line needs two ends: the sample before the first recovered one belongs to its area.
      const marked = recovered || this.#samples[at + 1]?.recovered
      for (const { id, value } of TILES) {
        columns[id].push(value(vitals))
        columns[`${id}:recovered`].push(marked ? value(vitals) : null)
      }
    }
    return columns
  }
}
