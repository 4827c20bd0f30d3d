import { COMMAND } from '../../src/base/version.js'
import { UsageError } from '../../src/cli/args.js'
import {
  askYesNo,
  COMMON_HELP,
  DIR_FLAG,
  DIR_HELP,
  dirOf,
  fleetCommand,
  PROVIDER_FLAGS,
  PROVIDER_HELP,
  Progress,
  parseCount,
  providerFlags,
} from './common.js'

/** @typedef {import('../../src/cli/command.js').Io} Io */

export const fleetStop = fleetCommand({
  name: 'fleet stop',
  summary: 'stop drones',
  help: `Usage: ${COMMAND} fleet stop N|all [flags]

Stops the N drones launched last; the others take over their connections. \`stop all\` stops every drone and the
controller, including orphans of a killed controller: processes of this folder and, with --provider ec2, instances
tagged as drones of any run. statistics.csv and controller.log stay in the folder.

      --provider NAME        also stop orphans of this provider, of any run
  -y, --yes                  confirm in advance that instances of other runs are stopped
${DIR_HELP}
${COMMON_HELP}

${PROVIDER_HELP}
Examples:
  ${COMMAND} fleet stop 2
  ${COMMAND} fleet stop all
  ${COMMAND} fleet stop all --provider ec2 --region eu-west-1
`,
  flags: {
    provider: { type: 'string' },
    yes: { type: 'boolean', short: 'y' },
    dir: DIR_FLAG,
    ...PROVIDER_FLAGS,
  },
  words: 1,

  async run(io, flags, progress) {
    const [word] = flags.words
    if (word === undefined) throw new UsageError('number of drones missing: N or all')
    const n = word === 'all' ? 'all' : parseCount(word, 'the number of drones')
    const own = flags.provider === undefined ? undefined : (providerFlags(flags, flags.provider) ?? {})
    const dir = dirOf(io, flags)
    return n === 'all'
      ? await stopAll(io, { dir, provider: flags.provider, flags: own, yes: flags.yes === true, progress })
      : await stopSome(io, dir, n, progress)
  },
})

/** @param {Io} io @param {string} dir @param {number} n @param {Progress} progress */
async function stopSome({ stdout }, dir, n, progress) {
  const { sendCommand } = await import('../controller/client.js')
  const { ids, left } = await sendCommand(dir, 'stop', { n }, { onProgress: text => progress.show(text) })
  progress.clear()
  const rest = left === 0 ? 'no drone is left' : `${left} left`
  const fewer =
    ids.length < n ? ` (asked for ${n}, there ${ids.length === 1 ? 'was' : 'were'} only ${ids.length})` : ''
  stdout(`ended: ${ids.join(', ') || 'none'}; ${rest}${fewer}\n`)
  return 0
}

/**
 * @param {Io} io
 * @param {{dir: string, provider?: string, flags?: Record<string, any>, yes: boolean, progress: Progress}} options
 * @returns {Promise<number>}
 */
async function stopAll({ stdout, stderr }, { dir, provider, flags, yes, progress }) {
  const { controllerEnded, NoFleetError, sendCommand, stopOrphans } = await import('../controller/client.js')
  const { lockOwner, readState } = await import('../controller/folder.js')
  const onProgress = (/** @type {string} */ text) => progress.show(text)
  let ended = 0
  try {
    ended += (await sendCommand(dir, 'stop', { n: 'all' }, { onProgress })).ids.length
    await controllerEnded(dir)
  } catch (error) {
    progress.clear()
    if (!(error instanceof NoFleetError)) {
      if ((await lockOwner(dir)) !== 0) throw error
      // A controller that does not start is no reason to leave drones running.
      stderr(`halley: ${error.message}\n`)
      const state = await readState(dir).catch(() => null)
      if (state !== null)
        ended += (
          await stopOrphans({
            dir,
            provider: state.provider,
            runs: [state.run],
            flags: state.flags,
            onProgress,
          })
        ).length
      else if (provider === undefined)
        stderr(
          `halley: the state of the fleet is unreadable; if its drones run on EC2, stop them with \`${COMMAND} fleet stop all --provider ec2\`\n`,
        )
    }
  }
  ended += (await stopOrphans({ dir, provider: 'local', flags: {}, onProgress })).length
  if (provider !== undefined && provider !== 'local')
    ended += (
      await stopOrphans({
        dir,
        provider,
        flags: flags ?? {},
        onProgress,
        confirm: handles => confirm(handles, yes, progress),
      })
    ).length
  progress.clear()
  stdout(ended === 0 ? 'there were no drones\n' : `ended: ${ended} ${ended === 1 ? 'drone' : 'drones'}\n`)
  return 0
}

/** @param {import('../schema.js').Handle[]} handles @param {boolean} yes @param {Progress} progress */
async function confirm(handles, yes, progress) {
  for (const { id, where, handle, run, state } of handles)
    progress.line(`${handle} in ${where}: ${id} of run ${run}, ${state}`)
  if (yes) return true
  return await askYesNo(
    'Stop these?',
    'these may belong to other runs: pass --yes to confirm without a terminal',
  )
}
