import { COMMAND } from '../base/version.js'
import { ConfigError } from '../config/load.js'
import { configureServer } from '../config/profile.js'
import { configReference, defaultTree } from '../config/reference.js'
import { checkUsable } from '../processes/primary/reload.js'
import { CONFIG_FLAG } from './command.js'

/** @import { Command } from './command.js' */

const COMMON_HELP = `  -h, --help             print this text
  -V, --version          print the version`

/** @type {Command} */
export const configCheck = {
  name: 'config check',
  summary: 'check a configuration and list its errors',
  help: `Usage: ${COMMAND} config check [flags]

Reads the configuration like \`serve\` and prints each warning and error on a line. Exits with code 1 if the
configuration is invalid.

  -c, --config FILE      configuration, .json, .yaml or .yml; default: variables only
      --dev              apply the development profile first, as serve --dev does
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
  summary: 'print the configuration reference',
  help: `Usage: ${COMMAND} config doc

Prints the configuration reference in Markdown: docs/config.md.

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
