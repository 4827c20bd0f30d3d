import { randomBytes } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'

/** @type {Record<string, string>} */
const REASONS = {
  ENOENT: 'there is no such folder',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota is used up',
  EFBIG: 'it is larger than a file may be',
  EACCES: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOTDIR: 'it is no folder',
  EEXIST: 'a file is in its place',
}

/** @param {any} error of a file @returns {string} a few words */
export const reasonOf = error => REASONS[error.code] ?? error.code ?? error.message

/**
 * Replaces a file atomically, also when the disk is full.
 * @param {string} file @param {string | Buffer} data @param {object} [options] @param {number} [options.mode]
 * @param {boolean} [options.sync] waits until the data is on disk
 * @throws {NodeJS.ErrnoException} the file is unchanged
 */
export async function replaceFile(file, data, { mode, sync = false } = {}) {
  const draft = `${file}.${randomBytes(4).toString('hex')}.part`
  try {
    const handle = await open(draft, 'wx', mode)
    try {
      await handle.writeFile(data)
      if (sync) await handle.datasync()
    } finally {
      await handle.close()
    }
    await rename(draft, file)
  } catch (error) {
    await rm(draft, { force: true }).catch(() => {})
    throw error
  }
}

/** Replaces a file. @param {string} file @param {string} text @throws {Error} one line */
export const writeWhole = (file, text) =>
  replaceFile(file, text).catch(error => {
    throw new Error(`${file}: cannot be written: ${reasonOf(error)}`)
  })
