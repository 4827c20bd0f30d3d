import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { Snapshot } from '../../../../src/channels/broker/embedded/snapshot.js'
import { Store } from '../../../../src/channels/broker/embedded/store.js'
import { tempDir } from '../../../kit/folders.js'
import { createTestLog } from './rig.js'

const HOUR = 3600_000
const KB = 1024

/** A folder with a snapshot file, used by any number of runs. */
async function start(t, { maxBytes = 2 ** 29 } = {}) {
  const folder = tempDir(t)
  const file = join(folder, 'state')
  let now = 1_700_000_000_000
  const create = () => new Store({ maxBytes, clock: () => now, onFull() {}, onLeave() {} })
  return {
    folder,
    file,
    create,
    jump: ms => (now += ms),
    /** Starts a run. @returns its store, null if none was restored, and its log lines */
    async run(path = file) {
      const log = createTestLog()
      const snapshot = new Snapshot(path, maxBytes, /** @type {any} */ (log))
      const store = await snapshot.take(create)
      return { snapshot, store, lines: log.lines }
    },
    /** Writes this store in a run. @returns {Promise<Buffer>} */
    async saved(store) {
      await rm(file, { force: true })
      const { snapshot } = await this.run()
      await snapshot.write(store)
      return readFile(file)
    },
  }
}

const append = (store, name, body, options = {}) =>
  store.append(name, {
    flags: 16,
    body,
    size: 100,
    ttl: HOUR,
    metaTtl: 2 * HOUR,
    version: 0n,
    versionEpoch: '',
    ...options,
  })

/** Publishes to a map. @param {string} key @param {string} data */
function put(store, name, key, data, rules, { version = 0n, versionEpoch = '' } = {}) {
  const text = value => {
    const length = Buffer.alloc(4)
    length.writeUInt32LE(Buffer.byteLength(value))
    return Buffer.concat([length, Buffer.from(value)])
  }
  // Payload, kind, time, key.
  const body = Buffer.concat([text(data), Buffer.alloc(9), text(key)]).toString('latin1')
  const dataEnd = 4 + Buffer.byteLength(data)
  const bytes = Buffer.from(key).toString('latin1')
  const change = { flags: 256, body, dataEnd, keyedAt: dataEnd, removed: false, append: false }
  const checks = { keyMode: '', refresh: false, expected: null, version, versionEpoch, idempotencyKey: '' }
  const value = { value: null, json: true, maxBytes: 0, owned: false }
  return store.maps.write({ ...change, ...checks, ...value, name, key: bytes, rules }, 'link')
}

const state = (store, name, rules) => {
  const query = { cursor: '', limit: 100, key: '', epoch: '', upTo: 0, maxBytes: 0 }
  const page = store.maps.page(name, query, rules)
  const entries = page.entries.map(({ key, body, offset, version, versionEpoch, expireAt }) => ({
    ...{ key, body, offset, version, versionEpoch, expireAt },
  }))
  return { ...page, entries }
}

/** Everything that a client can observe. */
const content = (store, names) =>
  names.map(name => {
    const stream = store.stream(name, HOUR)
    return {
      name,
      top: stream.top,
      epoch: stream.epoch,
      entries: stream.newest(-1).map(({ offset, flags, body }) => ({ offset, flags, body })),
    }
  })

const bytes = Array.from({ length: 256 }, (_, i) => String.fromCharCode(i)).join('')
const NAMES = ['a', 'канал 🎈', 'long'.repeat(60), 'emptied', 'versions', 'large', 'looked at']

function fill(store, large = bytes.repeat(4000)) {
  for (let i = 0; i < 20; i++) append(store, 'a', `${i}`, { size: 10, flags: i })
  append(store, NAMES[1], bytes)
  append(store, NAMES[2], '')
  append(store, 'emptied', 'gone')
  store.removeHistory('emptied')
  append(store, 'versions', 'v7', { version: 2n ** 63n + 7n, versionEpoch: 'é' })
  append(store, 'large', large)
  // With a target: its flags do not fit in a byte.
  append(store, 'large', 'small', { flags: 512 + 16 })
  store.keepResult('a', 'key', 20, store.stream('a', HOUR).epoch)
  store.keepResult('none', 'key', 0, '')
  return store
}

