import { readFileSync } from 'node:fs'

/** How messages and help texts write the command line, the same as the docs. */
export const COMMAND = 'npx halley-gateway'

/** @returns {string} version of the package */
export function packageVersion() {
  return JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version
}
