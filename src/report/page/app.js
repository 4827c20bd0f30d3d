// Draws the charts of a report from the data in the page, and readies them for paper.

import { makeCharts, makeOverlay, rangesOf } from '../../charts/charts.js'
import { CHARTS, COMPARED } from '../../charts/definitions.js'

/** @typedef {{label: string, columns: import('../../charts/derive.js').Columns}} Run */
/** @typedef {import('../../charts/charts.js').Charts} Charts */

/** @param {string} id */
const byId = id => document.getElementById(id)

/** @type {Run[]} */
const runs = JSON.parse(byId('data')?.textContent ?? '[]')

/** @returns {Charts[]} */
function draw() {
  const all = []
  const overlay = byId('overlay')
  if (overlay !== null) all.push(makeOverlay(overlay, runs, { charts: COMPARED }))
  const most = runs.length > 1 ? rangesOf(runs.map(({ columns }) => columns)) : undefined
  for (const place of document.querySelectorAll('.run-charts')) {
    const element = /** @type {HTMLElement} */ (place)
    const { columns } = runs[Number(element.dataset.run)]
    all.push(makeCharts(element, columns, { charts: CHARTS, most }))
  }
  return all
}

const charts = draw()

/** @param {boolean} paper */
function layOut(paper) {
  // Charts are drawn before the paper's own layout is in force, so the page takes the width of the paper first.
  document.documentElement.classList.toggle('paper', paper)
  for (const one of charts) {
    one.setTheme(paper ? 'light' : 'auto')
    one.resize()
  }
}

addEventListener('beforeprint', () => layOut(true))
addEventListener('afterprint', () => layOut(false))
document.documentElement.dataset.ready = 'true'
