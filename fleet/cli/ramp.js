import { UsageError } from '../../src/cli/args.js'
import { COMMON_HELP, DIR_FLAG, DIR_HELP, dirOf, parseSettings, reasonOf, seconds } from './common.js'
import { Progress } from './progress.js'

/** @type {import('../../src/cli/command.js').Command} */
export const fleetRamp = {
  name: 'fleet ramp',
  summary: 'raise or lower the connections in a straight line',
  help: `Usage: halley fleet ramp --to N --over TIME [flags]

Raises (or lowers) the number of connections from what it is to N, a step a second. It waits until that is told; Ctrl-C leaves the ramp
to the controller, which goes on with it. \`set n\` ends it.

      --to N                 connections of all drones together: 1000000, 1m
      --over TIME            300s, 5m
      --no-wait              do not wait for the end
${DIR_HELP}
${COMMON_HELP}

Examples:
  halley fleet ramp --to 1000000 --over 300s
`,
  flags: {
    to: { type: 'string' },
    over: { type: 'string' },
    'no-wait': { type: 'boolean' },
    dir: DIR_FLAG,
  },

  async run(io, flags) {
    if (flags.to === undefined || flags.over === undefined) throw new UsageError('--to and --over are needed')
    const { n: to } = parseSettings([['n', flags.to]])
    const over = seconds(flags.over, '--over')
    const { ask } = await import('../controller/client.js')
    const progress = new Progress(io.stderr, process.stderr)
    try {
      const wait = !flags['no-wait']
      await ask(
        dirOf(io, flags),
        'ramp',
        { to, seconds: over, wait },
        { onProgress: text => progress.show(text) },
      )
      progress.clear()
      if (wait) io.stdout(`${to} connections are wanted now\n`)
      return 0
    } catch (error) {
      progress.clear()
      io.stderr(`halley: ${reasonOf(error)}\n`)
      return 1
    }
  },
}
