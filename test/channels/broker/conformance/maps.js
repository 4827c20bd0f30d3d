// Keyed state: writes, checks, appends, pages.

import { errors } from '../../../../src/base/errors.js'
import { byKey, EPHEMERAL, entries, keysOf, page, pages, put, RULES, remove, values } from './map-calls.js'
import { failure, KEPT, offsets, texts, upTo } from './peer.js'

/** @import { MapPublish, MapResult } from '../../../../src/channels/broker/contract.js' */

/** What a subscriber without append support has after these publications. */
function replay(publications, state = new Map()) {
  for (const { data, keyed } of publications) {
    if (keyed.removed) state.delete(keyed.key)
    else if (keyed.append) state.set(keyed.key, joined(state.get(keyed.key) ?? '""', String(data)))
    else state.set(keyed.key, String(data))
  }
  return state
}

const joined = (value, part) => value.slice(0, -1) + part.slice(1)

export function mapWrites(test) {
  test('map changes are delivered, stored and recorded in the stream', 3, async (t, _rig, a, b, c) => {
    await Promise.all([a.subscribe('m'), b.subscribe('m'), c.subscribe('other')])
    const info = '{"user":"ü","client":"c"}'
    const tags = { ключ: 'значение' }
    const first = await put(a, 'm', 'ключ 🎈', '{"n":1}', { info, tags, version: 7n, delta: true })
    t.match(first, { offset: 1, suppressed: '', current: null })
    t.match(first.epoch, /^\S+$/)
    t.equal(a.events.length, 1, 'delivered to the publisher before `done`')
    await put(b, 'm', 'bytes', Buffer.from([0, 255, 10, 34]), { json: false })
    await put(b, 'm', 'empty', '')
    t.match(await remove(b, 'm', 'ключ 🎈'), { offset: 4, epoch: first.epoch, suppressed: '' })
    const recorded = await a.history('m', {})
    t.match(recorded, { offset: 4, epoch: first.epoch })
    const recovered = await c.subscribe('m', { recover: { offset: 0, epoch: first.epoch, limit: 10 } })
    t.ok(recovered.recovered)
    const lists = [
      await a.waitForEvents(4),
      await b.waitForEvents(4),
      recorded.publications,
      recovered.publications,
    ]
    for (const list of lists) {
      t.same(offsets(list), [1, 2, 3, 4])
      t.ok(list.every(({ epoch }) => epoch === first.epoch))
      t.same(keysOf(list), ['ключ 🎈', 'bytes', 'empty', 'ключ 🎈'])
      t.same(
        list.map(({ keyed }) => [keyed.removed, keyed.append]),
        [
          [false, false],
          [false, false],
          [false, false],
          [true, false],
        ],
      )
      t.match(list[0], { info, version: 7n, json: true, delta: true })
      t.same({ ...list[0].tags }, tags)
      t.match(list[1], { info: '', tags: null, version: 0n, json: false })
      t.same({ ...list[3].tags }, tags, 'a removal has the tags of the entry')
      t.same(
        list.map(({ data }) => data.toString('latin1')),
        ['{"n":1}', '\x00\xff\n"', '', ''],
      )
    }
    t.same(
      recorded.publications.map(({ keyed }) => keyed?.time),
      recovered.publications.map(({ keyed }) => keyed?.time),
    )
    t.ok(recorded.publications.every(({ keyed }) => Number(keyed?.time) > 1_600_000_000_000))
    t.same(await values(c, 'm'), { bytes: '\x00\ufffd\n"', empty: '' })
    t.same(await c.broker.maps.stats('m'), { keys: 2 })
    await c.position('other')
    t.same(c.events, [], 'other maps are not changed')
  })

  test('an entry has all fields of its last write', 2, async (t, _rig, a, b) => {
    const info = '{"user":"ü","client":"c"}'
    const tags = { room: 'ü', e: '' }
    const large = `"${'x'.repeat(1_000_000)}"`
    const { epoch } = await put(a, 'm', 'k', '1', { info, tags, version: 2n ** 63n })
    t.match((await page(b, 'm')).entries, [
      {
        offset: 1,
        epoch,
        info,
        tags,
        version: 2n ** 63n,
        json: true,
        keyed: { key: 'k', removed: false, append: false },
      },
    ])
    await put(b, 'm', 'k', large)
    const [entry, ...more] = await entries(a, 'm')
    t.same(more, [])
    t.match(entry, { offset: 2, epoch, info: '', tags: null, json: true })
    t.ok(entry.data.equals(Buffer.from(large)))
    t.match(await page(a, 'm', { key: 'none' }), { entries: [], cursor: '', offset: 2, epoch })
    const single = await page(a, 'm', { key: 'k' })
    t.match(single, { cursor: '', offset: 2, epoch, entries: [{ offset: 2 }] })
    t.equal(single.entries.length, 1)
  })

  test('a missing map has a position but no entries', 2, async (t, _rig, a, b) => {
    const { epoch, ...missing } = await page(a, 'new')
    t.same(missing, { entries: [], text: null, cursor: '', offset: 0 })
    t.match(epoch, /^\S+$/)
    t.match(await remove(b, 'new', 'k'), { offset: 0, suppressed: 'key_not_found', current: null })
    t.same(await a.broker.maps.stats('new'), { keys: 0 })
    t.match(await put(b, 'new', 'k', '1', { keyMode: 'if_exists' }), {
      offset: 0,
      suppressed: 'key_not_found',
    })
    t.match(await put(b, 'new', 'k', '1'), { offset: 1, epoch })
    t.match(await a.position('new'), { offset: 1, epoch })
  })

  test('a write whose check fails changes nothing', 2, async (t, _rig, a, b) => {
    await b.subscribe('m')
    const { epoch } = await put(a, 'm', 'k', '1', { version: 5n, versionEpoch: 'e' })
    await put(a, 'm', 'l', '1')
    /** @type {[string, () => Promise<MapResult>, object][]} */
    const rows = [
      [
        'if_new',
        () => put(b, 'm', 'k', '2', { keyMode: 'if_new' }),
        { suppressed: 'key_exists', current: null },
      ],
      [
        'if_new refresh',
        () => put(b, 'm', 'k', '2', { keyMode: 'if_new', refresh: true }),
        { suppressed: 'key_exists' },
      ],
      [
        'if_exists',
        () => put(b, 'm', 'none', '2', { keyMode: 'if_exists' }),
        { suppressed: 'key_not_found' },
      ],
      ['remove', () => remove(b, 'm', 'none'), { suppressed: 'key_not_found' }],
      ['version', () => put(b, 'm', 'k', '2', { version: 5n, versionEpoch: 'e' }), { suppressed: 'version' }],
      ['version, any epoch', () => put(b, 'm', 'k', '2', { version: 4n }), { suppressed: 'version' }],
      [
        'version before key mode',
        () => put(b, 'm', 'k', '2', { version: 4n, keyMode: 'if_new' }),
        { suppressed: 'version' },
      ],
      [
        'key mode before position',
        () => put(b, 'm', 'k', '2', { keyMode: 'if_new', expected: { offset: 9, epoch } }),
        { suppressed: 'key_exists' },
      ],
      [
        'must not exist',
        () => put(b, 'm', 'k', '2', { expected: { offset: 0, epoch: '' } }),
        { suppressed: 'position_mismatch', current: { offset: 1, keyed: { key: 'k' } } },
      ],
      [
        'another write',
        () => put(b, 'm', 'k', '2', { expected: { offset: 2, epoch } }),
        { suppressed: 'position_mismatch', current: { offset: 1, epoch } },
      ],
      [
        'another epoch',
        () => put(b, 'm', 'k', '2', { expected: { offset: 1, epoch: 'other' } }),
        { suppressed: 'position_mismatch', current: { offset: 1 } },
      ],
      [
        'no entry',
        () => put(b, 'm', 'none', '2', { expected: { offset: 1, epoch } }),
        { suppressed: 'position_mismatch', current: null },
      ],
    ]
    for (const [name, write, expected] of rows) {
      const result = await write()
      t.match(result, { offset: 2, epoch, ...expected }, name)
      if (result.current) t.equal(String(result.current.data), '1', name)
    }
    t.match(await a.position('m'), { offset: 2, epoch })
    t.same(await values(a, 'm'), { k: '1', l: '1' })
    await b.position('m')
    t.equal(b.events.length, 2)
  })

  test('a write whose check passes is applied', 2, async (t, _rig, a, b) => {
    const { epoch } = await put(a, 'm', 'k', '1', { keyMode: 'if_new', version: 5n, versionEpoch: 'e' })
    t.match(await put(b, 'm', 'k', '2', { keyMode: 'if_exists' }), { offset: 2, suppressed: '' })
    t.match(
      await put(b, 'm', 'k', 'x', { version: 5n }),
      { offset: 2, suppressed: 'version' },
      'the version stays',
    )
    t.match(await put(b, 'm', 'k', '3', { version: 1n, versionEpoch: 'f' }), { offset: 3, suppressed: '' })
    t.match(await put(b, 'm', 'other', '4', { version: 1n, versionEpoch: 'f' }), {
      offset: 4,
      suppressed: '',
    })
    t.match(await put(a, 'm', 'k', '5', { expected: { offset: 3, epoch } }), { offset: 5, suppressed: '' })
    t.match(await put(a, 'm', 'k', '6', { expected: { offset: 5, epoch: '' } }), {
      offset: 6,
      suppressed: '',
    })
    t.match(await put(a, 'm', 'new', '7', { expected: { offset: 0, epoch } }), { offset: 7, suppressed: '' })
    t.match(await remove(a, 'm', 'new', { tags: { why: 'test' } }), { offset: 8, suppressed: '' })
    t.same((await a.history('m', { sinceOffset: 7 })).publications[0].tags, { why: 'test' })
    t.match(
      await put(a, 'm', 'new', '9', { expected: { offset: 0, epoch }, version: 1n }),
      { offset: 9, suppressed: '' },
      'a removed key is new',
    )
    t.same(await values(b, 'm'), { k: '6', other: '4', new: '9' })
  })

  test('the version of a key is removed with it', 2, async (t, rig, a, b) => {
    const rules = { ...RULES, keyTtl: 100_000 }
    const put5 = key => put(a, 'm', key, '5', { version: 5n, versionEpoch: 'e' }, rules)
    const keys = ['removed', 'expired', 'left']
    for (const key of keys) await put5(key)
    await remove(b, 'm', 'removed', {}, rules)
    t.match(await put(b, 'm', 'removed', '1', { version: 1n }, rules), { suppressed: '' })
    await rig.pass(150_000)
    t.match(await put(b, 'm', 'expired', '1', { version: 1n }, rules), { suppressed: '' })
    t.match(await put5('expired'), { suppressed: '' }, 'the new version counts')
    t.match(await put5('expired'), { suppressed: 'version' })
    await a.broker.maps.clear('m')
    t.match(await put(b, 'm', 'expired', '1', { version: 1n }, rules), { suppressed: '' })
  })

  test('of concurrent writes with the same expected position, one is applied', 2, async (t, _rig, a, b) => {
    let { offset, epoch } = await put(a, 'm', 'k', '0')
    for (const round of upTo(10)) {
      const expected = { offset, epoch }
      const results = await Promise.all(
        [a, b, a, b].map((peer, i) => put(peer, 'm', 'k', `${round}${i}`, { expected })),
      )
      const made = results.filter(({ suppressed }) => suppressed === '')
      t.equal(made.length, 1)
      ;({ offset, epoch } = made[0])
      const value = `${round}${results.indexOf(made[0])}`
      for (const { suppressed, current } of results)
        if (suppressed)
          t.match([suppressed, current?.offset, String(current?.data)], ['position_mismatch', offset, value])
    }
  })

  test('stream data replaces the value for subscribers and in the stream', 2, async (t, _rig, a, b) => {
    await b.subscribe('m')
    const tags = { e: '1' }
    await put(a, 'm', 'k', '{"all":1}', { streamData: '{"part":1}', tags })
    await put(a, 'm', 'l', Buffer.from([255]), { json: false, streamData: '"text"', streamJson: true })
    await put(a, 'm', 'n', '"text"', { streamData: Buffer.from([255]), streamJson: false })
    const events = await b.waitForEvents(3)
    const recorded = (await a.history('m', {})).publications
    for (const list of [events, recorded]) {
      t.same(
        list.map(({ data }) => data.toString('latin1')),
        ['{"part":1}', '"text"', '\xff'],
      )
      t.match(list, [
        { json: true, tags },
        { json: true, tags: null },
        { json: false, tags: null },
      ])
    }
    const stored = await entries(b, 'm')
    t.same(
      stored.map(({ data }) => data.toString('latin1')),
      ['{"all":1}', '\xff', '"text"'],
    )
    t.match(stored, [{ json: true, tags }, { json: false }, { json: true }])
  })

  test('an ephemeral map has entries but no stream', 2, async (t, _rig, a, b) => {
    await b.subscribe('m', { position: false })
    t.match(await put(a, 'm', 'k', '1', {}, EPHEMERAL), { offset: 0, suppressed: '' })
    t.match(await put(a, 'm', 'k', '2', { keyMode: 'if_new' }, EPHEMERAL), {
      offset: 0,
      suppressed: 'key_exists',
    })
    t.match(await put(a, 'm', 'l', '2', { idempotencyKey: 'i' }, EPHEMERAL), { offset: 0, suppressed: '' })
    t.match(await put(b, 'm', 'l', '3', { idempotencyKey: 'i' }, EPHEMERAL), { suppressed: 'idempotency' })
    t.match(await page(b, 'm', {}, EPHEMERAL), { offset: 0, cursor: '' })
    t.same(await values(b, 'm', EPHEMERAL), { k: '1', l: '2' })
    t.match(await remove(b, 'm', 'k', {}, EPHEMERAL), { offset: 0, suppressed: '' })
    t.same(await b.broker.maps.stats('m'), { keys: 1 })
    t.match(await b.waitForEvents(3), [
      { offset: 0, epoch: '', keyed: { key: 'k', removed: false } },
      { offset: 0, epoch: '', keyed: { key: 'l', removed: false } },
      { offset: 0, epoch: '', keyed: { key: 'k', removed: true } },
    ])
    t.match(await page(a, 'unknown', {}, EPHEMERAL), { entries: [], cursor: '', offset: 0 })
  })

  test('an idempotency key suppresses repeated map writes for five minutes', 2, async (t, rig, a, b) => {
    const first = await put(a, 'm', 'k', '1', { idempotencyKey: 'i' })
    await put(a, 'm', 'l', '1')
    const repeated = { offset: 1, epoch: first.epoch, suppressed: 'idempotency' }
    t.match(await put(b, 'm', 'k', '2', { idempotencyKey: 'i' }), repeated, 'with the position of the first')
    t.match(
      await put(b, 'm', 'k', '2', { idempotencyKey: 'i', keyMode: 'if_new' }),
      repeated,
      'before other checks',
    )
    t.match(await put(b, 'other', 'k', '2', { idempotencyKey: 'i' }), { offset: 1, suppressed: '' })
    t.match(await put(b, 'm', 'k', '2', { idempotencyKey: 'j', keyMode: 'if_new' }), {
      suppressed: 'key_exists',
    })
    t.match(
      await put(b, 'm', 'k', '2', { idempotencyKey: 'j' }),
      { offset: 3, suppressed: '' },
      'suppressed: not kept',
    )
    const gone = await remove(b, 'm', 'k', { idempotencyKey: 'r' })
    t.match(gone, { offset: 4, suppressed: '' })
    t.match(await remove(a, 'm', 'l', { idempotencyKey: 'r' }), { ...gone, suppressed: 'idempotency' })
    t.same(await values(a, 'm'), { l: '1' })
    await rig.pass(301_000)
    t.match(await put(b, 'm', 'k', '3', { idempotencyKey: 'i' }), { offset: 5, suppressed: '' })
  })
}

