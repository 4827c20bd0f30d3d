// The folder of a reader of the guides, with the packages that `npm install` puts there.

import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { tempDir } from '../kit/folders.js'

export const root = fileURLToPath(new URL('../..', import.meta.url))

/**
 * A folder that is gone after the test.
 * @param {any} t @param {string[]} [packages] beside this one @param {Record<string, string>} [files] by their names
 * @returns {Promise<string>} its path
 */
export async function workplace(t, packages = [], files = {}) {
  const folder = tempDir(t)
  await mkdir(join(folder, 'node_modules'))
  await symlink(root, join(folder, 'node_modules/halley-gateway'))
  for (const name of packages)
    await symlink(join(root, 'node_modules', name), join(folder, 'node_modules', name))
  for (const [name, text] of Object.entries({ 'package.json': '{"type": "module"}', ...files }))
    await writeFile(join(folder, name), text)
  return folder
}
