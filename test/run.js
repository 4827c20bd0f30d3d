// Runs test files side by side, each in a process of its own, and prints one line for each.
//
//   node test/run.js test              the fast tier: every test/**/*.test.js (`npm test`); one of them, units.test.js,
//                                      runs every test/**/*.unit.js in its own process
//   node test/run.js slow              the slow tier: every test/**/*.slow.js, and the fast files of drivers.js on the
//                                      socket server that the fast tier leaves out (`npm run test:slow`)
//   node test/run.js hosts             the tier of several hosts: every test/**/*.hosts.js (`npm run test:hosts`)
//   node test/run.js PATH...           files, or all files below folders, of both tiers, units included
//
//   --jobs=N       files at a time (default: five for two cores, since tests wait more than half of their time)
//   --timeout=S    seconds that a file may take (default 300)
//   --grace=S      seconds that a file has to end after that time, and what it has started after the file (default 30)
//   --slowest=N    list the N files that took longest
//
// Environment: TEST_DRIVER=node runs nothing on uWebSockets.js (drivers.js).
//
// A file is run with `node FILE` and prints TAP. In addition to tap's own checks, a file fails if one of its tests has no
// assertions or is skipped without a reason, or if it leaves processes running: they are found by a variable in their
// environment, and killed. Files with `drivers` are split between the tiers.

import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { drivers, skipDriver } from './kit/drivers.js'
import { addFault, counting, newOutcome, tail } from './outcome.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const TIERS = { test: /\.test\.js$/, slow: /\.slow\.js$/, hosts: /\.hosts\.js$/ }
/** Seconds of each file in the last run on this machine: long files start first. */
const durationsFile = join(root, 'node_modules/.cache/halley/test-durations.json')
/** Maximum kept output of a file, characters. */
const KEPT_OUTPUT = 200_000
/** Variable that a file's processes inherit: process id of the runner, and number of the file. */
const MARK = 'TEST_FILE_RUN'
/** Socket servers of the tiers in files that repeat their tests for each of `drivers`. */
const DRIVERS = { test: drivers[0], slow: drivers[1] }
/** Tests in parallel overload the machine: clients must not be refused. */
const BUSY_MACHINE = { HALLEY_OVERLOAD_MAX_TICK: '0s' }
/** Time for files to exit after an interrupt, ms. */
const INTERRUPT_GRACE_MS = 3000

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    jobs: { type: 'string', default: String(Math.ceil(2.5 * availableParallelism())) },
    timeout: { type: 'string', default: '300' },
    grace: { type: 'string', default: '30' },
    slowest: { type: 'string', default: '0' },
  },
})

/**
 * @param {string} text
 * @returns {never}
 */
function refuse(text) {
  console.error(`test/run.js: ${text}`)
  process.exit(2)
}

/** @param {'jobs' | 'timeout' | 'grace' | 'slowest'} flag @param {number} least @returns {number} */
function numberOf(flag, least) {
  const value = Number(values[flag])
  if (!Number.isSafeInteger(value) || value < least)
    refuse(`--${flag} must be a whole number of at least ${least}`)
  return value
}

/**
 * @param {string} path a file or a folder
 * @param {RegExp} name
 * @returns {string[]} absolute paths
 */
function filesBelow(path, name) {
  if (!existsSync(path)) refuse(`no such file or folder: ${path}`)
  if (statSync(path).isFile()) return [path]
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && name.test(entry.name))
    .map(entry => join(entry.parentPath ?? entry.path, entry.name))
}

/**
 * @typedef {object} Run of a test file
 * @property {string} name path from the root of the repository, and the socket server if not both
 * @property {string} file absolute path
 * @property {Record<string, string>} [env]
 */

/** @param {string} file absolute path @param {string} [driver] @returns {Run} */
function runOf(file, driver) {
  const name = relative(root, file)
  return driver === undefined
    ? { name, file }
    : { name: `${name} (${driver})`, file, env: { TEST_DRIVER: driver } }
}

/** @param {string} file @returns {boolean} whether it repeats its tests for each of `drivers` */
const repeats = file =>
  /^import \{[^}]*\bdrivers\b[^}]*\} from '[^']*\/drivers\.js'/m.test(readFileSync(file, 'utf8'))

