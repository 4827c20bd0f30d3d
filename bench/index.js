import { Bench } from './bench.js'
import { HELP, parseOptions } from './options.js'
import { UsageError } from './usage-error.js'

/** On a terminal a line that is overwritten, elsewhere one line for each step. */
class Progress {
  #last = ''

  /** @param {string} text */
  show(text) {
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`)
    else if (text !== '' && text !== this.#last) process.stderr.write(`${text}\n`)
    this.#last = text
  }

  /** @param {string} text */
  keep(text) {
    this.show('')
    process.stderr.write(`${text}\n`)
  }
}

/** @throws {Error} elsewhere */
function wantLinux() {
  if (process.platform !== 'linux')
    throw new Error(`the benchmarks read /proc and run on Linux only, this is ${process.platform}`)
}

const progress = new Progress()
const io = {
  env: process.env,
  print: (/** @type {string} */ text) => void process.stdout.write(text),
  progress: (/** @type {string} */ text) => progress.show(text),
  warning: (/** @type {string} */ text) => progress.keep(text),
}

/** @param {{stop: () => Promise<void>}} running */
function stopOnSignals(running) {
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM'])) {
    process.once(signal, () => {
      progress.show('')
      running.stop().finally(() => process.exit(130))
    })
  }
}

/** @param {string[]} args */
async function measure(args) {
  const options = parseOptions(args)
  if (options === null) return void process.stdout.write(HELP)
  wantLinux()
  const bench = new Bench(options, io)
  stopOnSignals(bench)
  await bench.run()
}

/** @param {string[]} args */
async function restart(args) {
  const { HELP, parseRestartOptions, Restarts } = await import('./restarts.js')
  const options = parseRestartOptions(args)
  if (options === null) return void process.stdout.write(HELP)
  wantLinux()
  const restarts = new Restarts(options, io)
  stopOnSignals(restarts)
  try {
    if (!(await restarts.run())) process.exitCode = 1
  } finally {
    await restarts.stop()
  }
}

/** @param {string[]} args */
async function collect(args) {
  const { HELP, parseGcOptions, GcRuns } = await import('./gc.js')
  const options = parseGcOptions(args)
  if (options === null) return void process.stdout.write(HELP)
  wantLinux()
  const runs = new GcRuns(options, io)
  stopOnSignals(runs)
  await runs.run()
}

/** @param {string[]} args */
async function watch(args) {
  const { HELP, parseWatchOptions, WatchRun } = await import('./watch.js')
  const options = parseWatchOptions(args)
  if (options === null) return void process.stdout.write(HELP)
  wantLinux()
  const run = new WatchRun(options, io)
  stopOnSignals(run)
  try {
    await run.run()
  } finally {
    await run.stop()
  }
}

try {
  const [first, ...rest] = process.argv.slice(2)
  if (first === 'restarts') await restart(rest)
  else if (first === 'gc') await collect(rest)
  else if (first === 'watch') await watch(rest)
  else await measure(process.argv.slice(2))
} catch (error) {
  process.stderr.write(`bench: ${error.message}\n`)
  if (error instanceof UsageError) process.stderr.write('npm run bench -- --help shows what there is\n')
  process.exitCode = error instanceof UsageError ? 2 : 1
}
