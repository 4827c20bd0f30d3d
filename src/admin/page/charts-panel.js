import { byId } from '../../demo/page/dom.js'
import { duration } from './format.js'
import { Series } from './series.js'

/** The last minutes, as charts. */
export class ChartsPanel {
  #series = new Series()

  /** @param {import('../../stats/schema.js').Snapshot[]} history oldest first */
  reset(history) {
    this.#series.reset(history)
    this.#draw()
  }

  /** @param {import('../../stats/schema.js').Snapshot} snapshot */
  add(snapshot) {
    this.#series.add(snapshot)
    this.#draw()
  }

  resize() {
    this.#draw()
  }

  #draw() {
    byId('charts-span').textContent = duration(this.#series.length * 1000)
  }
}
