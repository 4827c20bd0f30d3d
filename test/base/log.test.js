// The log: what it does when it cannot be written, and how lines that strangers can cause are limited.

import { execFileSync } from 'node:child_process'
import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { errors } from '../../src/base/errors.js'
import { createLog, LimitedLog, LogOutput } from '../../src/base/log.js'
import { until } from '../kit/wait.js'

const { O_NONBLOCK, O_RDONLY } = constants

/** The reader of a pipe, which may stop, leave and come back. */
class Reader {
  text = ''
  #buffer = Buffer.alloc(64 * 1024)
  #fd

  /** @param {string} path of a FIFO */
  constructor(path) {
    this.#fd = openSync(path, O_RDONLY | O_NONBLOCK)
  }

  /** Reads what is there. */
  read() {
    try {
      for (let length = 1; length > 0; ) {
        length = readSync(this.#fd, this.#buffer)
        this.text += this.#buffer.toString('utf8', 0, length)
      }
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
    }
  }

  /** @param {(lines: any[]) => boolean} enough @returns {Promise<any[]>} the lines, once there are enough */
  lines(enough) {
    return until(() => {
      this.read()
      const lines = this.text.endsWith('\n')
        ? this.text
            .trim()
            .split('\n')
            .map(line => JSON.parse(line))
        : []
      return enough(lines) && lines
    })
  }

  close() {
    closeSync(this.#fd)
  }
}

/** @param {any} t @returns {string} path of a FIFO */
function fifo(t) {
  const path = join(t.testdir(), 'log')
  execFileSync('mkfifo', [path])
  return path
}

/** @param {any} t @param {string} file */
function logTo(t, file) {
  const options = { level: 'info', file }
  const output = new LogOutput(options, false)
  t.teardown(() => output.close())
  return { output, log: createLog(options, output) }
}

const DROPPED = 'log lines were dropped while the log could not be written'
const isReport = (/** @type {any} */ { msg }) => msg === DROPPED
/** More than a pipe and the lines that wait can hold: about 1.5 MB. */
const COUNT = 10_000
const FILLER = 'x'.repeat(100)

t.test('a full disk neither throws nor blocks, and drops what does not fit into memory', async t => {
  const { output, log } = logTo(t, '/dev/full')
  output.check()
  for (let n = 0; n < COUNT; n++) log.info({ n }, FILLER)
  const { dropped, error } = output.state
  t.equal(error, 'the disk is full (ENOSPC)')
  t.ok(dropped > COUNT / 2 && dropped < COUNT, `${dropped} dropped`)
})

t.test(
  'a reader that stands still blocks nobody; then it gets whole lines, and how many are missing',
  async t => {
    const path = fifo(t)
    const reader = new Reader(path)
    t.teardown(() => reader.close())
    const { output, log } = logTo(t, path)
    for (let n = 0; n < COUNT; n++) log.info({ n }, FILLER)
    t.equal(output.state.error, 'nobody reads it (EAGAIN)')
    const lines = await reader.lines(lines => lines.some(isReport))
    const numbers = lines.filter(({ msg }) => msg === FILLER).map(({ n }) => n)
    t.same(numbers, [...numbers.keys()], 'the first lines, in order')
    const report = lines.at(-1)
    t.match(report, { level: 40, msg: DROPPED, reason: 'nobody reads it (EAGAIN)' })
    t.equal(report.lines, COUNT - numbers.length)
    t.ok(report.seconds >= 1)
    t.same(output.state, { dropped: report.lines, error: null })

    log.info('later')
    t.equal((await reader.lines(lines => lines.at(-1)?.msg === 'later')).length, lines.length + 1)
  },
)

t.test('a reader that leaves and comes back', async t => {
  const path = fifo(t)
  const first = new Reader(path)
  const { output, log } = logTo(t, path)
  log.info('one')
  t.equal((await first.lines(lines => lines.length === 1))[0].msg, 'one')
  first.close()
  log.info('two')
  t.equal(output.state.error, 'nobody reads it (EPIPE)')
  const second = new Reader(path)
  t.teardown(() => second.close())
  log.info('three')
  const lines = await second.lines(lines => lines.length === 2)
  t.same(
    lines.map(({ msg }) => msg),
    ['two', 'three'],
    'lines that waited',
  )
  t.equal(output.state.dropped, 0)
})

t.test(
  'a file that cannot be opened is an error at the start, but not if it may be opened later',
  async t => {
    const dir = t.testdir()
    const none = logTo(t, join(dir, 'none', 'log'))
    t.throws(() => none.output.check(), /^log\.file cannot be opened: ENOENT.*none/)
    none.log.info('counted, not thrown')

    const path = fifo(t)
    const { output, log } = logTo(t, path)
    output.check()
    log.info('one')
    t.equal(output.state.error, 'nobody reads it (ENXIO)')
    const reader = new Reader(path)
    t.teardown(() => reader.close())
    t.equal((await reader.lines(lines => lines.length === 1))[0].msg, 'one')
  },
)

t.test('a file that is moved away or removed is followed by a new one', async t => {
  let now = 0
  const path = join(t.testdir(), 'log')
  const options = { level: 'info', file: path }
  const output = new LogOutput(options, false, () => now)
  t.teardown(() => output.close())
  const log = createLog(options, output)
  const lines = (/** @type {string} */ file) =>
    readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map(line => JSON.parse(line).msg)
  log.info('one')
  renameSync(path, `${path}.1`)
  log.info('two')
  t.same(lines(`${path}.1`), ['one', 'two'], 'it looks once a second')
  now += 1000
  log.info('three')
  t.same(lines(path), ['three'])
  t.same(lines(`${path}.1`), ['one', 'two'])

  rmSync(path)
  now += 1000
  log.info('four')
  t.same(lines(path), ['four'])

  renameSync(path, `${path}.2`)
  mkdirSync(path)
  now += 1000
  log.info('five')
  t.same(lines(`${path}.2`), ['four', 'five'], 'where none can be made, the old one gets the lines')
  t.same(output.state, { dropped: 0, error: null })
  t.equal(readdirSync('/proc/self/fd').filter(fd => isOpen(fd, path)).length, 1, 'the others are closed')
})

/** @param {string} fd @param {string} path */
function isOpen(fd, path) {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`).startsWith(path)
  } catch {
    return false
  }
}

t.test('at the end, lines that wait get some time', async t => {
  const path = fifo(t)
  const reader = new Reader(path)
  t.teardown(() => reader.close())
  const { output, log } = logTo(t, path)
  for (let n = 0; n < 1000; n++) log.info({ n }, FILLER)
  const drained = output.drained(60_000)
  const lines = await reader.lines(lines => lines.length === 1000)
  await drained
  t.equal(lines.at(-1).n, 999)

  const full = logTo(t, '/dev/full')
  full.log.info('lost')
  await full.output.drained(1)
  t.equal(full.output.state.error, 'the disk is full (ENOSPC)', 'but no longer than that')
})

/** @param {any} t @param {object} options */
function limited(t, options) {
  /** @type {any[]} */
  const lines = []
  const write = (/** @type {string} */ level) => (/** @type {object} */ fields, /** @type {string} */ msg) =>
    lines.push({ level, msg, ...fields })
  const full = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
  const log = new LimitedLog(/** @type {any} */ (full), options)
  t.teardown(() => log.report())
  return { log, lines }
}

t.test('each message is written a few times in an interval; the rest is counted', async t => {
  const { log, lines } = limited(t, { lines: 2, interval: 60_000 })
  for (let n = 0; n < 5; n++) log.error({ n }, 'one')
  for (let n = 0; n < 3; n++) log.info(() => ({ n }), 'two', n === 1 ? 'two, too' : 'two')
  t.same(
    lines.map(({ msg, n }) => [msg, n]),
    [
      ['one', 0],
      ['one', 1],
      ['two', 0],
      ['two', 1],
      ['two', 2],
    ],
    'a key of its own has lines of its own',
  )
  lines.length = 0
  log.report()
  t.same(lines, [{ level: 'error', msg: 'more lines were left out', line: 'one', lines: 3, seconds: 60 }])
  log.report()
  t.equal(lines.length, 1, 'once')
  log.error({ n: 9 }, 'one')
  t.equal(lines[1].n, 9, 'the next interval begins anew')
})

t.test('the end of an interval reports by itself', async t => {
  const { log, lines } = limited(t, { lines: 1, interval: 20 })
  const report = await until(() => {
    log.warn({}, 'again')
    return lines.find(({ msg }) => msg === 'more lines were left out')
  })
  t.ok(report)
})

t.test('keys without end share one', async t => {
  const { log, lines } = limited(t, { lines: 1 })
  let computed = 0
  for (let n = 0; n < 10_000; n++) log.info(() => ({ n, computed: ++computed }), 'one', `key ${n}`)
  t.equal(lines.length, 201)
  t.equal(computed, 201, 'fields only of lines that are written')
  log.report()
  t.match(lines.at(-1), { line: 'other lines', lines: 9799 })
})

t.test('an error of the table, which is frozen, is logged like any other', async t => {
  const pipe = fifo(t)
  const reader = new Reader(pipe)
  t.teardown(() => reader.close())
  const log = createLog({ level: 'debug', file: '' }, new LogOutput({ file: pipe }, false))
  log.debug({ err: errors.internal }, 'it failed')
  log.debug({ err: new Error('other') }, 'it failed')
  const lines = await reader.lines(found => found.length === 2)
  t.match(lines, [{ err: { message: 'internal server error', code: 100 } }, { err: { message: 'other' } }])
})

t.test('no text of a line acts on the terminal that shows it', async t => {
  const program = `
    import { createLog, LogOutput } from '${new URL('../../src/base/log.js', import.meta.url)}'
    const text = 'a\\x1b[31mb\\x9b31mc\\u2028\\u2029\\u202e\\x7f\\r\\nd'
    const log = createLog({ level: 'debug', file: '' }, new LogOutput({ file: '' }, true))
    log.info({ channel: text, [text]: [text] }, text)
    log.error({ err: Object.assign(new Error(text), { cause: new Error(text) }) }, 'it failed')
  `
  const shown = execFileSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    env: { ...process.env, FORCE_COLOR: '1', NO_COLOR: undefined },
  })
  const own = /\x1b\[\d+m/g
  t.match(shown, own, 'the log has colours of its own')
  const rest = shown.replace(own, '')
  t.notMatch(rest, /[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202e]/)
  const escaped = String.raw`a\u001b[31mb\u009b31mc\u2028\u2029\u202e\u007f`
  // The message, two texts and a name; then the message and stack of the error.
  t.equal(rest.split(escaped).length - 1 >= 6, true, rest)
  t.equal(rest.split('\n').filter(line => line.startsWith('d')).length, 0, 'no line begins with it')
})
