// The drone's program: its source files in one archive. The controller serves it by SHA-256; drone/bootstrap.js
// unpacks it.

import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm, stat, utimes } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { packageVersion } from '../src/base/version.js'
import { reasonOf, replaceFile } from './files.js'

/** @typedef {{sha256: string, bytes: Buffer}} Program gzip of a JSON list of `[path, text]` */

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PROGRAM = 'fleet/drone/main.js'
/** Maximum bytes of an archive: in base64 it must fit in a line of the link (16 MB). */
const MAX_BYTES = 8 << 20
/** Programs kept in a fleet's folder: the current one and those of earlier versions of Halley. */
const KEPT = 8
const FILE = /^[0-9a-f]{64}\.json\.gz$/

/** @param {string} text of a source file @returns {string} without comments on their own lines */
export const withoutComments = text =>
  text.replace(/^ *\/\*[\s\S]*?\*\/\n/gm, '').replace(/^ *\/\/.*\n/gm, '')

/**
 * Reads a source file and all its imports, sorted by path, with a package.json for ES modules.
 * @param {string} entry path from the root of the package @returns {Promise<[path: string, text: string][]>}
 */
export async function sourcesOf(entry) {
  const manifest = { name: 'halley-drone', version: packageVersion(), type: 'module' }
  const found = new Map([['package.json', `${JSON.stringify(manifest)}\n`]])
  const waiting = [entry]
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (found.has(path)) continue
    const text = await readFile(join(ROOT, path), 'utf8')
    found.set(path, text)
    const imports = withoutComments(text).matchAll(
      /^(?:import|export)\b[^'";=(]*?'([^']+)'|\bimport\(\s*'([^']+)'/gm,
    )
    for (const [, early, late] of imports) {
      const target = early ?? late
      if (target.startsWith('.')) waiting.push(join(dirname(path), target))
      else if (!isBuiltin(target)) throw new Error(`${path} imports ${target}: a drone has no packages`)
    }
  }
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1))
}

/** @param {Buffer} bytes */
const sha256Of = bytes => createHash('sha256').update(bytes).digest('hex')

/** @returns {Promise<Program>} the drone of this version of Halley */
export async function packProgram() {
  const sources = await sourcesOf(PROGRAM)
  const bytes = await promisify(gzip)(JSON.stringify(sources), { level: 9 })
  return { sha256: sha256Of(bytes), bytes }
}

/** @param {string} dir of the fleet */
const folderOf = dir => join(dir, 'programs')
/** @param {string} dir of the fleet @param {string} sha256 */
const fileOf = (dir, sha256) => join(folderOf(dir), `${sha256}.json.gz`)

/** For later requests, also from a later version. @param {string} dir @param {Program} program */
export async function saveProgram(dir, { sha256, bytes }) {
  const folder = folderOf(dir)
  const file = fileOf(dir, sha256)
  const now = new Date()
  const known = await readProgram(dir, sha256).catch(() => null)
  // An existing program needs no space on a full disk.
  if (known !== null) await utimes(file, now, now).catch(() => {})
  else
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await replaceFile(file, bytes, { mode: 0o600 })
    } catch (error) {
      throw Object.assign(new Error(reasonOf(error)), { code: error.code })
    }
  const names = (await readdir(folder)).filter(name => FILE.test(name) && join(folder, name) !== file)
  const others = await Promise.all(
    names.map(async name => ({ path: join(folder, name), saved: (await stat(join(folder, name))).mtimeMs })),
  )
  others.sort((a, b) => b.saved - a.saved)
  for (const { path } of others.slice(KEPT - 1)) await rm(path, { force: true })
}

/** @param {string} dir @param {unknown} sha256 @returns {Promise<Program>} @throws {Error} one line: missing or damaged */
export async function readProgram(dir, sha256) {
  if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256))
    throw new Error('a program request requires a SHA-256 of 64 hex digits')
  const file = fileOf(dir, sha256)
  const { size } = await stat(file).catch(error => {
    throw new Error(
      error.code === 'ENOENT'
        ? `the controller has no program ${sha256}: stop this drone and start another one`
        : `program ${sha256} cannot be read: ${error.message}`,
    )
  })
  const bytes = size <= MAX_BYTES ? await readFile(file) : Buffer.alloc(0)
  if (sha256Of(bytes) !== sha256)
    throw new Error(
      `the controller's copy of program ${sha256} is damaged: stop this drone and start another one`,
    )
  return { sha256, bytes }
}
