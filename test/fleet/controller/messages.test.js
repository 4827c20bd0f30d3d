// What somebody with the run's secret may say to the controller: anything.

import { createHash } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { createInterface } from 'node:readline'
import { connect as tlsConnect } from 'node:tls'
import t from 'tap'
import { Drone } from '../../../fleet/controller/drone.js'
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
import { snapshotOf } from './fleet-rig.js'

/** As a real drone says them, so that the shapes cannot be stricter than what comes. */
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
          deaths: 0,
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

/** @param {any} value @param {string[]} [path] @returns {Generator<string[]>} of all that is in it */
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

t.test('each field of each message with each odd value: refused in a line, or harmless', async t => {
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

t.test('an error names the field, its value, and what it must be', async t => {
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
    message: /^the answer to cut\.cut is missing: it must be a whole/,
  })
  t.throws(() => checkResult('ledgers', [1]), { message: /^the answer to ledgers\[0\] is 1: it must be an/ })
})

/** A provider whose drones are the test's own connections. */
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

t.test('a controller outlives whatever comes over its lines', async t => {
  const fleet = await Fleet.open({ dir: testdir(t), provider: hands })
  t.teardown(() => fleet.close())
  /** @type {string[]} */
  const events = []
  fleet.on('event', ({ text }) => events.push(text))
  const plan = await fleet.plan(1, { allow: ['127.0.0.1'] })
  const [{ secret, controller }] = plan.details
  const [host, port] = controller.split(':')
  const dial = () => dialLink({ host, port: Number(port), secret, identity: `${fleet.run}/d1` })
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
    const line = await dial()
    const closed = new Promise(resolve => {
      line.onClose = resolve
    })
    line.onMessage = () => {}
    line.send(odd)
    // An answer that nobody asked for is passed over.
    if (odd.type === 'answer') line.send({ type: 'nothing' })
    await closed
  }
  t.match(events.join('\n'), /was refused: invalid message: hello\.facts is missing/)

  const line = await dial()
  /** @type {any[]} */
  const orders = []
  /** What an order is answered. @type {(order: any) => any} */
  let answer = order => ({ type: 'answer', ask: order.ask, result: {} })
  line.onMessage = order => {
    orders.push(order)
    line.send(answer(order))
  }
  line.send(hello)
  t.same((await launched).up, ['d1'])
  line.send(sample)
  line.send({ type: 'answer', ask: 'x', error: {} })

  for (const result of [null, [], {}, { cut: 'all' }, { cut: -1 }]) {
    answer = ({ ask }) => ({ type: 'answer', ask, result })
    await t.rejects(fleet.cut(1, 'close'), { message: /^the answer to cut/ })
  }
  answer = ({ ask, type }) => ({ type: 'answer', ask, result: type === 'ledgers' ? [{}] : {} })
  await t.rejects(fleet.reckon(), { message: /^the answer to ledgers\[0\]\.channels is missing/ })
  answer = ({ ask }) => ({ type: 'answer', ask, error: { not: 'text' } })
  await t.rejects(fleet.cut(1, 'close'), { message: '[object Object]' })
  // Answers come in any order: each is that of its number.
  const two = /** @type {any[]} */ ([])
  answer = order => {
    two.push(order)
    if (two.length < 2) return { type: 'event', level: 'info', text: 'waits' }
    line.send({ type: 'answer', ask: two[1].ask, result: { cut: two[1].share * 10 } })
    return { type: 'answer', ask: two[0].ask, result: { cut: two[0].share * 10 } }
  }
  t.same(await Promise.all([fleet.cut(0.1, 'close'), fleet.cut(0.5, 'reset')]), [1, 5])

  t.equal(fleet.snapshot().drones[0].state, 'up')
  const lost = new Promise(resolve => {
    line.onClose = resolve
  })
  line.send({ type: 'sample', sample: { ...sample.sample, counters: {} } })
  t.match(await lost, /closed/)
  t.match(
    events.join('\n'),
    /lost the connection to d1: invalid message: sample\.sample\.counters\.opened is missing/,
  )
  t.match(JSON.stringify(fleet.snapshot()), /"opened":0/)
})

/**
 * A controller, and the means to speak to it as its drones.
 * @param {any} t
 * @param {number} count of drones that are launched
 */
async function controllerOf(t, count) {
  const dir = testdir(t)
  const fleet = await Fleet.open({ dir, provider: hands })
  t.teardown(() => fleet.close())
  /** @type {string[]} */
  const events = []
  fleet.on('event', ({ text }) => events.push(text))
  const plan = await fleet.plan(count, { allow: ['127.0.0.1'] })
  const [{ secret, controller }] = plan.details
  const [host, port] = controller.split(':')
  const dial = (/** @type {string} */ id) =>
    dialLink({ host, port: Number(port), secret, identity: `${fleet.run}/${id}` })
  return { fleet, dir, events, plan, dial, secret, host, port: Number(port) }
}

