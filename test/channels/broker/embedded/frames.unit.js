import t from 'tap'
import { FrameReader, FrameWriter } from '../../../../src/channels/broker/embedded/frames.js'
import { until } from '../../../kit/wait.js'
import { written } from './wire.js'

function randomness(seed) {
  return n => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % n
}

/** The kinds of fields, with critical values. */
const FIELDS = [
  ['u8', [0, 1, 255]],
  ['u32', [0, 1, 255, 65536, 2 ** 31, 2 ** 32 - 1]],
  ['f64', [0, 1, 0.5, -1, 2 ** 53 - 1, 1.7e308]],
  ['u64', [0n, 1n, 2n ** 64n - 1n]],
  ['string', ['', 'a', 'é', '🎈', '\0', 'ключ'.repeat(5000), '\ud800']],
  ['bytes', ['', '\xff\x00\x80', 'x'.repeat(70_000)]],
  ['epoch', ['', 'ABCDefgh']],
]
const READS = { string: value => Buffer.from(value).toString() }

/** Random frames: `[type, [field, value] ...]`. */
function makeFrames(random, count) {
  return Array.from({ length: count }, () => [
    1 + random(255),
    Array.from({ length: random(8) }, () => {
      const [field, values] = FIELDS[random(FIELDS.length)]
      return [field, values[random(values.length)]]
    }),
  ])
}

function writeFrames(writer, frames) {
  for (const [type, fields] of frames) {
    writer.begin(type)
    for (const [field, value] of fields) writer[field](value)
    writer.end()
  }
}

/** A reader that reads the expected fields in order and records differences. */
function expecting(frames, faults) {
  let next = 0
  const reader = new FrameReader(
    (type, cursor) => {
      const [wantedType, fields] = frames[next++]
      if (type !== wantedType) faults.push(`type ${type}`)
      for (const [field, value] of fields) {
        const wanted = READS[field]?.(value) ?? value
        const got = cursor[field]()
        if (got !== wanted) faults.push([field, got, wanted])
      }
      if (cursor.at !== cursor.end) faults.push('end')
    },
    error => faults.push(error),
  )
  return { reader, handled: () => next }
}

t.test('frames are read from chunks of any size', async t => {
  for (let round = 0; round < 30; round++) {
    const random = randomness(round + 1)
    const frames = makeFrames(random, 60)
    const bytes = await written(writer => writeFrames(writer, frames))
    const faults = []
    const { reader, handled } = expecting(frames, faults)
    // All chunks share a buffer, as on the bus: a retained view would change.
    const chunk = Buffer.alloc(bytes.length)
    const most = [2, 20, 300, 70_000][round % 4]
    for (let at = 0; at < bytes.length; ) {
      const length = Math.min(bytes.length - at, 1 + random(most))
      bytes.copy(chunk, 0, at, at + length)
      reader.push(chunk.subarray(0, length))
      chunk.fill(0xee)
      at += length
    }
    t.same(faults, [])
    t.equal(handled(), 60)
  }
})

t.test('an error in a frame is reported, and the next frame is handled', async t => {
  const bytes = await written(writer => {
    for (const n of [1, 2, 3]) writer.begin(n).u32(n).end()
  })
  const faults = []
  const handled = []
  const reader = new FrameReader(
    (type, cursor) => {
      if (type === 2) throw new Error('on purpose')
      handled.push(cursor.u32())
    },
    error => faults.push(error.message),
  )
  // The first frame lacks even a type.
  reader.push(Buffer.concat([Buffer.alloc(4), bytes]))
  t.same(handled, [1, 3])
  t.same(faults, ['frame without a type', 'on purpose'])
})

t.test('garbage with a valid length is one bad frame', async t => {
  const random = randomness(99)
  const faults = []
  let good = 0
  const reader = new FrameReader(
    (type, cursor) => {
      if (type === 200) {
        if (cursor.string() === 'good') good++
        return
      }
      // What a handler might read: its lengths are arbitrary.
      for (const field of ['u32', 'string', 'f64', 'bytes', 'u64', 'view', 'epoch', 'skip', 'string'])
        cursor[field]()
    },
    error => faults.push(error),
  )
  const goodFrame = await written(writer => writer.begin(200).string('good').end())
  for (let i = 0; i < 500; i++) {
    const garbage = Buffer.from(Array.from({ length: random(60) }, () => random(256)))
    const frame = Buffer.alloc(5 + garbage.length)
    frame.writeUInt32LE(1 + garbage.length)
    frame[4] = random(200)
    garbage.copy(frame, 5)
    reader.push(Buffer.concat([frame, goodFrame]))
  }
  t.equal(good, 500)
})

t.test('a burst is sent in few writes, in order', async t => {
  const writes = []
  const count = 5000
  await new Promise(resolve => {
    let seen = 0
    const reader = new FrameReader(
      (_type, cursor) => {
        if (cursor.u32() !== seen) t.fail(`${seen}`)
        if (++seen === count) resolve(undefined)
      },
      error => t.fail(error),
    )
    const socket = {
      writableLength: 0,
      destroyed: false,
      write(bytes) {
        writes.push(bytes.length)
        reader.push(Buffer.from(bytes))
      },
    }
    const writer = new FrameWriter(/** @type {any} */ (socket))
    for (let i = 0; i < count; i++) writer.begin(1).u32(i).string('x'.repeat(100)).end()
    t.ok(writer.backlog > count * 100)
  })
  t.ok(writes.length < 10, `${writes.length} writes`)
})

t.test('bytes that the socket has not sent yet are not overwritten', async t => {
  const taken = []
  const socket = {
    writableLength: 1,
    destroyed: false,
    // The bytes are read later, like by a socket that cannot write now.
    write: bytes => taken.push(bytes),
  }
  const writer = new FrameWriter(/** @type {any} */ (socket))
  for (let i = 0; i < 50; i++) {
    writer.begin(1).u32(i).end()
    await until(() => taken.length > i)
  }
  const seen = []
  const reader = new FrameReader(
    (_type, cursor) => seen.push(cursor.u32()),
    error => t.fail(error),
  )
  for (const bytes of taken) reader.push(bytes)
  t.same(
    seen,
    Array.from({ length: 50 }, (_, i) => i),
  )
})
