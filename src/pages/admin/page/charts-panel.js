import { duration } from '../../../base/format.js'
import { CSV_COLUMNS } from '../../../metrics/csv-columns.js'
import { makeCharts } from '../../web/charts.js'
import { byId } from '../../web/dom.js'

/** @import { Charts } from '../../web/charts.js' */
/** @import { Snapshot } from '../../../metrics/schema.js' */

/** The numeric ones. */
const COLUMNS = CSV_COLUMNS.filter(({ name }) => name !== 'facts')

/** Seconds kept. */
const MAX_ROWS = 900

/** The last minutes as columns with the names of the CSV file, which the charts of reports expect. */
class Series {
  /** @type {Record<string, (number | null)[]>} */
  columns = Object.fromEntries(COLUMNS.map(({ name }) => [name, []]))
  #node = ''

  /** Older rows of the same gateway process stay. @param {Snapshot[]} history oldest first */
  reset(history) {
    if (history.length === 0) return
    const { node, time } = history[0]
    const life = `${node.id} ${node.started_at}`
    const older = life === this.#node ? this.columns.time.findIndex(at => Number(at) >= time) : 0
    if (older >= 0) for (const column of Object.values(this.columns)) column.length = older
    this.#node = life
    for (const snapshot of history) this.add(snapshot)
  }

  /** @param {Snapshot} snapshot newer than all others */
  add(snapshot) {
    for (const { name, value } of COLUMNS) {
      const column = this.columns[name]
      column.push(/** @type {number | null} */ (value(snapshot)))
      if (column.length > MAX_ROWS) column.shift()
    }
  }

  /** Seconds. */
  get length() {
    return this.columns.time.length
  }
}

/** The charts of reports for the last minutes. */
export class ChartsPanel {
  #series = new Series()
  /** @type {Charts | null} none before there are figures */
  #charts = null

  /** @param {Snapshot[]} history oldest first */
  reset(history) {
    this.#series.reset(history)
    this.draw()
  }

  /** @param {Snapshot} snapshot */
  add(snapshot) {
    this.#series.add(snapshot)
    this.draw()
  }

  draw() {
    const place = byId('charts')
    // Hidden charts are drawn when they become visible.
    if (document.hidden || place.offsetParent === null || this.#series.length === 0) return
    byId('charts-span').textContent = duration(this.#series.length * 1000)
    const { columns } = this.#series
    if (this.#charts) this.#charts.setData(columns)
    else this.#charts = makeCharts(place, columns, { live: true })
  }
}
