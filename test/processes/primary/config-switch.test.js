import t from 'tap'
import { ConfigSwitch } from '../../../src/processes/primary/config-switch.js'

/** A worker that answers as the test says. */
class FakeWorker {
  config = 'old'
  /** @type {any[]} */
  messages = []
  killed = ''
  onKill = () => {}

  /** @param {number} index @param {(message: any, worker: FakeWorker) => void} onMessage */
  constructor(index, onMessage) {
    this.index = index
    this.title = `worker ${index}`
    this.onMessage = onMessage
  }

  send(message) {
    this.messages.push(message)
    // Not in a later turn: a process that stands still would be at its timeout before.
    queueMicrotask(() => this.onMessage(message, this))
    return true
  }

  kill(reason) {
    this.killed = reason
    this.onKill()
  }

  get types() {
    return this.messages.map(({ type }) => type)
  }
}

/**
 * @param {((message: any, worker: FakeWorker) => string | null | undefined)[]} answers reason of a refusal,
 *   null: done, undefined: none @param {number} [timeout]
 */
function makeSwitch(answers, timeout = 60_000) {
  const workers = answers.map(
    (answer, index) =>
      new FakeWorker(index, (message, worker) => {
        const error = answer(message, worker)
        if (error !== undefined) it.onMessage(/** @type {any} */ (worker), { id: message.id, error })
      }),
  )
  const it = new ConfigSwitch(() => /** @type {any} */ (workers), timeout)
  let adopted = 0
  const prepared = ({ index }) => ({ config: `new ${index}`, cursorKey: 'k' })
  const run = () => it.run(/** @type {any} */ (prepared), () => adopted++)
  return { it, workers, run, adopted: () => adopted }
}

const well = () => null

t.test('all prepare before anyone commits', async t => {
  /** @type {string[]} */
  const order = []
  const answer = ({ type }) => {
    order.push(type)
    return null
  }
  const { workers, run, adopted } = makeSwitch([answer, answer, answer])
  await run()
  t.strictSame(order, ['prepare', 'prepare', 'prepare', 'commit', 'commit', 'commit'])
  t.equal(adopted(), 1)
  t.strictSame(
    workers.map(({ config }) => config),
    ['new 0', 'new 1', 'new 2'],
  )
  t.match(workers[1].messages[0], { config: 'new 1', cursorKey: 'k' })
})

t.test('one refusal: nothing changes', async t => {
  const { workers, run, adopted } = makeSwitch([well, () => 'a bad key', well])
  await t.rejects(run(), { message: 'worker 1: a bad key' })
  t.equal(adopted(), 0)
  for (const { types, config } of workers) {
    t.strictSame(types, ['prepare'])
    t.equal(config, 'old')
  }
})

t.test('a worker that ends in either step is not waited for', async t => {
  for (const step of ['prepare', 'commit']) {
    const { it, run, adopted } = makeSwitch([
      well,
      ({ type }, worker) => {
        if (type !== step) return null
        it.ended(/** @type {any} */ (worker))
        return undefined
      },
    ])
    await run()
    t.equal(adopted(), 1)
  }
  const { workers, run } = makeSwitch([well, well])
  workers[0].send = () => false
  await run()
})

t.test('a worker whose end has been handled between the two steps is not asked again', async t => {
  const { it, workers, run, adopted } = makeSwitch([
    ({ type }) => (type === 'prepare' ? null : undefined),
    ({ type }) => {
      // The channel of a process may outlive it: `send` still returns true.
      if (type === 'prepare') it.ended(/** @type {any} */ (workers.splice(0, 1)[0]))
      return null
    },
  ])
  const [gone, living] = workers
  await run()
  t.equal(adopted(), 1)
  t.strictSame([gone.types, gone.killed], [['prepare'], ''])
  t.strictSame(living.types, ['prepare', 'commit'])
})

t.test('a killed worker whose end is not reported is not waited for', async t => {
  const { workers, run, adopted } = makeSwitch(
    [({ type }) => (type === 'prepare' ? null : undefined), well],
    10,
  )
  await run()
  await run()
  t.equal(adopted(), 2)
  t.match(workers[0].killed, /did not switch/)
})

t.test('a refusal without a text is a refusal', async t => {
  const { run, adopted } = makeSwitch([() => ''])
  await t.rejects(run(), { message: 'worker 0: ' })
  t.equal(adopted(), 0)
})

t.test('a worker that does not answer: nothing changes, or it is killed', async t => {
  const deaf = makeSwitch([well, () => undefined], 10)
  await t.rejects(deaf.run(), { message: 'worker 1: it does not answer' })
  t.equal(deaf.adopted(), 0)
  t.equal(deaf.workers[1].killed, '')
  const stuck = makeSwitch([well, ({ type }) => (type === 'prepare' ? null : undefined)], 10)
  stuck.workers[1].onKill = () => stuck.it.ended(/** @type {any} */ (stuck.workers[1]))
  await stuck.run()
  t.equal(stuck.adopted(), 1)
  t.match(stuck.workers[1].killed, /did not switch/)
})

t.test('a late answer to an earlier step counts for nothing', async t => {
  const { it, workers, run, adopted } = makeSwitch([
    ({ type, id }, worker) => {
      if (type === 'commit') it.onMessage(/** @type {any} */ (worker), { id: id - 1, error: 'late' })
      return null
    },
  ])
  await run()
  t.equal(adopted(), 1)
  t.strictSame(workers[0].types, ['prepare', 'commit'])
})

t.test('idle waits for the outcome, good or bad', async t => {
  for (const outcome of [null, 'a bad key']) {
    /** @type {() => void} */
    let answer = () => {}
    const { it, workers, run } = makeSwitch([
      ({ type, id }, worker) => {
        if (type === 'commit') return null
        answer = () => it.onMessage(/** @type {any} */ (worker), { id, error: outcome })
        return undefined
      },
    ])
    const done = run().catch(() => {})
    let idle = false
    it.idle.then(() => {
      idle = true
    })
    await new Promise(resolve => setImmediate(() => setImmediate(resolve)))
    t.equal(idle, false)
    answer()
    await done
    await it.idle
    t.equal(workers[0].config, outcome === null ? 'new 0' : 'old')
  }
})
