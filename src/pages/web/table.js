import { UNKNOWN } from '../../base/format.js'
import { make, smallButton } from './dom.js'

/**
 * @template R
 * @typedef {object} TableColumn
 * @property {string} label
 * @property {(row: R) => string | number} value sorted by this
 * @property {(row: R) => string} [text] shown text; default: `value`
 * @property {(row: R) => string} [tone] a class for the cell: good, warn, bad, soft
 * @property {(row: R) => HTMLElement} [node] instead of text; created once per row
 * @property {boolean} [sorted] a visible, sorting heading for `node`
 * @property {boolean} [words] left-aligned
 * @property {string} [hint] explains the label
 */

/**
 * A column of text.
 * @template R
 * @param {string} label
 * @param {(row: R) => string} value
 * @param {Partial<TableColumn<R>>} [more]
 * @returns {TableColumn<R>}
 */
export const words = (label, value, more = {}) => ({ label, words: true, value, ...more })

/**
 * A column of figures.
 * @template R
 * @param {string} label
 * @param {(row: R) => number | null} value null: unknown
 * @param {(value: number) => string} [text]
 * @param {{hint?: string, tone?: (value: number) => string}} [more]
 * @returns {TableColumn<R>}
 */
export function figure(label, value, text = String, { hint, tone = () => '' } = {}) {
  const known = (/** @type {R} */ row, /** @type {(value: number) => string} */ text, unknown = '') => {
    const figure = value(row)
    return figure === null ? unknown : text(figure)
  }
  return {
    label,
    hint,
    value: row => value(row) ?? -1,
    text: row => known(row, text, UNKNOWN),
    tone: row => known(row, tone),
  }
}

/**
 * A column of buttons.
 * @template R
 * @param {string} className of the container
 * @param {(row: R) => HTMLElement[]} buttons
 * @returns {TableColumn<R>}
 */
export const actions = (className, buttons) => ({
  label: 'Actions',
  value: () => 0,
  node: row => make('div', className, ...buttons(row)),
})

/** Rows by key. Rows keep their elements, and thus focus, selection and scroll position. @template R */
export class Table {
  #columns
  #key
  #empty
  #body = document.createElement('tbody')
  #heads
  /** @type {Map<string, HTMLTableRowElement>} */
  #elements = new Map()
  /** @type {R[]} */
  #rows = []
  #sort
  #descending

  /**
   * @param {HTMLElement} place
   * @param {string} caption for screen readers
   * @param {TableColumn<R>[]} columns
   * @param {{key: (row: R) => string, sort?: number, descending?: boolean, empty?: string}} options
   *   sort: index of a column; empty: shown without rows
   */
  constructor(place, caption, columns, { key, sort = 0, descending = false, empty = '' }) {
    this.#columns = columns
    this.#key = key
    const text = make('td', 'empty', empty)
    text.setAttribute('colspan', String(columns.length))
    this.#empty = empty === '' ? null : make('tr', '', text)
    this.#sort = sort
    this.#descending = descending
    this.#heads = columns.map((column, index) => this.#head(column, index))
    place.replaceChildren(
      make(
        'table',
        '',
        make('caption', 'visually-hidden', caption),
        make('thead', '', make('tr', '', ...this.#heads)),
        this.#body,
      ),
    )
    this.#markSort()
  }

  /** @param {TableColumn<R>} column @param {number} index */
  #head({ label, node, words, hint, sorted }, index) {
    const head = make('th', words ? 'words' : '')
    head.setAttribute('scope', 'col')
    if (hint) head.title = hint
    const sort = () => {
      this.#descending = this.#sort === index ? !this.#descending : !words
      this.#sort = index
      this.#markSort()
      this.show(this.#rows)
    }
    head.append(
      node && !sorted ? make('span', 'visually-hidden', label) : smallButton(label, '', sort, 'sort'),
    )
    return head
  }

  #markSort() {
    for (const [index, head] of this.#heads.entries()) {
      if (index !== this.#sort) head.removeAttribute('aria-sort')
      else head.setAttribute('aria-sort', this.#descending ? 'descending' : 'ascending')
    }
  }

  /** @param {R[]} rows */
  show(rows) {
    this.#rows = rows
    const { value } = this.#columns[this.#sort]
    const order = this.#descending ? -1 : 1
    const sorted = [...rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)]
      return x === y ? 0 : x < y ? -order : order
    })
    const before = this.#elements
    this.#elements = new Map()
    for (const [at, row] of sorted.entries()) {
      const key = this.#key(row)
      const element = before.get(key) ?? this.#element(row)
      this.#elements.set(key, element)
      this.#fill(element, row)
      const there = this.#body.children[at]
      if (there !== element) this.#body.insertBefore(element, there ?? null)
    }
    while (this.#body.children.length > sorted.length) this.#body.lastElementChild?.remove()
    if (sorted.length === 0 && this.#empty) this.#body.append(this.#empty)
  }

  /** @param {R} row */
  #element(row) {
    const element = document.createElement('tr')
    for (const { node, words, label, sorted } of this.#columns) {
      const cell = make('td', words ? 'words' : '')
      // On narrow screens cells are stacked, with labels.
      if (!node || sorted) cell.dataset.label = label
      if (node) cell.append(node(row))
      element.append(cell)
    }
    return element
  }

  /** @param {HTMLTableRowElement} element @param {R} row */
  #fill(element, row) {
    for (const [index, { value, text, tone, node, words }] of this.#columns.entries()) {
      if (node) continue
      const cell = element.children[index]
      const shown = text ? text(row) : String(value(row))
      if (cell.textContent !== shown) cell.textContent = shown
      const name = `${words ? 'words ' : ''}${tone ? tone(row) : ''}`.trim()
      if (cell.className !== name) cell.className = name
    }
  }
}
