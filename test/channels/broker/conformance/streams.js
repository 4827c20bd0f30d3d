// Offsets, history, recovery.

import { errors } from '../../../../src/base/errors.js'
import { failure, HOUR, LIVE, offsets, texts, upTo } from './peer.js'

export function recovery(test) {
  test('recovery returns all missed publications or recovered: false', 1, async (t, _rig, a) => {
    const empty = await a.subscribe('s', { recover: { offset: 0, epoch: '', limit: 5 } })
    t.match(empty, { offset: 0, recovered: true, publications: [] }, 'an empty stream is recovered')
    t.match(empty.epoch, /^\S+$/, 'the empty stream has an epoch')
    for (const n of upTo(14)) await a.publish('s', String(n))
    const { epoch } = empty
    const recover = (offset, wanted, limit) =>
      a.subscribe('s', { first: false, recover: { offset, epoch: wanted, limit } })
    const rows = [
      ['the gap is there', 10, epoch, 5, true, [11, 12, 13, 14]],
      ['the gap is as large as the limit', 9, epoch, 5, true, [10, 11, 12, 13, 14]],
      ['the gap is larger than the limit', 8, epoch, 5, false, []],
      ['no limit', 4, epoch, 0, true, upTo(10, 5)],
      ['trimmed', 3, epoch, 0, false, []],
      ['nothing was missed', 14, epoch, 5, true, []],
      ['an offset beyond the top', 15, epoch, 5, false, []],
      ['another epoch', 10, 'XXXXXXXX', 5, false, []],
      ['another epoch at the top', 14, 'XXXXXXXX', 5, false, []],
      ['epoch not known', 12, '', 5, true, [13, 14]],
    ]
    for (const [name, offset, wanted, limit, recovered, expected] of rows) {
      const answer = await recover(offset, wanted, limit)
      t.match(answer, { offset: 14, epoch, recovered }, name)
      t.same(offsets(answer.publications), expected, name)
      t.ok(answer.publications.every(publication => publication.epoch === epoch))
    }
  })

  test('cache recovery returns the newest publications for any position', 1, async (t, _rig, a) => {
    const latest = () =>
      a.subscribe('c', { first: false, latest: true, recover: { offset: 99, epoch: 'XXXXXXXX', limit: 1 } })
    t.same((await latest()).publications, [])
    for (const n of upTo(3)) await a.publish('c', String(n), { historySize: 2 })
    const { publications, offset } = await latest()
    t.equal(offset, 3)
    t.same(texts(publications), ['3'])
    const all = await a.subscribe('c', {
      first: false,
      latest: true,
      recover: { offset: 0, epoch: '', limit: 0 },
    })
    t.same(offsets(all.publications), [2, 3], 'no limit: all that are kept')
  })

  test('the target of a publication is delivered, stored and read', 2, async (t, _rig, a, b) => {
    const latest = { latest: true, recover: { offset: 0, epoch: '', limit: 1 } }
    await a.subscribe('t')
    await b.subscribe('t')
    const target = { excludeClient: 'cl\u00efent', excludeUser: 'us\u{1f600}r', users: null }
    const users = { excludeClient: '', excludeUser: '', users: ['a', 'b'] }
    const options = { info: '{"user":"u"}', tags: { k: 'v' }, idempotencyKey: 'key' }
    await a.publish('t', '"plain"')
    await a.publish('t', '"target"', { ...options, target })
    await a.publish('t', '"users"', { ...LIVE, ...options, idempotencyKey: 'other', target: users })
    await b.publish('t', '"direct"', { ...LIVE, target: users })
    const expected = [null, target, users, users]
    for (const peer of [a, b]) {
      const events = await peer.waitForEvents(4)
      t.strictSame(
        events.map(({ target }) => target),
        expected,
      )
      t.same(texts(events), ['"plain"', '"target"', '"users"', '"direct"'])
    }
    const { publications } = await a.history('t', { limit: -1 })
    t.strictSame(
      publications.map((/** @type {any} */ { target }) => target),
      [null, target],
    )
    t.match(publications[1], { info: options.info, tags: options.tags })
    t.same(
      offsets((await a.subscribe('t', { first: false, ...latest })).publications),
      [1, 2],
      'cache recovery also returns older ones: a client may be excluded',
    )
    await a.publish('t', '"last"')
    t.same(offsets((await a.subscribe('t', { first: false, ...latest })).publications), [3])
  })

  test('nothing is recovered and no position is returned unless requested', 1, async (t, _rig, a) => {
    await a.publish('p', '1')
    t.match(await a.subscribe('p'), { offset: 1, recovered: false, publications: [] })
    t.match(await a.subscribe('q', { position: false }), {
      offset: 0,
      epoch: '',
      recovered: false,
      publications: [],
    })
  })
}

