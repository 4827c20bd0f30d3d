import t from 'tap'
import { parseTemplate } from '../../fleet/channel-template.js'
import { fleetRun } from '../../fleet/cli/run.js'
import { planLines, planRun } from '../../fleet/runner/plan.js'
import { findScenario, SCENARIOS } from '../../fleet/scenarios/index.js'
import { dronesFor, loopbackAddresses, workersFor } from '../../fleet/scenarios/sizing.js'
import { SETTINGS } from '../../fleet/settings.js'

const MACHINE = { cores: 2, files: 20_000, target: false, local: true }

/** @param {string} name @param {number} scale @param {object} [more] */
const plan = (name, scale, more = {}) => findScenario(name).plan({ ...MACHINE, scale, ...more })

t.test('every scenario has a plan at every scale, for the own gateway and other targets', async t => {
  for (const scenario of SCENARIOS) {
    for (const scale of [1, 0.1, 0.001, 0.00001]) {
      for (const more of [{}, { redis: true }, { local: false, target: true }, { cores: 64, files: 1e6 }]) {
        const { steps, gateway, drones, size } = scenario.plan({ ...MACHINE, ...more, scale })
        const name = `${scenario.name} ${scale} ${JSON.stringify(more)}`
        t.ok(drones >= 1 && gateway.workers >= 1 && steps.length >= 1, name)
        t.equal(Math.max(...steps.map(({ settings }) => settings.n ?? 0)), size.connections, name)
        for (const step of steps) t.same(faultsOf(step), [], `${name}: ${step.name}`)
      }
    }
  }
})

/**
 * @param {import('../../fleet/scenarios/contract.js').Step} step
 * @returns {string[]} invalid settings
 */
function faultsOf({ settings, ramp, seconds }) {
  const faults = []
  if (!(ramp >= 0 && Number.isFinite(ramp) && seconds > 0)) faults.push(`ramp ${ramp} s, ${seconds} s`)
  if (!(Number.isInteger(settings.n) && Number(settings.n) > 0)) faults.push(`n ${settings.n}`)
  for (const [key, value] of Object.entries(settings)) {
    try {
      const text = Array.isArray(value) ? value.join(',') : String(value)
      SETTINGS.find(({ name }) => name === key)?.parse(text) ?? faults.push(`there is no setting ${key}`)
    } catch (error) {
      faults.push(`${key}: ${error.message}`)
    }
  }
  for (const channel of [...(settings.channels ?? []), ...(settings.publish_channels ?? [])])
    parseTemplate(channel)
  return faults
}

t.test('plans at full scale have the published load', async t => {
  const comet = plan('comet-million', 1)
  t.match(comet.steps[0].settings, { n: 1_000_000, transport: 'uni_http_stream', channels: [] })
  t.match(comet.gateway.config, { client: { ping_interval: '20s' }, uni_http_stream: { enabled: true } })
  t.equal(plan('comet-million', 1, { local: false, target: true }).drones, 40, '25,000 connections each')
  const leave = (/** @type {number} */ scale, /** @type {boolean} */ local) =>
    plan('comet-million', scale, { local }).steps[1].disturbances?.[0]
  t.match(leave(1, false), { kind: 'leave', share: 0.4, over: 0 })
  t.match(leave(0.1, true), { over: 0 })
  t.match(leave(1, true), { over: 67 }, '400,000 at once are too many for the cores of the gateway')
  t.match(comet.differs.join(' '), /400,000 clients leave within 67 s instead of at once/)

  const one = plan('one-to-one', 1, { local: false, target: true })
  t.match(one.steps[0].settings, {
    n: 12_000_000,
    channels: ['s{1..12000000}'],
    publish_rate: 200_000,
    publish_size: 512,
    publishers: 8,
  })

  const fan = plan('fan-100', 1, { local: false, target: true })
  t.same(
    fan.steps.map(({ settings }) => settings.n),
    [24_000, 48_000, 72_000, 96_000, 120_000, 144_000, 168_000, 192_000],
  )
  t.match(fan.steps[7], { seconds: 600, settings: { channels: ['s{random 1..100}'], publish_rate: 1000 } })

  const big = plan('big-channel', 1)
  t.same(
    big.steps.map(({ settings: { n, publish_rate } }) => `${n} x ${publish_rate}`),
    ['500 x 30', '3000 x 4', '500 x 250', '3000 x 60', '100000 x 0'],
  )

  const group = plan('personal-and-group', 1).steps[0].settings
  t.match(group, { n: 1_000_000, channels: ['personal:{own}', 'group:{group 10}'], publish_size: 100 })
  t.equal(Math.round((Number(group.publish_rate) / 2) * 11 * 60), 28_000_000, 'received in a minute')
  t.equal(Math.round(Number(group.churn) * 60), 200_000, 'a minute')
  t.equal(parseTemplate('group:{group 10}').count(1_000_000), 100_000)
  t.same(group.publish_channels, ['personal:{1..1000000}', 'group:{1..100000}'])
})

