// The scenarios of `npm run bench`: default sizes, the load, and the figures that are measured.

import { setTimeout as sleep } from 'node:timers/promises'
import { channels } from './channels.js'
import { Load } from './load.js'
import { Pollers } from './pollers.js'
import { openFilesLimit } from './proc.js'
import { rounded, roundedMs } from './report.js'

/**
 * @typedef {import('./deployment.js').Deployment} Deployment
 * @typedef {object} Sizes of a scenario
 * @property {number} conns clients
 * @property {number} channels 0: one for each client
 * @property {number} rate publications per second; 0: as many as are answered
 * @property {number} size bytes of each payload
 * @property {number} publishers connections that publish
 * @property {number} seconds measured
 * @property {number} loaders processes with clients; 0: as many as open files and nodes require
 * @property {number} [subscriptions] of each client, each to its own channel, in scenarios with several
 * @typedef {object} Show output during a run
 * @property {(text: string) => void} progress current step; the next one replaces it
 * @property {(text: string) => void} warning a line that stays
 * @typedef {Record<string, number>} Result figures by name; a name ends with its unit, if any
 * @typedef {object} Scenario
 * @property {string} summary
 * @property {boolean} [halleyOnly] whether it needs Halley, so that bare libraries cannot run it
 * @property {boolean} [peers] whether other servers can run it: WebSockets and messages
 * @property {Sizes} sizes
 * @property {(deployment: Deployment, sizes: Sizes, show: Show) => Promise<Result>} run
 */

/** A new server allocates and compiles for about so long. */
const SETTLE_MS = 1_000
/** Load before the measurement. */
const WARM_UP_S = 1
/** Open files of a process besides its connections. */
const OWN_FILES = 200
/** From the last answer of a round to the next message. */
const ROUND_PAUSE_MS = 20

/** Clients connect, subscribe and idle. @type {Scenario['run']} */
async function memory(deployment, sizes, show) {
  const load = new Load(deployment, sizes, show)
  try {
    await sleep(SETTLE_MS)
    // Garbage of the start must be collected first: it would be subtracted from the memory of the clients.
    show.progress('memory settles after the start')
    const base = await deployment.leastMemory(sizes.seconds)
    const cpuBefore = deployment.cpu()
    const connected = await load.connect()
    const cpuAfter = deployment.cpu()
    show.progress('all clients are connected, memory settles')
    const settled = await deployment.leastMemory(sizes.seconds)
    const idle = (deployment.cpu() - cpuAfter) / sizes.seconds
    const { counters } = await load.sample()
    return {
      connections: connected.ready,
      failed: connected.failed,
      closed: counters.ended,
      bytes_per_connection: Math.round((settled - base) / connected.ready),
      connect_cpu_us: rounded(((cpuAfter - cpuBefore) / connected.ready) * 1e6, 1),
      connects_per_s: Math.round(connected.ready / connected.seconds),
      connect_p50_ms: roundedMs(connected.latency.percentile(50)),
      connect_p99_ms: roundedMs(connected.latency.percentile(99)),
      idle_cpu_percent: rounded(idle * 100, 1),
      base_mb: rounded(base / 1e6, 1),
    }
  } finally {
    load.stop()
  }
}

/** Messages flow from HTTP publishers to all clients of their channel. @type {Scenario['run']} */
const flow = (deployment, sizes, show) => flowBetween(deployment, deployment, sizes, show)

/** Messages flow from the first node to the last one. @type {Scenario['run']} */
const latency = (deployment, sizes, show) =>
  flowBetween(
    deployment,
    { targets: deployment.targets.slice(-1), apis: deployment.apis.slice(0, 1) },
    sizes,
    show,
  )

/**
 * @param {Deployment} deployment @param {import('./load.js').Endpoints} endpoints @param {Sizes} sizes
 * @param {Show} show
 * @returns {Promise<Result>}
 */