t.test('a program goes to the drone that dialled, once for each line, and to nobody else', async t => {
  const { fleet, dir, events, plan, dial } = await controllerOf(t, 1)
  const program = {
    sha256: createHash('sha256').update('program').digest('hex'),
    bytes: Buffer.from('program'),
  }
  await saveProgram(dir, program)
  const launched = fleet.launch(plan, { timeout: 60_000 })
  const asked = { type: 'program', id: 'd1', run: fleet.run, sha256: program.sha256, ask: 1 }

  /** @param {any} message @returns {Promise<string>} why the controller closes the connection, or what it answers */
  const refused = async message => {
    const line = await dial('d1')
    const closed = new Promise(resolve => {
      line.onClose = resolve
    })
    line.onMessage = () => {}
    if (message.ask !== 1) line.send(message)
    else
      return line.request(message).then(
        () => 'answered',
        error => error.message,
      )
    return await closed
  }
  for (const wrong of [
    { ...asked, id: 'd2' },
    { ...asked, run: 'another' },
    { ...asked, run: undefined },
    { ...asked, ask: {} },
    { ...asked, ask: undefined },
    // Whoever is not known yet has little to say.
    { ...asked, more: 'x'.repeat(70_000) },
  ])
    t.match(await refused(wrong), /closed the connection|ECONNRESET/, JSON.stringify(wrong).slice(0, 200))
  t.match(events.join('\n'), /it says hello as d2, but its identity is d1/)

  const line = await dial('d1')
  t.teardown(() => line.close())
  const first = line.request(asked)
  const second = line.request(asked).then(
    () => 'answered',
    () => 'closed',
  )
  t.equal(await first, program.bytes.toString('base64'))
  const { line: drone } = await sayHello(dial, 'd1', fleet.run)
  t.same((await launched).up, ['d1'])
  // It is no drone's line: nothing that comes over it counts.
  line.send({ type: 'event', level: 'error', text: 'not heard' })
  drone.send({ type: 'event', level: 'info', text: 'heard' })
  await until(() => events.join('\n').includes('heard'))
  t.notMatch(events.join('\n'), /not heard/)
  await line.close()
  t.equal(await second, 'closed', 'one program for each connection')
  await drone.close()
})

/**
 * A drone that agrees to all orders, as long as it is not told to be mute.
 * @param {(id: string) => Promise<import('../../../fleet/link/link.js').Link>} dial
 * @param {string} id
 * @param {string} run
 */
async function sayHello(dial, id, run) {
  const line = await dial(id)
  const drone = { line, mute: false, told: new EventEmitter() }
  line.onMessage = order => {
    if (!drone.mute) line.send({ type: 'answer', ask: order.ask, result: {} })
    drone.told.emit('order', order)
  }
  const [sound] = await realMessages()
  line.send({ ...sound, id, run })
  return drone
}

/**
 * The same over a socket that may stop to read.
 * @param {any} t
 * @param {{fleet: Fleet, secret: string, host: string, port: number}} controller
 * @param {string} id
 */
async function sayHelloOverSocket(t, { fleet, secret, host, port }, id) {
  const socket = tlsConnect({
    host,
    port,
    minVersion: 'TLSv1.3',
    pskCallback: () => ({ psk: Buffer.from(secret, 'hex'), identity: `${fleet.run}/${id}` }),
    checkServerIdentity: () => undefined,
  })
  t.teardown(() => socket.destroy())
  const lines = createInterface({ input: socket })
  for (const emitter of [socket, lines]) emitter.on('error', () => {})
  lines.on('line', text => {
    if (text !== '')
      socket.write(`${JSON.stringify({ type: 'answer', ask: JSON.parse(text).ask, result: {} })}\n`)
  })
  await once(socket, 'secureConnect')
  const [sound] = await realMessages()
  socket.write(`${JSON.stringify({ ...sound, id, run: fleet.run })}\n`)
  return socket
}

t.test('a drone that does not read, and one that does not answer, hold up no other', async t => {
  const controller = await controllerOf(t, 3)
  const { fleet, plan, dial } = controller
  const launched = fleet.launch(plan, { timeout: 60_000 })
  const mute = await sayHello(dial, 'd1', fleet.run)
  const deaf = await sayHelloOverSocket(t, controller, 'd2')
  const quick = await sayHello(dial, 'd3', fleet.run)
  t.same((await launched).up.sort(), ['d1', 'd2', 'd3'])

  mute.mute = true
  deaf.pause()
  const heard = new Promise(resolve =>
    quick.told.on('order', order => order.settings?.connections > 0 && resolve(order)),
  )
  const unheard = once(mute.told, 'order')
  let settled = false
  const set = fleet.set({ host: ['http://127.0.0.1:1'], n: 3 }).finally(() => {
    settled = true
  })
  t.match(await heard, { type: 'settings', settings: { connections: 1 } })
  await unheard
  // Its samples count meanwhile.
  const [, sample] = await realMessages()
  const counted = snapshotOf(fleet, ({ drones }) => Boolean(drones.find(({ id }) => id === 'd3')?.sample))
  quick.line.send(sample)
  await counted
  t.notOk(settled, 'the others are still waited for')
  // What is gone is not waited for.
  deaf.destroy()
  await mute.line.close()
  await set
  await quick.line.close()
})