t.test('a snapshot is restored once, unchanged', async t => {
  const { run, create, file, jump } = await start(t)
  const first = await run()
  t.equal(first.store, null)
  t.match(first.lines, [{ level: 'info', file, msg: 'no snapshot restored: channels start a new epoch' }])
  const store = fill(create())
  const before = content(store, NAMES)
  await first.snapshot.write(store)
  t.match(first.lines[1], {
    level: 'info',
    streams: 6,
    publications: 15,
    results: 2,
    msg: 'snapshot written',
  })
  t.equal(first.lines[1].bytes, (await stat(file)).size)
  t.equal((await stat(file)).mode & 0o777, 0o600)

  jump(60_000)
  const second = await run()
  t.match(second.lines, [
    { level: 'info', streams: 6, publications: 15, results: 2, msg: 'snapshot restored' },
  ])
  const taken = second.store
  t.ok(taken)
  t.same(content(taken, NAMES), before)
  t.equal(taken.bytes, store.bytes)
  t.match(taken.result('a', 'key'), { offset: 20, epoch: before[0].epoch })
  t.match(taken.result('none', 'key'), { offset: 0, epoch: '' })
  t.notOk(append(taken, 'versions', 'v7', { version: 2n ** 63n + 7n, versionEpoch: 'é' }).added)
  t.match(append(taken, 'a', 'next'), { offset: 21, epoch: before[0].epoch })
  t.equal(append(taken, 'looked at', 'first').epoch, before.at(-1).epoch)

  const third = await run()
  t.equal(third.store, null, 'a crash after that: its offsets would be too old')
  t.match(third.lines, [{ level: 'warn', reason: /last run did not exit cleanly/ }])
  t.match(third.lines[0].msg, /new epoch/)
})

t.test('maps keep their entries, positions and expiries', async t => {
  const run = await start(t)
  const store = run.create()
  const rules = { keyTtl: HOUR, streamSize: 2, streamTtl: HOUR, metaTtl: 2 * HOUR }
  put(store, 'map', 'a', 'one', rules)
  put(store, 'map', 'ключ 🎈', '', rules)
  run.jump(HOUR / 2)
  put(store, 'map', 'c', 'three', rules, { version: 7n, versionEpoch: 'v' })
  put(store, 'ephemeral', 'e', 'x', { ...rules, streamSize: 0, streamTtl: 0, metaTtl: 0 })
  append(store, 'stream', 'entry')
  const before = state(store, 'map', rules)
  await run.saved(store)
  const next = await run.run()
  t.same(state(next.store, 'map', rules), before)
  t.match(state(next.store, 'ephemeral', rules).entries, [{ key: 'e', offset: 0 }])
  t.same(content(next.store, ['map', 'stream']), content(store, ['map', 'stream']))
  t.equal(next.store.bytes, store.bytes)
  run.jump(HOUR * 0.75)
  next.store.sweep()
  t.same(
    state(next.store, 'map', rules).entries.map(({ key }) => key),
    ['c'],
  )
  t.equal(next.store.stream('map', HOUR).top, 5, 'expiries are changes')
})

t.test('entries expire while the gateway is stopped', async t => {
  const { run, create, jump } = await start(t)
  const { snapshot } = await run()
  const store = create()
  const brief = append(store, 'brief', 'x', { ttl: 1000, metaTtl: 60_000 })
  append(store, 'gone', 'x', { ttl: 1000, metaTtl: 2000 })
  append(store, 'old', 'x')
  store.keepResult('brief', 'key', 1, brief.epoch)
  store.subscribe('waiting', 'link')
  const waiting = store.stream('waiting', HOUR).epoch
  jump(3000)
  store.sweep()
  store.unsubscribe('waiting', 'link')
  t.not(store.base, waiting)
  await snapshot.write(store)
  jump(30_000)
  const taken = (await run()).store
  t.match(content(taken, ['brief']), [{ top: 1, epoch: brief.epoch, entries: [] }])
  t.equal(taken.stream('waiting', HOUR).epoch, waiting)
  t.equal(taken.stream('other', HOUR).epoch, store.base)
  t.match(taken.result('brief', 'key'), { offset: 1 })
  jump(61_000)
  taken.sweep()
  t.equal(taken.stream('brief', HOUR).top, 1, 'it was extended by the reader')
  t.not(taken.stream('waiting', HOUR).epoch, waiting)
  jump(300_000)
  t.equal(taken.result('brief', 'key'), undefined)
  jump(2 * HOUR)
  // A sweep over hours takes several turns.
  for (taken.sweep(); taken.channels.size > 0; taken.sweep()) await new Promise(setImmediate)
  t.equal(taken.bytes, taken.results.bytes)
})