export function history(test) {
  test('history returns the requested range', 1, async (t, _rig, a) => {
    for (const n of upTo(14)) await a.publish('h', String(n))
    const { epoch } = await a.position('h')
    const rows = [
      [{ limit: 0 }, []],
      [{ limit: -1 }, upTo(10, 5)],
      [{ limit: 3 }, [5, 6, 7]],
      [{ limit: 99 }, upTo(10, 5)],
      [{ limit: 2, reverse: true }, [14, 13]],
      [{ limit: -1, reverse: true }, upTo(10, 5).reverse()],
      [{ limit: -1, sinceOffset: 12 }, [13, 14]],
      [{ limit: 1, sinceOffset: 12 }, [13]],
      [{ limit: -1, sinceOffset: 12, sinceEpoch: epoch }, [13, 14]],
      [{ limit: -1, sinceOffset: 0 }, upTo(10, 5), 'a gap is no error'],
      [{ limit: 2, sinceOffset: 2 }, [5, 6], 'reading begins at what is kept'],
      [{ limit: -1, sinceOffset: 14 }, []],
      [{ limit: -1, sinceOffset: 15 }, [], 'beyond the top'],
      [{ limit: 3, sinceOffset: 9, reverse: true }, [8, 7, 6]],
      [{ limit: -1, sinceOffset: 9, reverse: true }, [8, 7, 6, 5]],
      [{ limit: -1, sinceOffset: 5, reverse: true }, [], 'the first entry is trimmed'],
      [{ limit: -1, sinceOffset: 15, reverse: true }, upTo(10, 5).reverse(), 'from the top'],
      [{ limit: 2, sinceOffset: 15, reverse: true }, [14, 13]],
      [{ limit: -1, sinceOffset: 16, reverse: true }, [], 'beyond the top'],
    ]
    for (const [filter, expected, why] of rows) {
      const result = await a.history('h', filter)
      t.match(result, { offset: 14, epoch })
      t.same(offsets(result.publications), expected, why ?? JSON.stringify(filter))
    }
    const failed = await failure(a.history('h', { sinceOffset: 12, sinceEpoch: 'XXXXXXXX' }))
    t.equal(failed, errors.unrecoverablePosition)
  })

  test('reading an unknown channel begins its stream', 2, async (t, _rig, a, b) => {
    const { epoch, offset, publications } = await a.history('new')
    t.match({ offset, publications }, { offset: 0, publications: [] })
    t.match(epoch, /^\S+$/)
    t.same(await b.publish('new', '1'), { offset: 1, epoch })
  })

  test('removing history keeps the position', 2, async (t, _rig, a, b) => {
    for (const n of upTo(3)) await a.publish('r', String(n))
    const before = await a.position('r')
    await b.broker.pubsub.removeHistory('r')
    await b.broker.pubsub.removeHistory('never seen')
    t.match(await a.history('r'), { publications: [], ...before })
    const recover = offset => a.subscribe('r', { recover: { offset, epoch: before.epoch, limit: 5 } })
    t.match(await recover(3), { recovered: true, publications: [] })
    t.match(await recover(2), { recovered: false })
    t.same(await b.publish('r', '4'), { offset: 4, epoch: before.epoch })
    t.same(offsets((await a.history('r')).publications), [4])
  })

  test('history is limited to its size, even after a change of the size', 1, async (t, _rig, a) => {
    for (const n of upTo(100)) await a.publish('size', String(n), { historySize: 7 })
    t.same(offsets((await a.history('size')).publications), upTo(7, 94))
    await a.publish('size', '101', { historySize: 3 })
    t.same(offsets((await a.history('size')).publications), [99, 100, 101])
  })
}

