import { randomBytes } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'

/** @type {Record<string, string>} */
const REASONS = {
  ENOENT: 'no such folder',
  ENOSPC: 'the disk is full',
  EDQUOT: 'quota exceeded',
  EFBIG: 'file too large',
  EACCES: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOTDIR: 'not a folder',
  EEXIST: 'a file with this name exists',
}

/** @param {any} error of a file @returns {string} a few words */
export const reasonOf = error => REASONS[error.code] ?? error.code ?? error.message

/**
 * Replaces a file atomically: after an error it is unchanged. `sync` waits until the data is on disk.
 * @param {string} file @param {string | Buffer} data @param {{mode?: number, sync?: boolean}} [options]
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

/** Replaces a file. @param {string} file @param {string} text */
export const writeWhole = (file, text) =>
  replaceFile(file, text).catch(error => {
    throw new Error(`${file}: cannot be written: ${reasonOf(error)}`)
  })
