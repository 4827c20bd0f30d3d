// Follows all links of a served page.

import { fetch } from '../kit/fetch.js'

const TYPES = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
}

/**
 * Asserts that files, and the modules that they import, are served.
 * @param {any} t @param {string} origin @param {string[]} paths named by a page @param {string} folder of all of them
 * @returns {Promise<Set<string>>} all paths
 */
export async function crawl(t, origin, paths, folder) {
  const seen = new Set(paths)
  for (const path of seen) {
    t.ok(path.startsWith(folder), path)
    const answer = await fetch(origin + path)
    t.equal(answer.status, 200, path)
    t.equal(answer.headers.get('content-type'), TYPES[path.slice(path.lastIndexOf('.') + 1)], path)
    t.equal(answer.headers.get('x-content-type-options'), 'nosniff', path)
    const body = await answer.text()
    if (!path.endsWith('.js')) continue
    t.notMatch(body, /\beval\(|\bnew Function\b/, `${path} runs no code from strings`)
    if (!/centrifuge[.\w]*js$/.test(path)) t.notMatch(body, /\binnerHTML\b/, `${path} inserts no markup`)
    for (const [, imported] of body.matchAll(/^(?:import|export)\b[^'";]*'(\.[^']+)'$/gm))
      seen.add(new URL(imported, origin + path).pathname)
  }
  return seen
}

/** @param {string} html @returns {string[]} addresses of scripts, styles, images and links, without anchors */
export const namedIn = html => [...html.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, path]) => path)
