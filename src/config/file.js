import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { extname } from 'node:path'
import { ConfigError } from './error.js'

const require = createRequire(import.meta.url)

/** @type {Record<string, string>} */
const REASONS = { ENOENT: 'no such file', EACCES: 'permission denied', EISDIR: 'is a directory' }

/** @param {string} text @param {string} file */
function parseJson(text, file) {
  try {
    return JSON.parse(text)
  } catch (error) {
    const at = /position (\d+)/.exec(error.message)
    const before = at === null ? text : text.slice(0, Number(at[1]))
    const line = before.split('\n').length
    const column = before.length - before.lastIndexOf('\n')
    // The rest of V8's message quotes the file and its secrets.
    throw new ConfigError([`${file}: invalid JSON at line ${line}, column ${column}`])
  }
}

/** @param {string} text @param {string} file */
function parseYaml(text, file) {
  // Loading takes 35 ms, and most configurations are JSON.
  const { parseDocument } = /** @type {typeof import('yaml')} */ (require('yaml'))
  const document = parseDocument(text, { prettyErrors: false })
  const [error] = document.errors
  if (error !== undefined) {
    const before = text.slice(0, error.pos[0])
    throw new ConfigError([
      `${file}: invalid YAML at line ${before.split('\n').length}: ${error.message.split('\n')[0]}`,
    ])
  }
  try {
    return document.toJS() ?? {}
  } catch (problem) {
    throw new ConfigError([`${file}: invalid YAML: ${problem.message.split('\n')[0]}`])
  }
}

/** @param {string} path @param {string} file in messages @returns {Record<string, unknown>} @throws {ConfigError} */
export function readConfigFile(path, file) {
  const kind = extname(path).toLowerCase()
  if (kind === '.toml') {
    throw new ConfigError([`${file}: TOML is not supported; write the configuration as JSON or YAML`])
  }
  if (!['.json', '.yaml', '.yml'].includes(kind)) {
    throw new ConfigError([`${file}: the file name must end with .json, .yaml or .yml`])
  }
  let text
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    throw new ConfigError([`${file}: ${REASONS[error.code] ?? error.message}`])
  }
  if (text.charCodeAt(0) === 0xfeff) text = text.slice(1)
  const tree = kind === '.json' ? parseJson(text, file) : parseYaml(text, file)
  if (tree === null || typeof tree !== 'object' || Array.isArray(tree)) {
    throw new ConfigError([`${file}: the file must contain an object with keys`])
  }
  return tree
}
