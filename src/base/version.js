import { readFileSync } from 'node:fs'

/** Command line in messages and help texts, as in the docs. */
export const COMMAND = 'npx halley-gateway'

/** @returns {string} version of the package */
export function packageVersion() {
  return JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version
}
