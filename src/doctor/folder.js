import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Makes a folder and those above it. Node's own `recursive` never comes back where a file system answers ENOENT for a
 * folder whose parent is there, as /proc does, and takes a core while it tries.
 *
 * @param {string} folder
 * @param {number} [mode] of those that are made
 * @throws {NodeJS.ErrnoException} EEXIST, ENOTDIR: part of the path is a file
 */
export async function makeFolder(folder, mode = 0o777) {
  try {
    await mkdir(folder, { mode })
  } catch (error) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (error)
    const above = dirname(folder)
    if (code === 'ENOENT' && above !== folder && !(await isFolder(above))) {
      await makeFolder(above, mode)
      await makeFolder(folder, mode)
    } else if (!(await isFolder(folder))) throw error
  }
}

/** @param {string} path */
const isFolder = path =>
  stat(path).then(
    found => found.isDirectory(),
    () => false,
  )