/** @param {keyof typeof TIERS} tier @returns {Run[]} */
function runsOf(tier) {
  if (tier === 'hosts') return filesBelow(join(root, 'test'), TIERS.hosts).map(file => runOf(file))
  const all = [TIERS.test, TIERS.slow].map(name => filesBelow(join(root, 'test'), name))
  const [fast, slow] = all.map(files => files.map(file => ({ file, split: repeats(file) })))
  const driver = DRIVERS[tier]
  const split =
    driver === undefined ? [] : fast.filter(({ split }) => split).map(({ file }) => runOf(file, driver))
  const whole = (tier === 'test' ? fast.filter(({ split }) => !split) : slow).map(({ file }) => runOf(file))
  return [...whole, ...split]
}

/** @returns {Record<string, number>} */
function readDurations() {
  try {
    return JSON.parse(readFileSync(durationsFile, 'utf8'))
  } catch {
    return {}
  }
}

let fileNumber = 0

/**
 * @param {Run} run
 * @param {number} timeout in seconds
 * @returns {Promise<import('./outcome.js').Outcome>} once the file has ended, and all that it has started
 */
async function runFile({ name, file, env }, timeout) {
  const began = performance.now()
  const outcome = newOutcome(name)
  const mark = `${process.pid}.${++fileNumber}`
  const child = spawn(process.execPath, [file], {
    cwd: root,
    env: { ...BUSY_MACHINE, ...process.env, ...env, TAP_TIMEOUT: String(timeout), [MARK]: mark },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own: Ctrl-C is for the runner alone.
    detached: true,
  })
  running.add(child)
  const parser = counting(outcome)
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', text => {
    stdout = (stdout + text).slice(-KEPT_OUTPUT)
    parser.write(text)
  })
  child.stderr.setEncoding('utf8').on('data', text => {
    stderr = (stderr + text).slice(-KEPT_OUTPUT)
  })
  // tap ends a file that takes too long, and lists its open tests. This kills a file that cannot do that.
  const timer = setTimeout(
    () => {
      addFault(outcome, `killed: did not exit within ${timeout + grace} s`)
      child.kill('SIGKILL')
    },
    (timeout + grace) * 1000,
  )
  const closed = new Promise(resolve => child.once('close', resolve))
  const [code, signal] = await new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (...how) => resolve(how))
  })
  clearTimeout(timer)
  // Its output stays open while one of its processes uses it.
  const left = await killLeftovers(mark, interrupted ? 0 : grace * 1000)
  const giveUp = setTimeout(() => {
    for (const stream of [child.stdout, child.stderr]) stream.destroy()
  }, grace * 1000)
  await closed
  clearTimeout(giveUp)
  running.delete(child)
  parser.end()
  outcome.seconds = (performance.now() - began) / 1000
  if (outcome.fail === 0 && (code !== 0 || signal !== null))
    addFault(outcome, signal === null ? `exit status ${code}` : `killed by ${signal}`)
  if (outcome.pass + outcome.fail + outcome.skip === 0) addFault(outcome, 'no test ran')
  for (const command of left) addFault(outcome, `left a process behind: ${command}`)
  if (outcome.fail > 0) {
    if (outcome.report === '') outcome.report = tail('its output', stdout)
    outcome.report += tail('its standard error', stderr)
  }
  return outcome
}

/**
 * @param {string} mark of a file, or the beginning of several
 * @returns {{pid: number, command: string}[]} its processes; none where there is no /proc
 */
function processesOf(mark) {
  const found = []
  for (const pid of existsSync('/proc/self/environ')
    ? readdirSync('/proc').filter(name => /^\d+$/.test(name))
    : []) {
    try {
      const marked = `\0${readFileSync(`/proc/${pid}/environ`, 'utf8')}`.includes(`\0${MARK}=${mark}`)
      const command = marked ? readFileSync(`/proc/${pid}/cmdline`, 'utf8') : ''
      if (command !== '') found.push({ pid: Number(pid), command: command.replaceAll('\0', ' ').trim() })
    } catch {
      // It has ended, or belongs to another user.
    }
  }
  return found
}

/**
 * @param {string} mark of a file that has ended
 * @param {number} patience ms for its processes to exit
 * @returns {Promise<string[]>} commands of those that did not, and were killed
 */
async function killLeftovers(mark, patience) {
  const end = performance.now() + patience
  let left = processesOf(`${mark}\0`)
  while (left.length > 0 && performance.now() < end) {
    await new Promise(resolve => setTimeout(resolve, 50))
    left = processesOf(`${mark}\0`)
  }
  for (const { pid } of left) kill(pid)
  return left.map(({ command }) => command)
}

