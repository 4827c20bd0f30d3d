// Conformance of each republish destination to src/backends/queues/contract.js, with a real server.

import { until } from '../../../kit/wait.js'
import { numbers, pluck } from '../../lists.js'
import { DESTINATIONS } from './destinations.js'
import { republication, startRepublishers } from './rig.js'

/** @typedef {{id: string, channel: string, data: any, headers: Record<string, string>}} Got */

/** @param {any} t @param {string} type of DESTINATIONS */
export function conformance(t, type) {
  const destination = DESTINATIONS[type]
  t.test(`conformance of ${type}`, { skip: destination.without(), timeout: 240_000 }, async t => {
    const server = await destination.open(t)
    let started = 0
    /** @param {any} t @param {...any} entries of `republish`, beside the server */
    const start = async (t, ...entries) => {
      const all = entries.map(one => ({ type, [type]: { ...server.block, max_in_flight: 50 }, ...one }))
      const rig = await startRepublishers(t, all, `run${++started}-`)
      await until(() => all.every((_, i) => rig.figures(i).up))
      return rig
    }
    /** @param {string} start of the channels @returns {Promise<Got[]>} */
    const read = async start => {
      const messages = await server.read()
      return messages
        .map(({ id, headers, body }) => ({ id, headers, ...JSON.parse(body.toString()) }))
        .filter(({ channel }) => channel.startsWith(start))
    }

    t.test('republishes each publication once, in channel order, with id and headers', async t => {
      const { all, figures } = await start(t, {})
      const channels = ['once:a', 'once:b', 'once:c']
      for (const n of numbers(300)) {
        const tags = { n: String(n) }
        const given = republication(channels[n % 3], n)
        all.take({ ...given, publication: { ...given.publication, tags } })
        if (n % 40 === 0) await new Promise(resolve => setImmediate(resolve))
      }
      await until(() => figures().confirmed === 300)
      const got = await read('once:')
      t.equal(got.length, 300)
      t.equal(new Set(got.map(({ id }) => id)).size, 300)
      for (const [i, name] of channels.entries())
        t.same(
          got.filter(({ channel }) => channel === name).map(({ data }) => data),
          numbers(100).map(n => n * 3 + i),
        )
      const [first] = got
      t.match(first, { id: `run${started}-1`, channel: 'once:a', data: 0, user: '7', source: 'client' })
      const headers = { 'centrifugo-channels': 'once:a', 'centrifugo-tag-n': '0', 'halley-origin': 'here' }
      t.match(first.headers, headers)
      t.match(figures(), { sent: 300, refused: 0, dropped: 0, queued: 0, queued_bytes: 0 })
    })

    t.test('loses nothing and keeps ids and order when the server is killed and restarted', async t => {
      const { all, figures } = await start(t, { queue_max_size: 100_000 })
      let next = 0
      const take = count => {
        for (const n of numbers(count, next)) all.take(republication('kill', n))
        next += count
      }
      take(400)
      await until(() => figures().confirmed >= 50)
      await server.kill()
      take(300)
      await until(() => !figures().up)
      take(300)
      const { queued } = figures()
      t.ok(queued >= 600, 'they are queued')
      await server.start()
      take(100)
      await until(() => figures().queued === 0)
      t.match(figures(), { confirmed: 1100, refused: 0, dropped: 0, queued_bytes: 0 })
      const got = await read('kill')
      const seen = new Map(got.map(({ id, data }) => [id, data]))
      t.equal(seen.size, 1100, 'a repeated message has the same id')
      t.same([...new Set(got.map(({ data }) => data))], numbers(1100), 'first copies are in order')
    })

    t.test('bounds each queue by its overflow policy while the server hangs', async t => {
      const { all, figures, reports } = await start(
        t,
        { name: 'oldest', queue_max_size: 100 },
        { name: 'new', queue_max_size: 100, overflow: 'drop_new' },
        { name: 'block', queue_max_size: 100, overflow: 'block' },
        { name: 'bytes', queue_max_bytes: 65_536 },
      )
      server.pause()
      for (const n of numbers(150)) all.take(republication('still', n, { to: 15 }))
      t.match(figures(0), { queued: 100, dropped: 50 })
      t.match(figures(1), { queued: 100, dropped: 50 })
      t.match(figures(2), { queued: 150, dropped: 0 })
      t.ok(figures(3).queued_bytes <= 65_536 && figures(3).dropped > 0)
      for (const n of numbers(150, 150)) all.take(republication('still', n, { to: 4 }))
      t.match(figures(2), { queued: 200, dropped: 100 }, 'block has room for publications in progress')
      t.same(reports, [4], 'workers receive a report')
      server.resume()
      await until(() => numbers(4).every(i => figures(i).queued === 0))
      all.checkFull()
      t.same(reports, [4, 0])
      const got = await read('still')
      t.ok(pluck(got, 'data').includes(149), 'the newest is included')
    })

    t.test('confirms or refuses each required publication', async t => {
      const required = { required: true, queue_max_size: 10, overflow: 'drop_new' }
      const { all, figures, confirms } = await start(t, required)
      const confirmed = (count, first) => numbers(count, first).map(number => [number, true])
      for (const number of numbers(5, 1)) all.take(republication('must', number, { number }))
      await until(() => confirms.length === 5)
      t.same(confirms, confirmed(5, 1))
      server.pause()
      for (const number of numbers(12, 6)) all.take(republication('must', number, { number }))
      const refused = [16, 17].map(number => [number, false])
      t.same(confirms.slice(5), refused)
      server.resume()
      await until(() => figures().queued === 0)
      const later = confirms.slice(7).toSorted(([a], [b]) => a - b)
      t.same(later, confirmed(10, 6))
      const there = new Set((await read('must')).map(({ data }) => data))
      const missing = confirms.filter(([number, confirmed]) => confirmed && !there.has(number))
      t.same(missing, [])
    })

    t.test('stop waits for confirms and logs the number of lost messages', async t => {
      const { all, figures } = await start(t, {})
      server.pause()
      for (const n of numbers(200)) all.take(republication('end', n))
      let ended = false
      const stopped = all.stop(60_000).then(() => (ended = true))
      await new Promise(resolve => setImmediate(resolve))
      t.notOk(ended)
      server.resume()
      await stopped
      t.match(figures(), { confirmed: 200, queued: 0 })
      t.equal((await read('end')).length, 200)
      const late = await start(t, {})
      server.pause()
      for (const n of numbers(20)) late.all.take(republication('late', n))
      await late.all.stop(1)
      server.resume()
      const message = 'messages not republished before exit'
      t.match(late.log.lines.at(-1), { fields: { lost: 20 }, message })
    })
  })
}
