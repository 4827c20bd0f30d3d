// Programs of PyPI that tests want, in a virtual environment that is made once.

import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const cache = fileURLToPath(new URL('../node_modules/.cache/halley/', import.meta.url))

/**
 * @param {string} name of the environment: another one for other packages or versions
 * @param {string[]} packages with their versions; .ci/run installs the same ones
 * @returns {Promise<string>} folder of its programs
 * @throws {Error} where there is neither Python nor a way to its packages
 */
export async function pythonPrograms(name, packages) {
  const place = join(cache, name)
  const programs = join(place, 'bin')
  if (existsSync(programs)) return programs
  await mkdir(dirname(place), { recursive: true })
  // Several may do so at once: each makes its own one, and the last one stays.
  const venv = await mkdtemp(`${place}-`)
  try {
    await run('python3', ['-m', 'venv', venv])
    await run(join(venv, 'bin', 'pip'), ['install', '--quiet', ...packages], { timeout: 280_000 })
  } catch (error) {
    await rm(venv, { recursive: true, force: true })
    throw error
  }
  await symlink(venv, `${venv}.link`)
  await rename(`${venv}.link`, place)
  return programs
}
