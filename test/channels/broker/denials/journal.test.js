// The journal of blocked users and revoked tokens, as files.

import { appendFile, mkdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { MemoryStore } from '../../../../src/channels/broker/denials/memory-store.js'
import { Denylist } from '../../../../src/channels/broker/denylist.js'
import { testdir } from '../../../kit/folders.js'

/** @import { Denial, Kind } from '../../../../src/channels/broker/denials/contract.js' */

const LIMITS = { user_block: 5000, token_revoke: 5000, user_tokens_invalidate: 5000 }
const NOW = 1_800_000_000

/** @param {Kind} kind @param {string} key @param {Partial<Denial>} [more] @returns {Denial} */
const denial = (kind, key, more) => ({
  ...{ kind, key, channel: '', seq: 0, expireAt: 0, issuedBefore: 0, removed: false },
  ...more,
})

/** @param {Promise<any>} change @returns {Promise<number>} code of its error, 0: none */
const codeOf = change =>
  change.then(
    () => 0,
    ({ code }) => code,
  )

/** @param {string} file */
function create(file) {
  let now = NOW
  const list = new Denylist(() => now * 1000)
  /** @type {any[]} */
  const lines = []
  const note = (/** @type {any} */ fields, /** @type {string} */ msg) => lines.push({ ...fields, msg })
  const log = /** @type {any} */ ({ warn: note, error: note })
  const apply = (/** @type {Denial[]} */ denials) => {
    for (const one of denials) one.removed ? list.forget(one) : list.apply(one)
  }
  const store = new MemoryStore({ list, limits: LIMITS, apply, log }, file)
  return {
    ...{ list, lines, store },
    pass: (/** @type {number} */ seconds) => (now += seconds),
    block: (/** @type {string} */ user, /** @type {Partial<Denial>} */ more = {}) =>
      store.change(denial('user_block', user, more)),
  }
}

/** @param {string} file @returns a store that has read the file, closed */
async function reread(file) {
  const opened = create(file)
  await opened.store.open()
  await opened.store.close()
  return opened
}

t.test('all kinds, channels and removals are read again', async t => {
  const file = join(await testdir(t), 'journal')
  const { store, block } = create(file)
  await store.open()
  await t.rejects(stat(file), { code: 'ENOENT' }, 'no file before the first change')
  await Promise.all([
    block('a'),
    block('b', { expireAt: NOW + 10 }),
    block('past', { expireAt: NOW - 1 }),
    block('é\n"'),
    store.change(denial('token_revoke', 'jti')),
    store.change(denial('user_tokens_invalidate', 'u', { issuedBefore: 5 })),
    store.change(denial('user_tokens_invalidate', 'u', { issuedBefore: 7, channel: '1:$x' })),
  ])
  await block('a', { removed: true })
  await store.close()
  for (let i = 0; i < 2; i++) {
    const { list, pass } = await reread(file)
    t.strictSame(
      ['a', 'b', 'past', 'é\n"', 'jti'].filter(user => list.blocks(user)),
      ['b', 'é\n"'],
    )
    const none = { uid: '', issuedAt: 0 }
    t.ok(list.rejects({ ...none, uid: 'jti' }, '', ''))
    t.notOk(list.rejects({ uid: 'a', issuedAt: 0 }, 'other', ''))
    for (const [issuedAt, channel, rejected] of /** @type {[number, string, boolean][]} */ ([
      [4, '', true],
      [5, '', false],
      [0, '', true],
      [6, '1:$x', true],
      [7, '1:$x', false],
      [6, '$x', false],
    ]))
      t.equal(list.rejects({ uid: '', issuedAt }, 'u', channel), rejected, `${issuedAt} ${channel}`)
    pass(10)
    t.notOk(list.blocks('b'), 'expired')
    list.sweep()
    t.equal(list.count('user_block'), 1)
  }
})

t.test('a write that was cut by a crash is ignored, and the entries before it are kept', async t => {
  const file = join(await testdir(t), 'journal')
  const { store, block } = create(file)
  await store.open()
  await block('first')
  const before = (await stat(file)).size
  await block('second')
  await store.close()
  const whole = await readFile(file)
  for (let end = before; end < whole.length; end++) {
    await writeFile(file, whole.subarray(0, end))
    const { list, lines } = await reread(file)
    t.ok(list.blocks('first'))
    t.notOk(list.blocks('second'))
    t.equal(lines.length, end === before ? 0 : 1, `cut at ${end}`)
    // The rewritten file is whole.
    t.equal((await reread(file)).lines.length, 0)
  }
  await writeFile(file, whole)
  await appendFile(file, Buffer.alloc(100))
  t.ok((await reread(file)).list.blocks('second'), 'zeros after the end')
})

t.test('a damaged file stops the start', async t => {
  const file = join(await testdir(t), 'journal')
  const { store, block } = create(file)
  await store.open()
  for (const user of ['a', 'b', 'c']) await block(user)
  await store.close()
  const whole = await readFile(file, 'utf8')
  const lines = whole.split('\n')
  const without = (/** @type {number} */ line) => lines.toSpliced(line, 1).join('\n')
  for (const [text, message] of /** @type {[string, RegExp][]} */ ([
    [whole.replace('"b"', '"x"'), /journal is damaged in line 4; it has the blocked users/],
    [whole.replace('"a"', '"x"'), /is damaged in line 3;/],
    [lines.slice(0, 2).join('\n').slice(0, -1), /is damaged in line 2;/],
    [`${lines[0]}\n`, /is damaged in line 2;/],
    [without(2), /lacks the record 2;/],
    [without(0), /is not a journal of this version/],
    [whole.replace('access 1', 'access 2'), /is not a journal of this version/],
    ['', /is damaged in line 1/],
    ['x'.repeat(100), /is damaged in line 1/],
  ])) {
    await writeFile(file, text)
    await t.rejects(create(file).store.open(), { message })
  }
  t.strictSame(await readFile(file, 'utf8'), 'x'.repeat(100), 'the file is unchanged')
  await rm(file)
  await mkdir(file)
  await t.rejects(create(file).store.open(), { message: /cannot be read|is not a regular file/ })
})

t.test('changes that cannot be written fail, and later ones work', async t => {
  const folder = await testdir(t)
  const file = join(folder, 'journal')
  const { store, list, lines, block } = create(file)
  await store.open()
  // Creating the new file fails.
  await mkdir(`${file}.new`)
  t.equal(await codeOf(block('a')), 100)
  t.notOk(list.blocks('a'))
  t.match(lines, [{ msg: /access journal not written/, file }])
  await rm(`${file}.new`, { recursive: true })
  await block('b')
  await rm(file)
  t.equal(await codeOf(block('c')), 100, 'the file was removed')
  await block('c')
  const other = create(file)
  await other.store.open()
  t.equal(await codeOf(block('d')), 100, 'another gateway uses the file')
  t.match(lines.at(-1), { reason: 'another gateway uses the file' })
  await other.store.close()
  await store.close()
  const { list: read } = await reread(file)
  t.ok(read.blocks('b') && read.blocks('c'))
  t.notOk(read.blocks('d'))
})

t.test('the file is rewritten before it grows beyond its entries, and its size is bounded', async t => {
  const file = join(await testdir(t), 'journal')
  const { store, block } = create(file)
  await store.open()
  const name = 'x'.repeat(240)
  let largest = 0
  for (let round = 0; round < 30; round++) {
    await Promise.all(
      Array.from({ length: 500 }, (_, i) => block(`${name}${i}`, { removed: round % 2 === 1 })),
    )
    largest = Math.max(largest, (await stat(file)).size)
  }
  await block('last')
  await store.close()
  t.ok(largest > 1_000_000 && largest < 1_800_000, `${largest} bytes`)
  const { list } = await reread(file)
  t.equal(list.count('user_block'), 1)
  t.ok((await stat(file)).size < 200)
  // A rewritten file was synced before it replaced the former one: damage at its end is no cut write.
  const size = (await stat(file)).size
  for (const end of [size - 1, size - 30, 30, 17]) {
    await truncate(file, end)
    await t.rejects(create(file).store.open(), { message: /is damaged in line/ })
  }
})

t.test('a full list refuses new entries, also those of one batch', async t => {
  const { store, list, block } = create('')
  await store.open()
  const results = await Promise.allSettled(
    Array.from({ length: 5010 }, (_, i) => block(`u${i}`, { expireAt: NOW + 5 })),
  )
  t.equal(results.filter(({ status }) => status === 'fulfilled').length, 5000)
  t.equal(await codeOf(block('new')), 106)
  await block('u1', { expireAt: NOW + 50 })
  t.equal(list.count('user_block'), 5000)
})