async function flowBetween(deployment, endpoints, sizes, show) {
  const { redis } = deployment
  const load = new Load(endpoints, sizes, show)
  try {
    const connected = await load.connect()
    const from = await load.publish(WARM_UP_S)
    show.progress(`publishing for ${WARM_UP_S} + ${sizes.seconds} s`)
    await sleep(Math.max(0, from - Date.now()))
    // Rates are differences of two samples. Both read the clocks in the same order, so that delays cancel out.
    const before = await load.sample()
    const redisBefore = await redis?.cpu()
    const started = performance.now()
    const cpuBefore = deployment.cpu()
    const loadBefore = load.cpu()
    await sleep(sizes.seconds * 1e3)
    const after = await load.sample()
    const redisCpu = redisBefore === undefined ? undefined : Number(await redis?.cpu()) - redisBefore
    const seconds = (performance.now() - started) / 1e3
    const cpu = deployment.cpu() - cpuBefore
    const loadCpu = load.cpu().map((used, i) => used - loadBefore[i])
    show.progress('waiting for the last messages')
    const { expected, all } = await load.finish()
    const { received, ended, duplicates, disordered, gaps, damaged } = all.counters
    const delivered = after.counters.received - before.counters.received
    const published = after.publisher.published - before.publisher.published
    const subscribersPerChannel = connected.ready / load.channels
    return {
      connections: connected.ready,
      failed: connected.failed,
      closed: ended,
      published: all.publisher.published,
      expected,
      delivered: received,
      missing: expected - received,
      order_faults: duplicates + disordered + gaps,
      damaged,
      publish_errors: all.publisher.unpublished,
      ...(sizes.rate > 0 && { offered_per_s: Math.round(sizes.rate * subscribersPerChannel) }),
      published_per_s: Math.round(published / seconds),
      delivered_per_s: Math.round(delivered / seconds),
      cpu_us_per_message: rounded((cpu / Math.max(1, delivered)) * 1e6, 2),
      p50_ms: roundedMs(after.latency.percentile(50)),
      p99_ms: roundedMs(after.latency.percentile(99)),
      max_ms: roundedMs(after.latency.max),
      publish_p99_ms: roundedMs(after.answer.percentile(99)),
      server_cpu_percent: Math.round((cpu / seconds) * 100),
      ...(redisCpu !== undefined && {
        redis_cpu_percent: rounded((redisCpu / seconds) * 100, 1),
        redis_cpu_us_per_publish: rounded((redisCpu / Math.max(1, published)) * 1e6, 2),
      }),
      load_cpu_percent: Math.round((loadCpu.reduce((sum, used) => sum + used, 0) / seconds) * 100),
      busiest_loader_percent: Math.round((Math.max(...loadCpu) / seconds) * 100),
    }
  } finally {
    load.stop()
  }
}

/** One-way long-polls, in rounds: one message, its answers, and the next polls. @type {Scenario['run']} */
async function poll(deployment, { conns, channels: requestedChannels, size, seconds }, show) {
  const limit = openFilesLimit() - OWN_FILES
  if (conns > limit)
    throw new Error(
      `the limit of open files leaves one process room for ${limit} pollers; ask for fewer --conns`,
    )
  const channelCount = requestedChannels || conns
  const pollers = new Pollers(deployment.apis, conns, channelCount)
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
    const base = deployment.memory()
    const cpuBefore = deployment.cpu()
    show.progress('clients connect')
    await pollers.start()
    await sleep(SETTLE_MS)
    const cpuAfter = deployment.cpu()
    show.progress('all polls wait, memory settles')
    const settled = await deployment.leastMemory(seconds)
    const idle = (deployment.cpu() - cpuAfter) / seconds
    show.progress('rounds')
    for (const end = Date.now() + WARM_UP_S * 1e3; Date.now() < end; ) await runRound()
    const cpuStart = deployment.cpu()
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
      cpu_us_per_round: rounded(((deployment.cpu() - cpuStart) / answers) * 1e6, 1),
      base_mb: rounded(base / 1e6, 1),
    }
  } finally {
    pollers.stop()
  }
}

/** Sizes that most scenarios share. */
const COMMON = { seconds: 8, loaders: 0 }

/** @type {Record<string, Scenario>} */
export const SCENARIOS = {
  memory: {
    summary: 'user-space memory per connection with one subscription, processor time per connect',
    sizes: { conns: 10_000, channels: 100, rate: 0, size: 64, publishers: 0, ...COMMON },
    peers: true,
    run: memory,
  },
  fan: {
    summary: '100 channels with 1/100 of the clients each, 1,000 publishes/s of 512 bytes',
    sizes: { conns: 5_000, channels: 100, rate: 1_000, size: 512, publishers: 4, ...COMMON },
    peers: true,
    run: flow,
  },
  one2one: {
    summary: 'a channel for each client, publishers flat out, 100 bytes',
    sizes: { conns: 5_000, channels: 0, rate: 0, size: 100, publishers: 32, ...COMMON },
    peers: true,
    run: flow,
  },
  big: {
    summary: 'one channel with all clients, 60 publishes/s of 512 bytes',
    sizes: { conns: 3_000, channels: 1, rate: 60, size: 512, publishers: 1, ...COMMON },
    peers: true,
    run: flow,
  },
  poll: {
    summary:
      'one-way long-polls on 10 channels: a message of 512 bytes to one of them, the next when all have polled again',
    sizes: { conns: 5_000, channels: 10, rate: 0, size: 512, publishers: 1, ...COMMON },
    run: poll,
  },
  latency: {
    summary: 'a few clients on the last node, 100 publishes/s of 100 bytes on the first, one at a time',
    sizes: { conns: 10, channels: 10, rate: 100, size: 100, publishers: 1, seconds: 20, loaders: 0 },
    run: latency,
  },
  channels: {
    summary:
      '10 subscriptions for each client, each to a channel of its own; with Redis: its connections are cut',
    sizes: {
      conns: 10_000,
      channels: 0,
      rate: 0,
      size: 100,
      publishers: 0,
      subscriptions: 10,
      ...COMMON,
    },
    halleyOnly: true,
    run: channels,
  },
}
