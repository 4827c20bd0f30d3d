// Recovery and history of more bytes than a broker sends at once.

import { errors } from '../../../../src/base/errors.js'
import { HOUR, offsets, upTo } from './peer.js'

const SIZE = 10_000
const COUNT = 60
const WHOLE = { historySize: COUNT, historyTtl: 600_000, metaTtl: HOUR }
const payload = (/** @type {number} */ n) => `${n}:${'x'.repeat(SIZE)}`

/** @returns {Promise<string>} epoch of a channel with COUNT publications of SIZE bytes */
async function fill(peer, channel) {
  let epoch = ''
  for (const published of await Promise.all(upTo(COUNT).map(n => peer.publish(channel, payload(n), WHOLE))))
    epoch = published.epoch
  return epoch
}

export function pages(test) {
  test('a large history is read completely, from either end', 1, async (t, _rig, a) => {
    const epoch = await fill(a, 'large')
    const rows = [
      [{}, upTo(COUNT)],
      [{ reverse: true }, upTo(COUNT).reverse()],
      [{ limit: 45 }, upTo(45)],
      [{ limit: 45, reverse: true }, upTo(45, COUNT - 44).reverse()],
      [{ limit: 30, sinceOffset: 20, sinceEpoch: epoch }, upTo(30, 21)],
    ]
    for (const [filter, expected] of rows) {
      const answer = await a.history('large', filter)
      t.match(answer, { offset: COUNT, epoch, complete: true })
      t.same(offsets(answer.publications), expected, JSON.stringify(filter))
      t.ok(answer.publications.every(({ offset, data }) => String(data) === payload(offset)))
    }
    for (const latest of [false, true]) {
      const answer = await a.subscribe('large', { latest, recover: { offset: 0, epoch, limit: COUNT } })
      t.match(answer, { offset: COUNT, epoch, recovered: true })
      t.same(offsets(answer.publications), upTo(COUNT))
    }
  })

  test('large histories are read concurrently', 1, async (t, _rig, a) => {
    const epoch = await fill(a, 'large')
    const recover = { offset: 10, epoch, limit: 0 }
    const reads = upTo(30).map(n =>
      n % 2 ? a.subscribe('large', { first: n === 1, recover }) : a.history('large', { sinceOffset: 10 }),
    )
    for (const { publications } of await Promise.all(reads))
      t.same(offsets(publications), upTo(COUNT - 10, 11))
  })

  for (const first of [true, false]) {
    const kind = first ? 'first' : 'further'
    test(
      `publications during a large recovery are delivered once: ${kind} subscription`,
      2,
      async (t, _rig, a, b) => {
        const epoch = await fill(b, 'busy')
        if (!first) await a.subscribe('busy')
        let going = true
        let published = COUNT
        const publishing = (async () => {
          while (going)
            published = (await b.publish('busy', payload(0), { ...WHOLE, historySize: 1000 })).offset
        })()
        for (let round = 0; round < 3; round++) {
          const before = a.events.length
          const wants = { first: first && round === 0, position: true, latest: false, metaTtl: HOUR }
          const recover = { offset: 5, epoch, limit: 0 }
          /** @type {any} */
          const { answer, delivered } = await new Promise((resolve, reject) =>
            a.broker.pubsub.subscribe(
              'busy',
              { ...wants, recover, client: '', info: '', leave: false },
              (error, answer) =>
                error ? reject(error) : resolve({ answer, delivered: a.events.at(-1)?.offset }),
            ),
          )
          t.ok(answer.recovered)
          t.same(offsets(answer.publications), upTo(answer.offset - 5, 6), 'no gap and no duplicate')
          // With a broker that starts delivery at the reply, nothing was delivered before.
          if (before > 0 || delivered !== undefined)
            t.equal(delivered, answer.offset, 'delivered up to the position of the reply')
        }
        going = false
        await publishing
        await a.position('busy')
        const received = offsets(a.events)
        t.same(received, upTo(published - received[0] + 1, received[0]))
      },
    )
  }

  test('history trimmed during a read leaves no gap', 1, async (t, _rig, a) => {
    const epoch = await fill(a, 'trimmed')
    const recovery = a.subscribe('trimmed', { recover: { offset: 0, epoch, limit: 0 } })
    const reading = a.history('trimmed', {}).catch(error => error)
    const reverse = a.history('trimmed', { reverse: true })
    const last = await Promise.all(
      upTo(COUNT).map(n => a.publish('trimmed', payload(n), { ...WHOLE, historySize: 5 })),
    )
    t.equal(last.at(-1)?.offset, 2 * COUNT)
    const answer = await recovery
    t.same(offsets(answer.publications), answer.recovered ? upTo(answer.offset) : [])
    const read = await reading
    if (read === errors.unrecoverablePosition) t.pass('refused')
    else t.same(offsets(read.publications), upTo(read.publications.length, read.publications[0].offset))
    const down = offsets((await reverse).publications)
    t.same(down, upTo(down.length, down.at(-1)).reverse())
  })

  for (const [limit, size] of [
    [1, 1],
    [0, 10],
  ]) {
    test(`cache recovery succeeds while newer publications replace ${size}`, 1, async (t, _rig, a) => {
      const rules = { ...WHOLE, historySize: size }
      const large = 'x'.repeat(100_000 / size + 4000)
      const publishAll = () => Promise.all(upTo(size).map(() => a.publish('cache', large, rules)))
      await publishAll()
      const recover = { offset: 0, epoch: '', limit, maxBytes: 200_000 }
      const recovery = a.subscribe('cache', { latest: true, recover })
      await Promise.all([publishAll(), publishAll()])
      const answer = await recovery
      t.ok(answer.recovered)
      t.same(offsets(answer.publications), upTo(size, answer.offset - size + 1))
    })
  }

  test('a byte limit refuses a recovery and shortens a history', 1, async (t, _rig, a) => {
    const epoch = await fill(a, 'large')
    const subscribe = (/** @type {object} */ recover, latest = false) =>
      a.subscribe('large', { first: false, latest, recover: { epoch, limit: 0, ...recover } })
    const maxBytes = 10 * (SIZE + 100)
    t.match(await subscribe({ offset: COUNT - 10, maxBytes }), { recovered: true, offset: COUNT })
    t.match(await subscribe({ offset: COUNT - 11, maxBytes }), {
      recovered: false,
      offset: COUNT,
      epoch,
      publications: [],
    })
    const single = await subscribe({ offset: COUNT - 1, maxBytes: 1 })
    t.ok(single.recovered, 'at least one publication is returned')
    t.same(offsets(single.publications), [COUNT])
    const newest = await subscribe({ offset: 0, maxBytes }, true)
    t.ok(newest.recovered)
    t.same(offsets(newest.publications), upTo(10, COUNT - 9), 'the newest that fit')
    const rows = [
      [{ maxBytes }, upTo(10), false],
      [{ maxBytes, reverse: true }, upTo(10, COUNT - 9).reverse(), false],
      [{ maxBytes, limit: 10 }, upTo(10), true],
      [{ maxBytes, sinceOffset: COUNT - 10 }, upTo(10, COUNT - 9), true],
      [{ maxBytes: 1 }, [1], false],
      [{ maxBytes: 30 * (SIZE + 100) }, upTo(30), false],
    ]
    for (const [filter, expected, complete] of rows) {
      const answer = await a.history('large', filter)
      t.equal(answer.complete, complete, JSON.stringify(filter))
      t.same(offsets(answer.publications), expected, JSON.stringify(filter))
    }
  })

  test('presence is listed while history is read', 1, async (t, _rig, a) => {
    const epoch = await fill(a, 'large')
    await a.subscribe('room', { client: 'c', info: '{"user":"u","client":"c"}' })
    const reads = upTo(10).map(() => a.history('large', { sinceEpoch: epoch }))
    t.same([...(await a.broker.presence.list('room')).keys()], ['c'])
    await Promise.all(reads)
  })
}
