// What every engine promises about occupied and vacated channels, and about counts of subscribers.

import { open } from '../session/support.js'
import { enter, leave } from './rig.js'

/** @import { TestGateway } from '../../kit/gateway.js' */
/** @import { StateBackend } from './rig.js' */

/** Time until a channel is vacated, ms. */
export const DELAY = 1000

/** @param {StateBackend} backend @returns {any} options `channel` */
export const channelOf = backend => ({
  proxy: { state: { endpoint: backend.url } },
  namespaces: [
    { name: 'room', ...open, state_proxy_enabled: true },
    { name: 'hooked', ...open },
    { name: 'none', ...open, presence: false },
    { name: 'seen', ...open, occupancy_channel_prefix: 'occ:', occupancy_interval: '500ms' },
    { name: 'users', ...open, occupancy_channel_prefix: 'occ:', occupancy_users: true },
    {
      name: 'occ',
      ...open,
      history_size: 1,
      history_ttl: '60s',
      force_recovery: true,
      force_recovery_mode: 'cache',
      auto_cache_recover: true,
    },
  ],
})

/** @param {StateEvent[]} events @typedef {import('./rig.js').StateEvent} StateEvent */
const types = events => events.map(({ type }) => type)

/**
 * @param {any} t @param {StateBackend} backend of the proxy
 * @param {TestGateway[]} gateways one, or nodes that act as one
 */
export async function suite(t, backend, [a, b = a]) {
  let markers = 0
  /** Resolves when all earlier vacated events would have come. */
  const settled = async () => {
    const channel = `room:marker${markers++}`
    const marker = await enter(t, b, channel)
    await leave(marker, channel)
    await backend.until(channel, 'occupied vacated')
  }

  await t.test('reports the first subscriber and, after a delay, the last one', async t => {
    const [one, two] = await Promise.all([enter(t, a, 'room:1'), enter(t, b, 'room:1')])
    await backend.until('room:1', 'occupied')
    await leave(one, 'room:1')
    const before = Date.now()
    await two.close()
    const events = await backend.until('room:1', 'occupied vacated')
    t.ok(Date.now() - before >= DELAY - 100, 'not before the delay')
    t.same(types(events), ['occupied', 'vacated'])
    t.ok(
      events[1].time_ms >= before - 50 && events[1].time_ms <= Date.now() - DELAY + 200,
      'the time of the change',
    )
    t.ok(events[0].time_ms <= events[1].time_ms)
    t.match(events[1], { id: /^\w+-[\d-]+$/, channel: 'room:1' })
    t.not(events[0].id, events[1].id)
  })

  await t.test('a return within the delay is no event', async t => {
    const one = await enter(t, a, 'room:2')
    for (let i = 0; i < 3; i++) {
      await leave(one, 'room:2')
      await one.subscribe('room:2')
    }
    await settled()
    t.same(backend.of('room:2'), ['occupied'])
  })

  await t.test('while another client stays, it is no event', async t => {
    const one = await enter(t, a, 'room:3')
    t.match(await one.subscribe('room:3'), { error: { code: 105 } })
    const others = await Promise.all(Array.from({ length: 4 }, () => enter(t, b, 'room:3')))
    await one.close()
    for (const other of others.slice(1)) await other.close()
    await settled()
    t.same(backend.of('room:3'), ['occupied'])
  })

  await t.test('a refused report is repeated, in order and with the same ids', async t => {
    backend.refusals = [500, 403, 500]
    const from = backend.received.length
    const one = await enter(t, a, 'room:4', 'room:5')
    await one.close()
    await Promise.all(['room:4', 'room:5'].map(channel => backend.until(channel, 'occupied vacated')))
    const received = backend.received.slice(from)
    const repeated = received.filter(({ id }) => id === received[0].id)
    t.ok(repeated.length > 1)
    t.equal(new Set(repeated.map(event => JSON.stringify(event))).size, 1, 'id and time are the same')
    t.equal(backend.refusals.length, 0)
  })

  await t.test('occupancy: the first count at once, then one per interval, the last one always', async t => {
    const watcher = await enter(t, b, 'occ:seen:1')
    const from = Date.now()
    const clients = [await enter(t, a, 'seen:1')]
    const counts = [(await watcher.push('pub')).pub.data.clients]
    clients.push(...(await Promise.all(Array.from({ length: 39 }, () => enter(t, a, 'seen:1')))))
    do counts.push((await watcher.push('pub')).pub.data.clients)
    while (counts.at(-1) !== 40)
    const intervals = (Date.now() - from) / 500
    t.equal(counts[0], 1, 'at once')
    t.ok(counts.length <= intervals + 2, `${counts} in ${intervals} intervals`)
    const late = await enter(t, b)
    const { subscribe } = await late.subscribe('occ:seen:1')
    t.same(
      subscribe.publications.map(({ data }) => data),
      [{ clients: 40 }],
      'a subscriber gets the last count',
    )
    await Promise.all(clients.map(client => client.close()))
    while (counts.at(-1) !== 0) counts.push((await watcher.push('pub')).pub.data.clients)
  })

  await t.test('occupancy of users', async t => {
    const watcher = await enter(t, b, 'occ:users:1')
    await enter(t, a, 'users:1')
    t.same((await watcher.push('pub')).pub.data, { clients: 1, users: 1 })
  })
}