t.test('published figures are listed with the differences to the run', async t => {
  for (const scenario of SCENARIOS) {
    const { differs } = scenario.plan({ ...MACHINE, scale: 0.1 })
    t.equal(scenario.published.length > 0, scenario.source !== '', scenario.name)
    if (scenario.source === '') continue
    t.match(differs.join(' '), /10\s% of the published connections/)
    t.match(differs.join(' '), /shared this machine \(2 cores\)/)
    t.match(differs.join(' '), /loopback/)
    for (const { label, value } of scenario.published) t.ok(label !== '' && value !== '', label)
  }
  const full = findScenario('comet-million').plan({ ...MACHINE, scale: 1, local: false, target: true })
  t.notMatch(full.differs.join(' '), /of the published connections|loopback|this machine/)
})

t.test('workers, drones and addresses follow the number of connections', async t => {
  t.equal(workersFor(1000, { cores: 2, files: 20_000 }), 2)
  t.equal(workersFor(100_000, { cores: 2, files: 20_000 }), 6, '17,000 files each')
  t.equal(dronesFor(100_000, { local: false }), 4)
  t.same(loopbackAddresses(20_000), [])
  t.same(loopbackAddresses(100_000), ['127.0.1.1-127.0.1.4'])
})

t.test('chaos only disturbs processes of the run', async t => {
  const kinds = (/** @type {object} */ more) =>
    plan('chaos', 0.1, more).steps[0].disturbances?.map(({ kind }) => kind) ?? []
  const restarts = ['reload', 'restart-workers', 'restart-gateway', 'kill-gateway']
  const own = ['kill-worker', 'cut', 'freeze-worker', ...restarts, 'cut']
  t.same(kinds({}), own)
  t.same(
    kinds({ redis: true }),
    own.toSpliced(3, 0, 'stop-redis', 'start-redis', 'kill-redis', 'start-redis'),
  )
  t.same(kinds({ target: true }), ['cut', 'cut'], 'workers of other servers are not disturbed')
})

t.test('the error for an unknown scenario suggests the nearest name', async t => {
  t.throws(() => findScenario('comet-milion'), { message: /"comet-milion"; did you mean comet-million\?/ })
})

