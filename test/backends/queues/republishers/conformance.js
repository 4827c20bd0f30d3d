// What every destination of republishing does, against a real server: the contract of src/backends/queues/contract.js.

import { until } from '../../../kit/wait.js'
import { DESTINATIONS } from './destinations.js'
import { republication, startRepublishers } from './rig.js'

const numbers = (/** @type {number} */ count, first = 0) => Array.from({ length: count }, (_, i) => first + i)

/** @typedef {{id: string, channel: string, data: any, headers: Record<string, string>}} Got */

/** @param {any} t @param {string} type of DESTINATIONS */
export function conformance(t, type) {
  const destination = DESTINATIONS[type]
  t.test(
    `conformance of ${type}`,
    { skip: destination.without(), timeout: 240_000 },
    async (/** @type {any} */ t) => {
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

      t.test(
        'each publication once, in the order of its channel, with its id and names',
        async (/** @type {any} */ t) => {
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
          t.match(first.headers, {
            'centrifugo-channels': 'once:a',
            'centrifugo-tag-n': '0',
            'halley-origin': 'here',
          })
          t.match(figures(), { sent: 300, refused: 0, dropped: 0, queued: 0, queued_bytes: 0 })
        },
      )

      t.test(
        'killed and started again: nothing is lost, same ids, order kept',
        async (/** @type {any} */ t) => {
          const { all, figures } = await start(t, { queue_max_size: 100_000 })
          let next = 0
          const take = (/** @type {number} */ count) => {
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
          t.ok(queued >= 600, 'they wait')
          await server.start()
          take(100)
          await until(() => figures().queued === 0)
          t.match(figures(), { confirmed: 1100, refused: 0, dropped: 0, queued_bytes: 0 })
          const got = await read('kill')
          const seen = new Map(got.map(({ id, data }) => [id, data]))
          t.equal(seen.size, 1100, 'a repeat has the id of the first')
          t.same(
            [...new Set(got.map(({ data }) => data))],
            numbers(1100),
            'in order, repeats behind the first',
          )
        },
      )

      t.test('stands still: queues are bounded, each as its overflow says', async (/** @type {any} */ t) => {
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
        t.match(figures(2), { queued: 200, dropped: 100 }, 'block has room for what was under way')
        t.same(reports, [4], 'publishers are told')
        server.resume()
        await until(() => numbers(4).every(i => figures(i).queued === 0))
        all.checkFull()
        t.same(reports, [4, 0])
        const got = await read('still')
        t.ok(
          got.some(({ data }) => data === 149),
          'the newest is there',
        )
      })

      t.test('required: confirmed, or refused', async (/** @type {any} */ t) => {
        const { all, figures, confirms } = await start(t, {
          required: true,
          queue_max_size: 10,
          overflow: 'drop_new',
        })
        for (const number of numbers(5, 1)) all.take(republication('must', number, { number }))
        await until(() => confirms.length === 5)
        t.same(
          confirms,
          numbers(5, 1).map(number => [number, true]),
        )
        server.pause()
        for (const number of numbers(12, 6)) all.take(republication('must', number, { number }))
        t.same(confirms.slice(5), [
          [16, false],
          [17, false],
        ])
        server.resume()
        await until(() => figures().queued === 0)
        t.same(
          confirms.slice(7).toSorted(([a], [b]) => a - b),
          numbers(10, 6).map(number => [number, true]),
        )
        const there = new Set((await read('must')).map(({ data }) => data))
        t.same(
          confirms.filter(([number, confirmed]) => confirmed && !there.has(number)),
          [],
        )
      })

      t.test('the end waits for confirms, and says what is left', async (/** @type {any} */ t) => {
        const { all, figures } = await start(t, {})
        server.pause()
        for (const n of numbers(200)) all.take(republication('end', n))
        let ended = false
        const stopped = all.stop(60_000).then(() => {
          ended = true
        })
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
        t.match(late.log.lines.at(-1), {
          fields: { lost: 20 },
          message: 'messages not republished before the end',
        })
      })
    },
  )
}
