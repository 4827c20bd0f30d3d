import { randomBytes } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import { initialTree } from '../config/initial.js'
import { ConfigError } from '../config/load.js'
import { configureServer } from '../config/profile.js'
import { configReference, defaultTree } from '../config/reference.js'
import { checkUsable } from '../primary/usable.js'
import { COMMAND } from '../version.js'
import { UsageError } from './args.js'
import { CONFIG_FLAG } from './command.js'

/** @import { Command } from './command.js' */

const COMMON_HELP = `  -h, --help             print this text
  -V, --version          print the version`

/** @type {Command} */
export const configCheck = {
  name: 'config check',
  summary: 'check a configuration and list its errors',
  help: `Usage: ${COMMAND} config check [flags]

Reads the configuration like \`serve\` and prints each warning and error on a line. Exit code 1 if the gateway would
refuse to start with it.

  -c, --config FILE      configuration, .json, .yaml or .yml; default: variables only
      --dev              with the development profile below it, as for serve --dev
${COMMON_HELP}

Examples:
  ${COMMAND} config check -c config.json
`,
  flags: { config: CONFIG_FLAG, dev: { type: 'boolean' } },

  async run({ env, cwd, stdout }, flags) {
    /** @param {readonly string[]} warnings */
    const warn = warnings => {
      for (const warning of warnings) stdout(`warning: ${warning}\n`)
    }
    let checked
    try {
      checked = configureServer({ file: flags.config, env, cwd }, { dev: flags.dev === true })
    } catch (error) {
      if (error instanceof ConfigError) warn(error.warnings)
      throw error
    }
    const { config, warnings, profile } = checked
    warn(warnings)
    await checkUsable(config)
    const own = profile === 'development' ? 'the development profile' : 'the environment'
    const what = flags.config ?? own
    stdout(
      `${what}: valid${warnings.length > 0 ? `, ${warnings.length} ${warnings.length === 1 ? 'warning' : 'warnings'}` : ''}\n`,
    )
    return 0
  },
}

/** @type {Command} */
export const configDefaults = {
  name: 'config defaults',
  summary: 'print every key with its default',
  help: `Usage: ${COMMAND} config defaults [flags]

Prints a configuration file with every key and its default, as JSON.

      --yaml             print YAML
${COMMON_HELP}

Examples:
  ${COMMAND} config defaults > config.json
  ${COMMAND} config defaults --yaml > config.yaml
`,
  flags: { yaml: { type: 'boolean' } },

  async run({ stdout }, flags) {
    const tree = defaultTree()
    stdout(flags.yaml ? (await import('yaml')).stringify(tree) : `${JSON.stringify(tree, null, 2)}\n`)
    return 0
  },
}

/** @type {Command} */
export const configDoc = {
  name: 'config doc',
  summary: 'print the reference of all keys',
  help: `Usage: ${COMMAND} config doc

Prints the reference of all keys as Markdown: docs/config.md.

${COMMON_HELP}

Examples:
  ${COMMAND} config doc | less
`,
  flags: {},

  run({ stdout }) {
    stdout(configReference())
    return 0
  },
}

/** @type {Record<string, string>} */
const REASONS = {
  ENOENT: 'there is no such folder',
  EACCES: 'permission denied',
  EROFS: 'the file system is read-only',
  EISDIR: 'is a folder',
  ENOSPC: 'the disk is full',
}

/**
 * Writes a file that only its user may read.
 * @param {string} file @param {string} text @param {boolean} force replace an existing one
 * @throws {NodeJS.ErrnoException} EEXIST: the file exists; it is unchanged
 */
async function writePrivate(file, text, force) {
  // A new file: the mode of an existing one would stay.
  const path = force ? `${file}.${randomBytes(4).toString('hex')}` : file
  const handle = await open(path, 'wx', 0o600)
  try {
    await handle.writeFile(text)
    if (force) await rename(path, file)
  } catch (error) {
    await rm(path, { force: true })
    throw error
  } finally {
    await handle.close()
  }
}

/** @type {Command} */
export const configInit = {
  name: 'config init',
  summary: 'write a configuration file with random secrets',
  help: `Usage: ${COMMAND} config init [FILE] [flags]

Writes a configuration to start from: random secrets for tokens, the server API and the admin page (32 bytes each), and
example origins and channels. Only its user may read the file. FILE ends with .json, .yaml or .yml; default:
config.json.

      --force            replace an existing file
${COMMON_HELP}

Examples:
  ${COMMAND} config init
  ${COMMAND} config init /etc/halley/config.yaml
`,
  flags: { force: { type: 'boolean' } },
  words: 1,

  async run({ cwd, stdout, stderr }, flags) {
    const [name = 'config.json'] = flags.words
    const kind = extname(name).toLowerCase()
    if (!['.json', '.yaml', '.yml'].includes(kind))
      throw new UsageError(`${name}: the file name must end with .json, .yaml or .yml`)
    const tree = initialTree()
    const text =
      kind === '.json' ? `${JSON.stringify(tree, null, 2)}\n` : (await import('yaml')).stringify(tree)
    try {
      await writePrivate(resolve(cwd, name), text, flags.force === true)
    } catch (error) {
      const reason =
        error.code === 'EEXIST'
          ? 'exists; --force replaces it, with its secrets'
          : (REASONS[error.code] ?? error.message)
      stderr(`halley: ${name}: ${reason}\n`)
      return 1
    }
    stdout(
      `${name}: written, with a new token secret, API key and admin key\n` +
        'Change client.allowed_origins to the origins of your pages and channel to your channels, then:\n' +
        `  ${COMMAND} serve -c ${name}\n`,
    )
    return 0
  },
}
