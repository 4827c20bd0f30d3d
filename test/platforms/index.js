// Runs the test tiers on the platforms that Halley supports: `npm run test:platforms`. CONTRIBUTING.md describes it.
//
// A cell is a Debian version, a Node.js version, and a set of installed programs. Its root is created by debootstrap, with
// a clone of HEAD and a Node.js from npm. `npm ci` runs with the network of this machine, and must not warn. The tests
// run as an unprivileged user, in a network namespace with only loopback: without DNS.

import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { NAMESPACES, Processes } from './processes.js'
import { HOME, npmrc, Roots, remove, UID } from './roots.js'

/** Version of Debian, releases of Node.js. */
const PLATFORMS = /** @type {[number, number[]][]} */ ([
  [13, [20, 22, 24, 26]],
  [12, [20, 22, 24]],
])
/** Cells without uWebSockets.js: no binary for Node.js 26; those for 22 and 24 need glibc 2.38. */
const WITHOUT_UWS = ['13x26', '12x22', '12x24']
/** The npm script of a cell, by the end of its name. */
const SCRIPTS = { '': 'test', '-bare': 'test', '-slow': 'test:slow' }
const SUMMARY = /^# \{ total: \d+, pass: (\d+), fail: (\d+), skip: (\d+) \}$/gm
const CACHE = join(tmpdir(), 'halley-platforms')

const HELP = `Usage: npm run test:platforms -- [flags] [CELL...]

Runs the test tiers on Debian 13 and 12 with Node.js 20 to 26, each in a root that debootstrap makes.

CELL is for example
  13x24          the fast tier on Debian 13 with Node.js 24 and the programs that the tests use
  13x24-bare     the fast tier with nothing but Node.js and git
  13x24-slow     the slow tier, with the programs
Without one: the fast tier on all platforms, with the programs and bare.

  --list         list the cells
  --only PATH    run these test files or folders instead of a tier (may be repeated)
  --jobs N       test files at a time
  --timeout S    seconds that a test file may take
  --cache DIR    folder of roots, releases of Node.js and logs (default ${CACHE})
  --fresh        make roots and releases of Node.js again; else those of the last 14 days are used
  --prepare      only make the roots and releases of Node.js of these cells
  -h, --help     this text

It needs root, debootstrap and iproute2, about 3 GB of disk for each Debian, and the registries of Debian, npm and PyPI.
Servers of NATS_SERVER and KAFKA_LIBS (README.md) are used in the cells, too.
`

const repository = fileURLToPath(new URL('../..', import.meta.url))
const started = performance.now()
const processes = new Processes()

/** @typedef {{name: string, debian: number, node: number, kind: keyof typeof SCRIPTS}} Cell */

const KINDS = /** @type {Cell['kind'][]} */ (Object.keys(SCRIPTS))
const CELLS = PLATFORMS.flatMap(([debian, releases]) =>
  releases.flatMap(node => KINDS.map(kind => ({ name: `${debian}x${node}${kind}`, debian, node, kind }))),
)

/** @param {string} text @returns {never} */
function refuse(text) {
  console.error(`test:platforms: ${text}`)
  process.exit(2)
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        list: { type: 'boolean' },
        only: { type: 'string', multiple: true },
        jobs: { type: 'string' },
        timeout: { type: 'string' },
        cache: { type: 'string', default: CACHE },
        fresh: { type: 'boolean', default: false },
        prepare: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h' },
      },
    })
  } catch (error) {
    return refuse(`${error.message.split('. ')[0]} (--help lists the flags)`)
  }
}