t.test('restoring a snapshot that exceeds the limit drops the oldest channels', async t => {
  const big = await start(t)
  const { snapshot } = await big.run()
  const store = big.create()
  for (let i = 0; i < 200; i++) append(store, `ch${i}`, 'x'.repeat(10))
  await snapshot.write(store)
  const { size } = await stat(big.file)
  const small = await start(t, { maxBytes: size + KB })
  const { store: taken } = await small.run(big.file)
  t.ok(taken.bytes <= size + KB)
  t.ok(taken.channels.size > 10 && taken.channels.size < 100, `${taken.channels.size} channels`)
  t.equal(taken.stream('ch199', HOUR).top, 1)
  t.equal(taken.stream('ch0', HOUR).top, 0)
  t.not(taken.stream('ch0', HOUR).epoch, store.stream('ch0', HOUR).epoch)
})

/** Positions of the records in a snapshot. */
function recordsOf(snapshot) {
  const starts = []
  for (let at = snapshot.indexOf('\n') + 1; at < snapshot.length - 32; at += 4 + snapshot.readUInt32LE(at))
    starts.push(at)
  return starts
}

t.test('a truncated or damaged file is refused', async t => {
  const rig = await start(t)
  const whole = await rig.saved(fill(rig.create(), ''))
  const all = recordsOf(whole)
  t.ok(all.length > 20)
  // Each kind of record: base, streams and their publications; idempotency keys, end.
  const starts = [...all.slice(0, 4), ...all.slice(-10)]
  const end = whole.length
  const cuts = new Set([0, 1, 10, starts[0] - 1, end - 1, end - 31, end - 32, end - 33])
  for (const at of starts) for (const distance of [0, 3, 5]) cuts.add(at + distance)
  /** @type {any[][]} */
  const rows = [...cuts].map(cut => [`${cut} of ${end} bytes`, whole.subarray(0, cut)])
  for (const at of [
    0,
    8,
    17,
    20,
    ...starts,
    ...starts.map(at => at + 5),
    end >> 1,
    end - 40,
    end - 32,
    end - 1,
  ]) {
    const flipped = Buffer.from(whole)
    flipped[at] ^= 1 << (at % 8)
    rows.push([`a bit of byte ${at}`, flipped])
  }
  rows.push(['a byte too many', Buffer.concat([whole, Buffer.from('x')])])
  for (const [name, damaged] of rows) {
    await writeFile(rig.file, damaged)
    const { store, lines } = await rig.run()
    if (store !== null || lines.length !== 1 || lines[0].level !== 'warn' || !lines[0].reason) {
      t.fail(name, { lines })
    }
  }
  await writeFile(rig.file, whole)
  t.ok((await rig.run()).store, 'the whole one is')
})

