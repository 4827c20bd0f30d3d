import t from 'tap'
import { CUT, Farewells, Mailbox } from '../../../src/transport/poll/mailbox.js'

const mailbox = (limit = 1000, sessionId = 's') => new Mailbox(/** @type {any} */ ({ sessionId }), limit)

t.test('messages stay until they are acknowledged', async t => {
  const box = mailbox()
  t.same(box.take(), { body: '', seq: 0, whole: true })
  box.add('a\n')
  box.add('b\n')
  t.same(box.take(), { body: 'a\nb\n', seq: 2, whole: true })
  box.add('c\n')
  t.same(box.take(), { body: 'a\nb\nc\n', seq: 3, whole: true })
  box.acknowledge(1)
  t.same(box.take(), { body: 'b\nc\n', seq: 3, whole: true })
  box.acknowledge(1)
  box.acknowledge(3)
  t.same(box.take(), { body: '', seq: 3, whole: true })
  t.equal(box.something, false)
  box.add('d\n')
  t.same(box.take(), { body: 'd\n', seq: 4, whole: true })
})

t.test('texts and bytes share a body', async t => {
  const box = mailbox()
  box.add('é\n')
  box.add(Buffer.from('b\n'))
  box.add('🎈\n')
  t.equal(String(box.take().body), 'é\nb\n🎈\n')
  const shared = Buffer.from('shared')
  const other = mailbox()
  other.add(shared)
  t.equal(other.take().body, shared, 'one alone is not copied')
})

t.test('bytes are counted, whatever is given, acknowledged and added in between', async t => {
  let seed = 7
  const random = (/** @type {number} */ n) => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % n
  const box = mailbox(Number.MAX_SAFE_INTEGER)
  /** @type {(string | Buffer)[]} */
  const all = []
  for (let step = 0; step < 5000; step++) {
    const what = random(10)
    if (what < 6) {
      const size = random(100) === 0 ? random(CUT) : random(50)
      const message = random(2) ? 'ü'.repeat(size) : Buffer.alloc(size)
      box.add(message)
      all.push(message)
    } else if (what < 8) {
      const { seq, body, whole } = box.take()
      const messages = all.slice(box.acked, seq)
      const size = messages.reduce((sum, message) => sum + Buffer.byteLength(message), 0)
      if (Buffer.byteLength(body) !== size) throw new Error('the body is not that of the messages')
      if (whole !== (seq === all.length)) throw new Error('whole')
      // What is given too often is another test.
      box.full = false
    } else box.acknowledge(box.acked + random(box.given - box.acked + 1))
    const size = (/** @type {number} */ from, /** @type {number} */ to) =>
      all.slice(from, to).reduce((sum, message) => sum + Buffer.byteLength(message), 0)
    if (step % 50 === 0) {
      if (box.held !== size(box.acked, box.given)) throw new Error('held')
      if (box.pending !== size(box.given, all.length)) throw new Error('pending')
    }
  }
  box.acknowledge(box.given)
  while (!box.take().whole) box.acknowledge(box.given)
  box.acknowledge(box.given)
  t.same([box.held, box.pending, box.acked], [0, 0, all.length])
})

t.test('a long answer ends with the message that makes it too long', async t => {
  const box = mailbox(10 * CUT)
  const half = 'x'.repeat(CUT / 2)
  for (let i = 0; i < 5; i++) box.add(half)
  for (const seq of [2, 4]) {
    t.match(box.take(), { seq, whole: false })
    t.match(box.take(), { seq, whole: false }, 'again the same')
    box.acknowledge(seq)
  }
  t.match(box.take(), { seq: 5, whole: true })
})

t.test('what does not fit makes it full; one long message alone fits', async t => {
  const box = mailbox(10)
  box.add('x'.repeat(50))
  t.equal(box.full, false)
  box.add('y')
  t.equal(box.full, true)
  box.take()
  box.add('z')
  t.equal(box.take().body, 'x'.repeat(50), 'nothing more goes in')

  const given = mailbox(10)
  given.add('x'.repeat(10))
  given.take()
  given.add('y'.repeat(10))
  t.equal(given.full, false, 'what was given does not count')
})

t.test('what is given again and again makes it full', async t => {
  const box = mailbox(10 * CUT)
  box.add('x'.repeat(CUT))
  for (let i = 0; i < 17; i++) box.take()
  t.equal(box.full, false)
  box.take()
  t.equal(box.full, true)
  const other = mailbox(10 * CUT)
  for (let i = 0; i < 50; i++) {
    other.add('x'.repeat(CUT))
    for (let times = 0; times < 10; times++) other.take()
    other.acknowledge(i + 1)
  }
  t.equal(other.full, false, 'not where something arrives in between')
})

t.test('a full one has nothing to say but its farewell; others have all', async t => {
  const full = mailbox(1)
  for (const text of ['1', '2', '3']) full.add(text)
  full.end('bye', { code: 3008, reason: 'slow' })
  t.same(full.take(), { body: 'bye', seq: 2, whole: true })
  const other = mailbox()
  for (const text of ['1', '2', '3']) other.add(text)
  other.end('bye', { code: 3001, reason: 'shutdown' })
  t.same(other.take(), { body: '123bye', seq: 4, whole: true })
  other.add('4')
  t.same(other.take().seq, 4, 'nothing comes after')
})

t.test('sessions that have ended are bounded in number and in bytes, the oldest go first', async t => {
  /** @type {string[]} */
  const dropped = []
  const farewells = new Farewells(({ session }) => dropped.push(session.sessionId))
  const end = (/** @type {string} */ id, text = 'bye') => {
    const box = mailbox(1000, id)
    box.end(text, { code: 3001, reason: 'shutdown' })
    farewells.add(box)
    return box
  }
  const boxes = Array.from({ length: 10_010 }, (_, i) => end(`s${i}`))
  t.same(
    dropped.splice(0),
    Array.from({ length: 10 }, (_, i) => `s${i}`),
  )
  t.equal(farewells.get('s9'), undefined)
  t.equal(farewells.get('s10'), boxes[10])
  // Acknowledging one makes it smaller: removed, it counts as it was added.
  for (const box of boxes.slice(10)) {
    box.take()
    box.acknowledge(1)
    farewells.remove(box)
    farewells.remove(box)
  }
  const large = 'x'.repeat(1_000_000)
  for (let i = 0; i < 10; i++) end(`l${i}`, large)
  t.same(dropped, ['l0', 'l1'])
})
