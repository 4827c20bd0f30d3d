// Temporary folders, removed with their test.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * A folder in `.tap`. tap alone removes it before later teardowns; programs stopped there may still write to it
 * (ENOTEMPTY; those teardowns then never run).
 * @param {any} t @param {object} [content] as for `t.testdir` @returns {string} its path
 */
export function testdir(t, content) {
  t.teardown(() => {})
  return t.testdir(content)
}

/** A short path, for Unix sockets: at most 107 bytes. @param {any} t @returns {string} */
export function tempDir(t) {
  const path = mkdtempSync(join(tmpdir(), 'halley-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }))
  return path
}
