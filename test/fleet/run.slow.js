// Whole runs, small: a gateway and drones are started, every message is accounted for, and nothing is left behind.

import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { local } from '../../fleet/providers/local.js'
import { parseLimits } from '../../fleet/runner/limits.js'
import { runScenario } from '../../fleet/runner/run.js'
import { chaos } from '../../fleet/scenarios/chaos.js'
import { fan100 } from '../../fleet/scenarios/fan-100.js'
import { startGateway } from '../kit/gateway.js'
import { until } from '../kit/wait.js'
import { CliRun, processesWith } from './run-rig.js'

// They wait more than they work, so they wait together.
t.jobs = 4

/** @param {import('../../fleet/scenarios/contract.js').Disturbance[]} disturbances instead of its own */
const chaosOf = disturbances => ({
  ...chaos,
  plan: (/** @type {import('../../fleet/scenarios/contract.js').PlanOptions} */ options) => {
    const plan = chaos.plan(options)
    return { ...plan, steps: [{ ...plan.steps[0], disturbances }] }
  },
})

t.test('comet-million, a little of it: nothing lost, and a report', { buffered: true }, async t => {
  const run = await CliRun.start(t, 'comet-million', '--scale', '0.0003', '--seconds', '3', '--no-loss')
  t.equal(await run.code, 0, run.stderr)
  t.match(run.stdout, /holds {3}--no-loss: nothing lost/)
  t.match(run.stdout, /out\/report\.html/)
  const files = ['fleet.csv', 'gateway.csv', 'gateway.json', 'gateway.log', 'report.html', 'result.json']
  t.same((await readdir(run.out)).sort(), files)
  const result = await run.result()
  t.match(result, { scenario: 'comet-million', scale: 0.0003, partial: false, ownGateway: true, notes: [] })
  t.equal(result.plan?.config.client.ping_interval, '20s')
  const [step] = result.steps
  t.match(step.connections, { wanted: 300, open: 300, least: 300 })
  t.equal(step.ramp.opened, 300)
  t.ok(step.ramp.peak > 0)
  t.ok((step.gateway?.cpu ?? 0) > 0, 'the gateway was watched')
  t.match(step.drones, [{ where: 'local', connections: 300 }])
  t.ok(step.drones[0].cpu > 0)
  t.ok(step.drones[0].memory > 1e6)
  t.match(result.accounting, { opened: 300, ended: 0, failed: 0 })
  t.match(result.comparison[0], { label: 'Connections', value: '1,000,000', ours: '300' })
  t.ok(result.machine.kernel['net.core.somaxconn'])
  t.match(await run.report(), /Published, and here/)
  t.same(await processesWith(run.dir), [], 'nothing is left')
})

t.test(
  'chaos: workers and gateway killed, connections cut, each message accounted for',
  { buffered: true },
  async t => {
    const run = await CliRun.start(
      t,
      'chaos',
      '--scale',
      '0.02',
      '--seconds',
      '8',
      '--no-loss',
      '--max-max',
      '1us',
    )
    t.equal(await run.code, 1, 'the other limit cannot hold')
    const { steps, accounting, notes, limits } = await run.result()
    t.same(notes, [], 'every disturbance was carried out')
    t.match(
      steps[0].disturbances.map(({ text }) => text),
      [
        /^worker \d+ killed with SIGKILL/,
        /^\d+ connections cut \(30\s%\)/,
        /^worker \d+ stopped with SIGSTOP, (?:replaced by the gateway|continued with SIGCONT) after/,
        /^a reload of a key that takes new workers, which took/,
        /^all workers replaced in a rolling restart of/,
        /^the gateway ended with SIGTERM and started again from its snapshot/,
        /^the gateway killed with SIGKILL and started again, .* its history lost/,
        /^\d+ connections cut \(100\s%\)/,
      ],
    )
    t.match(accounting, { lost: 0, duplicates: 0, disordered: 0, damaged: 0, unknown: 0 })
    t.ok(accounting.expected > 1000)
    t.equal(
      accounting.received + accounting.missed,
      accounting.expected,
      'each message came once, or was declared',
    )
    t.equal(accounting.unrecovered, 200, 'each subscription was told once that the history was lost')
    t.ok(accounting.recovered > 0, 'and recovered after other disturbances')
    t.same(
      limits.map(({ limit, broken }) => [limit, broken]),
      [
        ['--max-max', true],
        ['--no-loss', false],
      ],
    )
    t.match(run.stdout, /broken {2}--max-max 1us \(200 connections\): [\d.,]+\sm?s/)
    t.match(run.stderr, /halley: a limit is broken\n$/)
  },
)

t.test(
  'chaos: a clean end with a snapshot, and a new start: nothing is lost',
  { buffered: true },
  async t => {
    const { result, failure } = await runScenario({
      scenario: chaosOf([{ at: 10, kind: 'restart-gateway' }]),
      scale: 0.01,
      out: t.testdir(),
      provider: local,
      seconds: 6,
      limits: parseLimits({ 'no-loss': true }),
    })
    t.equal(failure, '')
    t.same(result.notes, [], 'the disturbance was carried out')
    t.match(
      result.steps[0].disturbances.map(({ text }) => text),
      [/^the gateway ended with SIGTERM and started again from its snapshot/],
    )
    const { lost, duplicates, disordered, unrecovered, missed, recovered } = result.accounting
    t.same([lost, duplicates, disordered, unrecovered, missed], [0, 0, 0, 0, 0])
    t.ok(recovered >= 100, 'each subscription went on where it was')
    t.match(result.limits, [{ limit: '--no-loss', broken: false }])
  },
)

