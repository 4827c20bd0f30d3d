// Runs test files side by side, each in a process of its own, and prints one line for each.
//
//   node test/run.js test              the fast tier: every test/**/*.test.js (`npm test`)
//   node test/run.js slow              the slow tier: every test/**/*.slow.js (`npm run test:slow`)
//   node test/run.js PATH...           files, or all files below folders, of both tiers
//
//   --jobs=N       files at a time (default: two for each core, since tests wait half of their time)
//   --timeout=S    seconds that a file may take (default 150)
//   --slowest=N    list the N files that took longest
//
// A file is plain `node FILE`, which prints TAP. tap's own runner takes 7 s to start and has a loader in every process that a test starts.

import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Parser } from 'tap-parser'

const root = fileURLToPath(new URL('..', import.meta.url))
const TIERS = { test: /\.test\.js$/, slow: /\.slow\.js$/ }
/** Seconds of each file in the last run on this machine: long files start first. */
const durationsFile = join(root, 'node_modules/.cache/halley/test-durations.json')
/** Characters of a failing file's output that are printed. */
const MAX_OUTPUT = 20_000

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    jobs: { type: 'string', default: String(2 * availableParallelism()) },
    timeout: { type: 'string', default: '150' },
    slowest: { type: 'string', default: '0' },
  },
})

/**
 * @param {string} path a file or a folder
 * @param {RegExp} name
 * @returns {string[]} absolute paths
 */
function filesBelow(path, name) {
  if (statSync(path).isFile()) return [path]
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && name.test(entry.name))
    .map(entry => join(entry.parentPath ?? entry.path, entry.name))
}

/** @returns {Record<string, number>} */
function readDurations() {
  try {
    return JSON.parse(readFileSync(durationsFile, 'utf8'))
  } catch {
    return {}
  }
}

/**
 * @typedef {object} Outcome
 * @property {string} file path from the root of the repository
 * @property {number} seconds
 * @property {number} pass
 * @property {number} fail
 * @property {number} skip
 * @property {string[]} faults what failed
 * @property {string} output
 */

/**
 * @param {string} file
 * @param {number} timeout in seconds
 * @returns {Promise<Outcome>} once the file has ended
 */
function runFile(file, timeout) {
  const started = performance.now()
  const outcome = {
    file,
    seconds: 0,
    pass: 0,
    fail: 0,
    skip: 0,
    faults: /** @type {string[]} */ ([]),
    output: '',
  }
  const child = spawn(process.execPath, [file], {
    cwd: root,
    env: { ...process.env, TAP_TIMEOUT: String(timeout) },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own: what a file that hangs has started ends with it.
    detached: true,
  })
  running.add(child)
  const parser = new Parser()
  parser.on('pass', () => outcome.pass++)
  parser.on('skip', () => outcome.skip++)
  parser.on('fail', result => {
    outcome.fail++
    outcome.faults.push(result.fullname ? `${result.fullname} > ${result.name}` : result.name)
  })
  const keep = (/** @type {Buffer} */ chunk) => {
    outcome.output = (outcome.output + chunk).slice(-10 * MAX_OUTPUT)
  }
  child.stdout.on('data', chunk => {
    keep(chunk)
    parser.write(chunk)
  })
  child.stderr.on('data', keep)
  // tap ends a file that takes too long and says which tests were open. Only a file that cannot even do that is ended here.
  const timer = setTimeout(() => killGroup(child), (timeout + 10) * 1000)
  return new Promise(done => {
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      running.delete(child)
      parser.end()
      outcome.seconds = (performance.now() - started) / 1000
      if (outcome.fail === 0 && (code !== 0 || signal !== null)) {
        outcome.fail = 1
        outcome.faults.push(signal === null ? `exit code ${code}` : `ended by ${signal}`)
      }
      if (outcome.pass + outcome.fail + outcome.skip === 0) {
        outcome.fail = 1
        outcome.faults.push('no test ran')
      }
      done(outcome)
    })
  })
}

/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set()

/** @param {import('node:child_process').ChildProcess} child */
function killGroup(child) {
  try {
    process.kill(-(/** @type {number} */ (child.pid)), 'SIGKILL')
  } catch {
    // It has ended.
  }
}

for (const [signal, code] of /** @type {const} */ ([
  ['SIGINT', 130],
  ['SIGTERM', 143],
])) {
  process.once(signal, () => {
    for (const child of running) killGroup(child)
    process.exit(code)
  })
}

/**
 * @param {string} output
 * @returns {string} the failing test points with their diagnostics, or its end where there is none
 */
function excerpt(output) {
  const lines = output.split('\n')
  /** @type {string[]} */
  const kept = []
  for (let i = 0; i < lines.length; i++) {
    if (!/^\s*not ok/.test(lines[i])) continue
    kept.push(lines[i])
    if (!/^\s*---/.test(lines[i + 1] ?? '')) continue
    do kept.push(lines[++i])
    while (i < lines.length - 1 && !/^\s*\.\.\./.test(lines[i]))
  }
  return (kept.length > 0 ? kept.join('\n') : lines.slice(-60).join('\n')).slice(0, MAX_OUTPUT)
}

const targets = positionals.length > 0 ? positionals : ['test']
const durations = readDurations()
const files = [
  ...new Set(
    targets.flatMap(target =>
      target in TIERS
        ? filesBelow(join(root, 'test'), TIERS[/** @type {keyof typeof TIERS} */ (target)])
        : filesBelow(resolve(target), /\.(?:test|slow)\.js$/),
    ),
  ),
].map(path => relative(root, path))
// A file that never ran here counts as longer than any other.
files.sort((a, b) => (durations[b] ?? Infinity) - (durations[a] ?? Infinity) || a.localeCompare(b))

const started = performance.now()
const queue = [...files]
/** @type {Outcome[]} */
const outcomes = []

async function worker() {
  for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
    const outcome = await runFile(file, Number(values.timeout))
    outcomes.push(outcome)
    durations[file] = Number(outcome.seconds.toFixed(1))
    const { seconds, pass, fail, skip } = outcome
    const counts = `${pass} passed${fail ? `, ${fail} FAILED` : ''}${skip ? `, ${skip} skipped` : ''}`
    console.log(`${fail ? 'not ok' : 'ok    '} ${seconds.toFixed(1).padStart(6)} s  ${file}: ${counts}`)
    if (fail > 0) console.log(excerpt(outcome.output))
  }
}

await Promise.all(Array.from({ length: Math.min(Number(values.jobs), files.length) }, worker))
mkdirSync(join(durationsFile, '..'), { recursive: true })
writeFileSync(durationsFile, JSON.stringify(durations))

const sum = (/** @type {'pass' | 'fail' | 'skip'} */ key) =>
  outcomes.reduce((total, one) => total + one[key], 0)
const slowest = outcomes.toSorted((a, b) => b.seconds - a.seconds).slice(0, Number(values.slowest))
for (const { file, seconds } of slowest) console.log(`${seconds.toFixed(1).padStart(6)} s  ${file}`)
const failed = outcomes.filter(({ fail }) => fail > 0)
if (failed.length > 0) {
  console.log('\nFailed:')
  for (const { file, faults } of failed) for (const fault of faults) console.log(`  ${file}: ${fault}`)
}
const total = sum('pass') + sum('fail') + sum('skip')
console.log(`\n${files.length} files in ${((performance.now() - started) / 1000).toFixed(0)} s`)
console.log(`# { total: ${total}, pass: ${sum('pass')}, fail: ${sum('fail')}, skip: ${sum('skip')} }`)
process.exitCode = failed.length > 0 || files.length === 0 ? 1 : 0
