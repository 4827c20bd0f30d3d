// The log: unwritable files and pipes, and rate-limited lines.

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

/** Reads log lines from a FIFO. */
class Reader {
  text = ''
  #buffer = Buffer.alloc(64 * 1024)
  #fd

  /** @param {string} path of a FIFO */
  constructor(path) {
    this.#fd = openSync(path, O_RDONLY | O_NONBLOCK)
  }

  /** Reads the available bytes. */
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

/** @returns {string} path of a FIFO */
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

const DROPPED = 'log lines dropped: the log was not writable'
const isReport = (/** @type {any} */ { msg }) => msg === DROPPED
/** Exceeds the pipe buffer and the queue of the log: about 1.5 MB. */
const COUNT = 10_000
const FILLER = 'x'.repeat(100)

t.test('on a full disk, lines beyond the memory limit are dropped', async t => {
  const { output, log } = logTo(t, '/dev/full')
  output.check()
  for (let n = 0; n < COUNT; n++) log.info({ n }, FILLER)
  const { dropped, error } = output.state
  t.equal(error, 'the disk is full (ENOSPC)')
  t.ok(dropped > COUNT / 2 && dropped < COUNT, `${dropped} dropped`)
})

t.test('after a pause, the reader gets complete lines and the number of dropped lines', async t => {
  const path = fifo(t)
  const reader = new Reader(path)
  t.teardown(() => reader.close())
  const { output, log } = logTo(t, path)
  for (let n = 0; n < COUNT; n++) log.info({ n }, FILLER)
  t.equal(output.state.error, 'no reader (EAGAIN)')
  const lines = await reader.lines(lines => lines.some(isReport))
  const numbers = lines.filter(({ msg }) => msg === FILLER).map(({ n }) => n)
  t.same(numbers, [...numbers.keys()], 'the first lines, in order')
  const report = lines.at(-1)
  t.match(report, { level: 40, msg: DROPPED, reason: 'no reader (EAGAIN)' })
  t.equal(report.lines, COUNT - numbers.length)
  t.ok(report.seconds >= 1)
  t.same(output.state, { dropped: report.lines, error: null })

  log.info('later')
  t.equal((await reader.lines(lines => lines.at(-1)?.msg === 'later')).length, lines.length + 1)
})

t.test('a reader that reopens the pipe gets the queued lines', async t => {
  const path = fifo(t)
  const first = new Reader(path)
  const { output, log } = logTo(t, path)
  log.info('one')
  t.equal((await first.lines(lines => lines.length === 1))[0].msg, 'one')
  first.close()
  log.info('two')
  t.equal(output.state.error, 'no reader (EPIPE)')
  const second = new Reader(path)
  t.teardown(() => second.close())
  log.info('three')
  const lines = await second.lines(lines => lines.length === 2)
  const messages = lines.map(({ msg }) => msg)
  t.same(messages, ['two', 'three'], 'queued lines')
  t.equal(output.state.dropped, 0)
})

t.test('a file that cannot be opened is a startup error', async t => {
  const dir = t.testdir()
  const none = logTo(t, join(dir, 'none', 'log'))
  t.throws(() => none.output.check(), /^log\.file cannot be opened: ENOENT.*none/)
  none.log.info('counted, not thrown')

  const path = fifo(t)
  const { output, log } = logTo(t, path)
  output.check()
  log.info('one')
  t.equal(output.state.error, 'no reader (ENXIO)')
  const reader = new Reader(path)
  t.teardown(() => reader.close())
  t.equal((await reader.lines(lines => lines.length === 1))[0].msg, 'one')
})

t.test('a log file that is renamed or removed is created again', async t => {
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
  t.same(lines(`${path}.1`), ['one', 'two'], 'the path is checked once a second')
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
  t.same(lines(`${path}.2`), ['four', 'five'], 'the old file is used if no new one can be created')
  t.same(output.state, { dropped: 0, error: null })
  t.equal(readdirSync('/proc/self/fd').filter(fd => isOpen(fd, path)).length, 1, 'old files are closed')
})

/** @param {string} fd @param {string} path */
function isOpen(fd, path) {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`).startsWith(path)
  } catch {
    return false
  }
}

t.test('drained() waits for the queued lines, up to its timeout', async t => {
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
  t.equal(full.output.state.error, 'the disk is full (ENOSPC)', 'returned at the timeout')
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

t.test('a limited log writes some lines per interval and counts the rest', async t => {
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
    'each key has its own limit',
  )
  lines.length = 0
  log.report()
  t.same(lines, [
    { level: 'error', msg: 'log lines suppressed by the rate limit', line: 'one', lines: 3, seconds: 60 },
  ])
  log.report()
  t.equal(lines.length, 1, 'reported once')
  log.error({ n: 9 }, 'one')
  t.equal(lines[1].n, 9, 'the next interval starts from zero')
})

t.test('a limited log reports at the end of the interval', async t => {
  const { log, lines } = limited(t, { lines: 1, interval: 20 })
  const report = await until(() => {
    log.warn({}, 'again')
    return lines.find(({ msg }) => msg === 'log lines suppressed by the rate limit')
  })
  t.ok(report)
})

t.test('a limited log has a bounded number of keys', async t => {
  const { log, lines } = limited(t, { lines: 1 })
  let computed = 0
  for (let n = 0; n < 10_000; n++) log.info(() => ({ n, computed: ++computed }), 'one', `key ${n}`)
  t.equal(lines.length, 201)
  t.equal(computed, 201, 'fields are computed only for written lines')
  log.report()
  t.match(lines.at(-1), { line: 'other lines', lines: 9799 })
})

t.test('a frozen error is logged like any other', async t => {
  const pipe = fifo(t)
  const reader = new Reader(pipe)
  t.teardown(() => reader.close())
  const log = createLog({ level: 'debug', file: '' }, new LogOutput({ file: pipe }, false))
  log.debug({ err: errors.internal }, 'it failed')
  log.debug({ err: new Error('other') }, 'it failed')
  const lines = await reader.lines(found => found.length === 2)
  t.match(lines, [{ err: { message: 'internal server error', code: 100 } }, { err: { message: 'other' } }])
})

t.test('control characters in a line are escaped on a terminal', async t => {
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
  t.match(shown, own, 'the log itself uses colours')
  const rest = shown.replace(own, '')
  t.notMatch(rest, /[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202e]/)
  const escaped = String.raw`a\u001b[31mb\u009b31mc\u2028\u2029\u202e\u007f`
  // The message, two texts and a name; then the message and stack of the error.
  t.equal(rest.split(escaped).length - 1 >= 6, true, rest)
  t.equal(
    rest.split('\n').filter(line => line.startsWith('d')).length,
    0,
    'no line starts with the injected text',
  )
})
