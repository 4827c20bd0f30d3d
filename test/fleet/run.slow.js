// Small complete runs: every message is accounted for, and no process or file is left.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { local } from '../../fleet/providers/local.js'
import { parseLimits } from '../../fleet/runner/limits.js'
import { runScenario } from '../../fleet/runner/run.js'
import { chaos } from '../../fleet/scenarios/chaos.js'
import { fan100 } from '../../fleet/scenarios/fan-100.js'
import { startGateway } from '../kit/gateway.js'
import { withoutProgram } from '../kit/needs.js'
import { until } from '../kit/wait.js'
import { CliRun, processesWith } from './run-rig.js'

// They mostly wait, so they run together.
const withoutRedis = withoutProgram('redis-server')
t.jobs = 4

/** @param {import('../../fleet/scenarios/contract.js').Disturbance[]} disturbances instead of its own */
const chaosOf = disturbances => ({
  ...chaos,
  plan: (/** @type {import('../../fleet/scenarios/contract.js').PlanOptions} */ options) => {
    const plan = chaos.plan(options)
    return { ...plan, steps: [{ ...plan.steps[0], disturbances }] }
  },
})

t.test('chaos accounts for every message', { buffered: true }, async t => {
  const run = await CliRun.start(t, ...'chaos --scale 0.02 --seconds 8 --no-loss --max-max 1us'.split(' '))
  t.equal(await run.code, 1, 'the other limit is violated')
  const { steps, accounting, notes, limits } = await run.result()
  t.same(notes, [], 'every disturbance took place')
  t.match(
    steps[0].disturbances.map(({ text }) => text),
    [
      /^worker \d+ killed with SIGKILL/,
      /^\d+ connections cut \(30\s%\)/,
      /^worker \d+ stopped with SIGSTOP, (?:replaced by the gateway|continued with SIGCONT) after/,
      /^reload of a key that requires new workers, in/,
      /^rolling restart of all workers in/,
      /^gateway stopped with SIGTERM and restarted from its snapshot/,
      /^gateway killed with SIGKILL and restarted, .* history lost/,
      /^\d+ connections cut \(100\s%\)/,
    ],
  )
  const { expected, received, missed, recovered, unrecovered } = accounting
  t.match(accounting, { lost: 0, duplicates: 0, disordered: 0, damaged: 0, unknown: 0 })
  t.ok(expected > 1000)
  t.equal(received + missed, expected, 'each message arrived once or was reported missed')
  t.equal(unrecovered, 200, 'lost history was reported to each subscription once')
  t.ok(recovered > 0, 'and recovered after other disturbances')
  t.ok(steps[0].figures.reconnect_p99_ms > 0)
  t.same(
    limits.map(({ limit, broken }) => [limit, broken]),
    [
      ['--max-max', true],
      ['--no-loss', false],
    ],
  )
  t.match(run.stdout, /violated {2}--max-max 1us \(200 connections\): [\d.,]+\sm?s/)
  t.match(run.stderr, /halley: 1 limit violated\n$/)
})

for (const { title, disturbances, options, texts, least } of [
  {
    title: 'a clean end with a snapshot and a restart lose nothing',
    disturbances: { 10: 'restart-gateway' },
    options: { scale: 0.01, seconds: 6 },
    texts: /^gateway stopped with SIGTERM and restarted from its snapshot/,
    least: 100,
  },
  {
    title: 'Redis keeps the history of a killed gateway',
    disturbances: { 10: 'stop-redis', 20: 'start-redis', 35: 'kill-gateway' },
    options: { scale: 0.005, seconds: 8, redis: true },
    texts: /Redis stopped; Redis restarted.*gateway killed with SIGKILL and restarted/,
    least: 0,
  },
])
  t.test(`chaos: ${title}`, { buffered: true, skip: options.redis && withoutRedis }, async t => {
    const { result, failure } = await runScenario({
      ...options,
      scenario: chaosOf(
        Object.entries(disturbances).map(([at, kind]) => ({
          at: Number(at),
          kind: /** @type {any} */ (kind),
        })),
      ),
      out: t.testdir(),
      provider: local,
      limits: parseLimits({ 'no-loss': true }),
    })
    const { steps, gateway, accounting, limits, notes } = result
    t.same([failure, notes], ['', []], 'the disturbances took place')
    t.match(steps[0].disturbances.map(({ text }) => text).join('; '), texts)
    t.equal(gateway?.facts.engine, options.redis ? 'redis' : 'memory')
    t.match(accounting, { lost: 0, duplicates: 0, disordered: 0, unrecovered: 0, missed: 0 })
    t.equal(accounting.received, accounting.expected)
    t.ok(accounting.expected > 300 && accounting.recovered >= least)
    t.match(limits, [{ limit: '--no-loss', broken: false }])
  })

