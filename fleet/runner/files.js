import { rename, rm, writeFile } from 'node:fs/promises'
import { makeFolder as make } from '../../src/doctor/index.js'
import { RunError } from './run-error.js'

/**
 * Writes a file: all of it, or nothing.
 * @param {string} file
 * @param {string} text
 * @throws {RunError} it cannot be written
 */
export async function writeWhole(file, text) {
  const part = `${file}.${process.pid}.part`
  try {
    await writeFile(part, text)
    await rename(part, file)
  } catch (error) {
    await rm(part, { force: true }).catch(() => {})
    throw new RunError(`${file}: cannot be written: ${reasonOf(error)}`)
  }
}

/**
 * @param {string} folder that is there afterwards
 * @throws {RunError}
 */
export async function makeFolder(folder) {
  try {
    await make(folder)
  } catch (error) {
    throw new RunError(`${folder}: cannot be made: ${reasonOf(error)}`)
  }
}

/** @type {Record<string, string>} */
const REASONS = {
  ENOENT: 'there is no such folder',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota is used up',
  EACCES: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOTDIR: 'it is no folder',
  EEXIST: 'a file is in its place',
}

/** @param {any} error */
export const reasonOf = error => REASONS[error.code] ?? error.code ?? error.message
