// One-way long-polls, in rounds: one message, its answers, and the next polls; beside bare libraries, in turn.

import { setTimeout as sleep } from 'node:timers/promises'
import { openFilesLimit } from '../fleet/runner/proc.js'
import { rounded } from '../fleet/runner/table.js'
import { startControl } from '../fleet/targets/index.js'
import { parseFlags, UsageError } from './flags.js'
import { Pollers } from './pollers.js'
import { prefixedOutput, VariantsRun } from './servers.js'

/** @typedef {import('../fleet/runner/processes.js').ServerProcess} ServerProcess */
/** @typedef {typeof DEFAULTS & {against: string, driver: string, json: boolean}} PollOptions */

const DEFAULTS = { conns: 5000, channels: 10, size: 512, seconds: 8, workers: 2, runs: 1 }
/** A new server allocates and compiles for about so long. */
const SETTLE_MS = 1000
/** Load before the measurement. */
const WARM_UP_S = 1
/** Open files of a process besides its connections. */
const OWN_FILES = 200
/** From the last answer of a round to the next message. */
const ROUND_PAUSE_MS = 20
const READ_INTERVAL = 500

export const HELP = `Usage: npm run bench -- poll [flags]

One-way long-polls: a message to one of the channels, and the next one when all its clients have polled again.

  --against KINDS   uws, ws or both with a comma: run in turn with the gateway
  --conns N         clients (default ${DEFAULTS.conns})
  --channels N      with history (default ${DEFAULTS.channels})
  --size BYTES      of a message (default ${DEFAULTS.size})
  --seconds N       measured, after a second of warm-up (default ${DEFAULTS.seconds})
  --workers N       of the gateway (default ${DEFAULTS.workers})
  --driver DRIVER   auto, uws or node (default auto)
  --runs N          of each server; the table has medians (default ${DEFAULTS.runs})
  --json            a line of JSON for each run instead of a table
  -h, --help        this text
`

/** @param {string[]} args @returns {PollOptions | null} null: help was requested @throws {UsageError} */
export function parseOptions(args) {
  const options = parseFlags(args, DEFAULTS, { against: '', driver: 'auto' })
  if (options === null) return null
  const wrong = options.against
    .split(',')
    .find((/** @type {string} */ kind) => !['', 'uws', 'ws'].includes(kind))
  if (wrong !== undefined) throw new UsageError(`--against is uws, ws or both, not "${wrong}"`)
  const limit = openFilesLimit() - OWN_FILES
  if (options.conns > limit)
    throw new UsageError(`the limit of open files leaves one process room for ${limit} pollers`)
  return /** @type {PollOptions} */ (options)
}

/** @extends {VariantsRun<PollOptions>} */
export class Run extends VariantsRun {
  async run() {
    const kinds = ['halley', ...this.options.against.split(',').filter(Boolean)]
    const variants = Object.fromEntries(kinds.map(kind => [kind, kind]))
    await this.compare({ scenario: 'poll' }, variants, kind => this.#measure(kind))
  }

  /** @param {string} kind */
  async #measure(kind) {
    const { workers, driver } = this.options
    const server =
      kind === 'halley'
        ? await this.spawn({ workers, driver })
        : await startControl(kind, { out: await this.folder(), workers })
    if (kind !== 'halley') this.ends.push(() => server.stop())
    return await poll(server, this.options, prefixedOutput(this.io, `poll ${kind}`))
  }
}

/**
 * @param {ServerProcess} server @param {PollOptions} options @param {import('./load.js').Show} show
 * @returns {Promise<import('../fleet/runner/table.js').Result>}
 */
async function poll(server, { conns, channels: channelCount, size, seconds }, show) {
  const pollers = new Pollers([server.api], conns, channelCount)
  let round = 0
  let expected = 0
  const runRound = async () => {
    const channel = round++ % channelCount
    // Clients i, i + channelCount, ... poll channel i.
    const polls = Math.ceil(Math.max(0, conns - channel) / channelCount)
    const answers = pollers.answers + polls
    expected += polls
    await pollers.publish(channel, size)
    await pollers.wait(answers)
    await sleep(ROUND_PAUSE_MS)
  }
  try {
    await sleep(SETTLE_MS)
    const base = server.memory()
    const cpuBefore = server.cpu()
    show.progress('clients connect')
    await pollers.start()
    await sleep(SETTLE_MS)
    const cpuAfter = server.cpu()
    show.progress('all polls wait, memory settles')
    let settled = Infinity
    for (let reading = 0; reading < seconds * 2; reading++) {
      await sleep(READ_INTERVAL)
      settled = Math.min(settled, server.memory())
    }
    const idle = (server.cpu() - cpuAfter) / seconds
    show.progress('rounds')
    for (const end = Date.now() + WARM_UP_S * 1e3; Date.now() < end; ) await runRound()
    const cpuStart = server.cpu()
    const firstMeasured = round
    const answersStart = pollers.answers
    const end = Date.now() + seconds * 1e3
    while (Date.now() < end) await runRound()
    const answers = pollers.answers - answersStart
    return {
      connections: conns,
      faults: pollers.faults,
      bytes_per_waiting_poll: Math.round((settled - base) / conns),
      first_poll_cpu_us: rounded(((cpuAfter - cpuBefore) / conns) * 1e6, 1),
      idle_cpu_percent: rounded(idle * 100, 1),
      rounds: round - firstMeasured,
      answers,
      // These two include the warm-up.
      received: pollers.received,
      expected,
      cpu_us_per_round: rounded(((server.cpu() - cpuStart) / answers) * 1e6, 1),
      base_mb: rounded(base / 1e6, 1),
    }
  } finally {
    pollers.stop()
  }
}
