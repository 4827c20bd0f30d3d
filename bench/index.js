// `npm run bench`: runs scenarios of the load tool (fleet/), and measurements that only developers need.
//
//   gc.js, watch.js, ticks.js, hooks.js, leak.js (churn.js), proxy.js (proxy-backend.js, proxy-witness.js), tls.js,
//   lifecycle.js, batching.js, consumers.js, republish.js, recovery.js (recovery-clients.js), poll.js (pollers.js),
//   channels.js (redis.js): measurements; each has a `Run` that extends `ServerRun` or `VariantsRun` of servers.js
//   load.js      a load generator: engine processes of a drone without a controller
//   flags.js, messages.js, watcher.js: flags, forked processes, the stats socket
//
// This folder may import src/, fleet/, and the servers and clients of the tests. Only tests import it. The name of a
// figure ends with its unit, if it has one.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { UsageError } from './flags.js'

/** Progress on standard error: one overwritten line on a terminal, elsewhere a line for each step. */
class Progress {
  #last = ''

  /** @param {string} text '': no progress to show */
  show(text) {
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`)
    else if (text !== '' && text !== this.#last) process.stderr.write(`${text}\n`)
    this.#last = text
  }

  /** Prints a line that stays. @param {string} text */
  line(text) {
    this.show('')
    process.stderr.write(`${text}\n`)
  }
}

const progress = new Progress()
const io = {
  print: (/** @type {string} */ text) => void process.stdout.write(text),
  progress: (/** @type {string} */ text) => progress.show(text),
  warning: (/** @type {string} */ text) => progress.line(text),
}

/**
 * @typedef {object} Program
 * @property {string} HELP
 * @property {(args: string[]) => any} parseOptions null: help was requested
 * @property {new (options: any, io: import('./servers.js').Io) => {run: () => Promise<boolean | void>, stop: () =>
 *   Promise<void>}} Run `run` resolves with false when a measured result is wrong
 */

/** Measurements of the developers. @type {Record<string, {summary: string, load: () => Promise<Program>}>} */
const PROGRAMS = {
  poll: { summary: 'one-way long-polls, beside bare libraries', load: () => import('./poll.js') },
  channels: {
    summary: 'many subscriptions of each client; with Redis: its connections are cut',
    load: () => import('./channels.js'),
  },
  recovery: {
    summary: 'hundreds of clients recover at once, while others publish',
    load: () => import('./recovery.js'),
  },
  gc: { summary: 'garbage collection, as in the published runs', load: () => import('./gc.js') },
  watch: {
    summary: "whether the gateway's figures are true, and come soon",
    load: () => import('./watch.js'),
  },
  leak: {
    summary: 'an hour of churn: heap and memory of every process stay flat',
    load: () => import('./leak.js'),
  },
  ticks: {
    summary: 'the longest event-loop ticks, idle and when all clients leave',
    load: () => import('./ticks.js'),
  },
  hooks: {
    summary: 'what publish handlers of a hooks module cost a publication',
    load: () => import('./hooks.js'),
  },
  proxy: { summary: 'connects that an event proxy admits, all at once', load: () => import('./proxy.js') },
  lifecycle: {
    summary: 'processor time and memory of the lifecycle log',
    load: () => import('./lifecycle.js'),
  },
  tls: { summary: 'what TLS costs: memory, connects, deliveries', load: () => import('./tls.js') },
  batching: {
    summary: 'one channel with batches and conflation, beside the same without',
    load: () => import('./batching.js'),
  },
  consumers: { summary: 'from a row or a queue to subscribers', load: () => import('./consumers.js') },
  republish: {
    summary: 'what a route to a queue costs clients that publish',
    load: () => import('./republish.js'),
  },
}

const HELP = `Usage: npm run bench -- NAME [flags]

Runs a scenario, as \`halley fleet run NAME\` does (\`npm run bench -- --list\`, \`npm run bench -- fan-100 --help\`), or one of the
measurements of the developers, each with a --help of its own:

${Object.entries(PROGRAMS)
  .map(([name, { summary }]) => `  ${name.padEnd(10)} ${summary}`)
  .join('\n')}

Examples:
  npm run bench -- fan-100 --step 1 --set n=5000 --seconds 8 --against uws,ws
  npm run bench -- comet-million --scale 0.01 --transport websocket --against uws
  npm run bench -- poll --against uws
`

const BIN = fileURLToPath(new URL('../bin/halley.js', import.meta.url))

/** @param {string[]} args of `halley fleet run` @returns {Promise<void>} with its exit status */
async function runFleet(args) {
  const child = spawn(process.execPath, [BIN, 'fleet', 'run', ...args], { stdio: 'inherit' })
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM'])) process.on(signal, () => {})
  const [code] = await once(child, 'close')
  process.exitCode = code ?? 1
}

/** @param {string[]} args */
async function main([name, ...args]) {
  if (name === undefined || name === '--help' || name === '-h') return void process.stdout.write(HELP)
  if (!Object.hasOwn(PROGRAMS, name)) return await runFleet([name, ...args])
  const { HELP: help, parseOptions, Run } = await PROGRAMS[name].load()
  const options = parseOptions(args)
  if (options === null) return void process.stdout.write(help)
  if (process.platform !== 'linux')
    throw new Error(`the benchmarks read /proc and run on Linux only, this is ${process.platform}`)
  const running = new Run(options, io)
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => {
      progress.show('')
      running.stop().finally(() => process.exit(130))
    })
  }
  try {
    if ((await running.run()) === false) process.exitCode = 1
  } finally {
    await running.stop()
  }
}

try {
  await main(process.argv.slice(2))
} catch (error) {
  process.stderr.write(`bench: ${error.message}\n`)
  if (error instanceof UsageError) process.stderr.write('npm run bench -- --help prints the usage\n')
  process.exitCode = error instanceof UsageError ? 2 : 1
}
