// `halley fleet run` with other servers, several runs and several gateways, in a tiny size.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { linesOf } from '../bench/runs.js'
import { skipDriver } from '../kit/drivers.js'
import { withoutProgram } from '../kit/needs.js'
import { CliRun, processesWith } from './run-rig.js'

// They mostly wait.
const withoutRedis = withoutProgram('redis-server')
t.jobs = 2
t.setTimeout(300_000)

const SMALL = ['--step', '1', '--scale', '0.002', '--seconds', '2', '--workers', '1', '--json']
const FAN = ['fan-100', '--set', 'publish_rate=200', ...SMALL]
const NO_FAULT = { failed: 0, closed: 0, missing: 0, order_faults: 0, damaged: 0, publish_errors: 0 }

t.test(
  'gateway and control in turn: medians, ratios and one report',
  { skip: skipDriver('uws'), buffered: true },
  async t => {
    const run = await CliRun.start(t, ...FAN, '--against', 'uws', '--runs', '1')
    t.equal(await run.code, 0, run.stderr)
    const lines = linesOf(run.stdout)
    t.strictSame(
      lines.map(({ server, run: number, median_of, ratio_to }) => [server, number, median_of, ratio_to]),
      [
        ['halley', 1, undefined, undefined],
        ['uws', 1, undefined, undefined],
        ['halley', undefined, 1, undefined],
        ['uws', undefined, 1, undefined],
        ['halley', undefined, undefined, 'uws'],
      ],
    )
    const [halley, uws, , , ratio] = lines
    for (const figures of [halley, uws]) {
      t.match(figures, { connections: 48, ...NO_FAULT })
      t.ok(figures.expected > 0 && figures.cpu_us_per_message > 0)
      t.equal(figures.delivered, figures.expected)
      t.ok(figures.p50_ms > 0 && figures.p50_ms <= figures.p99_ms && figures.p99_ms <= figures.max_ms)
    }
    t.equal(ratio.cpu_us_per_message, Number((halley.cpu_us_per_message / uws.cpu_us_per_message).toFixed(3)))
    t.match(await run.report(), /uws 1/)
    t.match(
      await readFile(join(run.out, 'table.md'), 'utf8'),
      /^\| fan-100, .* \| halley \| uws \| ratio to uws \|/,
    )
    t.same(await processesWith(run.dir), [], 'no process is left')
  },
)

for (const flags of [
  ['--server', 'ws'],
  ['--transport', 'protobuf'],
  ['--transport', 'uni_http_stream', '--set', 'publish_flat=true', '--set', 'publish_lanes=4'],
  ['--server', 'cmd: node bench/no-such-server.js {port}'],
]) {
  const isMissing = flags[1].startsWith('cmd:')
  t.test(`${flags.join(' ')}: every publication is received`, { buffered: true }, async t => {
    const run = await CliRun.start(t, ...FAN, ...flags)
    const code = await run.code
    if (isMissing) {
      t.equal(code, 1)
      t.match(run.stderr, /the cmd: node bench\/no-such-server\.js \{port\} did not start: /)
      return
    }
    t.equal(code, 0, run.stderr)
    const [figures] = linesOf(run.stdout)
    t.match(figures, { connections: 48, ...NO_FAULT })
    t.ok(figures.delivered > 0)
    t.equal(figures.delivered, figures.expected)
  })
}

t.test('idle connections are measured in memory and CPU time', { buffered: true }, async t => {
  const run = await CliRun.start(t, 'comet-million', '--transport', 'websocket', ...SMALL)
  t.equal(await run.code, 0, run.stderr)
  const [figures] = linesOf(run.stdout)
  t.match(figures, { connections: 2000, failed: 0, closed: 0 })
  t.ok(figures.connect_cpu_us > 0)
  // With so few connections, other allocations of the process outweigh theirs.
  t.type(figures.bytes_per_connection, 'number')
})

t.test(
  'chaos with two gateways and a killed Redis loses nothing',
  { skip: withoutRedis, buffered: true },
  async t => {
    const faults = ['--faults', 'kill-redis,kill-gateway', '--rounds', '2', '--seconds', '30']
    const flags = ['--redis', '--nodes', '2', '--workers', '1', '--no-loss', '--json']
    const run = await CliRun.start(t, 'chaos', '--scale', '0.005', ...faults, ...flags)
    t.equal(await run.code, 0, run.stderr)
    const [figures] = linesOf(run.stdout)
    t.match(figures, { missing: 0, order_faults: 0, unrecovered: 0 })
    const { steps } = await run.result()
    t.match(
      steps[0].disturbances.map(({ text }) => text),
      Array.from({ length: 2 }, () => [
        'Redis killed with SIGKILL',
        'Redis restarted',
        /^gateway killed with SIGKILL/,
      ]).flat(),
    )
  },
)
