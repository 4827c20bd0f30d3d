// All other measurements, in a tiny size.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { withoutProgram } from '../kit/needs.js'
import { withoutPostgres } from '../kit/servers/postgres.js'
import { measure, NO_FAULT, testFigures } from './figures.js'
import { skip } from './runs.js'

// They mostly wait.
t.jobs = 2
t.setTimeout(300_000)

testFigures(t, [
  [
    'channels',
    ['--set', 'n=50', '--redis', '--nodes', '2', '--workers', '1', '--history', '--seconds', '6'],
    withoutProgram('redis-server'),
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
  ['republish', ['--set', 'n=10'], withoutProgram('redis-server'), [{ ...NO_FAULT }, { lost: 0 }], []],
])

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
