// Temporary folders, removed with their test.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * A folder in the repository's own `.tap`. tap alone removes it before the teardowns that are registered later, and
 * the programs that these stop may still create files in it (ENOTEMPTY; those teardowns then never run).
 * @param {any} t
 * @param {object} [content] as for `t.testdir`
 * @returns {string} its path
 */
export function testdir(t, content) {
  t.teardown(() => {})
  return t.testdir(content)
}

/**
 * A folder with a short path: the path of a Unix socket has at most 107 bytes.
 * @param {any} t
 * @returns {string} its path
 */
export function tempDir(t) {
  const path = mkdtempSync(join(tmpdir(), 'halley-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }))
  return path
}
