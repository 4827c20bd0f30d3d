import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { filesOf } from './examine.js'

/** Relative to a root, `/` for this machine. */
export const PLACES = Object.freeze({
  sysctl: 'etc/sysctl.d/90-halley.conf',
  limits: 'etc/security/limits.d/90-halley.conf',
  service: 'etc/systemd/system/halley.service.d/90-limits.conf',
})

export class WriteError extends Error {}

const ERROR_TEXTS = /** @type {Record<string, string>} */ ({
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOENT: 'a folder cannot be created there',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk is full',
  ENOTDIR: 'part of the path is a file',
  EEXIST: 'part of the path is a file',
  EISDIR: 'is a folder',
})

/** Atomic. @param {string} file @param {string} text @throws {WriteError} */
async function replaceFile(file, text) {
  const draft = join(dirname(file), `.90-halley.${process.pid}.draft`)
  try {
    await makeFolder(dirname(file))
    await writeFile(draft, text, { mode: 0o644 })
    await rename(draft, file)
  } catch (error) {
    await rm(draft, { force: true }).catch(() => {})
    throw new WriteError(
      `${file}: cannot be written: ${ERROR_TEXTS[error.code] ?? error.code ?? error.message}`,
    )
  }
}

/** Keys of the previous file. They are kept, as current settings may depend on them. @param {string} file */
async function keysOf(file) {
  const text = await readFile(file, 'utf8').catch(() => '')
  return [...text.matchAll(/^-?([\w.-]+)\s*=/gm)].map(([, key]) => key)
}

/**
 * @param {string} folder @param {import('./examine.js').Diagnosis} diagnosis
 * @param {{all?: boolean}} [options] include sufficient settings
 * @returns {Promise<{written: string[], then: string[]}>} files, and commands that apply them
 * @throws {WriteError}
 */
export async function writeFiles(folder, diagnosis, { all = false } = {}) {
  const keep = await keysOf(join(folder, PLACES.sysctl))
  const texts = filesOf(diagnosis, { all, keep })
  /** @type {string[]} */
  const written = []
  for (const name of /** @type {const} */ (['sysctl', 'limits', 'service'])) {
    const text = texts[name]
    if (text === null) continue
    const file = join(folder, PLACES[name])
    await replaceFile(file, text)
    written.push(file)
  }
  const then = [
    ...(texts.sysctl === null ? [] : ['sysctl --system']),
    ...(texts.service === null ? [] : ['systemctl daemon-reload && systemctl restart halley']),
  ]
  return { written, then }
}

/**
 * Node's `recursive` loops forever on file systems such as /proc, which return ENOENT although the parent exists.
 * @param {string} folder @param {number} [mode]
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
