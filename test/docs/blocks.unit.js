// Every fenced block of the guides: configurations load, and what no test runs says why. blocks.slow.js runs the
// others.

import { existsSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { restrictingOptions, unsupportedOptions } from '../../src/config/centrifugo.js'
import { loadConfig } from '../../src/config/load.js'
import { options } from '../../src/config/options.js'
import { directory } from '../config/support.js'
import { blocksOf, PAGES, readPage, withSecrets } from './blocks.js'

/** @import { Block } from './blocks.js' */

const HELP =
  'mend it, or write in the line before it `<!-- not run: REASON -->` or `<!-- run by test/FILE -->` (test/docs/blocks.js)'
const SECTIONS = new Set(
  [...options.map(({ path }) => path), ...unsupportedOptions, ...restrictingOptions].map(
    path => path.split('.')[0],
  ),
)
/** Languages without a check of their own: their blocks always need a comment. */
const CHECKED = ['', 'json', 'yaml', 'js', 'ts', 'sh']

const blocks = PAGES.flatMap(blocksOf)

/** Sections whose value may be no object. */
const PLAIN = ['hooks', 'workers', 'proxies']

/** Whether every member is a section: a request of the API may have a `channel`, too. @param {any} tree */
const isConfig = tree =>
  typeof tree === 'object' &&
  tree !== null &&
  !Array.isArray(tree) &&
  Object.keys(tree).length > 0 &&
  Object.entries(tree).every(
    ([key, value]) => SECTIONS.has(key) && (typeof value === 'object' || PLAIN.includes(key)),
  )

/** @param {any} t @param {Block} block @param {any} tree */
function checkConfig(t, { where, text, language }, tree) {
  if (!isConfig(tree)) return
  const folder = directory(t)
  folder.write('hooks.js', '')
  const file = folder.write(`config.${language}`, withSecrets(text))
  const { warnings } = loadConfig({ file })
  t.same(warnings, [], `${where}: no warnings`)
}

t.test('all blocks are found', async t => {
  t.ok(blocks.length > 60)
  for (const page of ['README.md', 'docs/chat.md', 'docs/backends.md', 'docs/api.md'])
    t.ok(
      blocks.some(block => block.page === page),
      page,
    )
})

t.test('each block is run by a test or has a reason why not', async t => {
  for (const { where, page, language, notRun, runBy } of blocks) {
    if (runBy !== '') {
      const there = existsSync(new URL(`../../${runBy}`, import.meta.url))
      t.ok(there, `${where}: ${runBy} exists`)
      const name = page.slice(page.lastIndexOf('/') + 1)
      t.ok(there && readPage(runBy).includes(name), `${where}: ${runBy} names ${name}`)
    } else if (notRun === '')
      t.ok(CHECKED.includes(language), `${where}: nothing runs \`${language}\`; ${HELP}`)
    else t.pass(`${where}: ${notRun}`)
  }
})

for (const block of blocks) {
  const { where, language, text } = block
  if (language !== 'json' && language !== 'yaml') continue
  t.test(where, async t => {
    try {
      const tree = language === 'json' ? JSON.parse(text) : parse(text)
      t.ok(tree !== null, `${where}: it parses`)
      if (block.notRun === '') checkConfig(t, block, tree)
    } catch (error) {
      t.fail(`${where}: ${error.message}; ${HELP}`)
    }
  })
}
