// Arbitrary messages from a peer with the run's secret.

import { createHash } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { createInterface } from 'node:readline'
import t from 'tap'
import { Drone } from '../../../fleet/controller/drones.js'
import { Fleet } from '../../../fleet/controller/fleet.js'
import { checkMessage, checkResult } from '../../../fleet/controller/messages.js'
import { zeroTally } from '../../../fleet/controller/snapshot.js'
import { Engine } from '../../../fleet/drone/engine/engine.js'
import { machineFacts, machineUsage, ProcessUsage } from '../../../fleet/drone/machine.js'
import { dialLink } from '../../../fleet/link/tls.js'
import { saveProgram } from '../../../fleet/program.js'
import { Distributions } from '../../../fleet/statistics/distribution.js'
import { testdir } from '../../kit/folders.js'
import { until } from '../../kit/wait.js'
import { secretSocket } from '../agent-process.js'
import { snapshotOf } from './fleet-rig.js'

/** Messages of a real drone: the checks must accept them. */
async function realMessages() {
  const engine = new Engine({ allow: [], machine: 1 })
  engine.figures.latency.record(1.5)
  engine.figures.fault('ECONNREFUSED')
  const sample = engine.sample()
  await engine.stop()
  const facts = machineFacts(100)
  return JSON.parse(
    JSON.stringify([
      { type: 'hello', id: 'd1', run: 'r1', start: `${performance.timeOrigin}`, version: '1.2.3', facts },
      {
        type: 'sample',
        sample: {
          ...sample,
          exits: 0,
          at: Date.now(),
          up: Math.round(performance.now()),
          revision: 1,
          processes: [new ProcessUsage().now('agent', 0), new ProcessUsage().now('connections', 3)],
          machine: machineUsage(),
        },
      },
      { type: 'event', level: 'warn', text: 'a process ended' },
    ]),
  )
}

const ODD = [null, undefined, -1, 0.5, 1e300, '', 'x', true, [], {}, [null], [[]], 'x'.repeat(100_000)]

/** @param {any} value @param {string[]} [path] @returns {Generator<string[]>} of all values in it */
function* pathsOf(value, path = []) {
  if (path.length > 0) yield path
  if (typeof value !== 'object' || value === null) return
  for (const key of Object.keys(value)) yield* pathsOf(value[key], [...path, key])
}

/** @param {any} message @param {string[]} path @param {any} value */
function withAt(message, path, value) {
  const copy = structuredClone(message)
  let at = copy
  for (const key of path.slice(0, -1)) at = at[key]
  const last = /** @type {string} */ (path.at(-1))
  if (value === undefined) delete at[last]
  else at[last] = value
  return copy
}

t.test('fields with unusual values are refused with one line or harmless', async t => {
  const messages = await realMessages()
  for (const message of messages) t.equal(checkMessage(message), message, `${message.type}: a sound one`)
  const offenders = []
  let refused = 0
  for (const message of messages)
    for (const path of pathsOf(message))
      for (const odd of ODD) {
        const mutant = withAt(message, path, odd)
        try {
          checkMessage(mutant)
        } catch (error) {
          refused++
          const { length } = error.message
          if (error.constructor !== Error || /\n/.test(error.message) || length > 400)
            offenders.push(error.stack)
          continue
        }
        if (mutant.type !== 'sample') continue
        const drone = new Drone(
          /** @type {any} */ ({ id: 'd1', handle: null, start: 's', tally: zeroTally(), restarts: 0 }),
        )
        const distributions = new Distributions()
        for (let i = 0; i < 2; i++) {
          drone.receive(structuredClone(mutant.sample), Date.now())
          distributions.merge(mutant.sample)
        }
        const text = JSON.stringify(drone.row(Date.now(), drone.latencyNow(Date.now())))
        if (/NaN|"rates":\{[^}]*null/.test(text)) offenders.push(`${path.join('.')}: ${text}`)
      }
  t.same(offenders, [])
  t.ok(refused > 1000, `${refused} refused`)
})

t.test('errors name the field, its value and the allowed values', async t => {
  const [hello, sample] = await realMessages()
  const { facts, ...without } = hello
  t.ok(facts)
  t.throws(() => checkMessage(without), { message: 'hello.facts is missing: it must be an object' })
  t.throws(() => checkMessage(withAt(sample, ['sample', 'gauges', 'open'], -1)), {
    message: 'sample.sample.gauges.open is -1: it must be a whole number from 0 to 1000000000000000',
  })
  t.throws(() => checkMessage({ type: 'shell' }), { message: 'unknown message "shell" from a drone' })
  t.throws(() => checkMessage({ type: { toString: null } }), { message: /^unknown message/ })
  t.throws(() => checkResult('cut', {}), {
    message: /^the reply to cut\.cut is missing: it must be a whole/,
  })
  t.throws(() => checkResult('ledgers', [1]), { message: /^the reply to ledgers\[0\] is 1: it must be an/ })
})