t.test(
  'chaos with Redis, which is stopped and started again, as is the gateway',
  { buffered: true },
  async t => {
    const { result, failure } = await runScenario({
      scenario: chaosOf([
        { at: 10, kind: 'stop-redis' },
        { at: 20, kind: 'start-redis' },
        { at: 35, kind: 'kill-gateway' },
      ]),
      scale: 0.005,
      out: t.testdir(),
      provider: local,
      redis: true,
      seconds: 8,
      limits: parseLimits({ 'no-loss': true }),
    })
    t.equal(failure, '')
    const { steps, gateway, accounting, limits } = result
    t.equal(gateway?.facts.engine, 'redis')
    const happened = steps[0].disturbances.map(({ text }) => text).join('; ')
    t.match(happened, /Redis stopped; Redis started again.*the gateway killed with SIGKILL and started again/)
    t.match(accounting, { lost: 0, missed: 0, unrecovered: 0 }, 'Redis has the history of a killed gateway')
    t.equal(accounting.received, accounting.expected)
    t.ok(accounting.expected > 300)
    t.match(limits, [{ limit: '--no-loss', broken: false }])
  },
)

t.test('a ladder of steps against a server that is there already', { buffered: true }, async t => {
  const gateway = await startGateway(t, {
    client: { allow_anonymous_connect_without_token: true },
    channel: {
      without_namespace: { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true },
    },
  })
  // The first step and the last: eight of them would take their time.
  const scenario = {
    ...fan100,
    plan: (/** @type {import('../../fleet/scenarios/contract.js').PlanOptions} */ options) => {
      const plan = fan100.plan(options)
      return { ...plan, steps: [plan.steps[0], plan.steps[7]] }
    },
  }
  const out = t.testdir()
  const said = /** @type {string[]} */ ([])
  const { result, failure } = await runScenario({
    scenario,
    scale: 0.001,
    out,
    provider: local,
    target: [gateway.url],
    apiKey: 'key',
    seconds: 4,
    limits: parseLimits({ 'no-loss': true, 'max-p99': '0.1us', 'min-connections': '24' }),
    progress: text => said.push(text),
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
    // Of a connection that a busy machine has ended, `missed` are those of its absence.
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
  const measuring = said.filter(text => text.includes('measuring')).at(-1) ?? ''
  t.match(
    measuring,
    /192,000 published: measuring \d+\/4 s · 192 of 192 connections · [\d,]+\/s received · p99 .*0 lost/,
  )
})

t.test('a target without what the scenario needs is said in one line', { buffered: true }, async t => {
  const gateway = await startGateway(t, { client: { allow_anonymous_connect_without_token: true } })
  const [transport, channels] = await Promise.all([
    CliRun.start(t, 'comet-million', '--scale', '0.00001', '--target', gateway.url),
    CliRun.start(t, 'one-to-one', '--scale', '0.000001', '--target', gateway.url, '--api-key', 'key'),
  ])
  t.equal(await transport.code, 1)
  t.match(
    transport.stderr,
    /^halley: .* takes no connections: HTTP 404: the uni_http_stream transport does not exist or is disabled/m,
  )
  t.equal(await channels.code, 1)
  t.match(channels.stderr, /^halley: .* refuses the subscriptions: .*103 permission denied/m)
  t.notMatch(channels.stderr, /at .*\.js:\d+/, 'no stack')
  t.equal(existsSync(join(channels.out, 'result.json')), false)
})

t.test('a run that is interrupted keeps what it has, and says so', { buffered: true }, async t => {
  const run = await CliRun.start(t, 'one-to-one', '--scale', '0.00001', '--seconds', '600')
  await run.said(/measuring/)
  run.child.kill('SIGINT')
  t.equal(await run.code, 1)
  t.match(run.stderr, /ending the run; results so far are kept/)
  t.match(run.stdout, /Not to its end/)
  const result = await run.result()
  t.equal(result.partial, true)
  t.same(result.notes, ['The run was ended before its end.'])
  t.match(await run.report(), /Not to its end/)
  t.same(await processesWith(run.dir), [])
})

t.test('a second signal ends a run at once, with the status of the signal', { buffered: true }, async t => {
  const run = await CliRun.start(t, 'one-to-one', '--scale', '0.00001', '--seconds', '600')
  await run.said(/measuring/)
  run.child.kill('SIGHUP')
  await run.said(/ending the run/)
  run.child.kill('SIGHUP')
  t.equal(await run.code, 129)
})

t.test('a run that is killed leaves no process behind', { buffered: true }, async t => {
  const run = await CliRun.start(t, 'chaos', '--redis', '--scale', '0.005', '--seconds', '600')
  await run.said(/settling|measuring/)
  // Gateway, workers, Redis, their keepers, drone.
  await until(async () => (await processesWith(run.dir)).length >= 6)
  run.child.kill('SIGKILL')
  await until(async () => (await processesWith(run.dir)).length === 0)
  t.same(await processesWith(run.dir), [])
})
