// Requirements of tests. If one is missing, the test is skipped with the reason; with CI=true it fails, because
// .ci/run installs everything.

import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** @param {string} program a name, or a path */
export function isInstalled(program) {
  const folders = program.includes('/') ? [''] : (process.env.PATH ?? '').split(delimiter)
  return folders.some(folder => {
    try {
      accessSync(join(folder, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/** @param {string} name of an npm package */
export function isPackage(name) {
  try {
    import.meta.resolve(name)
    return true
  } catch {
    return false
  }
}

/**
 * For the `skip` option of a test.
 * @param {boolean} there @param {string} reason @returns {string | false} @throws {Error} in CI
 */
export function unless(there, reason) {
  if (there) return false
  if (process.env.CI === 'true') throw new Error(`with CI=true no test may be skipped: ${reason}`)
  return reason
}

/**
 * For the `skip` option of a test.
 * @param {string} program @param {string} [debian] its package @returns {string | false}
 */
export const withoutProgram = (program, debian = program) =>
  unless(isInstalled(program), `${program} is not on the PATH (Debian: apt-get install ${debian})`)

/**
 * Skips this test file if there is a reason.
 * @param {any} t the root, before its first test @param {string | false} reason
 */
export function skipFile(t, reason) {
  if (!reason) return
  t.plan(0, reason)
  process.exit()
}
