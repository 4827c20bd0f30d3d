import { Bench } from './bench.js'
import { HELP, parseOptions, UsageError } from './options.js'

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

async function main() {
  const options = parseOptions(process.argv.slice(2))
  if (options === null) {
    process.stdout.write(HELP)
    return
  }
  if (process.platform !== 'linux')
    throw new Error(`the benchmarks read /proc and run on Linux only, this is ${process.platform}`)
  const progress = new Progress()
  const bench = new Bench(options, {
    env: process.env,
    print: text => void process.stdout.write(text),
    progress: text => progress.show(text),
    warning: text => progress.keep(text),
  })
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM'])) {
    process.once(signal, () => {
      progress.show('')
      bench.stop().finally(() => process.exit(130))
    })
  }
  await bench.run()
}

try {
  await main()
} catch (error) {
  process.stderr.write(`bench: ${error.message}\n`)
  if (error instanceof UsageError) process.stderr.write('npm run bench -- --help shows what there is\n')
  process.exitCode = error instanceof UsageError ? 2 : 1
}
