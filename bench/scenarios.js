import { sleep, sleepUntil } from './load/clock.js'
import { Load } from './load/load.js'
import { Pollers } from './load/pollers.js'
import { cpuOf, memoryOf, openFilesLimit } from './proc.js'

/**
 * @typedef {import('./servers.js').Server} Server
 * @typedef {object} Sizes what a scenario is made of
 * @property {number} conns clients
 * @property {number} channels 0: one for each client
 * @property {number} rate publishes a second; 0: as many as are answered
 * @property {number} size bytes of each payload
 * @property {number} publishers connections that publish
 * @property {number} seconds measured
 * @property {number} loaders processes of the load generator that hold clients; 0: as many as open files ask for
 *
 * @typedef {object} Show what people who wait get to see
 * @property {(text: string) => void} progress what happens now; the next one takes its place
 * @property {(text: string) => void} warning stays
 *
 * @typedef {Record<string, number>} Result figures by name; a name ends with the unit where there is one
 *
 * @typedef {object} Scenario
 * @property {string} summary
 * @property {Sizes} sizes
 * @property {(server: Server, sizes: Sizes, show: Show) => Promise<Result>} run
 */

/** Load runs for so long before it is measured, s. */
const WARM_UP = 1
/** Memory is looked at so often, ms: garbage waits for its collector, so the least of several looks counts. */
const LOOK_EVERY = 500
/** A server that has just started still allocates and compiles, ms. */
const SETTLE = 1_000
/** A process needs files for itself. */
const OWN_FILES = 200
/** From the last answer of a round to the next message, ms. */
const BETWEEN_ROUNDS = 20

/** @param {number} value @param {number} digits */
const rounded = (value, digits) => Number(value.toFixed(digits))
/** @param {number} micros */
const toMs = micros => rounded(micros / 1e3, 2)

/**
 * Clients connect, subscribe and then do nothing.
 * @type {Scenario['run']}
 */
async function memory(server, sizes, show) {
  const load = new Load(server, sizes, show)
  try {
    await sleep(SETTLE)
    const before = memoryOf(server.pid)
    const cpuBefore = cpuOf(server.pid)
    const connected = await load.connect()
    const cpuAfter = cpuOf(server.pid)
    show.progress('all connected, memory settles')
    let least = Infinity
    for (let waited = 0; waited < sizes.seconds * 1e3; waited += LOOK_EVERY) {
      await sleep(LOOK_EVERY)
      least = Math.min(least, memoryOf(server.pid))
    }
    const idle = (cpuOf(server.pid) - cpuAfter) / sizes.seconds
    const { closed } = await load.report()
    return {
      connections: connected.ready,
      failed: connected.failed,
      closed,
      bytes_per_connection: Math.round((least - before) / connected.ready),
      connect_cpu_us: rounded(((cpuAfter - cpuBefore) / connected.ready) * 1e6, 1),
      connects_per_s: Math.round(connected.ready / connected.seconds),
      connect_p50_ms: toMs(connected.latency.percentile(50)),
      connect_p99_ms: toMs(connected.latency.percentile(99)),
      idle_cpu_percent: rounded(idle * 100, 1),
      base_mb: rounded(before / 1e6, 1),
    }
  } finally {
    load.stop()
  }
}

/**
 * Messages flow from HTTP publishers to all clients of their channel.
 * @type {Scenario['run']}
 */
async function flow(server, sizes, show) {
  const load = new Load(server, sizes, show)
  try {
    const connected = await load.connect()
    const { from, to, done } = await load.publish(WARM_UP, sizes.seconds)
    show.progress(`publishing for ${WARM_UP} + ${sizes.seconds} s`)
    await sleepUntil(from)
    const cpuBefore = cpuOf(server.pid)
    const ownBefore = load.cpu()
    await sleepUntil(to)
    const cpu = cpuOf(server.pid) - cpuBefore
    const own = load.cpu().map((used, i) => used - ownBefore[i])
    const published = await done
    show.progress('waiting for the last messages')
    const expected = load.expected(published.byChannel)
    await load.drain(expected)
    const got = await load.report()
    const perPublish = connected.ready / load.channels
    return {
      connections: connected.ready,
      failed: connected.failed,
      closed: got.closed,
      published: published.total,
      expected,
      delivered: got.received,
      missing: expected - got.received,
      order_faults: got.orderFaults,
      damaged: got.damaged,
      publish_errors: published.errors,
      ...(sizes.rate > 0 && { offered_per_s: Math.round(sizes.rate * perPublish) }),
      published_per_s: Math.round(published.counted / sizes.seconds),
      delivered_per_s: Math.round(got.counted / sizes.seconds),
      cpu_us_per_message: rounded((cpu / Math.max(1, got.counted)) * 1e6, 2),
      p50_ms: toMs(got.latency.percentile(50)),
      p99_ms: toMs(got.latency.percentile(99)),
      max_ms: toMs(got.latency.max),
      publish_p99_ms: toMs(published.answers.percentile(99)),
      server_cpu_percent: Math.round((cpu / sizes.seconds) * 100),
      load_cpu_percent: Math.round((own.reduce((sum, used) => sum + used, 0) / sizes.seconds) * 100),
      busiest_loader_percent: Math.round((Math.max(...own) / sizes.seconds) * 100),
    }
  } finally {
    load.stop()
  }
}

