import { bytes } from '../charts/format.js'
import { ReportError, runReport } from '../report/index.js'
import { UsageError } from './args.js'

/** @import { Command } from './command.js' */

/** Progress is printed after this time, then at this interval, ms. */
const PROGRESS_INTERVAL = 500

/** @type {Command} */
export const report = {
  name: 'report',
  summary: 'make a page of charts from CSV files',
  help: `Usage: halley report FILE.csv [FILE2.csv ...] -o FILE.html [flags]

Makes one page of what gateways wrote with --csv: memory, CPU, event-loop delay, messages, bandwidth, collections, and a table of
peaks and of the steady state. Several files are compared. The page needs no other file and no network.

  -o, --output FILE      the page
      --title TEXT       its title; left out: the labels
      --label TEXT       name of a run, once for each file; left out: the files' names
  -h, --help             this text
  -V, --version          the version

Examples:
  halley report run.csv -o run.html
  halley report before.csv after.csv -o compared.html --label Before --label After
  cat run.csv.1 run.csv > whole.csv && halley report whole.csv -o whole.html
`,
  flags: {
    output: { type: 'string', short: 'o' },
    title: { type: 'string' },
    label: { type: 'string', multiple: true },
  },
  words: 50,

  async run({ stdout, stderr }, { words: files, output, title, label: labels = [] }) {
    if (files.length === 0) throw new UsageError('a CSV file is needed')
    if (output === undefined) throw new UsageError('--output is needed')
    if (labels.length > files.length)
      throw new UsageError(`there are ${labels.length} labels for ${files.length} files`)
    const began = Date.now()
    let shown = began
    let printed = ''
    const onProgress = (/** @type {string} */ text) => {
      const now = Date.now()
      if (
        now - began < PROGRESS_INTERVAL ||
        (now - shown < PROGRESS_INTERVAL && printed !== '') ||
        text === printed
      )
        return
      shown = now
      printed = text
      stderr(`${text}\n`)
    }
    try {
      const page = await runReport({ files, labels, title, out: output, onProgress })
      stdout(`${output}: ${bytes(page.bytes)}\n`)
      return 0
    } catch (error) {
      if (!(error instanceof ReportError)) throw error
      stderr(`halley: ${error.message}\n`)
      return 1
    }
  },
}
