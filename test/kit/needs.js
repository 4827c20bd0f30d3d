// What a test needs of the machine that it runs on. Without it the test is skipped and says why; with CI=true, where
// .ci/run installs all of it, that is a failure.

import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** @param {string} program a name, or a path @returns {boolean} whether it is on the PATH, or there */
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

/** @param {string} name @returns {boolean} whether this npm package is installed */
export function isPackage(name) {
  try {
    import.meta.resolve(name)
    return true
  } catch {
    return false
  }
}

/**
 * For the option `skip` of a test.
 * @param {boolean} there
 * @param {string} reason
 * @returns {string | false} the reason, where it is not there
 * @throws {Error} in CI
 */
export function unless(there, reason) {
  if (there) return false
  if (process.env.CI === 'true') throw new Error(`CI=true leaves no test out: ${reason}`)
  return reason
}

/**
 * For the option `skip` of a test.
 * @param {string} program
 * @param {string} [debian] package that it is in
 * @returns {string | false} the reason, where it is not installed
 * @throws {Error} in CI
 */
export const withoutProgram = (program, debian = program) =>
  unless(isInstalled(program), `${program} is not on the PATH (Debian: apt-get install ${debian})`)

/**
 * Ends this test file, as skipped, where there is a reason.
 * @param {any} t the root, before its first test
 * @param {string | false} reason
 */
export function skipFile(t, reason) {
  if (!reason) return
  t.plan(0, reason)
  process.exit()
}
