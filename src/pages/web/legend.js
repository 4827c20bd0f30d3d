import { clock, elapsed, formatValue } from '../../base/format.js'
import { make } from './dom.js'

/** @import { Unit } from '../../base/format.js' */

/**
 * @typedef {object} LegendItem
 * @property {string} label
 * @property {string} color custom property `--chart-COLOR`
 * @property {'line' | 'dots' | 'dashes' | 'area'} look
 * @property {Unit} unit
 */

/** Labels of the lines with their values, under the cursor or at rest. A click hides a line. */
export class Legend {
  #items
  #values

  /** Time or kind of the values; the caller places it. @type {HTMLElement} */
  time

  /** @param {LegendItem[]} items @param {(item: number, shown: boolean) => void} onToggle */
  constructor(items, onToggle) {
    this.element = make('div', 'chart-legend')
    this.#items = items
    this.#values = items.map((item, index) => {
      const button = make('button', 'chart-key')
      button.setAttribute('type', 'button')
      button.setAttribute('aria-pressed', 'true')
      button.style.setProperty('--key', `var(--chart-${item.color})`)
      const value = make('b', 'chart-value')
      button.append(make('i', `chart-mark ${item.look}`), make('span', 'chart-label', item.label), value)
      button.addEventListener('click', () => {
        const shown = button.getAttribute('aria-pressed') !== 'true'
        button.setAttribute('aria-pressed', String(shown))
        onToggle(index, shown)
      })
      this.element.append(button)
      return value
    })
    this.time = make('span', 'chart-time')
  }

  /**
   * @param {(number | null | undefined)[]} values
   * @param {string} word kind of the values, such as `max`; empty for those of a moment
   * @param {{elapsed: number, time: number} | null} moment s since the start, unix ms
   */
  show(values, word, moment) {
    for (const [index, value] of this.#values.entries()) {
      value.textContent = formatValue(values[index], this.#items[index].unit)
    }
    this.time.textContent = moment === null ? word : `${elapsed(moment.elapsed)} · ${clock(moment.time)}`
  }
}