export function mapAppends(test) {
  test('an append extends a JSON string or bytes', 2, async (t, _rig, a, b) => {
    await b.subscribe('m')
    const { epoch } = await put(a, 'm', 's', '"é"', { append: true })
    await put(a, 'm', 's', '"\\n🎈"', { append: true, tags: { n: '2' } })
    await put(b, 'm', 's', '""', { append: true })
    await put(b, 'm', 's', '"\\"end"', { append: true })
    await put(a, 'm', 'b', Buffer.from([0, 255]), { append: true, json: false })
    t.match(await put(a, 'm', 'b', Buffer.from([34]), { append: true, json: false }), {
      offset: 6,
      suppressed: '',
    })
    const list = await entries(b, 'm')
    t.same(
      list.map(({ data }) => data.toString('latin1')),
      ['\x00\xff"', Buffer.from('"é\\n🎈\\"end"').toString('latin1')],
    )
    t.match(list, [
      { offset: 6, json: false, keyed: { append: false } },
      { offset: 4, json: true, tags: null, keyed: { append: false } },
    ])
    const recorded = (await a.history('m', {})).publications
    for (const parts of [await b.waitForEvents(6), recorded]) {
      t.same(texts(parts.slice(0, 4)), ['"é"', '"\\n🎈"', '""', '"\\"end"'])
      t.same(
        parts.map(({ keyed }) => keyed.append),
        [false, true, true, true, false, true],
        'the first part is the value',
      )
    }
    const expected = { offset: 4, epoch }
    t.match(await put(a, 'm', 's', '"!"', { append: true, expected }), { offset: 7, suppressed: '' })
    t.match(await put(a, 'm', 's', '"!"', { append: true, expected }), {
      suppressed: 'position_mismatch',
      current: { offset: 7 },
    })
    t.match(await put(a, 'm', 's', '"?"', { append: true, idempotencyKey: 'i', version: 3n }), {
      suppressed: '',
    })
    t.match(await put(a, 'm', 's', '"?"', { append: true, idempotencyKey: 'i' }), {
      suppressed: 'idempotency',
    })
    t.match(await put(a, 'm', 's', '"?"', { append: true, version: 3n }), { suppressed: 'version' })
    t.same((await values(b, 'm')).s, '"é\\n🎈\\"end!?"')
  })

  test('a part of bytes that is a JSON string extends either', 2, async (t, _rig, a, b) => {
    await b.subscribe('m')
    await put(a, 'm', 'string', '"a"')
    await put(a, 'm', 'bytes', Buffer.from([255]), { json: false })
    const append = key => put(b, 'm', key, Buffer.from('"b"'), { append: true, bytes: true })
    for (const key of ['string', 'bytes', 'new']) t.match(await append(key), { suppressed: '' }, key)
    const list = await entries(a, 'm')
    t.same(
      list.map(({ data }) => data.toString('latin1')),
      ['\xff"b"', '"b"', '"ab"'],
    )
    t.match(list, [{ json: false }, { json: true }, { json: true }])
    for (const parts of [await b.waitForEvents(5), (await a.history('m', {})).publications]) {
      t.same(texts(parts.slice(2)), ['"b"', '"b"', '"b"'])
      t.match(parts.slice(2), [{ json: true }, { json: false }, { json: true }])
    }
  })

  test('an append to a value of another kind is a bad request', 2, async (t, _rig, a, b) => {
    await b.subscribe('m')
    const json = ['{"a":1}', '12', 'null', '["a"]', '']
    for (const [i, data] of json.entries()) await put(a, 'm', `json${i}`, data)
    await put(a, 'm', 'string', '"abc"')
    await put(a, 'm', 'bytes', Buffer.from('abc'), { json: false })
    const before = await values(b, 'm')
    const bad = async (key, data, options = {}) =>
      t.equal(
        await failure(put(a, 'm', key, data, { append: true, ...options })),
        errors.badRequest,
        `${key} ${data}`,
      )
    for (const i of json.keys()) await bad(`json${i}`, '"x"')
    for (const data of json) await bad('string', data)
    for (const data of json.slice(0, 4)) await bad('new', data)
    await bad('string', Buffer.from('"x"'), { json: false })
    await bad('bytes', '"x"')
    await bad('string', '"de"', { maxBytes: 6 })
    await bad('bytes', Buffer.from('d'), { json: false, maxBytes: 3 })
    await bad('new', '"abcdef"', { maxBytes: 7 })
    t.same(await values(b, 'm'), before)
    await b.position('m')
    t.equal(b.events.length, json.length + 2)
    t.match(await put(a, 'm', 'string', '"de"', { append: true, maxBytes: 7 }), { suppressed: '' })
    t.match(await put(a, 'm', 'bytes', Buffer.from('d'), { append: true, json: false, maxBytes: 4 }), {
      suppressed: '',
    })
    t.equal(
      await failure(put(a, 'm', 'string', '"1234567"', { maxBytes: 8 })),
      errors.badRequest,
      'without append',
    )
    t.match(await values(b, 'm'), { string: '"abcde"', bytes: 'abcd' })
  })

  test('concurrent appends are joined in stream order', 2, async (t, _rig, a, b) => {
    await b.subscribe('m')
    await Promise.all(upTo(90).map(n => put(n % 2 ? a : b, 'm', 'k', `"${n},"`, { append: true })))
    const { k } = await values(a, 'm')
    t.same(
      k
        .slice(1, -2)
        .split(',')
        .map(Number)
        .sort((x, y) => x - y),
      upTo(90),
    )
    t.equal(replay(await b.waitForEvents(90)).get('k'), k)
    t.equal(replay((await a.history('m', {})).publications).get('k'), k)
  })
}

