import { join, parse } from 'node:path'
import { bytes } from '../base/format.js'
import { COMMAND } from '../base/version.js'
import { mayReplace, ReportError, writeReport } from '../pages/report/index.js'
import { UsageError } from './args.js'

/** @import { Command } from './command.js' */

const PROGRESS_INTERVAL = 500

/** Next to the CSV. @param {string} csv @throws {ReportError} another file has this name */
async function defaultPage(csv) {
  const { dir, name } = parse(csv)
  const file = join(dir, `${name}.html`)
  if (await mayReplace(file)) return file
  throw new ReportError(`${file}: already exists and is not a report; use -o to set the output file`)
}

/** @type {Command} */
export const report = {
  name: 'report',
  summary: 'make a page of charts from CSV files',
  help: `Usage: ${COMMAND} report FILE.csv [FILE2.csv ...] [-o FILE.html] [flags]

Makes an HTML page from CSV files that gateways wrote with --csv: charts of memory, CPU, event-loop delay, messages,
bandwidth and garbage collections, and a table of peaks and of the steady state. Several files are compared. The page
is self-contained.

  -o, --output FILE      HTML file to write; default: next to the first CSV file, run.html for run.csv. Replaces an
                         existing file; the default replaces only a report
      --title TEXT       title of the page; default: the labels
      --label TEXT       name of a run, one per file; default: the file names
  -h, --help             print this text
  -V, --version          print the version

Examples:
  ${COMMAND} report run.csv
  ${COMMAND} report before.csv after.csv -o compared.html --label Before --label After
  cat run.csv.1 run.csv > whole.csv && ${COMMAND} report whole.csv -o whole.html
`,
  flags: {
    output: { type: 'string', short: 'o' },
    title: { type: 'string' },
    label: { type: 'string', multiple: true },
  },
  words: 50,

  async run({ stdout, stderr }, { words: files, output, title, label: labels = [] }) {
    if (files.length === 0) throw new UsageError('no CSV file given')
    if (labels.length > files.length)
      throw new UsageError(`${labels.length} labels given for ${files.length} files`)
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
      const out = output ?? (await defaultPage(files[0]))
      const page = await writeReport({ files, labels, title, out, onProgress })
      stdout(`${out}: ${bytes(page.bytes)}\n`)
      return 0
    } catch (error) {
      if (!(error instanceof ReportError)) throw error
      stderr(`halley: ${error.message}\n`)
      return 1
    }
  },
}
