// Occupied and vacated events, and counts of subscribers, with the memory engine.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { testdir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { eventually, until } from '../../kit/wait.js'
import { open } from '../session/support.js'
import { enter, leave, StateBackend } from './rig.js'

const DELAY = 400
const HOOKS = `
  let failures = 2
  export async function channelState({ events }) {
    const own = events.filter(({ channel }) => channel.startsWith('hooked:'))
    if (own.length === 0) return
    if (failures-- > 0) throw new Error('not yet')
    await fetch(process.env.HOOKED, { method: 'POST', body: JSON.stringify({ events: own }) })
  }`

const latest = {
  ...open,
  history_size: 1,
  history_ttl: '60s',
  force_recovery: true,
  force_recovery_mode: 'cache',
  auto_cache_recover: true,
}

t.test('the memory engine', async t => {
  const backend = await StateBackend.start(t)
  const hooked = await StateBackend.start(t)
  const folder = testdir(t, { 'package.json': '{"type":"module"}', 'hooks.mjs': HOOKS })
  const log = join(folder, 'clients.log')
  const gateway = await startGateway(
    t,
    {
      workers: 2,
      hooks: { module: join(folder, 'hooks.mjs') },
      engine: { memory: { channel_state: { vacated_event_delay: `${DELAY}ms` } } },
      lifecycle: { file: { path: log } },
      client: { allow_anonymous_connect_without_token: true },
      prometheus: { enabled: true },
      channel: {
        proxy: { state: { endpoint: backend.url } },
        namespaces: [
          { name: 'room', ...open, state_proxy_enabled: true },
          { name: 'hooked', ...open },
          { name: 'none', ...open, presence: false },
          { name: 'seen', ...open, occupancy_channel_prefix: 'occ:', occupancy_interval: '500ms' },
          { name: 'users', ...open, occupancy_channel_prefix: 'occ:', occupancy_users: true },
          { name: 'occ', ...latest },
        ],
      },
    },
    { env: { HOOKED: hooked.url } },
  )

  t.test('reports the first subscriber and, after a delay, the last one', async t => {
    const [a, b] = await Promise.all([enter(t, gateway, 'room:1'), enter(t, gateway, 'room:1')])
    const [occupied] = await backend.until('room:1', 'occupied')
    await leave(a, 'room:1')
    const before = Date.now()
    await b.close()
    const after = Date.now()
    const events = await backend.until('room:1', 'occupied vacated')
    t.ok(Date.now() - after >= DELAY - 100, 'not before the delay')
    t.same(
      events.map(({ type }) => type),
      ['occupied', 'vacated'],
    )
    t.ok(events[1].time_ms >= before && events[1].time_ms <= after + 100, 'the time of the change')
    t.ok(occupied.time_ms <= events[1].time_ms)
    t.match(events[1], { id: /^\w{8}-\d+$/, channel: 'room:1' })
    t.not(events[0].id, events[1].id)
  })

  t.test('a return within the delay is no event', async t => {
    const a = await enter(t, gateway, 'room:2')
    for (let i = 0; i < 3; i++) {
      await leave(a, 'room:2')
      await a.subscribe('room:2')
    }
    // Ends after the delay of all that is before it.
    const marker = await enter(t, gateway, 'room:marker')
    await leave(marker, 'room:marker')
    await backend.until('room:marker', 'occupied vacated')
    t.same(backend.of('room:2'), ['occupied'])
  })

  t.test('a client that resubscribes, or changes its worker, is no event', async t => {
    const a = await enter(t, gateway, 'room:3')
    t.match(await a.subscribe('room:3'), { error: { code: 105 } })
    const others = await Promise.all(Array.from({ length: 4 }, () => enter(t, gateway, 'room:3')))
    await a.close()
    for (const other of others.slice(1)) await other.close()
    const marker = await enter(t, gateway, 'room:marker3')
    await leave(marker, 'room:marker3')
    await backend.until('room:marker3', 'occupied vacated')
    t.same(backend.of('room:3'), ['occupied'])
  })

  t.test('a refused report is repeated, in order and with the same ids', async t => {
    backend.refusals = [500, 403, 500]
    const from = backend.received.length
    const a = await enter(t, gateway, 'room:4', 'room:5')
    await a.close()
    await Promise.all(['room:4', 'room:5'].map(channel => backend.until(channel, 'occupied vacated')))
    const ids = backend.received.slice(from).map(({ id }) => Number(id.split('-')[1]))
    const ofFirst = backend.received.slice(from).filter(({ channel, type }) => channel === 'room:4' && type === 'occupied')
    t.equal(ofFirst.length, 4)
    t.equal(new Set(ofFirst.map(event => JSON.stringify(event))).size, 1, 'id and time are the same')
    t.same([...new Set(ids)], [...new Set(ids)].sort((x, y) => x - y))
    t.equal(backend.most, 1, 'one call at a time')
  })

  t.test('a worker that dies takes its clients with it: vacated, unless they come back', async t => {
    const clients = await Promise.all(Array.from({ length: 6 }, (_, i) => enter(t, gateway, `room:w${i}`)))
    await Promise.all(clients.map((_, i) => backend.until(`room:w${i}`, 'occupied')))
    const [pid] = gateway.workerPids.slice(-2)
    process.kill(pid, 'SIGKILL')
    await until(() => clients.some(({ ended }) => ended !== null))
    const lost = clients.flatMap(({ ended }, i) => (ended ? [`room:w${i}`] : []))
    const [first, ...rest] = lost
    await enter(t, gateway, first)
    for (const channel of rest) await backend.until(channel, 'occupied vacated')
    t.same(backend.of(first), ['occupied'])
    for (const i of clients.keys()) if (!lost.includes(`room:w${i}`)) t.same(backend.of(`room:w${i}`), ['occupied'])
  })

  t.test('a hook gets the events of all namespaces with presence', async t => {
    const a = await enter(t, gateway, 'hooked:1', 'none:1')
    await hooked.until('hooked:1', 'occupied')
    await a.close()
    await hooked.until('hooked:1', 'occupied vacated')
    t.same(hooked.of('none:1'), [])
    t.same(backend.of('hooked:1'), [], 'the proxy gets those of its namespaces')
  })

  t.test('they are in the lifecycle log and in the metrics', async t => {
    const lines = () =>
      readFileSync(log, 'utf8')
        .split('\n')
        .filter(line => /"(occupied|vacated)"/.test(line))
        .map(line => JSON.parse(line))
    const logged = await eventually(lines, all => all.filter(({ channel }) => channel === 'room:1').length === 2)
    const [occupied, vacated] = logged.filter(({ channel }) => channel === 'room:1')
    const [{ id, time_ms }] = backend.events.filter(({ channel }) => channel === 'room:1')
    t.match(occupied, { id, type: 'occupied', time: time_ms, node: String, channel: 'room:1' })
    t.match(vacated, { type: 'vacated' })
    t.equal(new Set(logged.map(event => event.id)).size, logged.length, 'each once')
    const metrics = await eventually(
      async () => (await fetch(`${gateway.url}/metrics`)).text(),
      text => /halley_channel_events_total\{.*type="vacated".*\} [1-9]/.test(text),
    )
    t.match(metrics, /halley_channel_event_failures_total(\{.*\})? [3-9]/)
  })

  t.test('occupancy: the first count at once, then one per interval, the last one always', async t => {
    const watcher = await enter(t, gateway, 'occ:seen:1')
    const from = Date.now()
    const clients = [await enter(t, gateway, 'seen:1')]
    const counts = [(await watcher.push('pub')).pub.data.clients]
    clients.push(...(await Promise.all(Array.from({ length: 39 }, () => enter(t, gateway, 'seen:1')))))
    do counts.push((await watcher.push('pub')).pub.data.clients)
    while (counts.at(-1) !== 40)
    const intervals = (Date.now() - from) / 500
    t.ok(counts.length <= intervals + 2, `${counts} in ${intervals} intervals`)
    t.equal(counts[0], 1, 'at once')
    const late = await enter(t, gateway)
    const { subscribe } = await late.subscribe('occ:seen:1')
    t.same(subscribe.publications.map(({ data }) => data), [{ clients: 40 }], 'a subscriber gets the last count')
    await Promise.all(clients.map(client => client.close()))
    while (counts.at(-1) !== 0) counts.push((await watcher.push('pub')).pub.data.clients)
  })

  t.test('occupancy of users', async t => {
    const watcher = await enter(t, gateway, 'occ:users:1')
    await enter(t, gateway, 'users:1')
    t.same((await watcher.push('pub')).pub.data, { clients: 1, users: 1 })
  })

  t.test('events of a channel alternate, and a repeated one is the same', async t => {
    t.same([...backend.faults, ...hooked.faults], [])
  })
})
