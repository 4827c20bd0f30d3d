// The fenced blocks of the guides. Each is run by a test, or a comment in the line before it says why not:
//
//   <!-- not run: needs EC2 -->              nothing runs it
//   <!-- run by test/docs/chat.slow.js -->   that test does, which names the page
//
// Without a comment, blocks.unit.js loads configurations and checks syntax, and blocks.slow.js runs `sh` and `js`.

import { readdirSync, readFileSync } from 'node:fs'

const root = new URL('../../', import.meta.url)

/**
 * @typedef {object} Block
 * @property {string} page path from the root of the repository
 * @property {number} line of its first fence
 * @property {string} where page and line
 * @property {string} language '' for drawings and output
 * @property {string} text
 * @property {string} notRun the reason, '' without one
 * @property {string} runBy path of a test, '' without one
 */

/** @param {string} path from the root of the repository */
export const readPage = path => readFileSync(new URL(path, root), 'utf8')

/** Paths of the guides. */
export const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...readdirSync(new URL('docs/', root))
    .filter(name => name.endsWith('.md'))
    .map(name => `docs/${name}`),
]

/** @param {string} page path from the root of the repository @returns {Block[]} in their order */
export function blocksOf(page) {
  const lines = readPage(page).split('\n')
  /** @type {Block[]} */
  const blocks = []
  for (let i = 0; i < lines.length; i++) {
    const [, indent, language] = /^( *)```(\w*)$/.exec(lines[i]) ?? []
    if (language === undefined) continue
    const end = lines.indexOf(`${indent}\`\`\``, i + 1)
    if (end === -1) throw new Error(`${page}:${i + 1}: the block does not end`)
    const comment = lines[i - 1] ?? ''
    const text = lines
      .slice(i + 1, end)
      .map(line => line.slice(indent.length))
      .join('\n')
    blocks.push({
      page,
      line: i + 1,
      where: `${page}:${i + 1}`,
      language,
      text: `${text}\n`,
      notRun: /^ *<!-- not run: (.+) -->$/.exec(comment)?.[1] ?? '',
      runBy: /^ *<!-- run by (\S+) -->$/.exec(comment)?.[1] ?? '',
    })
    i = end
  }
  return blocks
}

/**
 * @param {string} page @param {string} language @param {string} part of the block
 * @returns {string} text of the first such block
 * @throws {Error} if there is none
 */
export function blockWith(page, language, part) {
  const found = blocksOf(page).find(block => block.language === language && block.text.includes(part))
  if (!found) throw new Error(`${page} has no \`${language}\` block with ${part}`)
  return found.text
}

/** A secret of at least 32 bytes, different for each placeholder. */
let made = 0
/** @param {string} text @returns {string} the same with secrets instead of their placeholders */
export const withSecrets = text =>
  text.replaceAll(/32 random bytes|whsec_\.\.\./g, () => `secret-of-the-tests-of-the-guides-${++made}`)
