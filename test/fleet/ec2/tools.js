// Programs that a test wants, and that are not everywhere.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/**
 * @param {any} t fails when the program is missing in CI, where all of them have to be
 * @param {string} program
 * @returns {Promise<string | false>} why the test is skipped
 */
export async function missing(t, program) {
  const there = await promisify(execFile)('sh', ['-c', 'command -v "$0"', program]).then(
    () => true,
    () => false,
  )
  if (!there && process.env.CI === 'true') t.fail(`${program} is missing`)
  return there ? false : `${program} is missing`
}