export function mapPages(test) {
  test('pages list every entry once', 2, async (t, _rig, a, b) => {
    const keys = upTo(2500).map(n => `${(n * 7919) % 2500}:ключ`)
    await Promise.all(keys.map(key => put(a, 'm', key, `"${key}"`)))
    for (const limit of [100, 1000, 10_000]) {
      const read = await pages(b, 'm', { limit })
      const list = byKey(read)
      t.same(keysOf(list).sort(), [...keys].sort(), String(limit))
      t.ok(list.every(({ data, keyed }) => String(data) === `"${keyed.key}"`))
      t.ok(read.every(({ offset, epoch }) => offset === 2500 && epoch === read[0].epoch))
    }
    t.same(await b.broker.maps.stats('m'), { keys: 2500 })
  })

  test('a page has at most the requested number of entries', 1, async (t, _rig, a) => {
    for (const n of upTo(25)) await put(a, 'm', `k${n}`, '1')
    t.ok((await pages(a, 'm', { limit: 10 })).every(({ entries }) => entries.length <= 10))
    t.equal((await page(a, 'm', { limit: 1 })).entries.length, 1)
  })

  test('entries that exist during a whole listing are on one page', 2, async (t, _rig, a, b) => {
    const stable = upTo(300).map(n => `k${n}`)
    await Promise.all(stable.map(key => put(a, 'm', key, '1')))
    await Promise.all(upTo(300).map(n => put(a, 'm', `gone${n}`, '1')))
    const seen = []
    let n = 0
    for (let cursor = '', first = true; first || cursor !== ''; first = false) {
      const read = await page(b, 'm', { cursor, limit: 20 })
      seen.push(...keysOf(read.entries))
      cursor = read.cursor
      // New keys follow those read: the listing ends when there are no more.
      const writes = upTo(n < 300 ? 20 : 0).flatMap(() => {
        n++
        return [put(a, 'm', `new${n}`, '1'), put(a, 'm', `k${n}`, '2'), remove(a, 'm', `gone${n}`)]
      })
      await Promise.all(writes)
    }
    t.equal(new Set(seen).size, seen.length, 'no key twice')
    t.same(seen.filter(key => stable.includes(key)).sort(), [...stable].sort())
  })

  test('a listing with a position omits entries written after it', 2, async (t, _rig, a, b) => {
    for (const n of upTo(6)) await put(a, 'm', `k${n}`, '1')
    const { offset, epoch } = await page(b, 'm', { limit: 2 })
    t.equal(offset, 6)
    await put(a, 'm', 'k2', '2')
    await put(a, 'm', 'k9', '1')
    await remove(a, 'm', 'k3')
    const read = await pages(b, 'm', { limit: 2, upTo: offset, epoch })
    t.same(keysOf(byKey(read)), ['k1', 'k4', 'k5', 'k6'])
    t.equal(read.at(-1)?.offset, 9, 'the position is that of the map')
  })

  test('pages are limited in bytes', 2, async (t, _rig, a, b) => {
    const value = `"${'x'.repeat(10_000)}"`
    for (const n of upTo(60)) await put(a, 'm', `k${n}`, n === 30 ? `"${'x'.repeat(200_000)}"` : value)
    const read = await pages(b, 'm', { maxBytes: 50_000 })
    t.equal(byKey(read).length, 60)
    for (const { entries } of read) {
      const bytes = entries.reduce((sum, { data }) => sum + data.length, 0)
      t.ok(bytes <= 50_000 || entries.length === 1, `${bytes} bytes`)
    }
    t.equal(byKey(await pages(b, 'm')).length, 60)
    const all = await Promise.all(upTo(30).map(() => pages(b, 'm', { limit: 50 })))
    t.ok(all.every(read => byKey(read).length === 60))
  })

  test('another epoch and a forged cursor are refused', 2, async (t, _rig, a, b) => {
    const { epoch } = await put(a, 'm', 'k', '1')
    t.equal(await failure(page(b, 'm', { epoch: 'XXXXXXXX' })), errors.unrecoverablePosition)
    t.equal(await failure(page(b, 'm', { epoch: 'é' })), errors.unrecoverablePosition)
    t.equal(await failure(page(b, 'none', { epoch: 'XXXXXXXX' })), errors.unrecoverablePosition)
    for (const cursor of ['0', 'zzz', '9'.repeat(1000), '\x00🎈', '-1', '18446744073709551616']) {
      const read = await page(b, 'm', { cursor, epoch }).catch(error => error)
      if (read instanceof Error)
        t.ok([errors.badRequest, errors.unrecoverablePosition].includes(/** @type {any} */ (read)), cursor)
      else t.ok(read.entries.length <= 1, cursor)
    }
  })

  test('a cleared map is announced to its subscribers', 3, async (t, _rig, a, b, c) => {
    await b.subscribe('e', { position: false })
    await c.subscribe('other', { position: false })
    await put(a, 'e', 'k', '1', {}, EPHEMERAL)
    await a.broker.maps.clear('e')
    await put(a, 'e', 'l', '1', {}, EPHEMERAL)
    await b.waitForEvents(2)
    t.same(b.interrupted, ['e'])
    t.same(await values(b, 'e', EPHEMERAL), { l: '1' })
    await c.position('other')
    t.same([a.interrupted, c.interrupted], [[], []])
  })

  test('a cleared map starts a new epoch', 2, async (t, _rig, a, b) => {
    await b.subscribe('m')
    for (const n of upTo(5)) await put(a, 'm', `k${n}`, '1', { idempotencyKey: `i${n}` })
    const { epoch, cursor } = await page(a, 'm', { limit: 1 })
    await b.waitForEvents(5)
    await a.broker.maps.clear('m')
    await a.broker.maps.clear('unknown')
    t.equal(await failure(page(b, 'm', { epoch, cursor })), errors.unrecoverablePosition)
    const cleared = await page(b, 'm')
    t.match(cleared, { entries: [], cursor: '', offset: 0 })
    t.not(cleared.epoch, epoch)
    t.same(await b.broker.maps.stats('m'), { keys: 0 })
    const position = await b.position('m')
    t.same(position, { offset: 0, epoch: cleared.epoch })
    t.same((await b.history('m', {})).publications, [])
    t.match(await a.subscribe('m', { recover: { offset: 5, epoch, limit: 10 } }), { recovered: false })
    const next = await put(a, 'm', 'k1', '2', { idempotencyKey: 'i1' })
    t.match(next, { offset: 1, epoch: cleared.epoch, suppressed: '' }, 'the idempotency results are removed')
    t.match(await put(a, 'm', 'k1', '3', { idempotencyKey: 'i1' }), { suppressed: 'idempotency' })
    t.match((await b.waitForEvents(6))[5], { offset: 1, epoch: cleared.epoch, keyed: { key: 'k1' } })
    t.same(await values(b, 'm'), { k1: '2' })
  })
}

