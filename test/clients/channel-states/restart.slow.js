// Occupied channels through a crash and a restart of the memory engine with a snapshot file.

import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { tempDir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { until } from '../../kit/wait.js'
import { open } from '../session/support.js'
import { enter, leave, StateBackend } from './rig.js'

t.setTimeout(300_000)

const RETURN_MS = 60_000

/** @param {any} t @param {StateBackend} backend @param {string} snapshot_file */
const start = (t, backend, snapshot_file) =>
  startGateway(t, {
    engine: { memory: { snapshot_file, channel_state: { vacated_event_delay: '200ms' } } },
    client: { allow_anonymous_connect_without_token: true },
    channel: {
      proxy: { state: { endpoint: backend.url } },
      namespaces: [{ name: 'room', ...open, state_proxy_enabled: true }],
    },
  })

for (const [name, signal] of /** @type {const} */ ([
  ['a crash', 'SIGKILL'],
  ['a restart', 'SIGTERM'],
])) {
  t.test(`${name}: clients have a minute to return`, async t => {
    const backend = await StateBackend.start(t)
    const file = join(tempDir(t), 'state')
    const gateway = await start(t, backend, file)
    const [, , guest] = await Promise.all(
      ['room:stays', 'room:leaves', 'room:gone'].map(channel => enter(t, gateway, channel)),
    )
    for (const channel of ['room:stays', 'room:leaves', 'room:gone']) await backend.until(channel, 'occupied')
    await leave(guest, 'room:gone')
    await backend.until('room:gone', 'occupied vacated')
    // Not accepted when the gateway ends: reported after the next start, with the same id.
    let refused = 0
    backend.refusals = Array.from({ length: 100 }, () => 500)
    await enter(t, gateway, 'room:late')
    await until(() => (refused = backend.received.filter(({ channel }) => channel === 'room:late').length))
    gateway.process.kill(signal)
    await gateway.exited
    backend.refusals = []

    const next = await start(t, backend, file)
    const began = Date.now()
    await backend.until('room:late', 'occupied')
    t.equal(
      new Set(backend.received.filter(({ channel }) => channel === 'room:late').map(({ id }) => id)).size,
      1,
    )
    t.ok(refused > 0)
    const stays = await enter(t, next, 'room:stays')
    await backend.until('room:leaves', 'occupied vacated')
    t.ok(Date.now() - began >= RETURN_MS - 5000, 'after a minute')
    await backend.until('room:late', 'occupied vacated')
    t.same(backend.of('room:stays'), ['occupied'])
    t.same(backend.of('room:gone'), ['occupied', 'vacated'])
    await stays.close()
    await backend.until('room:stays', 'occupied vacated')
    t.same(backend.faults, [])
    t.match(readFileSync(`${file}.channels`, 'utf8'), /^halley channels 1\n/)
  })
}

t.test('a damaged journal does not prevent the start', async t => {
  const backend = await StateBackend.start(t)
  const file = join(tempDir(t), 'state')
  const gateway = await start(t, backend, file)
  await enter(t, gateway, 'room:1')
  await backend.until('room:1', 'occupied')
  gateway.process.kill('SIGKILL')
  await gateway.exited
  appendFileSync(`${file}.channels`, '["e","x')
  const next = await start(t, backend, file)
  await next.line(({ msg }) => msg === 'the journal of channels is damaged: its rest is ignored')
  await backend.until('room:1', 'occupied vacated')
  t.same(backend.faults, [])
})
