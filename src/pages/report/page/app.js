// Draws the charts of a report from the data in the page; adapts them for print.

import { makeCharts, makeOverlay, rangesOf } from '../../web/charts.js'
import { CHARTS, COMPARED } from '../../web/definitions.js'

/** @import { Charts } from '../../web/charts.js' */
/** @import { Columns } from '../../web/derive.js' */

/** @typedef {{label: string, columns: Columns}} Run */

/** @param {string} id */
const byId = id => document.getElementById(id)

/** @type {Run[]} */
const runs = JSON.parse(byId('data')?.textContent ?? '[]')

/** @param {Columns} columns @returns {number} s */
const spanOf = ({ time }) => (Number(time[time.length - 1]) - Number(time[0])) / 1000

/** @returns {Charts[]} */
function draw() {
  const all = []
  const overlay = byId('overlay')
  if (overlay !== null) all.push(makeOverlay(overlay, runs, { charts: COMPARED }))
  // Runs side by side share a scale.
  const several = runs.map(({ columns }) => columns)
  const max = runs.length > 1 ? rangesOf(several) : undefined
  const span = Math.max(...several.map(spanOf))
  for (const place of document.querySelectorAll('.run-charts')) {
    const element = /** @type {HTMLElement} */ (place)
    const { columns } = runs[Number(element.dataset.run)]
    all.push(makeCharts(element, columns, { charts: CHARTS, max, span }))
  }
  return all
}

const charts = draw()

/** @param {boolean} paper */
function layOut(paper) {
  // Charts are drawn before the print layout applies: set the paper width first.
  document.documentElement.classList.toggle('paper', paper)
  for (const one of charts) {
    one.setTheme(paper ? 'light' : 'auto')
    one.resize()
  }
}

addEventListener('beforeprint', () => layOut(true))
addEventListener('afterprint', () => layOut(false))
document.documentElement.dataset.ready = 'true'
