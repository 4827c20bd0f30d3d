// The test runner, on files that print TAP: a run without tests does not pass, and no process is left behind.

import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { until } from './kit/wait.js'

const runner = fileURLToPath(new URL('run.js', import.meta.url))

/**
 * @param {string[]} args of Node.js
 * @param {Record<string, string>} [env]
 * @returns {{child: import('node:child_process').ChildProcess, ended: Promise<{status: number | null, stdout: string,
 *   stderr: string}>}}
 */
function spawned(args, env) {
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  })
  const said = { stdout: '', stderr: '' }
  for (const name of /** @type {const} */ (['stdout', 'stderr']))
    child[name].setEncoding('utf8').on('data', text => {
      said[name] += text
    })
  return {
    child,
    ended: new Promise(resolve => child.once('close', status => resolve({ status, ...said }))),
  }
}

/** @param {string[]} args of the runner */
const run = (...args) => spawned([runner, ...args])

/** @param {string} tap @returns {string} a file that prints it */
const prints = tap => `console.log(${JSON.stringify(tap)})\n`

/** Starts a process that never exits, in its own group, and writes its id to `pid`. */
const ORPHAN = `
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit', detached: true })
writeFileSync(new URL('pid', import.meta.url), String(child.pid))
`

/** @param {string} dir @returns {boolean} whether the process that ORPHAN started runs */
function orphanLives(dir) {
  try {
    const pid = readFileSync(join(dir, 'pid'), 'utf8')
    // The file may still be empty: /proc//cmdline is that of the kernel. A zombie has no command line.
    return pid !== '' && readFileSync(`/proc/${pid}/cmdline`, 'utf8') !== ''
  } catch {
    return false
  }
}

t.test('passed and skipped tests are counted, with the reasons of skips', async t => {
  const dir = t.testdir({
    'a.test.js': prints('TAP version 14\nok 1 - one\nok 2 - two # SKIP no such program here\n1..2'),
    'b.slow.js': prints('TAP version 14\n# Subtest: all\n    ok 1 - three\n    1..1\nok 1 - all\n1..1'),
    'helper.js': prints('not ok 1 - this is no test file\n1..1'),
  })
  const { status, stdout } = await run(dir).ended
  t.equal(status, 0, stdout)
  t.match(stdout, /^ok .* s {2}\S*a\.test\.js: 1 passed, 1 skipped$/m)
  t.match(stdout, /^Skipped:\n {2}\S+a\.test\.js: two: no such program here$/m)
  t.match(stdout, /^2 of 2 files in \d+ s\n# \{ total: 3, pass: 2, fail: 0, skip: 1 \}\n$/m)
})

t.test('a file fails if a test fails, its output ends early, it crashes, or no test runs', async t => {
  const dir = t.testdir({
    'says.test.js': `${prints('# Subtest: deep\n    not ok 1 - is wrong\n      ---\n      found: 5\n      ...\n    1..1\nnot ok 1 - deep\n1..1')}
console.error('and this beside it')
process.exitCode = 1`,
    'early.test.js': prints('TAP version 14\nok 1 - one\n# the rest never comes'),
    'crash.test.js': `throw new Error('not even loaded')`,
    'nothing.test.js': prints('TAP version 14\n1..0'),
    'unused.test.js': `import 'tap'`,
    'empty.test.js': prints('TAP version 14\n# Subtest: hollow\n    1..0\nok 1 - hollow\n1..1'),
  })
  const { status, stdout } = await run(dir).ended
  t.equal(status, 1)
  t.match(stdout, /not ok: deep > is wrong\n {4}found: 5\n {2}its standard error:\n {4}and this beside it\n/)
  t.match(stdout, /its standard error:\n.*not even loaded/s)
  const failed = stdout.slice(stdout.indexOf('\nFailed:'))
  for (const [file, fault] of Object.entries({
    says: 'deep > is wrong',
    early: 'the output ends before its last test',
    crash: 'exit status 1',
    nothing: 'no test ran',
    unused: 'no test ran',
    empty: 'hollow: no assertions',
  }))
    t.match(failed, new RegExp(`^  \\S+${file}\\.test\\.js: ${fault}$`, 'm'))
  t.match(failed, /, fail: 6, skip: \d+ \}/)
})

t.test('a file that hangs is killed, with the processes it started', async t => {
  const dir = t.testdir({ 'hangs.test.js': `${ORPHAN}${prints('ok 1 - one')}setInterval(() => {}, 1000)` })
  const { status, stdout } = await run(dir, '--timeout=1', '--grace=1').ended
  t.equal(status, 1)
  t.match(stdout, /hangs\.test\.js: killed: did not exit within 2 s/)
  t.ok(await until(() => !orphanLives(dir)))
})

t.test('a file that leaves a process behind fails, and the process is killed', async t => {
  const dir = t.testdir({ 'leaves.test.js': `${ORPHAN}${prints('ok 1 - one\n1..1')}child.unref()` })
  const { status, stdout } = await run(dir, '--grace=1').ended
  t.equal(status, 1)
  t.match(stdout, /leaves\.test\.js: left a process behind: .*setInterval/)
  t.ok(await until(() => !orphanLives(dir)))
})

