import t from 'tap'
import { CUT, EndedSessions, PollQueue, QueueLimits } from '../../../../src/clients/transport/poll/queue.js'

const queue = (
  limit = 1000,
  sessionId = 's',
  limits = new QueueLimits(limit, Number.MAX_SAFE_INTEGER, () => {}),
) => new PollQueue(/** @type {any} */ ({ sessionId }), limits)

t.test('strings and buffers are joined in one body', async t => {
  const box = queue()
  box.add('é\n', false)
  box.add(Buffer.from('b\n'), false)
  box.add('🎈\n', false)
  t.equal(String(box.next().body), 'é\nb\n🎈\n')
  const shared = Buffer.from('shared')
  const other = queue()
  other.add(shared, false)
  t.equal(other.next().body, shared, 'a single message is not copied')
})

t.test('byte counts match the queued messages', async t => {
  let seed = 7
  const random = (/** @type {number} */ n) => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % n
  const box = queue(Number.MAX_SAFE_INTEGER)
  /** @type {(string | Buffer)[]} */
  const all = []
  for (let step = 0; step < 5000; step++) {
    const what = random(10)
    if (what < 6) {
      const size = random(100) === 0 ? random(CUT) : random(50)
      const message = random(2) ? 'ü'.repeat(size) : Buffer.alloc(size)
      box.add(message, false)
      all.push(message)
    } else if (what < 8) {
      const { seq, body, whole } = box.next()
      const messages = all.slice(box.acked, seq)
      const size = messages.reduce((sum, message) => sum + Buffer.byteLength(message), 0)
      if (Buffer.byteLength(body) !== size) throw new Error('the body is not that of the messages')
      if (whole !== (seq === all.length)) throw new Error('whole')
      box.full = false
    } else box.acknowledge(box.acked + random(box.sent - box.acked + 1))
    const size = (/** @type {number} */ from, /** @type {number} */ to) =>
      all.slice(from, to).reduce((sum, message) => sum + Buffer.byteLength(message), 0)
    if (step % 50 === 0) {
      if (box.held !== size(box.acked, box.sent)) throw new Error('held')
      if (box.pending !== size(box.sent, all.length)) throw new Error('pending')
    }
  }
  box.acknowledge(box.sent)
  while (!box.next().whole) box.acknowledge(box.sent)
  box.acknowledge(box.sent)
  t.same([box.held, box.pending, box.acked], [0, 0, all.length])
})

t.test('a single long message is accepted; the next one fills the queue', async t => {
  const box = queue(10)
  box.add('x'.repeat(50), false)
  t.equal(box.full, false)
  box.add('y', false)
  t.equal(box.full, true)
  box.next()
  box.add('z', false)
  t.equal(box.next().body, 'x'.repeat(50), 'a full queue accepts nothing')

  const sent = queue(10)
  sent.add('x'.repeat(10), false)
  sent.next()
  sent.add('y'.repeat(10), false)
  t.equal(sent.full, false, 'sent messages do not count')
})

t.test('an overlong message fills an empty queue', async t => {
  const box = queue(10)
  box.add('x'.repeat(CUT + 11), false)
  t.equal(box.full, true)
  t.same([box.pending, box.next().body], [0, ''])

  const shared = queue(10)
  shared.add(Buffer.alloc(CUT + 11), true)
  t.equal(shared.full, true, 'a publication, too')

  const sent = queue(10)
  sent.add('x'.repeat(CUT), false)
  sent.next()
  sent.add('y'.repeat(10), false)
  t.equal(sent.full, false)
  sent.next()
  sent.add('z', false)
  t.equal(sent.full, true, 'unacknowledged bytes count for a message above the limit')
  t.equal(sent.held + sent.pending, CUT + 10)
})

