import t from 'tap'
import { Republisher } from '../../../../src/backends/queues/republishers.js'
import { turn, until } from '../../../kit/wait.js'
import { entry, FakeDestination, quietLog, republication } from './rig.js'

/** @param {any} [of] options */
function start(of) {
  let destination
  const confirms = []
  const republisher = new Republisher(entry(of), {
    create: context => (destination = new FakeDestination(context)),
    origin: 'here',
    boundary: ':',
    log: /** @type {any} */ (quietLog()),
    confirm: (number, ok) => confirms.push([number, ok]),
    batchMs: 0,
  })
  republisher.start()
  let made = 0
  const add = (count, fields) => {
    for (let i = 0; i < count; i++) {
      made++
      republisher.add(republication('chat:1', made, fields), `id-${made}`)
    }
  }
  return { republisher, confirms, add, destination: /** @type {FakeDestination} */ (destination) }
}

t.test('publications made before the connection are sent in order', async t => {
  const { republisher, add, destination } = start()
  add(3)
  await turn()
  t.same(destination.data, [])
  destination.context.up()
  await turn()
  t.same(destination.data, [1, 2, 3])
  destination.settle(3)
  t.equal(republisher.size, 0)
  t.equal(republisher.bytes, 0)
  t.match(republisher.figures, { sent: 3, confirmed: 3, dropped: 0 })
})

t.test('at most max_in_flight messages are unconfirmed', async t => {
  const { add, destination } = start({ rabbitmq: { max_in_flight: 2 } })
  destination.context.up()
  add(5)
  await turn()
  t.same(destination.data, [1, 2])
  destination.settle(1)
  await turn()
  t.same(destination.data, [2, 3])
})

t.test('publications made soon after a batch are sent as one batch', async t => {
  const batches = []
  const destination = new FakeDestination(/** @type {any} */ (null))
  const republisher = new Republisher(entry(), {
    create: context => {
      destination.context = context
      return Object.assign(destination, { flush: () => batches.push(destination.sent.length) })
    },
    origin: 'here',
    boundary: ':',
    log: /** @type {any} */ (quietLog()),
    confirm() {},
    batchMs: 50,
  })
  destination.context.up()
  for (let n = 1; n <= 10; n++) {
    republisher.add(republication('chat:1', n), `id-${n}`)
    await turn()
  }
  await until(() => destination.sent.length >= 10)
  t.same(destination.data, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  t.equal(batches[0], 1, 'the first one does not wait')
  t.ok(batches.length <= 4, `${batches.length} batches`)
})

t.test('after a lost connection, unsettled messages are resent first, with the same ids', async t => {
  const { republisher, add, destination } = start({ rabbitmq: { max_in_flight: 3 } })
  destination.context.up()
  add(5)
  await turn()
  const [first, second] = destination.sent
  destination.settle(1)
  await turn()
  destination.down()
  destination.context.settled(second, 'confirmed')
  t.equal(republisher.size, 4, 'an outcome after it has no effect')
  destination.context.up()
  await turn()
  t.same(destination.data, [2, 3, 4])
  t.equal(destination.sent[0].id, second.id)
  t.not(destination.sent[0].id, first.id)
  destination.settle(3)
  await turn()
  t.same(destination.data, [5])
})

t.test('drop_oldest: a full queue keeps the newest', async t => {
  const { republisher, add, destination } = start({ queue_max_size: 3 })
  add(5)
  t.equal(republisher.size, 3)
  t.equal(republisher.figures.dropped, 2)
  destination.context.up()
  await turn()
  t.same(destination.data, [3, 4, 5])
  add(1)
  await turn()
  t.equal(republisher.size, 3, 'messages in flight count')
  t.same(destination.data, [3, 4, 5, 6])
  destination.settle(4)
  t.equal(republisher.size, 0)
  t.equal(republisher.bytes, 0)
})

t.test('drop_new: a full queue keeps the oldest', async t => {
  const { republisher, add, destination } = start({ queue_max_size: 3, overflow: 'drop_new' })
  add(5)
  t.equal(republisher.figures.dropped, 2)
  t.notOk(republisher.full)
  destination.context.up()
  await turn()
  t.same(destination.data, [1, 2, 3])
})

t.test('block: a full queue is reported, accepts publications in progress, and is still bounded', async t => {
  const { republisher, add, destination } = start({ queue_max_size: 3, overflow: 'block' })
  add(2)
  t.notOk(republisher.full)
  add(1)
  t.ok(republisher.full)
  add(10)
  t.equal(republisher.size, 6)
  t.equal(republisher.figures.dropped, 7)
  destination.context.up()
  await turn()
  destination.settle(4)
  t.notOk(republisher.full)
})

t.test('the queue is also bounded in bytes', async t => {
  const { republisher, add } = start({ queue_max_bytes: 65_536 })
  add(1000)
  t.ok(republisher.bytes <= 65_536)
  t.ok(republisher.figures.dropped > 0)
  const { republisher: other, add: addOther } = start({ queue_max_bytes: 10 })
  addOther(1)
  t.equal(other.size, 0, 'a message beyond the whole queue is dropped')
})

t.test('required: the publisher gets each result', async t => {
  const { add, confirms, destination } = start({ required: true, queue_max_size: 4, overflow: 'drop_new' })
  destination.context.up()
  for (let number = 1; number <= 5; number++) add(1, { number })
  await turn()
  t.same(confirms, [[5, false]], 'dropped')
  destination.settle(1)
  destination.settle(1, 'returned')
  destination.settle(1, 'refused')
  t.same(confirms.slice(1), [
    [1, true],
    [2, false],
    [3, false],
  ])
})

t.test('a message that cannot be sent is refused; others are sent', async t => {
  const { republisher, add, destination } = start()
  const send = destination.send.bind(destination)
  destination.send = message => {
    if (message.id === 'id-1') throw new Error('no form for it')
    send(message)
  }
  destination.context.up()
  add(2)
  await turn()
  t.same(destination.data, [2])
  t.equal(republisher.figures.refused, 1)
})

t.test('stop waits for unsettled messages, up to a timeout', async t => {
  const { republisher, add, destination } = start()
  destination.context.up()
  add(2)
  await turn()
  const stopped = republisher.stop(60_000)
  destination.settle(2)
  t.equal(await stopped, 0)
  const other = start()
  other.add(2)
  t.equal(await other.republisher.stop(1), 2, 'or for a time')
})
