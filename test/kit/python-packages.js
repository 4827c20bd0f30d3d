// PyPI programs for tests, in a virtual environment created once.

import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const cache = fileURLToPath(new URL('../node_modules/.cache/halley/', import.meta.url))

/**
 * @param {string} name of the environment; change it with the packages
 * @param {string[]} packages with their versions, the same as in .ci/run
 * @returns {Promise<string>} folder of the programs
 */
export async function pythonPrograms(name, packages) {
  const place = join(cache, name)
  const programs = join(place, 'bin')
  if (existsSync(programs)) return programs
  await mkdir(dirname(place), { recursive: true })
  // Several processes may do so concurrently; the last wins.
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