/** A provider whose drones are links of the test. */
const hands = /** @type {any} */ ({
  name: 'hands',
  help: '',
  flags: {},
  plan: async (/** @type {any} */ { drones }) => ({ lines: [], price: null, details: drones }),
  launch: async (/** @type {any} */ { details }) =>
    details.map((/** @type {any} */ { id, run }) => ({ id, run, handle: id, where: 'here', state: 'up' })),
  find: async () => [],
  stop: async () => {},
  restart: async (/** @type {any} */ handle) => handle,
})

/** A controller with a planned launch, and links to it as its drones. @param {any} t @param {number} count of drones */
async function controllerOf(t, count) {
  const dir = testdir(t)
  const fleet = await Fleet.open({ dir, provider: hands })
  t.teardown(() => fleet.close())
  const events = /** @type {string[]} */ ([])
  fleet.on('event', ({ text }) => events.push(text))
  const plan = await fleet.plan(count, { allow: ['127.0.0.1'] })
  const [{ secret, controller }] = plan.details
  const [host, port] = controller.split(':')
  const at = { host, port: Number(port) }
  /** @param {string} [id] of the drone */
  const dial = async (id = 'd1') => {
    const line = await dialLink({ ...at, secret, identity: `${fleet.run}/${id}` })
    /** The reason. @type {Promise<string>} */
    const closed = new Promise(resolve => {
      line.onClose = resolve
    })
    line.onMessage = () => {}
    return { line, closed }
  }
  return { fleet, dir, events, plan, dial, secret, ...at }
}

t.test('a controller survives any message over its links', async t => {
  const { fleet, events, plan, dial } = await controllerOf(t, 1)
  const [sound, sample] = await realMessages()
  const hello = { ...sound, run: fleet.run }
  const launched = fleet.launch(plan, { timeout: 60_000 })

  for (const odd of [
    (({ facts, ...rest }) => rest)(hello),
    { ...hello, facts: null },
    { ...hello, facts: { ...hello.facts, capacity: 'many' } },
    { ...hello, id: ['d1'] },
    { ...hello, run: { toString: null } },
    { ...hello, id: 'd2' },
    { ...hello, start: 7 },
    sample,
    { type: 'answer', ask: 1, result: {} },
    {},
  ]) {
    const { line, closed } = await dial()
    line.send(odd)
    // An answer without a request is ignored.
    if (odd.type === 'answer') line.send({ type: 'nothing' })
    await closed
  }
  t.match(events.join('\n'), /was refused: invalid message: hello\.facts is missing/)

  const { line, closed } = await dial()
  /** Answer to a request. @type {(request: any) => any} */
  let answer = ({ ask }) => ({ type: 'answer', ask, result: {} })
  line.onMessage = request => line.send(answer(request))
  line.send(hello)
  t.same((await launched).up, ['d1'])
  line.send(sample)
  line.send({ type: 'answer', ask: 'x', error: {} })

  for (const result of [null, [], {}, { cut: 'all' }, { cut: -1 }]) {
    answer = ({ ask }) => ({ type: 'answer', ask, result })
    await t.rejects(fleet.cut(1, 'close'), { message: /^the reply to cut/ })
  }
  answer = ({ ask, type }) => ({ type: 'answer', ask, result: type === 'ledgers' ? [{}] : {} })
  await t.rejects(fleet.reconcile(), { message: /^the reply to ledgers\[0\]\.channels is missing/ })
  answer = ({ ask }) => ({ type: 'answer', ask, error: { not: 'text' } })
  await t.rejects(fleet.cut(1, 'close'), { message: '[object Object]' })
  // Responses may arrive in any order: the number of the request identifies them.
  const two = /** @type {any[]} */ ([])
  answer = request => {
    two.push(request)
    if (two.length < 2) return { type: 'event', level: 'info', text: 'waits' }
    line.send({ type: 'answer', ask: two[1].ask, result: { cut: two[1].share * 10 } })
    return { type: 'answer', ask: two[0].ask, result: { cut: two[0].share * 10 } }
  }
  t.same(await Promise.all([fleet.cut(0.1, 'close'), fleet.cut(0.5, 'reset')]), [1, 5])

  t.equal(fleet.snapshot().drones[0].state, 'up')
  line.send({ type: 'sample', sample: { ...sample.sample, counters: {} } })
  t.match(await closed, /closed/)
  t.match(
    events.join('\n'),
    /lost the connection to d1: invalid message: sample\.sample\.counters\.opened is missing/,
  )
  t.match(JSON.stringify(fleet.snapshot()), /"opened":0/)
})

