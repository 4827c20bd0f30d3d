import { UsageError } from '../../src/cli/args.js'
import { SETTINGS } from '../settings.js'
import {
  COMMON_HELP,
  DIR_FLAG,
  DIR_HELP,
  dirOf,
  pairOf,
  parseSettings,
  reasonOf,
  settingOf,
  shown,
} from './common.js'

const WIDTH = Math.max(...SETTINGS.map(({ name }) => name.length)) + 2

/** @type {import('../../src/cli/command.js').Command} */
export const fleetSet = {
  name: 'fleet set',
  summary: 'tell the drones what to do',
  help: `Usage: halley fleet set NAME VALUE [flags]
       halley fleet set NAME=VALUE ... [flags]
       halley fleet set [NAME] [flags]

Changes settings of the fleet while it runs: the drones answer that they have them, or why they refuse; then nothing is changed.
Without a value it prints the settings.

${SETTINGS.map(({ name, doc }) => `      ${name.padEnd(WIDTH)}${doc}`).join('\n')}

${DIR_HELP}
${COMMON_HELP}

Examples:
  halley fleet set n 100k
  halley fleet set transport long_poll
  halley fleet set publish_channels='s{1..1000}' publish_rate=500
`,
  flags: { dir: DIR_FLAG },
  words: 40,

  async run(io, flags) {
    const { words } = flags
    const dir = dirOf(io, flags)
    const { ask, NoFleetError } = await import('../controller/client.js')
    const one = words.length === 2 && !words[0].includes('=')
    try {
      if (words.length === 0 || (words.length === 1 && !words[0].includes('='))) {
        const wanted = words.length === 0 ? SETTINGS : [settingOf(words[0])]
        const { settings } = await ask(dir, 'settings').catch(error => {
          if (!(error instanceof NoFleetError)) throw error
          io.stderr(`halley: ${error.message}; these are the defaults\n`)
          return { settings: Object.fromEntries(SETTINGS.map(({ name, default: value }) => [name, value])) }
        })
        for (const { name, doc } of wanted)
          io.stdout(`${name.padEnd(WIDTH)}${(shown(settings[name]) || '-').padEnd(24)} ${doc}\n`)
        return 0
      }
      const settings = parseSettings(one ? [[words[0], words[1]]] : words.map(pairOf))
      const { warnings } = await ask(dir, 'set', { settings })
      for (const text of warnings) io.stderr(`halley: ${text}\n`)
      return 0
    } catch (error) {
      if (error instanceof UsageError) throw error
      io.stderr(`halley: ${reasonOf(error)}\n`)
      return 1
    }
  },
}
