import { bytes, count, milliseconds, plural, share, short, UNKNOWN, whole } from '../../../base/format.js'
import { makeCharts } from '../../web/charts.js'
import { byId, make } from '../../web/dom.js'
import { figure, Table } from '../../web/table.js'

/** @import { ChartDefinition } from '../../web/definitions.js' */

const CHANNEL = 'demo:vitals'
const HISTORY = 50
const WINDOW_MS = 60_000
/** Minimum gap between samples shown as missing data. */
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

/** @param {any} one @returns {one is Worker} */
const isWorker = one =>
  [one?.delay?.max, one?.delay?.mean].every(Number.isFinite) &&
  ['worker', 'pid', 'connections', 'messages', 'memory'].every(name => Number.isFinite(one[name]))

/** In the development profile anyone may publish to this channel. @param {any} data @returns {data is Vitals} */
const isVitals = data =>
  [data?.time, data?.memory?.used, data?.memory?.total].every(Number.isFinite) &&
  Array.isArray(data.workers) &&
  data.workers.length > 0 &&
  data.workers.every(isWorker)

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
 * @property {number} [minTop] lowest upper end of the axis
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
    minTop: 98,
    value: ({ cpu }) => (cpu === null ? null : cpu * 100),
    text: ({ cpu }) => share(cpu),
    note: ({ cores, load }) => `${plural(cores, 'core')}${load ? ` · load ${count(load[0])}` : ''}`,
  },
  {
    id: 'delay',
    title: 'Event-loop delay',
    unit: 'ms',
    minTop: 4.5,
    value: longest,
    text: vitals => milliseconds(longest(vitals)),
    note: vitals => `longest · ${milliseconds(mean(vitals))} on average`,
  },
  {
    id: 'messages',
    title: 'Messages',
    unit: 'count_s',
    minTop: 9,
    value: delivered,
    text: vitals => `${short(delivered(vitals))}/s`,
    note: vitals => {
      const connections = sumOf(vitals, ({ connections }) => connections)
      return `delivered to ${plural(connections, 'connection')}`
    },
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
  figure('Worker', ({ worker }) => worker),
  figure('Process', ({ pid }) => pid),
  figure('Connections', ({ connections }) => connections, whole),
  figure('Messages/s', ({ messages }) => messages, short),
  figure('Memory', ({ memory }) => memory, bytes),
  figure('Longest delay', ({ delay }) => delay.max, milliseconds),
]

/** Line, area of recovered samples, and average delay. @param {Tile} tile @returns {ChartDefinition} */
const chartOf = ({ id, title, unit, minTop }) => ({
  id,
  title,
  unit,
  minTop,
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
    // Deltas are a fraction of the size. If disabled in the gateway, samples arrive complete.
    const channel = connection.channel(CHANNEL, { delta: 'fossil' })
    recovery.watch(channel, (data, recovered) => this.#receive([data], recovered))
    channel.on('subscribed', async ({ recovered }) => {
      if (recovered) return
      // A new page also shows the previous minute.
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
    byId('kill-hint').replaceChildren('Try ', hint, ': the worker is replaced, and no message is lost.')
  }

  /** @param {Vitals} newest */
  #draw(newest) {
    const columns = this.#columns()
    for (const [at, tile] of TILES.entries()) {
      const { value, note, chart } = this.#tiles[at]
      value.textContent = tile.text(newest)
      note.textContent = tile.note(newest)
      chart.setAttribute('aria-label', `${tile.title}, last minute, now ${tile.text(newest)}`)
      // The axis ends at the total memory.
      /** @type {Record<string, {left: number, right: number}>} */
      const max = tile.id === 'memory' ? { memory: { left: newest.memory.total * 0.98, right: 0 } } : {}
      const options = { charts: [chartOf(tile)], live: true, span: WINDOW_MS / 1000, max }
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
      // A line needs two points: the area includes the sample before the first recovered one.
      const marked = recovered || this.#samples[at + 1]?.recovered
      for (const { id, value } of TILES) {
        columns[id].push(value(vitals))
        columns[`${id}:recovered`].push(marked ? value(vitals) : null)
      }
    }
    return columns
  }
}
