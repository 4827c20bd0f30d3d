// Serves the files of a page at their paths in src/, so that imports resolve in a browser without a build.

import { readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { serveFile } from '../clients/server/static-files.js'

/** @import { SocketServer } from '../clients/server/contract.js' */

const SERVED = Object.freeze(['.css', '.js', '.svg'])
/** Files of other folders imported by pages. */
const SHARED = Object.freeze([
  'base/format.js',
  'metrics/csv-columns.js',
  'metrics/limits.js',
  'metrics/table.js',
])
const UPLOT = dirname(createRequire(import.meta.url).resolve('uplot'))
/** uPlot, imported by the charts. */
const PACKAGED = Object.freeze({
  'pages/web/uplot.js': join(UPLOT, 'uPlot.esm.js'),
  'pages/web/uplot.css': join(UPLOT, 'uPlot.min.css'),
})

/** @param {string} path in src/ */
const pathOf = path => fileURLToPath(new URL(`../${path}`, import.meta.url))

/**
 * Serves a page's folder and the files shared by pages.
 * @param {SocketServer} server not listening yet
 * @param {string} prefix
 * @param {string} folder of the page, in src/
 * @param {Record<string, string>} [others] more files by their paths below the prefix
 */
export function servePageFiles(server, prefix, folder, others = {}) {
  const inFolders = [folder, 'pages/web'].flatMap(folder =>
    readdirSync(pathOf(folder))
      .filter(name => SERVED.includes(extname(name)))
      .map(name => `${folder}/${name}`),
  )
  const own = [...inFolders, ...SHARED].map(path => [path, pathOf(path)])
  for (const [path, file] of [...own, ...Object.entries({ ...PACKAGED, ...others })]) {
    server.route('*', `${prefix}/${path}`, serveFile(file))
  }
}
