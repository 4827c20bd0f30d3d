import { COMMON_HELP, DIR_FLAG, DIR_HELP, dirOf, reasonOf } from './common.js'

/** @type {import('../../src/cli/command.js').Command} */
export const fleetRestart = {
  name: 'fleet restart',
  summary: 'start drones anew',
  help: `Usage: halley fleet restart [ID ...] [flags]

Ends the processes of drones and starts them again, with what they have to do. One that is gone is launched again. Without an ID:
all of them.

${DIR_HELP}
${COMMON_HELP}

Examples:
  halley fleet restart d3
`,
  flags: { dir: DIR_FLAG },
  words: 1000,

  async run(io, flags) {
    const { ask } = await import('../controller/client.js')
    try {
      const ids = flags.words.length > 0 ? flags.words : undefined
      const done = await ask(dirOf(io, flags), 'restart', { ids })
      io.stdout(`started anew: ${done.ids.join(', ')}\n`)
      return 0
    } catch (error) {
      io.stderr(`halley: ${reasonOf(error)}\n`)
      return 1
    }
  },
}
