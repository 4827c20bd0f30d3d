// A self-contained HTML page: styles, scripts and data are inline; the content policy allows nothing else.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { factsOf, figuresTable, headlines } from './figures.js'
import { bundleModules, checkInline, cspHash, inlineJson } from './inline.js'
import { escapeHtml, renderHeadlines, renderSection, renderTable, runMark } from './sections.js'

/** @import { Run } from './run.js' */
/** @import { Section, Table } from './sections.js' */

const require = createRequire(import.meta.url)
const UPLOT = dirname(require.resolve('uplot'))

/** Canvas pixels per page pixel, for sharp charts on paper. */
const SHARP_CANVAS = `{
  const own = devicePixelRatio
  Object.defineProperty(window, 'devicePixelRatio', { configurable: true, get: () => Math.max(3, own) })
}`

/** @param {string} path */
const readOwn = path => readFileSync(new URL(path, import.meta.url), 'utf8')

/** @param {number} time unix ms */
const day = time =>
  Number.isFinite(time)
    ? new Date(time).toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric' })
    : ''

/** @param {Run[]} runs */
const days = runs => [...new Set(runs.map(({ summary }) => day(summary.start)))].filter(Boolean).join(', ')

/** @param {string[]} facts */
const renderFacts = facts =>
  `<ul class="facts">${facts.map(fact => `<li>${escapeHtml(fact)}</li>`).join('')}</ul>`

/** @param {Run} run */
const renderOne = run => `${renderHeadlines({ items: headlines(run) })}
<section class="one"><div class="run-charts" data-run="0"></div></section>
${renderTable(figuresTable([run]))}`

/** @param {Run[]} runs */
function renderSeveral(runs) {
  const parts = runs.map(
    (run, index) => `<article class="run">
<header><h2>${runMark(index)}${escapeHtml(run.label)}</h2>${renderFacts(factsOf(run))}</header>
<div class="run-charts" data-run="${index}"></div>
</article>`,
  )
  return `<div class="compared">${renderTable(figuresTable(runs))}
<section><h2>Overlaid</h2><div id="overlay"></div></section></div>
<section class="side-by-side"><h2>Side by side</h2><p class="note">The same scale for all runs, from the start of each run.</p>
<div class="runs">${parts.join('')}</div></section>`
}

const FOOTNOTES = `<p>Steady state: the longest period in which connections stay within 2&nbsp;% of their maximum; if there is none, the busiest part of
the run. Memory of a connection: growth in that period above the idle gateway, or the measurement of the gateway; known from 1,000 connections. 1&nbsp;KB is 1024 bytes, 100&nbsp;% CPU one core.</p>
<p class="screen-only">Drag over a chart to zoom in, double-click for the whole run. Click a name to hide its line.</p>`

/** @param {Run[]} runs @param {string} title */
function renderRuns(runs, title) {
  if (runs.length === 0) return ''
  const head = title === '' ? '' : `<h2 class="charts-title">${escapeHtml(title)}</h2>`
  return head + (runs.length > 1 ? renderSeveral(runs) : renderOne(runs[0]))
}

/**
 * @param {object} report
 * @param {string} report.title
 * @param {string} [report.subtitle]
 * @param {string[]} [report.facts] below the title; default: of a single run's file
 * @param {Section[]} [report.lead] before the charts
 * @param {Run[]} report.runs may be empty: a page without charts
 * @param {string} [report.chartsTitle]
 * @param {Table[]} [report.tables] after the table of figures
 * @param {Section[]} [report.tail] after that
 * @param {string[]} [report.footnotes] before those about charts
 * @param {string} report.version
 * @returns {string} HTML
 */
export function renderPage({
  title,
  subtitle,
  facts = [],
  lead = [],
  runs,
  chartsTitle = '',
  tables = [],
  tail = [],
  footnotes = [],
  version,
}) {
  const known = facts.length === 0 && runs.length === 1 ? factsOf(runs[0]) : facts
  const styles = [
    readFileSync(join(UPLOT, 'uPlot.min.css'), 'utf8'),
    readOwn('../web/charts.css'),
    readOwn('page/report.css'),
    readOwn('page/paper.css'),
  ]
  const style = checkInline(styles.join('\n'))
  const charts =
    runs.length === 0
      ? []
      : [
          SHARP_CANVAS,
          readFileSync(join(UPLOT, 'uPlot.iife.min.js'), 'utf8'),
          bundleModules(new URL('page/app.js', import.meta.url), { 'uplot.js': 'globalThis.uPlot' }),
        ]
  const scripts = charts.map(checkInline)
  const policy = [
    "default-src 'none'",
    `script-src ${scripts.map(cspHash).join(' ') || "'none'"}`,
    `style-src ${cspHash(style)}`,
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
${known.length === 0 ? '' : renderFacts(known)}
</header>
<main>
${lead.map(renderSection).join('\n')}
${renderRuns(runs, chartsTitle)}
${tables.map(renderTable).join('\n')}
${tail.map(renderSection).join('\n')}
</main>
<footer>
${footnotes.map(text => `<p>${escapeHtml(text)}</p>`).join('\n')}
${runs.length === 0 ? '' : FOOTNOTES}
</footer>
${
  runs.length === 0
    ? ''
    : `<noscript><p>The charts need JavaScript; the figures do not.</p></noscript>
<script type="application/json" id="data">${inlineJson(data)}</script>
${scripts.map(script => `<script>${script}</script>`).join('\n')}`
}
</body>
</html>
`
}