/** @param {string} program @param {string[]} args @returns {boolean} whether it succeeds */
function succeeds(program, ...args) {
  try {
    execFileSync(program, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** @returns {string | false} reason why cells cannot run here */
function impossible() {
  const { platform, arch, getuid } = process
  if (platform !== 'linux' || !['x64', 'arm64'].includes(arch))
    return `the cells need Linux on x64 or arm64, this is ${platform} on ${arch}`
  if (getuid?.() !== 0) return 'debootstrap and mounts need root'
  for (const [program, debian] of Object.entries({ debootstrap: 'debootstrap', ip: 'iproute2' }))
    if (!succeeds('sh', '-c', `command -v ${program}`))
      return `${program} is not on the PATH (Debian: apt-get install ${debian})`
  const namespaces = succeeds('unshare', ...NAMESPACES, '--net', 'mount', '--make-rprivate', '/')
  return !namespaces && 'root may not create namespaces or mounts on this machine'
}

const say = (/** @type {string} */ text) =>
  console.log(`[${((performance.now() - started) / 1000).toFixed(0).padStart(5)} s] ${text}`)

/** @param {number} since @returns {string} */
const secondsSince = since => `${((performance.now() - since) / 1000).toFixed(0)} s`

/**
 * @typedef {object} Result of a cell
 * @property {string} node version
 * @property {string} driver default of `http_server.driver`
 * @property {string} install seconds and warnings of `npm ci`
 * @property {number} pass
 * @property {number} fail
 * @property {number} skip
 * @property {string} time of the tests
 */

/**
 * @param {Cell} cell
 * @param {Roots} roots
 * @param {{only?: string[], jobs?: string, timeout?: string}} options
 * @returns {Promise<Result>}
 * @throws {Error} when its root cannot be made
 */
async function runCell({ name, debian, node, kind }, roots, { only, jobs, timeout }) {
  const bare = kind === '-bare'
  const lower = await (bare ? roots.bare(debian) : roots.full(debian))
  const binds = { [await roots.node(node)]: '/opt/node' }
  const log = roots.log(name)
  writeFileSync(log, '')
  const folder = join(roots.scratch, name)
  mkdirSync(folder)
  const [clone, settings, npmCache] = [join(folder, 'clone'), join(folder, 'npmrc'), join(roots.cache, 'npm')]
  await processes.must('git', ['clone', '-q', `file://${repository}`, clone], { log })
  writeFileSync(settings, npmrc(), { mode: 0o600 })
  mkdirSync(npmCache, { recursive: true })
  await processes.must('chown', ['-R', `${UID}:${UID}`, clone, settings, npmCache], { log })
  // The package's tests call npm, too, without the network.
  const writable = { [clone]: `${HOME}/halley`, [npmCache]: `${HOME}/.npm` }
  const at = { root: join(folder, 'root'), lower, upper: folder, user: `${UID}:${UID}`, home: HOME, log }

  const programs = bare ? { binds: {}, env: {} } : roots.programs(lower)
  const npm = (/** @type {string} */ command) =>
    processes.inRoot({
      ...at,
      network: true,
      command: `cd halley && npm ${command} --no-fund --no-audit`,
      binds: { ...binds, [settings]: `${HOME}/.npmrc` },
      writable,
    })
  say(`${name}: npm ci`)
  const began = performance.now()
  const install = await npm('ci')
  const warnings = install.output.match(/^npm warn .*/gim) ?? []
  const installed = install.status === 0 && warnings.length === 0
  if (!installed) console.log(`${name}: FAILED: npm ci\n${install.output.replaceAll(/^/gm, '  ')}`)

  const driver = `import('uWebSockets.js').then(() => 'uws', () => 'node').then(console.log)`
  const command = `cd halley && node -p process.versions.node && node -e "${driver}"`
  const versions = await processes.inRoot({ ...at, binds, writable, command })
  const [version, loaded] = versions.output.trim().split('\n')
  const expected = WITHOUT_UWS.includes(`${debian}x${node}`) ? 'node' : 'uws'
  if (loaded !== expected)
    console.log(`${name}: FAILED: the default driver is ${loaded} instead of ${expected}`)
  const result = {
    node: version,
    driver: loaded,
    install: `${secondsSince(began)}${warnings.length > 0 ? `, ${warnings.length} warnings` : ''}`,
    ...{ pass: Number(installed), fail: Number(!installed) + Number(loaded !== expected), skip: 0 },
    time: '-',
  }
  if (install.status !== 0 || versions.status !== 0) return { ...result, pass: 0, fail: 1 }

  // It asks for Node.js 22, so it is not among the packages of `npm ci`.
  if ('KAFKA_LIBS' in programs.env) await npm('install --no-save --save-dev @platformatic/kafka@2.12.1')
  const flags = Object.entries({ jobs, timeout }).map(([flag, value]) => (value ? `--${flag}=${value}` : ''))
  const tests = only ? `node test/run.js ${only.join(' ')}` : `npm run ${SCRIPTS[kind]} --`
  say(`${name}: ${tests} ${flags.join(' ')}(Node.js ${version}, driver ${loaded})`)
  const testsBegan = performance.now()
  const ci = bare || !process.env.CI ? undefined : { CI: process.env.CI }
  // The platform has no uWebSockets.js: elsewhere, with CI=true, its absence is a failure.
  const testDriver = expected === 'node' ? { TEST_DRIVER: 'node' } : undefined
  const { status, output } = await processes.inRoot({
    ...at,
    command: `cd halley && ${tests} ${flags.join(' ')}`,
    binds: { ...binds, ...programs.binds },
    writable,
    env: { NO_COLOR: '1', ...ci, ...testDriver, ...programs.env },
    show: true,
  })
  const [pass, fail, skip] = [...output.matchAll(SUMMARY)].at(-1)?.slice(1).map(Number) ?? [0, 0, 0]
  result.pass += pass
  // A crash, and a run without a test, count as one failure.
  result.fail += fail || Number(status !== 0 || pass === 0)
  result.skip += skip
  return { ...result, time: secondsSince(testsBegan) }
}

/** @param {string[][]} rows @returns {string} a table in Markdown, as the README has it */
function table([head, ...rows]) {
  const rule = head.map(text => '-'.repeat(text.length))
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map(row => row[column].length)))
  return [head, rule, ...rows]
    .map(row => `| ${row.map((text, column) => text.padEnd(widths[column])).join(' | ')} |\n`)
    .join('')
}

/** @param {Record<'pass' | 'fail' | 'skip', number>} counts */
function summarize({ pass, fail, skip }) {
  console.log(`# { total: ${pass + fail + skip}, pass: ${pass}, fail: ${fail}, skip: ${skip} }`)
  process.exitCode = fail > 0 ? 1 : 0
}

async function main() {
  const { values, positionals } = readArguments()
  if (values.help) return process.stdout.write(HELP)
  if (values.list) return process.stdout.write(CELLS.map(({ name }) => `${name}\n`).join(''))
  const cells = positionals.map(
    name => CELLS.find(cell => cell.name === name) ?? refuse(`no cell ${name} (--list lists them)`),
  )
  if (cells.length === 0) cells.push(...CELLS.filter(({ kind }) => kind !== '-slow'))
  const reason = impossible()
  if (reason) {
    // As in test/kit/needs.js: CI=true skips nothing.
    const failed = process.env.CI === 'true'
    console.log(`${failed ? 'FAILED' : 'Skipped'}: ${reason}`)
    return summarize({ pass: 0, fail: failed ? cells.length : 0, skip: failed ? 0 : cells.length })
  }

  const roots = new Roots({ cache: values.cache, fresh: values.fresh, processes, say })
  for (const [signal, status] of Object.entries({ SIGHUP: 129, SIGINT: 130, SIGTERM: 143 }))
    process.once(signal, async () => {
      await processes.stop()
      roots.close()
      process.exit(status)
    })
  if (values.prepare) {
    for (const { debian, node, kind } of cells) {
      await (kind === '-bare' ? roots.bare(debian) : roots.full(debian))
      await roots.node(node)
    }
    roots.close()
    return
  }
  const rows = [['cell', 'Node.js', 'driver', 'npm ci', 'pass', 'fail', 'skip', 'tests']]
  const sum = { pass: 0, fail: 0, skip: 0 }
  for (const cell of cells) {
    /** @type {Result} */
    let result
    try {
      result = await runCell(cell, roots, values)
    } catch (error) {
      console.log(`${cell.name}: FAILED: ${error.message}`)
      result = { node: '-', driver: '-', install: '-', pass: 0, fail: 1, skip: 0, time: '-' }
    }
    const { node, driver, install, pass, fail, skip, time } = result
    sum.pass += pass
    sum.fail += fail
    sum.skip += skip
    rows.push([cell.name, node, driver, install, `${pass}`, `${fail}`, `${skip}`, time])
    say(`${cell.name}: ${pass} passed, ${fail} failed, ${skip} skipped`)
    remove(join(roots.scratch, cell.name))
  }
  roots.close()
  console.log(`\n${table(rows)}\nLogs: ${join(roots.cache, 'logs')}`)
  summarize(sum)
}

await main()
