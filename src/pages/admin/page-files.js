// The admin page: plain files at their paths in src/, so their imports resolve.

import { readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fillPage, serveBody, serveFile } from '../../clients/server/static-files.js'

/** @import { SocketServer } from '../../clients/server/contract.js' */

/** Folders of src/ for browsers. */
const FOLDERS = Object.freeze(['pages/admin/page', 'pages/web'])
const SERVED = Object.freeze(['.css', '.js', '.svg'])

/** Files of other folders of src/. */
const FILES = Object.freeze([
  'pages/demo/page/style.css',
  'pages/demo/page/cards.css',
  'pages/demo/page/icon.svg',
  'pages/demo/page/dom.js',
  'metrics/csv-columns.js',
  'metrics/limits.js',
  'metrics/table.js',
])

const UPLOT = dirname(createRequire(import.meta.url).resolve('uplot'))

/** Files from elsewhere, at the paths that the charts import. */
const OTHERS = Object.freeze({
  'pages/web/uplot.js': join(UPLOT, 'uPlot.esm.js'),
  'pages/web/uplot.css': join(UPLOT, 'uPlot.min.css'),
})

/** @param {string} name in src/ */
const pathOf = name => fileURLToPath(new URL(`../../${name}`, import.meta.url))

/** @param {string} folder */
const filesOf = folder =>
  readdirSync(pathOf(folder))
    .filter(name => SERVED.includes(extname(name)))
    .map(name => `${folder}/${name}`)

/**
 * Serves the page at the prefix, and its files below it.
 * @param {SocketServer} server not listening yet @param {string} prefix @param {string} version of the gateway
 */
export function mountPage(server, prefix, version) {
  const page = serveBody(fillPage(pathOf('pages/admin/page/index.html'), { prefix, version }), '.html')
  server.route('*', prefix, page)
  server.route('*', `${prefix}/`, page)
  for (const name of [...FOLDERS.flatMap(filesOf), ...FILES]) {
    server.route('*', `${prefix}/assets/${name}`, serveFile(pathOf(name)))
  }
  for (const [name, file] of Object.entries(OTHERS)) {
    server.route('*', `${prefix}/assets/${name}`, serveFile(file))
  }
}