/** @param {number} pid */
function kill(pid) {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set()
let interrupted = false

function killAll() {
  for (const child of running) child.kill('SIGKILL')
  for (const { pid } of processesOf(`${process.pid}.`)) kill(pid)
}

// Also if the runner itself fails.
process.on('exit', killAll)
for (const [signal, status] of /** @type {const} */ ([
  ['SIGHUP', 129],
  ['SIGINT', 130],
  ['SIGTERM', 143],
])) {
  process.on(signal, () => {
    if (interrupted) process.exit(status)
    interrupted = true
    queue.length = 0
    for (const child of running) child.kill('SIGTERM')
    setTimeout(killAll, INTERRUPT_GRACE_MS).unref()
    process.once('exit', () => {
      process.exitCode = status
    })
  })
}

const jobs = numberOf('jobs', 1)
const timeout = numberOf('timeout', 1)
const grace = numberOf('grace', 0)
const longest = numberOf('slowest', 0)
const targets = positionals.length > 0 ? positionals : ['test']
const durations = readDurations()
/** @type {Run[]} */
const runs = targets.flatMap(target =>
  target in TIERS
    ? runsOf(/** @type {keyof typeof TIERS} */ (target))
    : filesBelow(resolve(target), /\.(?:test|unit|slow|hosts)\.js$/).map(file => runOf(file)),
)
const files = [...new Map(runs.map(run => [run.name, run])).values()]
// Files without a known duration come first, the largest first.
files.sort(
  (a, b) =>
    (durations[b.name] ?? Infinity) - (durations[a.name] ?? Infinity) ||
    statSync(b.file).size - statSync(a.file).size,
)

const started = performance.now()
const queue = [...files]
let ended = 0
/** @type {import('./outcome.js').Outcome[]} */
const outcomes = []

async function worker() {
  for (let run = queue.shift(); run !== undefined; run = queue.shift()) {
    const outcome = await runFile(run, timeout)
    if (interrupted) return
    ended++
    outcomes.push(outcome)
    durations[run.name] = Number(outcome.seconds.toFixed(1))
    const { file, seconds, pass, fail, skip } = outcome
    const counts = `${pass} passed${fail ? `, ${fail} FAILED` : ''}${skip ? `, ${skip} skipped` : ''}`
    console.log(`${fail ? 'not ok' : 'ok    '} ${seconds.toFixed(1).padStart(6)} s  ${file}: ${counts}`)
    if (fail > 0) process.stdout.write(outcome.report)
  }
}

/** Reports files that skip uWebSockets.js. */
function reportDriver() {
  const count = files.filter(({ file }) => repeats(file)).length
  const outcome = newOutcome('all')
  try {
    const reason = count > 0 && skipDriver('uws')
    if (!reason) return
    outcome.skip++
    outcome.skipped.push(`${count} files run only on the node server: ${reason}`)
  } catch (error) {
    addFault(outcome, error.message)
  }
  outcomes.push(outcome)
}

reportDriver()
await Promise.all(Array.from({ length: Math.min(jobs, files.length) }, worker))
try {
  mkdirSync(join(durationsFile, '..'), { recursive: true })
  writeFileSync(durationsFile, JSON.stringify(durations))
} catch {
  // The folder may belong to another user; it only determines the order of the next run.
}

const sum = (/** @type {'pass' | 'fail' | 'skip'} */ key) =>
  outcomes.reduce((total, one) => total + one[key], 0)
const slowest = outcomes.toSorted((a, b) => b.seconds - a.seconds).slice(0, longest)
for (const { file, seconds } of slowest) console.log(`${seconds.toFixed(1).padStart(6)} s  ${file}`)
const list = (/** @type {string} */ title, /** @type {'faults' | 'skipped'} */ key) => {
  const lines = outcomes.flatMap(outcome => outcome[key].map(text => `  ${outcome.file}: ${text}`))
  if (lines.length > 0) console.log(`\n${title}:\n${lines.join('\n')}`)
}
list('Skipped', 'skipped')
list('Failed', 'faults')
const total = sum('pass') + sum('fail') + sum('skip')
const seconds = ((performance.now() - started) / 1000).toFixed(0)
console.log(`\n${ended} of ${files.length} files in ${seconds} s${interrupted ? ', interrupted' : ''}`)
console.log(`# { total: ${total}, pass: ${sum('pass')}, fail: ${sum('fail')}, skip: ${sum('skip')} }`)
process.exitCode = sum('fail') > 0 || ended < files.length || files.length === 0 ? 1 : 0