/**
 * One-way long-polls: one message at a time, then all clients of its channel poll again.
 * @type {Scenario['run']}
 */
async function poll(server, { conns, channels: asked, size, seconds }, show) {
  const most = openFilesLimit() - OWN_FILES
  if (conns > most) throw new Error(`${conns} pollers are too many for one process, which may have ${most}`)
  const channels = asked || conns
  const pollers = new Pollers(server.api, conns, channels)
  const perRound = Math.floor(conns / channels)
  /** @param {number} round */
  const once = async round => {
    const answers = pollers.answers + perRound
    await pollers.publish(round % channels, size)
    await pollers.answered(answers)
    // The next polls have to come in.
    await sleep(BETWEEN_ROUNDS)
  }
  try {
    await sleep(SETTLE)
    const before = memoryOf(server.pid)
    const cpuBefore = cpuOf(server.pid)
    show.progress('clients come')
    await pollers.start()
    await sleep(SETTLE)
    const cpuAfter = cpuOf(server.pid)
    show.progress('all wait, memory settles')
    let least = Infinity
    for (let waited = 0; waited < seconds * 1e3; waited += LOOK_EVERY) {
      await sleep(LOOK_EVERY)
      least = Math.min(least, memoryOf(server.pid))
    }
    const idle = (cpuOf(server.pid) - cpuAfter) / seconds
    show.progress('rounds')
    let round = 0
    const until = (/** @type {number} */ time) => Date.now() < time
    for (const end = Date.now() + WARM_UP * 1e3; until(end); ) await once(round++)
    const cpuStart = cpuOf(server.pid)
    const first = round
    const answersStart = pollers.answers
    const end = Date.now() + seconds * 1e3
    while (until(end)) await once(round++)
    const answers = pollers.answers - answersStart
    return {
      connections: conns,
      faults: pollers.faults,
      bytes_per_waiting_poll: Math.round((least - before) / conns),
      first_poll_cpu_us: rounded(((cpuAfter - cpuBefore) / conns) * 1e6, 1),
      idle_cpu_percent: rounded(idle * 100, 1),
      rounds: round - first,
      answers,
      received: pollers.received,
      expected: round * perRound,
      cpu_us_per_round: rounded(((cpuOf(server.pid) - cpuStart) / answers) * 1e6, 1),
      base_mb: rounded(before / 1e6, 1),
    }
  } finally {
    pollers.stop()
  }
}

const FEW_SECONDS = { seconds: 8, loaders: 0 }

/** @type {Record<string, Scenario>} */
export const SCENARIOS = {
  memory: {
    summary: 'user-space memory of a connection with one subscription, processor time of a connect',
    sizes: { conns: 10_000, channels: 100, rate: 0, size: 64, publishers: 0, seconds: 8, loaders: 0 },
    run: memory,
  },
  fan: {
    summary: '100 channels with 1/100 of the clients each, 1,000 publishes/s of 512 bytes',
    sizes: { conns: 5_000, channels: 100, rate: 1_000, size: 512, publishers: 4, ...FEW_SECONDS },
    run: flow,
  },
  one2one: {
    summary: 'a channel for each client, publishers flat out, 100 bytes',
    sizes: { conns: 5_000, channels: 0, rate: 0, size: 100, publishers: 32, ...FEW_SECONDS },
    run: flow,
  },
  big: {
    summary: 'one channel with all clients, 60 publishes/s of 512 bytes',
    sizes: { conns: 3_000, channels: 1, rate: 60, size: 512, publishers: 1, ...FEW_SECONDS },
    run: flow,
  },
  poll: {
    summary:
      'one-way long-polls on 10 channels: one message of 512 bytes, its clients poll again, the next one',
    sizes: { conns: 5_000, channels: 10, rate: 0, size: 512, publishers: 1, ...FEW_SECONDS },
    run: poll,
  },
}
