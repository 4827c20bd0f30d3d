import { makeCharts } from '../../charts/charts.js'
import { byId } from '../../demo/page/dom.js'
import { duration } from './format.js'
import { Series } from './series.js'

/** @import { Charts } from '../../charts/charts.js' */
/** @import { Snapshot } from '../../stats/schema.js' */

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
