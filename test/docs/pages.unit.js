// Generated pages are up to date, and the index lists every page.

import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { PAGES } from '../../scripts/docs.js'
import { restrictingOptions, unsupportedOptions } from '../../src/config/centrifugo.js'
import { options } from '../../src/config/options.js'

const docs = new URL('../../docs/', import.meta.url)

const read = name => readFileSync(new URL(name, docs), 'utf8')

t.test('generated pages are up to date', async t => {
  for (const [name, make] of Object.entries(PAGES))
    t.ok(read(name) === make(), `docs/${name}: run \`node scripts/docs.js\``)
})

t.test('docs/centrifugo.md has every key', async t => {
  const page = read('centrifugo.md')
  for (const path of [...unsupportedOptions, ...restrictingOptions])
    t.ok(page.includes(`| \`${path}\` |`), path)
  for (const { path, block, members } of options) {
    if (block !== undefined || members !== undefined) continue
    t.ok(
      page.includes(`\`${path.slice(path.lastIndexOf('.') + 1)}\``) ||
        page.includes(`.${path.split('.').slice(-1)}\``),
      path,
    )
  }
})

t.test('docs/README.md links every page, README.md links it', async t => {
  const index = read('README.md')
  const pages = readdirSync(docs).filter(name => name.endsWith('.md') && name !== 'README.md')
  for (const name of pages) t.ok(index.includes(`](${name})`), `docs/README.md links ${name}`)
  t.match(read('../README.md'), '](docs/README.md)')
})

t.test('links between pages are valid', async t => {
  /** @param {string} heading @returns {string} its anchor, as GitHub makes it */
  const anchorOf = heading =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-')
  for (const name of readdirSync(docs).filter(name => name.endsWith('.md'))) {
    const text = read(name).replace(/^```[\s\S]*?^```$/gm, '')
    for (const [, path, anchor] of text.matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g)) {
      let target
      try {
        target = readFileSync(new URL(path === '' ? name : path, docs), 'utf8')
      } catch (error) {
        // A folder.
        if (error.code !== 'EISDIR') t.fail(`docs/${name}: no ${path}`)
        continue
      }
      if (anchor === undefined || !/\.md$/.test(path || name)) continue
      const anchors = [...target.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => anchorOf(heading))
      t.ok(anchors.includes(anchor), `docs/${name}: ${path}#${anchor}`)
    }
  }
})

t.test('pages of examples name an icon: browsers do not ask the backend for /favicon.ico', async t => {
  const examples = new URL('../../examples/', import.meta.url)
  const pages = readdirSync(examples, { recursive: true })
    .map(String)
    .filter(name => name.endsWith('.html') && !name.includes('node_modules'))
    .map(name => ({ name, text: readFileSync(new URL(name, examples), 'utf8') }))
  t.ok(pages.length >= 4)
  for (const { name, text } of [...pages, { name: 'docs/chat.md', text: read('chat.md') }])
    t.match(text, '<link rel="icon" href="data:," />', name)
})

t.test('docs/install.md names every optional package', async t => {
  const { peerDependencies } = JSON.parse(read('../package.json'))
  /** @type {string[]} */
  const rows = read('install.md').match(/^\| `npm install [^|]+\|/gm) ?? []
  for (const name of Object.keys(peerDependencies))
    t.ok(
      rows.some(row => row.includes(`${name}@`)),
      name,
    )
})
