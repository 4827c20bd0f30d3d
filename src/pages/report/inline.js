// Bundles ES modules into one script. Limited syntax: named imports from relative paths, and exports before
// declarations.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const IMPORT = /^import\s+(?:\{([^}]*)\}|(\w+))\s+from\s+'(\.{1,2}\/[^']+)'\s*;?$/gm
const EXPORT = /^export (?=(?:async )?(?:function\*?|class|const|let) (\w+))/gm
const LEFT_OVER = /^(?:import|export)\b.*$/m

/**
 * @param {URL} entry @param {Readonly<Record<string, string>>} given file name -> expression of its default export
 * @returns {string} @throws {Error} on other syntax
 */
export function bundleModules(entry, given = {}) {
  /** @type {Map<string, string>} module -> name of its exports */
  const names = new Map()
  /** @type {string[]} */
  const parts = []
  /** @param {URL} url @returns {string} */
  const add = url => {
    const known = names.get(url.href)
    if (known !== undefined) return known
    const name = `module${names.size}`
    names.set(url.href, name)
    const source = readFileSync(fileURLToPath(url), 'utf8')
    const needed = source.replace(IMPORT, (_, named, whole, target) => {
      const file = target.slice(target.lastIndexOf('/') + 1)
      if (whole !== undefined && given[file] !== undefined) return `const ${whole} = ${given[file]}`
      if (named === undefined) throw new Error(`${url.pathname}: no default import of ${target}`)
      return `const {${named.replace(/\bas\b/g, ':')}} = ${add(new URL(target, url))}`
    })
    /** @type {string[]} */
    const exported = []
    const body = needed.replace(EXPORT, (_, what) => {
      exported.push(what)
      return ''
    })
    const odd = LEFT_OVER.exec(body)
    if (odd !== null) throw new Error(`${url.pathname}: cannot be bundled: ${odd[0]}`)
    parts.push(`const ${name} = (() => {\n${body}\nreturn { ${exported.join(', ')} }\n})()\n`)
    return name
  }
  add(entry)
  return `'use strict'\n${parts.join('')}`
}

/** Content-Security-Policy source of a script or style sheet. @param {string} text @returns {string} */
export const cspHash = text => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** JSON that cannot close its element. @param {unknown} data @returns {string} */
export const inlineJson = data =>
  JSON.stringify(data).replaceAll('<', '\\u003c').replaceAll('\u2028', '\\u2028')

/** @param {string} script @returns {string} @throws {Error} if it would close its element */
export function checkInline(script) {
  if (/<\/(?:script|style)|<!--/i.test(script)) throw new Error('the script would close its own element')
  return script
}
