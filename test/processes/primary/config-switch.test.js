import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { ConfigSwitch } from '../../../src/processes/primary/config-switch.js'

/**
 * Workers with the given answers.
 * @param {((message: any, worker: any) => string | null | undefined)[]} answers reason of a refusal, null: done,
 *   undefined: no answer
 * @param {number} [timeout] ms
 */
function makeSwitch(answers, timeout = 60_000) {
  const workers = answers.map((answer, index) => {
    const worker = {
      title: `worker ${index}`,
      config: 'old',
      killed: '',
      messages: [],
      onKill: () => {},
      send(message) {
        worker.messages.push(message)
        // Not in a later turn: on a busy machine the timeout would come first.
        queueMicrotask(() => {
          const error = answer(message, worker)
          if (error !== undefined) it.onMessage(/** @type {any} */ (worker), { id: message.id, error })
        })
        return true
      },
      kill(reason) {
        worker.killed = reason
        worker.onKill()
      },
      get types() {
        return worker.messages.map(({ type }) => type)
      },
    }
    return worker
  })
  /** @type {any} */
  const it = new ConfigSwitch(() => /** @type {any} */ (workers), timeout)
  let adopted = 0
  const prepared = ({ title }) => ({ config: `new of ${title}`, cursorKey: 'k' })
  return { it, workers, run: () => it.run(prepared, () => adopted++), adopted: () => adopted }
}

const good = () => null
/** Answers `prepare` only. */
const preparesOnly = ({ type }) => (type === 'prepare' ? null : undefined)

t.test('all workers prepare before any of them commits', async t => {
  const order = []
  const answer = ({ type }) => {
    order.push(type)
    return null
  }
  const { workers, run, adopted } = makeSwitch([answer, answer, answer])
  await run()
  t.strictSame(order, ['prepare', 'prepare', 'prepare', 'commit', 'commit', 'commit'])
  t.equal(adopted(), 1)
  for (const { config, title, messages } of workers) {
    t.equal(config, `new of ${title}`)
    t.match(messages[0], { config, cursorKey: 'k' })
  }
})

for (const refusal of ['a bad key', ''])
  t.test(`a refusal ('${refusal}') changes nothing`, async t => {
    const { workers, run, adopted } = makeSwitch([good, () => refusal, good])
    await t.rejects(run(), { message: `worker 1: ${refusal}` })
    t.equal(adopted(), 0)
    for (const { types, config } of workers) t.strictSame([types, config], [['prepare'], 'old'])
  })

for (const step of ['prepare', 'commit', 'none: it is unreachable'])
  t.test(`a worker that exits is not waited for; step: ${step}`, async t => {
    const { it, workers, run, adopted } = makeSwitch([
      good,
      ({ type }, worker) => (type === step ? it.ended(worker) : null),
    ])
    if (step.startsWith('none')) workers[1].send = () => false
    await run()
    t.equal(adopted(), 1)
  })

t.test('a worker that exits after prepare gets no commit', async t => {
  const { it, workers, run, adopted } = makeSwitch([
    preparesOnly,
    ({ type }) => {
      // The channel of a process may outlive it: `send` still returns true.
      if (type === 'prepare') it.ended(workers.splice(0, 1)[0])
      return null
    },
  ])
  const [exited, living] = workers
  await run()
  t.equal(adopted(), 1)
  t.strictSame([exited.types, exited.killed], [['prepare'], ''])
  t.strictSame(living.types, ['prepare', 'commit'])
})

t.test('a worker that does not answer `prepare` changes nothing', async t => {
  const { workers, run, adopted } = makeSwitch([good, () => undefined], 10)
  await t.rejects(run(), { message: 'worker 1: no response within 0.01 s' })
  t.equal(adopted(), 0)
  t.equal(workers[1].killed, '')
})

for (const reported of [true, false])
  t.test(
    `a worker that does not answer \`commit\` is killed; its exit is ${reported ? '' : 'not '}reported`,
    async t => {
      const { it, workers, run, adopted } = makeSwitch([preparesOnly, good], 10)
      if (reported) workers[0].onKill = () => it.ended(workers[0])
      await run()
      await run()
      t.equal(adopted(), 2)
      t.match(workers[0].killed, /did not switch/)
    },
  )

t.test('a late reply to an earlier step is ignored', async t => {
  const { it, workers, run, adopted } = makeSwitch([
    ({ type, id }, worker) => {
      if (type === 'commit') it.onMessage(worker, { id: id - 1, error: 'late' })
      return null
    },
  ])
  await run()
  t.equal(adopted(), 1)
  t.strictSame(workers[0].types, ['prepare', 'commit'])
})

for (const outcome of [null, 'a bad key'])
  t.test(`idle() waits for the outcome: ${outcome ?? 'success'}`, async t => {
    let answer = () => {}
    const { it, workers, run } = makeSwitch([
      ({ type, id }, worker) => {
        if (type === 'commit') return null
        answer = () => it.onMessage(worker, { id, error: outcome })
        return undefined
      },
    ])
    const done = run().catch(() => {})
    let idle = false
    it.idle.then(() => (idle = true))
    await turn()
    await turn()
    t.equal(idle, false)
    answer()
    await done
    await it.idle
    t.equal(workers[0].config, outcome === null ? 'new of worker 0' : 'old')
  })