t.test('the replies of all queues share a limit; the oldest unacknowledged ones are dropped', async t => {
  /** @type {string[]} */
  const dropped = []
  const limits = new QueueLimits(CUT, 4 * CUT, ({ session }) => dropped.push(session.sessionId))
  const boxes = Array.from({ length: 8 }, (_, i) => queue(0, `${i}`, limits))
  const [first, second, third, fourth, fifth, sixth, seventh, eighth] = boxes
  for (const box of [first, second, third, fourth]) box.add('x'.repeat(CUT), false)
  t.equal(limits.bytes, 4 * CUT)
  first.next()
  first.acknowledge(1)
  for (let i = 0; i < 3; i++) first.add('x'.repeat(CUT / 4), false)
  fifth.add('y'.repeat((3 * CUT) / 4), false)
  t.same(dropped.splice(0), ['1'], 'the first one has acknowledged')
  t.same([second.full, second.hasMessages, second.pending], [true, false, 0])
  first.next()
  first.acknowledge(2)
  sixth.add('z'.repeat(CUT), false)
  t.same(dropped.splice(0), ['2'])
  seventh.add(Buffer.alloc(CUT), true)
  t.equal(limits.bytes, 3.25 * CUT, 'publications are shared, and do not count')
  fourth.next()
  t.equal(fourth.full, false)
  fourth.next()
  t.equal(fourth.full, true, 'a resent answer counts')
  t.same(dropped, [])
  eighth.add('x'.repeat(4 * CUT + 1), false)
  t.same([eighth.full, dropped.length], [true, 0], 'a message above the limit drops no other queue')
  for (const box of boxes) box.clear()
  t.equal(limits.bytes, 0)
})

t.test('an ended session with many repeated polls keeps only its close', async t => {
  const box = queue(10 * CUT)
  for (let i = 0; i < 3; i++) box.add('x'.repeat(CUT / 4), false)
  box.end('bye', { code: 3001, reason: 'shutdown' })
  let answers = 0
  while (box.next().body !== 'bye') answers++
  t.equal(answers, 1 + Math.floor((16 * CUT) / ((CUT * 3) / 4 + 3)))
  t.match(box.next(), { body: 'bye', seq: 4, whole: true })
  box.acknowledge(4)
  t.equal(box.hasMessages, false)
})

t.test('a response that is resent too often fills the queue', async t => {
  const box = queue(10 * CUT)
  box.add('x'.repeat(CUT), false)
  for (let i = 0; i < 17; i++) box.next()
  t.equal(box.full, false)
  box.next()
  t.equal(box.full, true)
  const other = queue(10 * CUT)
  for (let i = 0; i < 50; i++) {
    other.add('x'.repeat(CUT), false)
    for (let times = 0; times < 10; times++) other.next()
    other.acknowledge(i + 1)
  }
  t.equal(other.full, false, 'acknowledgements reset the count')
})

t.test('a full queue ends with only its close, others with all messages', async t => {
  const full = queue(1)
  for (const text of ['1', '2', '3']) full.add(text, false)
  full.end('bye', { code: 3008, reason: 'slow' })
  t.same(full.next(), { body: 'bye', seq: 2, whole: true })
  const other = queue()
  for (const text of ['1', '2', '3']) other.add(text, false)
  other.end('bye', { code: 3001, reason: 'shutdown' })
  t.same(other.next(), { body: '123bye', seq: 4, whole: true })
  other.add('4', false)
  t.same(other.next().seq, 4, 'no message follows the close')
})

t.test('ended sessions are limited in number and bytes; the oldest are dropped', async t => {
  /** @type {string[]} */
  const dropped = []
  const ended = new EndedSessions(({ session }) => dropped.push(session.sessionId))
  const end = (/** @type {string} */ id, text = 'bye') => {
    const box = queue(1000, id)
    box.end(text, { code: 3001, reason: 'shutdown' })
    ended.add(box)
    return box
  }
  const boxes = Array.from({ length: 10_010 }, (_, i) => end(`s${i}`))
  t.same(
    dropped.splice(0),
    Array.from({ length: 10 }, (_, i) => `s${i}`),
  )
  t.equal(ended.get('s9'), undefined)
  t.equal(ended.get('s10'), boxes[10])
  // Removing a queue subtracts its size at the addition.
  for (const box of boxes.slice(10)) {
    box.next()
    box.acknowledge(1)
    ended.remove(box)
    ended.remove(box)
  }
  const large = 'x'.repeat(1_000_000)
  for (let i = 0; i < 10; i++) end(`l${i}`, large)
  t.same(dropped, ['l0', 'l1'])
})