t.test('a program is sent once per link, only to the drone of that link', async t => {
  const { fleet, dir, events, plan, dial } = await controllerOf(t, 1)
  const bytes = Buffer.from('program')
  const program = { sha256: createHash('sha256').update(bytes).digest('hex'), bytes }
  await saveProgram(dir, program)
  const launched = fleet.launch(plan, { timeout: 60_000 })
  const request = { type: 'program', id: 'd1', run: fleet.run, sha256: program.sha256, ask: 1 }

  const outcome = (/** @type {Promise<any>} */ answer) =>
    answer.then(
      () => 'answered',
      error => error.message,
    )
  /** @param {any} message @returns {Promise<string>} why the controller closes the connection, or `answered` */
  const refused = async message => {
    const { line, closed } = await dial()
    if (message.ask === 1) return await outcome(line.request(message))
    line.send(message)
    return await closed
  }
  for (const wrong of [
    { ...request, id: 'd2' },
    { ...request, run: 'another' },
    { ...request, run: undefined },
    { ...request, ask: {} },
    { ...request, ask: undefined },
    // First messages must be short.
    { ...request, more: 'x'.repeat(70_000) },
  ])
    t.match(await refused(wrong), /closed the connection|ECONNRESET/, JSON.stringify(wrong).slice(0, 200))
  t.match(events.join('\n'), /its hello names d2, but its identity is d1/)

  const { line } = await dial()
  t.teardown(() => line.close())
  const first = line.request(request)
  const second = outcome(line.request(request))
  t.equal(await first, program.bytes.toString('base64'))
  const { line: drone } = await connectDrone(dial, 'd1', fleet.run)
  t.same((await launched).up, ['d1'])
  // A link that has requested a program is no drone's link: its messages are ignored.
  line.send({ type: 'event', level: 'error', text: 'over the wrong link' })
  drone.send({ type: 'event', level: 'info', text: 'over the right link' })
  await until(() => events.join('\n').includes('over the right link'))
  t.notMatch(events.join('\n'), /wrong link/)
  await line.close()
  t.not(await second, 'answered', 'one program for each link')
  await drone.close()
})

/**
 * A drone that agrees to all requests unless it is mute.
 * @param {Awaited<ReturnType<typeof controllerOf>>['dial']} dial @param {string} id @param {string} run
 */
async function connectDrone(dial, id, run) {
  const { line } = await dial(id)
  const drone = { line, mute: false, requests: new EventEmitter() }
  line.onMessage = request => {
    if (!drone.mute) line.send({ type: 'answer', ask: request.ask, result: {} })
    drone.requests.emit('request', request)
  }
  const [sound] = await realMessages()
  line.send({ ...sound, id, run })
  return drone
}

/**
 * The same over a socket, which can stop reading.
 * @param {any} t @param {Awaited<ReturnType<typeof controllerOf>>} controller @param {string} id
 */
async function connectSocket(t, { fleet, secret, port }, id) {
  const socket = secretSocket(port, `${fleet.run}/${id}`, secret)
  t.teardown(() => socket.destroy())
  const lines = createInterface({ input: socket }).on('error', () => {})
  lines.on('line', text => {
    if (text !== '')
      socket.write(`${JSON.stringify({ type: 'answer', ask: JSON.parse(text).ask, result: {} })}\n`)
  })
  await once(socket, 'secureConnect')
  const [sound] = await realMessages()
  socket.write(`${JSON.stringify({ ...sound, id, run: fleet.run })}\n`)
  return socket
}

t.test('drones that do not read or reply do not delay the others', async t => {
  const controller = await controllerOf(t, 3)
  const { fleet, plan, dial } = controller
  const launched = fleet.launch(plan, { timeout: 60_000 })
  const mute = await connectDrone(dial, 'd1', fleet.run)
  const deaf = await connectSocket(t, controller, 'd2')
  const quick = await connectDrone(dial, 'd3', fleet.run)
  t.same((await launched).up.sort(), ['d1', 'd2', 'd3'])

  mute.mute = true
  deaf.pause()
  const received = new Promise(resolve =>
    quick.requests.on('request', request => request.settings?.connections > 0 && resolve(request)),
  )
  const ignored = once(mute.requests, 'request')
  let settled = false
  const set = fleet.set({ host: ['http://127.0.0.1:1'], n: 3 }).finally(() => {
    settled = true
  })
  t.match(await received, { type: 'settings', settings: { connections: 1 } })
  await ignored
  // Samples count meanwhile.
  const [, sample] = await realMessages()
  const counted = snapshotOf(fleet, ({ drones }) => Boolean(drones.find(({ id }) => id === 'd3')?.sample))
  quick.line.send(sample)
  await counted
  t.notOk(settled, 'the other responses are still awaited')
  // Drones that disconnect are not awaited.
  deaf.destroy()
  await mute.line.close()
  await set
  await quick.line.close()
})
