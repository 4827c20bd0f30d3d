import t from 'tap'
import { COUNTERS } from '../../fleet/statistics/counters.js'
import { startGateway } from '../kit/gateway.js'
import { until } from '../kit/wait.js'
import { lives, startDrone } from './agent-process.js'

const gateway = await startGateway(t, {
  workers: 1,
  client: { allow_anonymous_connect_without_token: true },
  uni_http_stream: { enabled: true },
})
const target = { targets: [gateway.url], backoff: { min: 50, max: 200 } }

/** @param {number} count @returns {Promise<unknown>} when the gateway has as many clients */
const clients = count =>
  until(async () => {
    const { nodes } = (await gateway.api('info')).result
    return nodes.reduce((sum, node) => sum + node.num_clients, 0) === count
  })

/** @param {any[]} samples */
const falls = samples =>
  COUNTERS.filter(name =>
    samples.some(({ counters }, i) => i > 0 && counters[name] < samples[i - 1].counters[name]),
  )

t.test('connections of an exited process count as closed', async t => {
  const drone = await startDrone(t, { perProcess: 40 })
  const streams = { ...target, transport: 'uni_http_stream' }
  await drone.set({ ...streams, connections: 100 })
  await drone.sample(({ gauges }) => gauges.open === 100)
  const pids = drone.pids.slice(1)
  await drone.set({ ...streams, connections: 30 })
  const fewer = await drone.sample(({ gauges, processes }) => gauges.open === 30 && processes.length === 2)
  t.match(fewer.counters, { closed: 70, ended: 0, failed: 0 })
  t.equal(pids.filter(lives).length, 0)
  await clients(30)
  t.same(await drone.ask('stop'), {})
  await clients(0)
})

t.test('a drone distributes its connections among processes', async t => {
  const drone = await startDrone(t, { perProcess: 40 })
  const { facts, id, run } = drone.hellos[0]
  t.same({ id, run }, { id: 'd1', run: 'r1' })
  t.match(facts, { hostname: String, bootId: String, node: process.version, cores: Number, memory: Number })
  t.ok(facts.capacity > 0 && facts.files > 0 && lives(facts.pid))
  t.same(await drone.set({ ...target, connections: 100 }), {})
  const full = await drone.sample(({ gauges }) => gauges.open === 100)
  t.same(full.gauges, { wanted: 100, opening: 0, open: 100 })
  t.equal(full.counters.opened, 100)
  t.equal(full.connect.count > 0 || drone.samples.some(({ connect }) => connect.count > 0), true)
  const [agent, ...children] = full.processes
  t.match(agent, { role: 'agent', pid: facts.pid })
  t.same(
    children.map((/** @type {any} */ { role, connections }) => `${role} ${connections}`),
    ['connections 40', 'connections 40', 'connections 20'],
  )
  t.ok(children.every(({ cpu, rss, private: own, base }) => cpu > 0 && rss > own && own > 0 && base > 0))
  t.match(full.machine, { cores: Number, netIn: Number, sockets: Number, tcpMemory: Number })
  t.equal(full.revision, 1)
  await clients(100)

  t.test('a killed process is replaced without losing counts', async t => {
    process.kill(drone.pids[0], 'SIGKILL')
    const again = await drone.sample(({ exits, gauges }) => exits === 1 && gauges.open === 100)
    t.equal(again.counters.opened, 140)
    t.equal(again.counters.ended, 40)
    t.same(falls(drone.samples), [])
    t.match(drone.events, [/connections process \d+ with 40 connections exited \(SIGKILL\)/])
  })

  t.test('fewer connections need fewer processes; cut connections are reopened', async t => {
    await drone.set({ ...target, connections: 30 })
    const fewer = await drone.sample(({ gauges, processes }) => gauges.open === 30 && processes.length === 2)
    t.same(falls([...drone.samples, fewer]), [])
    t.equal(fewer.counters.opened - fewer.counters.closed - fewer.counters.ended, 30)
    t.same(await drone.ask('cut', { share: 0.5, how: 'reset' }), { cut: 15 })
    await drone.sample(({ gauges, counters }) => gauges.open === 30 && counters.reconnects === 15)
  })

  t.test('restart replaces all processes', async t => {
    const before = drone.pids
    t.same(await drone.ask('restart'), {})
    t.notOk(before.some(lives))
    const sample = await drone.sample(({ gauges }) => gauges.open === 30)
    t.equal(sample.exits, 1)
    t.same(falls(drone.samples), [])
  })

  t.test('an invalid request is an error without effect', async t => {
    for (const [settings, message] of /** @type {[any, RegExp][]} */ ([
      [{ targets: ['http://192.0.2.1:80'] }, /192\.0\.2\.1:80 is not allowed/],
      [{ targets: ['file:///etc/passwd'] }, /is not a URL/],
      [{ channels: ['a{'] }, /"a\{" is not a channel/],
      [{ connections: -1 }, /settings\.connections is -1: it must be a whole number/],
      [{ connections: 1e9 }, /connections is 1000000000: this drone can hold at most \d+/],
      [{ first: 0.5 }, /settings\.first is 0\.5: it must be a whole number/],
      [{ channels: [1] }, /settings\.channels\[0\] is 1: it must be text/],
      [{ backoff: null }, /settings\.backoff is null: it must be an object/],
      [{ publish: {} }, /settings\.publish\.via is missing: it must be one of api, single, nchan, client/],
      [{ transport: 'toString' }, /transport/],
      [{ ports: '9-1' }, /ports/],
    ]))
      await t.rejects(drone.set({ ...target, connections: 30, ...settings }), { message })
    for (const [type, rest, message] of /** @type {[string, any, RegExp][]} */ ([
      ['shell', {}, /unknown request "shell"; known requests are settings, cut/],
      ['constructor', {}, /unknown request/],
      ['settings', {}, /settings\.revision is missing/],
      ['cut', { share: 2, how: 'stop' }, /cut\.share is 2: it must be a number from 0 to 1/],
      ['reconcile', { ledgers: [1] }, /reconcile\.ledgers\[0\] is 1: it must be an object/],
    ]))
      await t.rejects(drone.ask(type, rest), { message })
    drone.link?.send({ type: { toString: null } })
    const sample = await drone.sample()
    t.same(sample.gauges, { wanted: 30, opening: 0, open: 30 })
    t.equal(sample.exits, 1)
  })

  t.test('stop closes the connections, replies, and ends the drone', async t => {
    const { pids } = drone
    t.same(await drone.ask('stop'), {})
    t.same(await drone.exited, { code: 0, signal: null })
    t.notOk(pids.some(lives))
    await clients(0)
  })
})
