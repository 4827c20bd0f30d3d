// Writes the generated pages of docs/. test/docs/pages.unit.js fails if one is out of date.

import { readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { configReference } from '../src/config/reference.js'
import { apiPage } from './api-page.js'
import { withKeys } from './centrifugo-keys.js'
import { csvPage, metricsPage, statsPage } from './metrics-tables.js'

/** @param {string} name */
const file = name => new URL(`../docs/${name}`, import.meta.url)

/** @param {string} name */
const read = name => readFileSync(file(name), 'utf8')

/** @type {Record<string, () => string>} */
export const PAGES = {
  'api.md': () => apiPage(parse(read('openapi.yaml'))),
  'centrifugo.md': () => withKeys(read('centrifugo.md')),
  'config.md': configReference,
  'csv.md': () => csvPage(read('csv.md')),
  'metrics.md': () => metricsPage(read('metrics.md')),
  'stats.md': () => statsPage(read('stats.md')),
}

const program = process.argv[1]
if (program !== undefined && realpathSync(program) === fileURLToPath(import.meta.url)) {
  for (const [name, make] of Object.entries(PAGES)) writeFileSync(file(name), make())
}
