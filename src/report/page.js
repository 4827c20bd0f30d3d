// One HTML page that needs nothing else: styles, scripts and data are in it, and its policy lets nothing in from elsewhere.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { factsOf, figuresTable, headlines } from './figures.js'
import { checkInline, inlineJson, inlineModules, policyHash } from './inline.js'

/** @typedef {import('./run.js').Run} Run */
/** @typedef {import('./figures.js').Table} Table */

const require = createRequire(import.meta.url)
const UPLOT = dirname(require.resolve('uplot'))

/** Charts are drawn with so many pixels to one of the page, so that they are sharp on paper. */
const SHARP = `{
  const own = devicePixelRatio
  Object.defineProperty(window, 'devicePixelRatio', { configurable: true, get: () => Math.max(3, own) })
}`

/** @param {string} path */
const own = path => readFileSync(new URL(path, import.meta.url), 'utf8')

/** @param {unknown} text */
export const escapeHtml = text =>
  String(text).replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)

/** @param {number} time unix ms */
const day = time =>
  Number.isFinite(time)
    ? new Date(time).toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric' })
    : ''

/** @param {Run[]} runs */
const days = runs => [...new Set(runs.map(({ summary }) => day(summary.start)))].filter(Boolean).join(', ')

/** @param {number} run @returns {string} a spot of its colour */
const mark = run => `<i class="run-mark run-${(run % 6) + 1}"></i>`

/**
 * @param {Table} table
 * @returns {string}
 */
function renderTable({ title, note, columns, marked = false, groups }) {
  // Names stand above each group: a long table is read in parts, and printed in columns.
  const names = columns.map((name, at) => `<th scope="col">${marked ? mark(at) : ''}${escapeHtml(name)}</th>`)
  const bodies = groups.map(({ title, rows }) => {
    const blank = columns.length === 0 ? '<td></td>' : names.join('')
    const lines = rows.map(
      ({ label, hint, cells }) =>
        `<tr><th scope="row">${escapeHtml(label)}${hint ? ` <small>${escapeHtml(hint)}</small>` : ''}</th>${cells
          .map(cell => `<td>${escapeHtml(cell)}</td>`)
          .join('')}</tr>`,
    )
    return `<tbody><tr class="group"><th scope="rowgroup">${escapeHtml(title)}</th>${blank}</tr>
${lines.join('\n')}</tbody>`
  })
  return `<section class="figures${columns.length === 0 ? ' narrow' : ''}">
<h2>${escapeHtml(title)}</h2>${note === '' ? '' : `<p class="note">${escapeHtml(note)}</p>`}
<div class="table"><table>${bodies.join('\n')}</table></div>
</section>`
}

/** @param {Run} run */
const renderFacts = run =>
  `<ul class="facts">${factsOf(run)
    .map(fact => `<li>${escapeHtml(fact)}</li>`)
    .join('')}</ul>`

/** @param {Run} run */
const renderHeadlines = run =>
  `<dl class="headlines">${headlines(run)
    .map(
      ({ label, value, note }) =>
        `<div><dt>${escapeHtml(label)}</dt><dd><b>${escapeHtml(value)}</b><span>${escapeHtml(note)}</span></dd></div>`,
    )
    .join('')}</dl>`

/** @param {Run} run */
const renderOne = run => `${renderHeadlines(run)}
<section class="one"><div class="run-charts" data-run="0"></div></section>
${renderTable(figuresTable([run]))}`

/** @param {Run[]} runs */
function renderSeveral(runs) {
  const parts = runs.map(
    (run, index) => `<article class="run">
<header><h2>${mark(index)}${escapeHtml(run.label)}</h2>${renderFacts(run)}</header>
<div class="run-charts" data-run="${index}"></div>
</article>`,
  )
  return `<div class="compared">${renderTable(figuresTable(runs))}
<section><h2>Laid over each other</h2><div id="overlay"></div></section></div>
<section class="side-by-side"><h2>Side by side</h2><p class="note">One measure for all, from the beginning of each run.</p>
<div class="runs">${parts.join('')}</div></section>`
}

/**
 * @param {object} report
 * @param {string} report.title
 * @param {string} [report.subtitle]
 * @param {Run[]} report.runs at least one
 * @param {Table[]} [report.tables] after the table of figures
 * @param {string} report.version of Halley
 * @returns {string} a whole HTML page
 */
export function renderPage({ title, subtitle, runs, tables = [], version }) {
  const styles = [
    readFileSync(join(UPLOT, 'uPlot.min.css'), 'utf8'),
    own('../charts/charts.css'),
    own('page/report.css'),
    own('page/paper.css'),
  ]
  const style = checkInline(styles.join('\n'))
  const scripts = [
    SHARP,
    readFileSync(join(UPLOT, 'uPlot.iife.min.js'), 'utf8'),
    inlineModules(new URL('page/app.js', import.meta.url), { 'uplot.js': 'globalThis.uPlot' }),
  ].map(checkInline)
  const policy = [
    "default-src 'none'",
    `script-src ${scripts.map(policyHash).join(' ')}`,
    `style-src ${policyHash(style)}`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ')
  const data = runs.map(({ label, columns }) => ({ label, columns }))
  const several = runs.length > 1
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="Halley ${escapeHtml(version)}">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body class="${several ? 'several' : 'single'}">
<header class="top">
<p class="kind">Halley report</p>
<h1>${escapeHtml(title)}</h1>
<p class="subtitle">${escapeHtml(subtitle ?? days(runs))}</p>
${several ? '' : renderFacts(runs[0])}
</header>
<main>
${several ? renderSeveral(runs) : renderOne(runs[0])}
${tables.map(renderTable).join('\n')}
</main>
<footer>
<p>Steady state: the longest stretch in which connections stay within 2&nbsp;% of their most; if there is none, the busiest part of the
run. Memory of a connection: what was added since the gateway was idle, in that stretch. 1&nbsp;KB is 1024 bytes, 100&nbsp;% CPU one core.</p>
<p class="screen-only">Drag over a chart to look closer, double-click for the whole run. Click a name to hide its line.</p>
</footer>
<noscript><p>The charts need JavaScript; the figures do not.</p></noscript>
<script type="application/json" id="data">${inlineJson(data)}</script>
${scripts.map(script => `<script>${script}</script>`).join('\n')}
</body>
</html>
`
}
