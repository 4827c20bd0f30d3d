import { COMMON_HELP, DIR_FLAG, DIR_HELP, dirOf, reasonOf } from './common.js'

/** Columns of what is no terminal. */
const PAGE = 120

/** @type {import('../../src/cli/command.js').Command} */
export const fleetStatus = {
  name: 'fleet status',
  summary: 'watch the fleet',
  help: `Usage: halley fleet status [flags]

Shows in the terminal, second by second, what the drones do. Where there is no terminal it prints a table, and ends.

      --once                 print one table, and end
      --json                 print all that is known as a line of JSON, and end
      --watch                with --json: a line each second, until it is ended
      --ascii                no characters beyond ASCII
      --no-color             no colours
${DIR_HELP}
${COMMON_HELP}

Examples:
  halley fleet status
  halley fleet status --json --watch | jq .gauges
`,
  flags: {
    once: { type: 'boolean' },
    json: { type: 'boolean' },
    watch: { type: 'boolean' },
    ascii: { type: 'boolean' },
    'no-color': { type: 'boolean' },
    dir: DIR_FLAG,
  },

  async run(io, flags) {
    const dir = dirOf(io, flags)
    const { ask } = await import('../controller/client.js')
    try {
      if (flags.json && flags.watch) {
        await ask(dir, 'watch', {}, { onSnapshot: snapshot => io.stdout(`${JSON.stringify(snapshot)}\n`) })
        return 0
      }
      const { snapshot } = await ask(dir, 'snapshot')
      if (flags.json) {
        io.stdout(`${JSON.stringify(snapshot)}\n`)
        return 0
      }
      const { openView, renderStatus } = await import('../status/index.js')
      const { stdin, stdout } = process
      if (flags.once || !stdout.isTTY || !stdin.isTTY) {
        const columns = stdout.columns || PAGE
        const lines = renderStatus(snapshot, { columns, unicode: !flags.ascii })
        io.stdout(`${lines.join('\n')}\n`)
        return 0
      }
      const { ControllerSource } = await import('../controller/source.js')
      await openView({
        source: new ControllerSource(dir),
        stdin,
        stdout,
        env: { ...io.env },
        flags: { ascii: flags.ascii, noColor: flags['no-color'] },
      })
      return 0
    } catch (error) {
      io.stderr(`halley: ${reasonOf(error)}\n`)
      return 1
    }
  },
}
