// Workers are killed and replaced while maps are written and read.

import { existsSync } from 'node:fs'
import t from 'tap'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { startRedis, withoutRedis } from '../../kit/servers/redis.js'
import { until } from '../../kit/wait.js'
import { MapLoad, MapWatcher, mapsOf, namespaces, settle, stateOf } from './traffic.js'

t.setTimeout(300_000)

/** Each of the two workers. */
const KILLS = 2
const PAGES = 300

/** @type {[string, string | false, (t: any) => Promise<object>][]} */
const ENGINES = [
  ['embedded', false, async () => ({})],
  [
    'redis',
    withoutRedis(),
    async t => ({ engine: { type: 'redis', redis: { address: (await startRedis(t)).address } } }),
  ],
]

/** @param {any} gateway @returns {number[]} pids of its workers, in order of listening */
const alive = gateway => gateway.workerPids.filter(pid => existsSync(`/proc/${pid}`))

/** Kills a worker, and waits for the next one. @param {any} gateway @param {number} pid */
async function kill(gateway, pid) {
  const listening = gateway.workerPids.length
  process.kill(pid, 'SIGKILL')
  await until(() => gateway.workerPids.length > listening && !existsSync(`/proc/${pid}`), 'another worker')
}

for (const driver of drivers)
  for (const [engine, skip, start] of ENGINES) {
    // The engine does not depend on the socket server.
    if (engine === 'redis' && driver !== drivers[0]) continue
    t.test(`${engine}, ${driver}`, { skip }, async t => {
      const gateway = await startGateway(t, {
        workers: 2,
        http_server: { driver },
        client: { allow_anonymous_connect_without_token: true },
        shutdown: { drain: '1s' },
        channel: { namespaces },
        ...(await start(t)),
      })
      const watch = (t, maps) =>
        maps.flatMap(channel => [1, 2].map(() => new MapWatcher(t, gateway.ws, channel)))

      t.test('killed workers lose nothing that was acknowledged', async t => {
        const maps = mapsOf('killed')
        const watchers = watch(t, maps)
        await Promise.all(watchers.map(watcher => watcher.ready()))
        const load = new MapLoad(t, () => [gateway.url], maps)
        for (let n = 0; n < KILLS; n++) {
          await load.acked(100)
          await kill(gateway, alive(gateway)[0])
        }
        await load.acked(100)
        await settle(t, gateway, load, watchers)
        const streamed = watchers.filter(({ channel }) => !channel.startsWith('ephemeral'))
        t.ok(
          streamed.some(({ recoveries }) => recoveries > 0),
          'clients recovered',
        )
        t.ok(
          streamed.every(({ syncs }) => syncs === 1),
          'from their position',
        )
      })

      t.test('a rolling restart loses nothing that was acknowledged', async t => {
        const maps = mapsOf('restarted')
        const watchers = watch(t, maps)
        await Promise.all(watchers.map(watcher => watcher.ready()))
        const load = new MapLoad(t, () => [gateway.url], maps)
        await load.acked(100)
        gateway.process.kill('SIGUSR2')
        await gateway.line(({ msg }) => msg === 'rolling restart finished')
        await load.acked(100)
        await settle(t, gateway, load, watchers)
        for (const { channel, syncs, recoveries } of watchers)
          if (!channel.startsWith('ephemeral')) t.match([syncs, recoveries > 0], [1, true], channel)
      })

      t.test('a worker that is killed during catch-ups', async t => {
        for (const namespace of ['persistent', 'ephemeral']) {
          const channel = `${namespace}:pages`
          const commands = Array.from({ length: 3 * PAGES }, (_, n) => ({
            map_publish: { channel, key: `k${n}`, data: n },
          }))
          await gateway.api('batch', { commands })
          const state = await stateOf(gateway, channel)
          const watchers = Array.from({ length: 12 }, () => new MapWatcher(t, gateway.ws, channel))
          await Promise.all(watchers.map(({ client }) => client.ready()))
          const early = watchers.filter(({ syncs }) => syncs === 0).length
          t.ok(early > 6, `${early} clients of 12 are reading`)
          await kill(gateway, alive(gateway)[0])
          for (const watcher of watchers) {
            await until(
              () => watcher.has(state),
              () => `${channel}: has ${watcher.view.size} of ${state.size}`,
            )
            t.same(watcher.faults, [])
          }
        }
      })
    })
  }