t.test('invalid records with a valid checksum are refused', async t => {
  const rig = await start(t)
  const store = rig.create()
  append(store, 'a', 'one')
  append(store, 'a', 'two')
  store.keepResult('a', 'key', 2, store.stream('a', HOUR).epoch)
  const whole = await rig.saved(store)
  const starts = recordsOf(whole)
  const line = whole.subarray(0, starts[0])
  const [base, stream, first, second, result, last] = starts.map(at =>
    whole.subarray(at, at + 4 + whole.readUInt32LE(at)),
  )
  const length = (record, size) => {
    const changed = Buffer.from(record)
    changed.writeUInt32LE(size)
    return changed
  }
  const kind = (record, value) => {
    const changed = Buffer.from(record)
    changed[4] = value
    return changed
  }
  /** @type {any[][]} */
  const rows = [
    [[base, stream, first, second, result, last], ''],
    [[base, stream, first, second, result], 'truncated'],
    [[], 'truncated'],
    [[base, stream, first, result, last], 'wrong order'],
    [[base, first, stream, second, result, last], 'wrong order'],
    [[base, stream, first, second, second, result, last], 'wrong order'],
    [[base, stream, first, second, result, last, base], 'wrong order'],
    [[base, stream, first, second, last], 'wrong number'],
    [[base, kind(stream, 99)], 'unknown kind'],
    [[base, length(stream, 2 ** 32 - 1)], 'truncated'],
    [[base, length(stream, 0)], 'incomplete record'],
    [[base, length(stream, 10)], 'wrong length'],
    [[base, stream, first.subarray(0, 4)], 'truncated'],
    [[base, Buffer.from([1, 0])], 'truncated'],
  ]
  for (const [records, reason] of rows) {
    const content = Buffer.concat([line, ...records])
    await writeFile(rig.file, Buffer.concat([content, createHash('sha256').update(content).digest()]))
    const { store, lines } = await rig.run()
    if (reason === '') t.ok(store, 'unchanged')
    else {
      t.equal(store, null)
      t.match(lines, [{ level: 'warn', reason: new RegExp(reason) }])
    }
  }
})

t.test('a file in another format is replaced', async t => {
  const rig = await start(t, { maxBytes: 100 * KB })
  const store = rig.create()
  append(store, 'a', 'x')
  const whole = await rig.saved(store)
  const later = Buffer.from(whole.toString('latin1').replace('snapshot 1', 'snapshot 2'), 'latin1')
  /** @type {any[][]} */
  const rows = [
    ['another format', () => writeFile(rig.file, later), /format 2; this version reads format 1/],
    ['another file', () => writeFile(rig.file, '{"some": "json"}'), /not a snapshot/],
    ['an empty file', () => writeFile(rig.file, ''), /not a snapshot/],
    [
      'a huge file',
      () => writeFile(rig.file, Buffer.concat([whole, Buffer.alloc(100 * KB)])),
      /more than engine\.memory\.max_bytes/,
    ],
    ['a pipe that nobody writes to', async () => execFileSync('mkfifo', [rig.file]), /not a regular file/],
    ['a link to a device', () => symlink('/dev/zero', rig.file), /not a regular file/],
    ['a link to nothing', () => symlink('/nowhere/at/all', rig.file), /the file does not exist/],
  ]
  for (const [name, make, reason] of rows) {
    await rm(rig.file, { force: true })
    await make()
    const { store, lines } = await rig.run()
    t.equal(store, null, name)
    t.equal(lines.length, 1)
    t.match(lines[0].reason, reason)
    t.match((await rig.run()).lines[0].reason, /did not exit cleanly/, 'and it was replaced')
    t.match(await readdir(rig.folder), ['state'])
  }
})

t.test('a file that cannot be replaced is a startup error', async t => {
  const rig = await start(t)
  await mkdir(join(rig.file, 'x'), { recursive: true })
  await t.rejects(rig.run(), { message: /^engine\.memory\.snapshot_file: cannot replace or remove .*state/ })
})

t.test('a missing folder is a warning at startup and an error at shutdown', async t => {
  const rig = await start(t)
  const { store, snapshot, lines } = await rig.run(join(rig.folder, 'none', 'state'))
  t.equal(store, null)
  t.match(lines, [{ level: 'warn', msg: /is not writable/ }, { level: 'info' }])
  await snapshot.write(rig.create())
  t.match(lines.slice(2), [{ level: 'error', reason: /ENOENT/, msg: /^snapshot not written/ }])
  t.same(await readdir(rig.folder), [])
})

t.test('the file belongs to the gateway that was started last', async t => {
  const rig = await start(t)
  const first = await rig.run()
  const second = await rig.run()
  const store = rig.create()
  append(store, 'a', 'x')
  await first.snapshot.write(rig.create())
  t.match(first.lines[1], { level: 'error', reason: /another gateway/ })
  await second.snapshot.write(store)
  await first.snapshot.write(rig.create())
  t.equal((await rig.run()).store?.stream('a', HOUR).top, 1)
})
