// Writes the pages of docs/ that are made from code and from docs/openapi.yaml: `node scripts/docs.js`. Tests compare
// them.

import { readFileSync, writeFileSync } from 'node:fs'
import { parse } from 'yaml'
import { configReference } from '../src/config/reference.js'
import { apiPage } from './api-page.js'
import { withKeys } from './centrifugo-keys.js'

/** @param {string} name @returns {URL} of a file in docs/ */
const file = name => new URL(`../docs/${name}`, import.meta.url)

/** @param {string} name @returns {string} */
const read = name => readFileSync(file(name), 'utf8')

/** By their names, each page as it must be. @type {Record<string, () => string>} */
export const PAGES = {
  'api.md': () => apiPage(parse(read('openapi.yaml'))),
  'centrifugo.md': () => withKeys(read('centrifugo.md')),
  'config.md': configReference,
}

if (process.argv[1] === import.meta.filename) {
  for (const [name, make] of Object.entries(PAGES)) writeFileSync(file(name), make())
}
