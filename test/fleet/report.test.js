// `halley fleet report`: the page of a finished run.

import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { fleetReport } from '../../fleet/cli/run.js'
import { result } from './run-figures.js'

/** @param {any} t @param {object} [more] @returns {Promise<string>} folder of a run */
async function folder(t, more = {}) {
  const dir = t.testdir({ run: {} })
  await writeFile(join(dir, 'run', 'result.json'), JSON.stringify(result(more)))
  return join(dir, 'run')
}

/** @param {string[]} words @param {Record<string, any>} flags */
async function report(words, flags) {
  let [stdout, stderr] = ['', '']
  const io = {
    env: {},
    cwd: '/',
    terminal: false,
    stdout: (/** @type {string} */ text) => void (stdout += text),
    stderr: (/** @type {string} */ text) => void (stderr += text),
  }
  const code = await fleetReport.run(io, { words, ...flags })
  return { code, stdout, stderr }
}

t.test('halley fleet report writes the page of a finished run', async t => {
  const dir = await folder(t)
  const output = join(dir, 'again.html')
  const { code, stdout } = await report([dir], { output, title: 'Again' })
  t.equal(code, 0)
  t.match(stdout, /again\.html: \d/)
  t.match(await readFile(output, 'utf8'), /<title>Again<\/title>/)
  const two = await report([dir, dir], { output, label: ['One', 'Two'] })
  t.equal(two.code, 0)
  t.match(await readFile(output, 'utf8'), /<title>One, Two<\/title>/)
})

t.test('an unusable run is a one-line error', async t => {
  const dir = await folder(t, { steps: [] })
  const output = join(dir, 'page.html')
  for (const [words, message] of /** @type {[string[], RegExp][]} */ ([
    [[join(dir, 'none')], /not the folder of a run: result\.json cannot be read \(ENOENT\)/],
    [[dir], /nothing was measured/],
  ])) {
    const { code, stderr } = await report(words, { output })
    t.equal(code, 1)
    t.match(stderr, message)
    t.match(stderr, /^halley: .*\n$/)
  }
  await t.rejects(report([dir], {}), /--output is missing/)
  await t.rejects(report([], { output }), /DIR is missing: the folder of a run/)
  await t.rejects(report([dir], { output, label: ['a', 'b'] }), /2 labels given for 1 folders/)
  const good = await folder(t)
  await mkdir(join(good, 'taken'))
  const { code, stderr } = await report([good], { output: join(good, 'taken') })
  t.equal(code, 1)
  t.match(stderr, /taken: cannot be written/)
  t.same((await readdir(good)).sort(), ['result.json', 'taken'], 'nothing half-written')
})
