import t from 'tap'
import { Journal, JournalClient, WorkerJournal } from '../../../src/backends/lifecycle/journal.js'

const client = n => new JournalClient(1, 1000 + n, `user-${n}`, 'websocket')

t.test('a journal records clients with their channels, and releases all their memory', async t => {
  const journal = new Journal(1_000_000)
  const workers = [new WorkerJournal(journal), new WorkerJournal(journal)]
  for (let n = 0; n < 100; n++) {
    const worker = workers[n % 2]
    const one = client(n)
    t.ok(worker.add(`id-${n}`, one))
    for (const channel of ['a', 'b', 'b', 'c'].slice(0, n % 5)) worker.subscribe(one, channel)
    worker.unsubscribe(one, 'b')
    worker.unsubscribe(one, 'never')
  }
  t.equal(journal.clients, 100)
  t.same(workers[0].get('id-4')?.channelList, ['a', 'c'])
  t.same(workers[1].get('id-1')?.channelList, ['a'])
  t.same(workers[0].get('id-0')?.channelList, [])
  const copy = JournalClient.fromText(/** @type {JournalClient} */ (workers[0].get('id-4')).toText())
  t.same(copy.channelList, ['a', 'c'])
  t.match(copy, { worker: 1, time: 1004, user: 'user-4', transport: 'websocket' })
  for (const worker of workers) for (const [id] of worker.entries()) worker.remove(id)
  t.equal(workers[0].remove('id-0'), undefined)
  t.match(journal, { clients: 0, bytes: 0, refused: 0 })
})

t.test('a full journal refuses clients and subscriptions, and counts the refusals', async t => {
  const journal = new Journal(65_536)
  const worker = new WorkerJournal(journal)
  let taken = 0
  while (worker.add(`id-${taken}`, client(taken))) taken++
  t.ok(taken > 100 && journal.bytes <= 65_536)
  t.equal(journal.refused, 1)
  const first = /** @type {JournalClient} */ (worker.get('id-0'))
  worker.subscribe(first, 'x'.repeat(200))
  t.same(first.channelList, [])
  t.equal(journal.refused, 2)
  worker.remove('id-0')
  t.ok(worker.add('next', client(1)))
})