export function mapModel(test) {
  test('random writes leave the same entries as a model', 2, async (t, _rig, a, b) => {
    const rules = { ...RULES, streamSize: 1000 }
    await b.subscribe('m', { metaTtl: rules.metaTtl })
    let seed = 20_260_101
    const random = below => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
      return Math.floor((seed / 2 ** 32) * below)
    }
    const pick = list => list[random(list.length)]
    /** @type {Map<string, {value: string, offset: number}>} */
    const model = new Map()
    let top = 0
    let epoch = ''
    for (let step = 0; step < 400; step++) {
      const peer = pick([a, b])
      const key = pick(['a', 'b', 'c', 'd', 'e', 'f'])
      const entry = model.get(key)
      const value = `"${step}"`
      const kind = random(10)
      let result
      let suppressed = ''
      let written = value
      if (kind < 2) {
        result = await remove(peer, 'm', key, {}, rules)
        if (entry) model.delete(key)
        else suppressed = 'key_not_found'
      } else {
        const offset = pick([0, entry?.offset ?? 0, top])
        const options = /** @type {MapPublish[]} */ ([
          {},
          {},
          { append: true },
          { keyMode: 'if_new' },
          { keyMode: 'if_exists' },
          { expected: { offset, epoch } },
        ])[random(6)]
        result = await put(peer, 'm', key, value, options, rules)
        if (options.keyMode === 'if_new' && entry) suppressed = 'key_exists'
        else if (options.keyMode === 'if_exists' && !entry) suppressed = 'key_not_found'
        else if (options.expected && (entry?.offset ?? 0) !== offset) suppressed = 'position_mismatch'
        else if (options.append && entry) written = joined(entry.value, value)
        if (suppressed === '') model.set(key, { value: written, offset: top + 1 })
      }
      if (suppressed === '') top++
      epoch = result.epoch
      if (result.suppressed !== suppressed || result.offset !== top)
        t.match(result, { suppressed, offset: top }, `step ${step}`)
    }
    const expected = Object.fromEntries([...model].map(([key, { value }]) => [key, value]))
    t.same(await values(a, 'm', rules), expected)
    t.same(Object.fromEntries(replay(await b.waitForEvents(top))), expected, 'the subscriber')
    const recorded = await a.history('m', {})
    t.same(Object.fromEntries(replay(recorded.publications)), expected, 'the stream reader')
    t.same(
      (await entries(b, 'm', rules)).map(({ offset }) => offset),
      [...model.keys()].sort().map(key => model.get(key)?.offset),
    )
  })

  test('a map and a stream of the same name do not interfere', 1, async (t, _rig, a) => {
    await a.subscribe('s')
    await a.publish('s', '1', KEPT)
    t.match(await a.waitForEvents(1), [{ offset: 1, keyed: null }])
    t.match((await a.history('s', {})).publications, [{ keyed: null }])
    t.same(await a.broker.maps.stats('s'), { keys: 0 })
  })
}