t.test('options override the scenario', async t => {
  const request = { target: [], local: true, redis: false, scale: 0.01 }
  const scenario = findScenario('chaos')
  const overrides = { publish_size: 1000, rate: 10 }
  const run = await planRun({ ...request, scenario, seconds: 6, drones: 3, workers: 5, overrides })
  const [step] = run.steps
  t.match(run, { drones: 3, gateway: { workers: 5 } })
  t.match(step, { seconds: 6, ramp: 10, settings: { n: 100, rate: 10, publish_size: 1000, addresses: [] } })
  t.same(
    step.disturbances?.map(({ at }) => Math.round(at * 10) / 10),
    [0.4, 0.9, 1.4, 2.8, 3.2, 3.6, 4.5, 5.4],
    'in the same part of the time',
  )
  const redis = await planRun({ ...request, scenario, overrides: {}, redis: true, faults: ['kill-redis'] })
  t.same(
    redis.steps[0].disturbances?.map(({ kind }) => kind),
    ['kill-redis', 'start-redis'],
  )
  const lines = planLines(scenario, run, { target: [], scale: 0.01 })
  t.match(
    lines.join('\n'),
    /5 workers.*\n.*measure 6 s; .*publish_size=1000.*\n {2}after 0\.4 s: kill-worker/,
  )
  const comet = findScenario('comet-million')
  const large = await planRun({ ...request, scenario: comet, scale: 0.1, overrides: {} })
  t.same(large.steps[0].settings.addresses, ['127.0.1.1-127.0.1.4'], 'one address has too few ports')
  t.equal(large.steps[0].settings.ports, '20000-65000', 'the kernel would search long for a port')
  await t.rejects(planRun({ ...request, scenario, local: false, overrides: {} }), /use --target/)
  const some = await planRun({ ...request, scenario, overrides: {}, faults: ['cut'], rounds: 2, seconds: 60 })
  t.same(
    some.steps[0].disturbances?.map(({ at, kind }) => `${kind} ${at}`),
    ['cut 4.5', 'cut 27', 'cut 34.5', 'cut 57'],
  )
  const both = planRun({ ...request, scenario, redis: true, target: ['http://h:1'], overrides: {} })
  await t.rejects(both, /--redis cannot be combined with --target/)
})

t.test('other servers get only the load that they support', async t => {
  const request = { target: [], local: true, redis: false, scale: 0.01, overrides: {} }
  const fan = { ...request, scenario: findScenario('fan-100') }
  const planOf = async (/** @type {object} */ more) => (await planRun({ ...fan, ...more })).steps[0].settings
  t.match(await planOf({ server: 'uws' }), { transport: 'uni_bare', publish_via: 'single', n: 240 })
  t.match(await planOf({ server: 'nchan' }), { transport: 'uni_bare', publish_via: 'nchan' })
  t.match(await planOf({ server: 'socket.io' }), { transport: 'uni_socket_io', publish_via: 'single' })
  t.match(await planOf({ single: true, transport: 'sse' }), { transport: 'sse', publish_via: 'single' })
  t.equal((await planRun({ ...fan, steps: ['2'] })).steps[0].name, '48,000 published')
  await t.rejects(planRun({ ...fan, steps: ['9'] }), /unknown step "9"; use one of 1 \(24,000 published\)/)
  await t.rejects(planRun({ ...fan, nodes: 2 }), /--nodes requires --engine redis/)
  const groups = { ...request, scenario: findScenario('personal-and-group'), server: 'ws' }
  await t.rejects(planRun(groups), /ws cannot run this scenario: a connection has several channels/)
  const redis = { ...fan, redis: true, nodes: 2, workers: 1, history: true, driver: 'node' }
  const { gateway, steps } = await planRun(redis)
  t.match(gateway, { nodes: 2, workers: 1, redis: true })
  t.match(gateway.config, {
    http_server: { driver: 'node' },
    channel: { without_namespace: { history_size: 10, force_recovery: true } },
  })
  t.equal(steps[0].settings.recover, true)
  t.match((await planRun({ ...redis, server: 'embedded' })).gateway, { nodes: 1, workers: 2, redis: false })
})

t.test('fleet run --list wraps at words within the terminal width', async t => {
  let out = ''
  const stdout = (/** @type {string} */ text) => void (out += text)
  const io = {
    env: {},
    cwd: '/',
    terminal: false,
    stdout,
    stderr: (/** @type {string} */ text) => void t.fail(text),
  }
  t.equal(await fleetRun.run(io, { words: [], list: true }), 0)
  const width = Math.min(process.stdout.columns ?? 80, 120)
  t.same(
    out.split('\n').filter(line => line.length > width),
    [],
  )
  const words = out.split(/\s+/)
  for (const { name, load } of SCENARIOS)
    for (const word of [name, ...load.split(' ')]) t.ok(words.includes(word))
})