t.test('a file may skip itself, with a reason', async t => {
  const needs = new URL('kit/needs.js', import.meta.url).href
  const dir = t.testdir({
    'skips.test.js': `import t from 'tap'
import { skipFile } from ${JSON.stringify(needs)}
skipFile(t, 'no such program here')
t.fail('not reached')`,
  })
  const { status, stdout } = await run(dir).ended
  t.equal(status, 0, stdout)
  t.match(stdout, /^ {2}\S+skips\.test\.js: the whole file: no such program here$/m)
  t.match(stdout, /pass: 0, fail: 0, skip: 1 \}/)
})

t.test('a file fails when it skips a test without a reason', async t => {
  const dir = t.testdir({ 'skips.test.js': prints('ok 1 - one\nok 2 - two # SKIP\n1..2') })
  const { status, stdout } = await run(dir).ended
  t.equal(status, 1)
  t.match(stdout, /^ {2}\S+skips\.test\.js: two: skipped without a reason$/m)
})

t.test('any error object is reported, and the run continues', async t => {
  const objects = {
    loop: `const object = { big: 10n, own: Symbol('s'), call() {} }; object.self = { list: [object] }`,
    json: `const object = { toJSON() { throw new Error('no JSON') } }`,
    accessor: `const object = { get x() { throw new Error('no x') } }`,
    bare: `const object = Object.assign(Object.create(null), { big: 1n })`,
    date: `const object = new Date(NaN)`,
    error: `const object = new Error('round'); object.cause = object; object.errors = [object]`,
  }
  const dir = t.testdir({
    ...Object.fromEntries(
      Object.entries(objects).map(([name, code]) => [
        `${name}.test.js`,
        `import t from 'tap'\n${code}
t.fail('as a diagnostic', { found: object })
t.test('in an error', async () => { throw Object.assign(new Error('thrown'), { object, cause: object }) })`,
      ]),
    ),
    'yaml.test.js': prints('not ok 1 - knot\n  ---\n  a: &a\n    self: *a\n  ...\n1..1'),
    'passes.test.js': prints('ok 1 - one\n1..1'),
  })
  const { status, stdout, stderr } = await run(dir).ended
  t.equal(status, 1)
  t.equal(stderr, '')
  t.match(stdout, /^8 of 8 files in/m)
  for (const name of [...Object.keys(objects), 'yaml'])
    t.match(stdout, new RegExp(`^not ok .*/${name}\\.test\\.js: \\d passed, \\d FAILED$`, 'm'))
  t.match(stdout, /^ok .*\/passes\.test\.js: 1 passed$/m)
  t.match(stdout, /loop\.test\.js: in an error > thrown$/m)
  t.match(stdout, /yaml\.test\.js: knot$/m)
})

t.test('a runner that crashes kills the processes it started', async t => {
  const dir = t.testdir({ 'hangs.test.js': `${ORPHAN}setInterval(() => {}, 1000)` })
  const crash = `import { existsSync } from 'node:fs'
const timer = setInterval(() => {
  if (!existsSync(${JSON.stringify(join(dir, 'pid'))})) return
  clearInterval(timer)
  throw new Error('the runner fails')
}, 10)`
  const { child, ended } = spawned([
    `--import=data:text/javascript,${encodeURIComponent(crash)}`,
    runner,
    dir,
  ])
  t.teardown(() => child.kill('SIGKILL'))
  const { status, stderr } = await ended
  t.equal(status, 1)
  t.match(stderr, /the runner fails/)
  t.ok(await until(() => !orphanLives(dir)))
})

t.test('TEST_DRIVER=node skips uWebSockets.js and reports it', async t => {
  const file = `import { drivers } from './drivers.js'
console.log('ok 1 - ' + drivers.join() + ' ' + process.env.TEST_DRIVER + '\\n1..1')
if (drivers.join() !== 'node') process.exitCode = 1`
  const dir = t.testdir({
    'own.test.js': file,
    'drivers.js': `export * from ${JSON.stringify(new URL('kit/drivers.js', import.meta.url).href)}`,
  })
  const { status, stdout } = await spawned([runner, dir], { CI: 'true', TEST_DRIVER: 'node' }).ended
  t.equal(status, 0, stdout)
  t.match(
    stdout,
    /^Skipped:\n {2}all: 1 files run only on the node server: TEST_DRIVER=node excludes uWebSockets\.js$/m,
  )
})

t.test('an interrupted run kills the processes it started, and fails', async t => {
  const dir = t.testdir({
    'hangs.test.js': `process.on('SIGTERM', () => {})\n${ORPHAN}setInterval(() => {}, 1000)`,
    'never.test.js': prints('ok 1 - one\n1..1'),
  })
  const { child, ended } = run(join(dir, 'hangs.test.js'), join(dir, 'never.test.js'), '--jobs=1')
  await until(() => orphanLives(dir))
  child.kill('SIGINT')
  const { status, stdout } = await ended
  t.equal(status, 130)
  t.match(stdout, /^0 of 2 files in \d+ s, interrupted$/m)
  t.ok(await until(() => !orphanLives(dir)))
})

t.test('invalid arguments are reported in one line', async t => {
  const dir = t.testdir()
  for (const [args, said] of /** @type {[string[], string][]} */ ([
    [[join(dir, 'nowhere')], `no such file or folder: ${join(dir, 'nowhere')}`],
    [[dir, '--jobs=x'], '--jobs must be a whole number of at least 1'],
  ])) {
    const { status, stderr } = await run(...args).ended
    t.equal(status, 2)
    t.equal(stderr, `test/run.js: ${said}\n`)
  }
  t.equal((await run(dir).ended).status, 1, 'a run without files fails')
})
