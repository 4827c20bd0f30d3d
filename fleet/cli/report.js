import { readFile, stat } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { bytes } from '../../src/base/format.js'
import { COMMAND } from '../../src/base/version.js'
import { UsageError } from '../../src/cli/args.js'

/** @type {import('../../src/cli/command.js').Command} */
export const fleetReport = {
  name: 'fleet report',
  summary: 'make a report of one run, or of several side by side',
  help: `Usage: ${COMMAND} fleet report DIR [DIR2 ...] -o FILE.html [flags]

Makes an HTML report of a run from its folder (result.json, and gateway.csv if it exists). Several runs are compared:
two servers under the same load, or one before and after a change.

  -o, --output FILE      HTML file to write
      --title TEXT       title of the page
      --label TEXT       name of a run, once per folder; default: the folder names
  -h, --help             print this text
  -V, --version          print the version

Examples:
  ${COMMAND} fleet report fleet-runs/fan-100-20260101-120000 -o fan.html
  ${COMMAND} fleet report ours theirs -o both.html --label Ours --label Theirs
`,
  flags: {
    output: { type: 'string', short: 'o' },
    title: { type: 'string' },
    label: { type: 'string', multiple: true },
  },
  words: 50,

  async run({ cwd, stdout, stderr }, { words: folders, output, title, label: labels = [] }) {
    if (folders.length === 0) throw new UsageError('no folder of a run given')
    if (output === undefined) throw new UsageError('--output is missing')
    if (labels.length > folders.length)
      throw new UsageError(`${labels.length} labels given for ${folders.length} folders`)
    const { makePage } = await import('../runner/page.js')
    const { writeWhole } = await import('../files.js')
    try {
      const runs = []
      for (const [at, folder] of folders.entries())
        runs.push(await readRun(resolve(cwd, folder), folder, labels[at]))
      const page = await makePage(runs, { title })
      await writeWhole(resolve(cwd, output), page)
      stdout(`${output}: ${bytes(Buffer.byteLength(page))}\n`)
      return 0
    } catch (error) {
      if (error.constructor === TypeError) throw error
      stderr(`halley: ${error.message}\n`)
      return 1
    }
  },
}

/**
 * @param {string} folder @param {string} name as given by the user @param {string | undefined} label
 * @returns {Promise<import('../runner/page.js').PageRun>}
 */
async function readRun(folder, name, label) {
  const { parseResult } = await import('../runner/result.js')
  const file = join(folder, 'result.json')
  const text = await readFile(file, 'utf8').catch(error => {
    throw new Error(
      `${name}: not the folder of a run: result.json cannot be read (${error.code ?? error.message})`,
    )
  })
  /** @type {import('../runner/result.js').RunResult} */
  let result
  try {
    result = parseResult(text)
  } catch (error) {
    throw new Error(`${name}/result.json: ${error.message}`)
  }
  if (result.steps.length === 0) throw new Error(`${name}/result.json: nothing was measured`)
  const csv = join(folder, 'gateway.csv')
  const isThere = result.gateway !== null && (await stat(csv).catch(() => null)) !== null
  return { result, csv: isThere ? csv : null, label: label ?? basename(folder) }
}
