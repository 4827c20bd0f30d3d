// Every measurement of `npm run bench`, in a tiny size.

import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { skipDriver } from '../kit/drivers.js'
import { testdir } from '../kit/folders.js'
import { withoutProgram } from '../kit/needs.js'
import { withoutPostgres } from '../kit/servers/postgres.js'
import { linesOf, script, skip } from './runs.js'

// They mostly wait.
t.jobs = 2
t.setTimeout(600_000)

const NO_FAULT = { failed: 0, closed: 0, missing: 0, order_faults: 0, damaged: 0, publish_errors: 0 }
const REDIS = withoutProgram('redis-server')

/**
 * @param {any} t @param {string} name @param {string[]} flags
 * @returns {Promise<{code: number, stderr: string, steps: Record<string, any>[], out: string}>} `steps`: figures of each
 *   step of each run
 */
async function measure(t, name, ...flags) {
  const out = testdir(t)
  const args = [script, name, '--runs', '1', '--seconds', '2', '--json', '--out', out, ...flags]
  const { code = 0, stdout, stderr } = await promisify(execFile)(process.execPath, args).catch(error => error)
  return { code, stderr, out, steps: linesOf(stdout).filter(({ run }) => run !== undefined) }
}

/**
 * What each step of each variant must have; names of figures that are above 0 in a step of each variant.
 * @type {[name: string, flags: string[], skip: string | false, expected: Record<string, any>[], positive: string[]][]}
 */
const MEASUREMENTS = [
  [
    'batching',
    ['--set', 'n=50'],
    false,
    [{ connections: 50, offered_per_s: 60, ...NO_FAULT }],
    ['cpu_us_per_message'],
  ],
  ['conflation', ['--set', 'n=3'], false, [{ offered_per_s: 1000, order_faults: 0 }], ['delivered_per_s']],
  ['hooks', [], false, [{ publish_errors: 0 }], ['published_per_s', 'workers_cpu_us_per_publish']],
  ['lifecycle', ['--set', 'n=40'], false, [{ connections: 40, closed: 0 }], ['primary_cpu_us_per_open']],
  ['proxy', ['--set', 'n=40'], false, [{ ...NO_FAULT, failed: 0 }], ['reopened_per_s', 'connects_per_s']],
  [
    'tls',
    ['--set', 'n=40'],
    skipDriver('uws') || withoutProgram('openssl'),
    [{ connections: 40 }, { connections: 80 }, { connections: 80, ...NO_FAULT }],
    ['connect_cpu_us'],
  ],
  [
    'gc',
    ['--set', 'n=50', '--seconds', '4', '--server', 'start', '--against', 'interval'],
    false,
    [
      { connections: 50, closed: 0 },
      { connections: 30, closed: 0 },
    ],
    ['heap_used_mb', 'idle_cpu_percent'],
  ],
  ['ticks', ['--set', 'n=50'], false, [{ connections: 50 }, { closed: 0, missed: 0 }], ['rss_mb']],
  [
    'channels',
    ['--set', 'n=50', '--redis', '--nodes', '2', '--workers', '1', '--history', '--seconds', '6'],
    REDIS,
    [
      { connections: 50 },
      { connections: 50 },
      // A difference of two measured times: with so few connections it may be 0 or less.
      { missing: 0, order_faults: 0, subscriptions: 500, unrecovered: 0, subscribe_cpu_us: Number },
    ],
    ['redis_cpu_percent', 'redis_bytes_per_subscription', 'resubscribed_ms'],
  ],
  [
    'poll',
    ['--set', 'n=50', '--workers', '1', '--against', 'ws'],
    false,
    [{ polls: 50, faults: 0, unanswered: 0 }],
    ['cpu_us_per_round', 'first_poll_cpu_us', 'answers'],
  ],
  [
    'consumers',
    ['--set', 'n=10', '--set', 'publish_rate=200'],
    withoutPostgres(),
    [{ not_received: 0 }, { sent: 100, not_received: 0 }, { sent: 400, not_received: 0, ...NO_FAULT }],
    ['p50_ms', 'cpu_us_per_sent'],
  ],
  ['republish', ['--set', 'n=10'], REDIS, [{ ...NO_FAULT }, { lost: 0 }], []],
]

for (const [name, flags, without, expected, positive] of MEASUREMENTS)
  t.test(`${name}: figures of each variant`, { skip: skip || without, buffered: true }, async t => {
    const { code, stderr, steps } = await measure(t, name, ...flags)
    t.equal(code, 0, stderr)
    t.ok(steps.length > 0 && steps.length % expected.length === 0, `${steps.length} steps`)
    for (const [at, figures] of steps.entries()) {
      t.match(figures, expected[at % expected.length], `${figures.server}, ${figures.step}`)
    }
    for (const server of new Set(steps.map(figures => figures.server)))
      for (const figure of positive)
        t.ok(
          steps.some(figures => figures.server === server && figures[figure] > 0),
          `${server}: ${figure}`,
        )
  })

t.test('recovery: clients get all publications, or are refused', { skip, buffered: true }, async t => {
  const { code, stderr, steps, out } = await measure(t, 'recovery', '--set', 'n=20')
  t.equal(code, 0, stderr)
  // On a busy machine, some publishes find the broker unavailable while it sends the publications.
  const right = { incomplete: 0, dropped: 0, exited_workers: 0, publish_errors: Number }
  t.match(steps, [
    { server: '16 MB', recovered: 20, refused: 0, ...right },
    { server: '1 MB', recovered: 0, refused: 20, ...right },
  ])
  t.ok(steps[0].publish_p99_ms > 0 && steps[0].max_worker_mib > 0)
  t.match(await readFile(join(out, 'table.md'), 'utf8'), /^\| recovery, recovery \| 16 MB \| 1 MB \|/)
})

t.test("watch: the gateway's figures are those of drones and kernel", { skip, buffered: true }, async t => {
  const { code, stderr, steps } = await measure(t, 'watch', '--set', 'n=200', '--seconds', '5')
  t.equal(code, 0, stderr)
  const [, faults] = steps
  t.match(faults, { connections_off_pct: 0, deliveries_off_pct: 0, publishes_off_pct: 0 })
  t.ok(faults.block_tick_max_ms > 100 && faults.block_shown_ms > 0 && faults.kill_shown_ms > 0)
})