export function lifetimes(test) {
  test('publications expire; offset and epoch stay', 1, async (t, rig, a) => {
    // With the clock of a server, real time also passes: a few seconds on a busy machine.
    const options = { historyTtl: 200_000, metaTtl: HOUR }
    await a.publish('ttl', '1', options)
    await rig.pass(120_000)
    const second = await a.publish('ttl', '2', options)
    await rig.pass(120_000)
    const kept = offsets((await a.history('ttl')).publications)
    t.same(kept, [1, 2], 'each publication extends the lifetime of all')
    await rig.pass(250_000)
    t.match(await a.history('ttl'), { publications: [], ...second })
    t.match(await a.subscribe('ttl', { recover: { ...second, limit: 5 } }), {
      recovered: true,
      publications: [],
    })
    t.match(await a.subscribe('ttl', { recover: { ...second, offset: 1, limit: 5 } }), {
      recovered: false,
      offset: 2,
    })
    t.match(await a.publish('ttl', '3', options), { offset: 3, epoch: second.epoch })
  })

  test('a stream that is unused for its meta ttl starts a new epoch', 2, async (t, rig, a, b) => {
    const metaTtl = 300_000
    const options = { historyTtl: 100_000, metaTtl }
    const first = await a.publish('meta', '1', options)
    await rig.pass(200_000)
    t.match(await a.position('meta', metaTtl), first, 'a read counts as use')
    await rig.pass(200_000)
    t.match(await a.position('meta', metaTtl), first)
    await b.subscribe('meta', { metaTtl })
    await rig.pass(450_000)
    const next = await a.publish('meta', '2', options)
    t.equal(next.offset, 1)
    t.not(next.epoch, first.epoch)
    t.match(await b.waitForEvents(1), [{ offset: 1, epoch: next.epoch }], 'its subscribers stay subscribed')
    t.match(await a.subscribe('meta', { recover: { ...first, limit: 5 }, metaTtl }), {
      recovered: false,
      ...next,
    })
  })
}

export function repetition(test) {
  test('an idempotency key suppresses repeats for five minutes', 2, async (t, rig, a, b) => {
    await a.subscribe('once')
    const options = { idempotencyKey: 'k', historyTtl: HOUR }
    const first = await a.publish('once', '1', options)
    t.same(await b.publish('once', '1', options), first, 'the key is valid on all workers')
    t.match(await b.publish('once', '2', { ...options, idempotencyKey: 'l' }), { offset: 2 })
    t.match(await b.publish('other', '2', options), { offset: 1 }, 'a key is valid per channel')
    await rig.pass(301_000)
    t.match(await b.publish('once', '3', options), { offset: 3 })
    await a.position('once')
    t.same(texts(a.events), ['1', '2', '3'])
  })

  test('an idempotency key suppresses repeats without history', 2, async (t, _rig, a, b) => {
    await a.subscribe('once', { position: false })
    for (const peer of [a, b, a])
      t.same(await peer.publish('once', '1', { ...LIVE, idempotencyKey: 'k' }), { offset: 0, epoch: '' })
    await a.position('once')
    t.same(texts(a.events), ['1'])
  })

  test('an older version is dropped; the reply has the current position', 2, async (t, _rig, a, b) => {
    await a.subscribe('v')
    const publish = (peer, data, version, versionEpoch = '') =>
      peer.publish('v', data, { version, versionEpoch })
    const offset = async promise => (await promise).offset
    t.equal(await offset(publish(a, '5', 5n, 'e')), 1)
    t.equal(await offset(publish(b, '5 again', 5n, 'e')), 1)
    t.equal(await offset(publish(b, '4', 4n)), 1, 'without an epoch versions continue')
    t.equal(await offset(publish(a, '6', 6n, 'e')), 2)
    t.equal(await offset(publish(a, '1 of f', 1n, 'f')), 3, 'another epoch accepts any version')
    t.equal(await offset(publish(a, '2', 2n)), 4)
    t.equal(await offset(a.publish('v', 'none')), 5)
    t.equal(await offset(publish(a, '1', 1n)), 6, 'a publication without version resets it')
    await a.position('v')
    t.same(texts(a.events), ['5', '6', '1 of f', '2', 'none', '1'])
    a.events.length = 0
    for (const version of [9n, 8n]) {
      t.same(await a.publish('v', '', { version, historySize: 0 }), { offset: 0, epoch: '' })
    }
    await a.waitForEvents(2)
    const versions = a.events.map(({ version }) => version)
    t.same(versions, [9n, 8n], 'without history, versions are not compared')
  })
}
