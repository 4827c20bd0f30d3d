// `npm run bench`: measures Halley, and bare libraries under the same load, on this machine.
//
//   index.js     the command line: runs scenarios, or one of the programs below
//   bench.js     scenarios (options.js, scenarios.js, channels.js) in turn against deployments (deployment.js,
//                servers.js, redis.js), each run in a trial.js
//   peers.js     the same beside other servers (peers/), as a table in Markdown
//   load.js      the load generator: processes with a drone's engine (engine.js); pollers.js for one-way long-polls
//   restarts.js, rolling.js (rolling-clients.js), recovery.js (recovery-clients.js), gc.js, watch.js, ticks.js,
//                hooks.js, leak.js (churn.js), proxy.js (proxy-backend.js), tls.js, lifecycle.js, batching.js,
//                consumers.js, republish.js: programs of their own; each has a `Run` that extends `ServerRun` or
//                `VariantsRun` of servers.js
//   flags.js, proc.js, report.js, messages.js, watcher.js: flags, /proc, tables, forked processes, the stats socket
//
// This folder may import src/, fleet/drone/, fleet/statistics/, and the servers and clients of the tests. Only tests
// import it. The name of a figure ends with its unit, if it has one.

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
  env: process.env,
  print: (/** @type {string} */ text) => void process.stdout.write(text),
  progress: (/** @type {string} */ text) => progress.show(text),
  warning: (/** @type {string} */ text) => progress.line(text),
}

/**
 * @typedef {object} Program
 * @property {string} HELP
 * @property {(args: string[]) => any} parseOptions null: help was requested
 * @property {new (options: any, io: import('./bench.js').Io) => {run: () => Promise<boolean | void>, stop: () =>
 *   Promise<void>}} Run `run` resolves with false when a measured result is wrong
 */

/** @type {Record<string, () => Promise<Program>>} */
const PROGRAMS = {
  restarts: () => import('./restarts.js'),
  recovery: () => import('./recovery.js'),
  rolling: () => import('./rolling.js'),
  gc: () => import('./gc.js'),
  watch: () => import('./watch.js'),
  leak: () => import('./leak.js'),
  ticks: () => import('./ticks.js'),
  hooks: () => import('./hooks.js'),
  proxy: () => import('./proxy.js'),
  lifecycle: () => import('./lifecycle.js'),
  tls: () => import('./tls.js'),
  batching: () => import('./batching.js'),
  consumers: () => import('./consumers.js'),
  republish: () => import('./republish.js'),
  peers: () => import('./peers.js'),
}

/** @param {string[]} args */
async function main(args) {
  const named = Object.hasOwn(PROGRAMS, args[0] ?? '')
  const { HELP, parseOptions, Run } = await (named ? PROGRAMS[args[0]]() : import('./bench.js'))
  const options = parseOptions(named ? args.slice(1) : args)
  if (options === null) return void process.stdout.write(HELP)
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
