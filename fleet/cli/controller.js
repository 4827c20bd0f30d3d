import { COMMON_HELP, DIR_FLAG, DIR_HELP, dirOf, reasonOf } from './common.js'

/** @type {import('../../src/cli/command.js').Command} */
export const fleetController = {
  name: 'fleet controller',
  summary: 'be the controller, in the foreground (start does that by itself)',
  help: `Usage: halley fleet controller [flags]

Is the controller of a fleet until it is stopped, and logs to the terminal. \`halley fleet start\` starts one in the background by itself;
this is for a supervisor, or to see what it does. The drones of a controller that was ended are taken up.

${DIR_HELP}
${COMMON_HELP}

Examples:
  halley fleet controller --dir /var/lib/halley-fleet
`,
  flags: { dir: DIR_FLAG },

  async run(io, flags) {
    const { beController } = await import('../controller/daemon.js')
    try {
      await beController(dirOf(io, flags), {
        log: text => io.stdout(`${new Date().toISOString()} ${text}\n`),
        onReady: () => {},
        foreground: true,
      })
      return 0
    } catch (error) {
      io.stderr(`halley: ${reasonOf(error)}\n`)
      return 1
    }
  },
}
