// The commands of `halley fleet`: flags and texts. drones.js starts and stops drones, run.js runs scenarios, this file
// has the commands for a running fleet. May import: controller/, runner/, providers/ and scenarios/, mostly on first
// use, so that `--help` is quick. Promises: an error is one line on stderr and exit status 1, a usage error 2; nothing
// that costs money starts unconfirmed.

import { COMMAND } from '../../src/base/version.js'
import { UsageError } from '../../src/cli/args.js'
import { SETTINGS } from '../settings.js'
import {
  COMMON_HELP,
  DIR_HELP,
  dirOf,
  flagsOf,
  fleetCommand,
  parsePair,
  parseSeconds,
  parseSettings,
  SWITCH,
  settingOf,
  shown,
  TEXT,
} from './common.js'
import { fleetStart, fleetStop } from './drones.js'
import { fleetReport, fleetRun } from './run.js'

// Disables the AWS SDK's warning about future Node.js versions.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true'

const WIDTH = Math.max(...SETTINGS.map(({ name }) => name.length)) + 2

const fleetSet = fleetCommand({
  name: 'fleet set',
  summary: 'change settings of the fleet',
  help: `Usage: ${COMMAND} fleet set NAME VALUE [flags]
       ${COMMAND} fleet set NAME=VALUE ... [flags]
       ${COMMAND} fleet set [NAME] [flags]

Changes settings of a running fleet. If a drone refuses them, it prints the reason and changes nothing. Without a
value it prints the settings.

${SETTINGS.map(({ name, doc }) => `      ${name.padEnd(WIDTH)}${doc}`).join('\n')}

${DIR_HELP}
${COMMON_HELP}

Examples:
  ${COMMAND} fleet set n 100k
  ${COMMAND} fleet set transport long_poll
  ${COMMAND} fleet set publish_channels='s{1..1000}' publish_rate=500
`,
  flags: { dir: TEXT },
  words: 40,

  async run(io, flags) {
    const { words } = flags
    const dir = dirOf(io, flags)
    const { sendCommand, NoFleetError } = await import('../controller/client.js')
    const named = words.length > 0 && !words[0].includes('=')
    if (words.length === 0 || (words.length === 1 && named)) {
      const wanted = words.length === 0 ? SETTINGS : [settingOf(words[0])]
      const { settings } = await sendCommand(dir, 'settings').catch(error => {
        if (!(error instanceof NoFleetError)) throw error
        io.stderr(`halley: ${error.message}; these are the defaults\n`)
        return { settings: Object.fromEntries(SETTINGS.map(({ name, default: value }) => [name, value])) }
      })
      for (const { name, doc } of wanted)
        io.stdout(`${name.padEnd(WIDTH)}${(shown(settings[name]) || '-').padEnd(24)} ${doc}\n`)
      return
    }
    const settings = parseSettings(words.length === 2 && named ? [words] : words.map(parsePair))
    const { warnings } = await sendCommand(dir, 'set', { settings })
    for (const text of warnings) io.stderr(`halley: ${text}\n`)
  },
})

const fleetRamp = fleetCommand({
  name: 'fleet ramp',
  summary: 'change the number of connections linearly over a time',
  help: `Usage: ${COMMAND} fleet ramp --to N --over TIME [flags]

Raises or lowers the number of connections to N, with one step per second, and waits for the end. Ctrl-C ends only
the wait: the controller continues the ramp. \`${COMMAND} fleet set n\` ends the ramp.

      --to N                 connections of all drones together: 1000000, 1m
      --over TIME            duration of the ramp: 300s, 5m
      --no-wait              do not wait for the end
${DIR_HELP}
${COMMON_HELP}

Examples:
  ${COMMAND} fleet ramp --to 1000000 --over 300s
`,
  flags: { to: TEXT, over: TEXT, 'no-wait': SWITCH, dir: TEXT },

  async run(io, flags, progress) {
    if (flags.to === undefined || flags.over === undefined)
      throw new UsageError('--to and --over are both required')
    const { n: to } = parseSettings([['n', flags.to]])
    const over = parseSeconds(flags.over, '--over')
    const { sendCommand } = await import('../controller/client.js')
    const wait = !flags['no-wait']
    const { gauges = null } = await sendCommand(
      dirOf(io, flags),
      'ramp',
      { to, seconds: over, wait },
      { onProgress: text => progress.show(text) },
    )
    progress.clear()
    if (!wait) return
    const { open = 0, opening = 0 } = gauges ?? {}
    const rest = opening === 0 ? '' : `, ${opening} opening`
    io.stdout(`ramp finished: ${to} connections wanted, ${open} open${rest}\n`)
  },
})