t.test('steps run against a running server', { buffered: true }, async t => {
  const gateway = await startGateway(t, {
    client: { allow_anonymous_connect_without_token: true },
    channel: {
      without_namespace: { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true },
    },
  })
  // Only the first and the last of eight steps, to save time.
  const scenario = {
    ...fan100,
    plan: (/** @type {import('../../fleet/scenarios/contract.js').PlanOptions} */ options) => {
      const plan = fan100.plan(options)
      return { ...plan, steps: [plan.steps[0], plan.steps[7]] }
    },
  }
  const out = t.testdir()
  const lines = /** @type {string[]} */ ([])
  const { result, failure } = await runScenario({
    scenario,
    scale: 0.001,
    out,
    provider: local,
    target: [gateway.url],
    apiKey: 'key',
    seconds: 4,
    limits: parseLimits({ 'no-loss': true, 'max-p99': '0.1us', 'min-connections': '24' }),
    progress: text => lines.push(text),
  })
  t.equal(failure, '')
  t.same(
    result.steps.map(({ connections }) => connections.open),
    [24, 192],
  )
  for (const { received, latency, accounting } of result.steps) {
    t.ok(received > 0, `${received} messages a second`)
    // Not above 0: the clocks of two processes are known to a fraction of a millisecond only.
    const { count, min, p50, p99, max } = latency
    t.ok(count > 0 && min <= p50 && p50 <= p99 && p99 <= max, JSON.stringify({ count, min, p50, p99, max }))
    t.ok(latency.mean95.low < latency.mean && latency.mean < latency.mean95.high)
    // On a busy machine a connection may end: `missed` counts the messages until it returns.
    const { received: all, duplicates, missed, expected, lost, unknown } = accounting
    t.strictSame([all - duplicates + missed, lost, unknown], [expected, 0, 0], JSON.stringify(accounting))
  }
  t.equal(result.gateway, null)
  t.equal(existsSync(join(out, 'gateway.csv')), false)
  t.same(
    result.limits.map(({ limit, step, broken }) => `${limit} ${step} ${broken}`),
    [
      '--max-p99 24,000 published true',
      '--max-p99 192,000 published true',
      '--min-connections 24,000 published false',
      '--min-connections 192,000 published false',
      '--no-loss  false',
    ],
  )
  const measuring = lines.filter(text => text.includes('measuring')).at(-1) ?? ''
  t.match(
    measuring,
    /192,000 published: measuring \d+\/4 s · 192 of 192 connections · [\d,]+\/s received · p99 .*0 lost/,
  )
})

t.test('a target without a required feature is a one-line error', { buffered: true }, async t => {
  const gateway = await startGateway(t, { client: { allow_anonymous_connect_without_token: true } })
  const [transport, channels] = await Promise.all([
    CliRun.start(t, 'comet-million', '--scale', '0.00001', '--target', gateway.url),
    CliRun.start(t, 'one-to-one', '--scale', '0.000001', '--target', gateway.url, '--api-key', 'key'),
  ])
  t.equal(await transport.code, 1)
  t.match(
    transport.stderr,
    /^halley: .* does not accept connections: HTTP 404: the uni_http_stream transport does not exist or is disabled/m,
  )
  t.equal(await channels.code, 1)
  t.match(channels.stderr, /^halley: .* refuses subscriptions: .*103 permission denied/m)
  t.notMatch(channels.stderr, /at .*\.js:\d+/, 'no stack')
  t.equal(existsSync(join(channels.out, 'result.json')), false)
})

t.test('an interrupted run keeps its results', { buffered: true }, async t => {
  const run = await CliRun.start(t, 'one-to-one', '--scale', '0.00001', '--seconds', '600')
  await run.printed(/measuring/)
  run.child.kill('SIGINT')
  t.equal(await run.code, 1)
  t.match(run.stderr, /stopping the run; results so far are kept/)
  t.match(run.stdout, /Incomplete/)
  const result = await run.result()
  t.equal(result.partial, true)
  t.same(result.notes, ['The run was interrupted.'])
  t.match(await run.report(), /Incomplete/)
  t.same(await processesWith(run.dir), [])
})

t.test('a second signal ends a run immediately, with its exit status', { buffered: true }, async t => {
  const run = await CliRun.start(t, 'one-to-one', '--scale', '0.00001', '--seconds', '600')
  await run.printed(/measuring/)
  run.child.kill('SIGHUP')
  await run.printed(/stopping the run/)
  run.child.kill('SIGHUP')
  t.equal(await run.code, 129)
})

t.test('a run that is killed leaves no process behind', { buffered: true }, async t => {
  const run = await CliRun.start(t, 'chaos', '--redis', '--scale', '0.005', '--seconds', '600')
  await run.printed(/settling|measuring/)
  // Gateway, workers, Redis, their supervisors, drone.
  await until(async () => (await processesWith(run.dir)).length >= 6)
  run.child.kill('SIGKILL')
  await until(async () => (await processesWith(run.dir)).length === 0)
  t.same(await processesWith(run.dir), [])
})
