// Occupied and vacated events, and counts of subscribers, with the memory engine.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { testdir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { eventually, until } from '../../kit/wait.js'
import { roundTrip } from '../session/support.js'
import { enter, StateBackend } from './rig.js'
import { channelOf, DELAY, suite } from './suite.js'

const HOOKS = `
  let failures = 2
  export async function channelState({ events }) {
    const own = events.filter(({ channel }) => channel.startsWith('hooked:'))
    if (own.length === 0) return
    if (failures-- > 0) throw new Error('not yet')
    await fetch(process.env.HOOKED, { method: 'POST', body: JSON.stringify({ events: own }) })
  }`

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
      channel: channelOf(backend),
    },
    { env: { HOOKED: hooked.url } },
  )

  await suite(t, backend, [gateway])
  t.equal(backend.most, 1, 'one call at a time')

  t.test('a worker that dies takes its clients with it: vacated, unless they come back', async t => {
    const clients = await Promise.all(Array.from({ length: 20 }, (_, i) => enter(t, gateway, `room:w${i}`)))
    await Promise.all(clients.map((_, i) => backend.until(`room:w${i}`, 'occupied')))
    process.kill(gateway.workerPids[0], 'SIGKILL')
    await until(() => clients.some(({ ended }) => ended !== null))
    const answers = await Promise.allSettled(clients.map(roundTrip))
    const lost = answers.flatMap(({ status }, i) => (status === 'rejected' ? [`room:w${i}`] : []))
    const [first, ...rest] = lost
    // A connection may still reach the socket of the killed worker.
    const returns = () =>
      enter(t, gateway, first).then(
        () => true,
        () => false,
      )
    await until(returns, 'a client that returns')
    for (const channel of rest) await backend.until(channel, 'occupied vacated')
    t.same(backend.of(first), ['occupied'])
    for (const i of clients.keys())
      if (!lost.includes(`room:w${i}`)) t.same(backend.of(`room:w${i}`), ['occupied'])
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
    const logged = await eventually(
      lines,
      all => all.filter(({ channel }) => channel === 'room:1').length === 2,
    )
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

  t.test('events of a channel alternate, and a repeated one is the same', async t => {
    t.same([...backend.faults, ...hooked.faults], [])
  })
})