const fleetRestart = fleetCommand({
  name: 'fleet restart',
  summary: 'restart drones',
  help: `Usage: ${COMMAND} fleet restart [ID ...] [flags]

Restarts the processes of drones; their settings stay. Launches a drone again if it is gone. Without an ID it restarts
all drones.

${DIR_HELP}
${COMMON_HELP}

Examples:
  ${COMMAND} fleet restart d3
`,
  flags: { dir: TEXT },
  words: 1000,

  async run(io, flags) {
    const { sendCommand } = await import('../controller/client.js')
    const ids = flags.words.length > 0 ? flags.words : undefined
    const done = await sendCommand(dirOf(io, flags), 'restart', { ids })
    io.stdout(`restarted: ${done.ids.join(', ')}\n`)
  },
})

const PAGE = 120

const fleetStatus = fleetCommand({
  name: 'fleet status',
  summary: 'watch the fleet',
  help: `Usage: ${COMMAND} fleet status [flags]

Shows the drones in the terminal, updated each second. Without a terminal it prints a table and exits.

      --once                 print one table and exit
      --json                 print the complete snapshot as one line of JSON and exit
      --watch                with --json: print a line each second, until Ctrl-C
      --ascii                only ASCII characters
      --no-color             no colors
${DIR_HELP}
${COMMON_HELP}

Examples:
  ${COMMAND} fleet status
  ${COMMAND} fleet status --json --watch | jq .gauges
`,
  flags: { ...flagsOf(SWITCH, 'once', 'json', 'watch', 'ascii', 'no-color'), dir: TEXT },

  async run(io, flags) {
    const dir = dirOf(io, flags)
    const { ControllerSource, sendCommand } = await import('../controller/client.js')
    const printJson = (/** @type {object} */ snapshot) => io.stdout(`${JSON.stringify(snapshot)}\n`)
    if (flags.json && flags.watch) {
      await sendCommand(dir, 'watch', {}, { onSnapshot: printJson })
      return
    }
    const { snapshot } = await sendCommand(dir, 'snapshot')
    if (flags.json) return printJson(snapshot)
    const { detectCapabilities } = await import('../../dashboard/terminal/capabilities.js')
    const { openView, renderStatus } = await import('../status/index.js')
    const { stdin, stdout } = process
    const capabilities = detectCapabilities({
      env: io.env,
      isTTY: Boolean(stdout.isTTY),
      flags: { ascii: flags.ascii, noColor: flags['no-color'] },
    })
    if (!flags.once && capabilities.screen && stdin.isTTY)
      return await openView({ source: new ControllerSource(dir), stdin, stdout, capabilities })
    const lines = renderStatus(snapshot, { columns: stdout.columns || PAGE, unicode: capabilities.unicode })
    io.stdout(`${lines.join('\n')}\n`)
  },
})

const fleetController = fleetCommand({
  name: 'fleet controller',
  summary: 'run the controller in the foreground (start runs it in the background)',
  help: `Usage: ${COMMAND} fleet controller [flags]

Runs the controller of a fleet in the foreground and logs to the terminal: for a process supervisor, or to debug.
\`${COMMAND} fleet start\` starts one in the background. It adopts the drones of an earlier controller.

${DIR_HELP}
${COMMON_HELP}

Examples:
  ${COMMAND} fleet controller --dir /var/lib/halley-fleet
`,
  flags: { dir: TEXT },

  async run(io, flags) {
    const { runController } = await import('../controller/daemon.js')
    await runController(dirOf(io, flags), {
      log: text => io.stdout(`${new Date().toISOString()} ${text}\n`),
      onReady: () => {},
      foreground: true,
    })
  },
})

/** @type {readonly import('../../src/cli/command.js').Command[]} */
export const FLEET_COMMANDS = Object.freeze([
  fleetStart,
  fleetSet,
  fleetRamp,
  fleetStatus,
  fleetRun,
  fleetReport,
  fleetRestart,
  fleetStop,
  fleetController,
])
