import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError, loadConfig } from '../../src/config/load.js'
import { tempDir } from '../kit/folders.js'

/** Writes files into a directory of their own, gone after the test. @param {import('tap').Test} t */
export function directory(t) {
  const path = tempDir(t)
  return {
    path,
    /** @param {string} name @param {unknown} content text, or what becomes JSON */
    write(name, content) {
      const file = join(path, name)
      writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
      return file
    },
  }
}

/**
 * The faults of a configuration, [] if it is fine.
 * @param {Record<string, unknown>} tree @param {Record<string, string>} [env]
 * @param {Record<string, unknown>} [flags] @returns {readonly string[]}
 */
export function faultsOf(tree, env, flags) {
  try {
    loadConfig({ base: tree, env, flags })
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.faults
  }
}
