// Bare connections use up all descriptors: connected clients are not affected.

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import { skipDriver } from '../../kit/drivers.js'
import { tempDir } from '../../kit/folders.js'
import { bin } from '../../kit/gateway.js'
import { freePort } from '../../kit/ports.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'
import { Watcher } from '../../kit/watcher.js'
import { open } from '../session/support.js'

const LIMIT = 300
const CLIENTS = 50
const BARE = 720

async function start(t, driver, workers) {
  const port = await freePort()
  // The path of a socket must be short.
  const folder = tempDir(t)
  const file = join(folder, 'config.json')
  const socket = join(folder, 'stats.sock')
  const config = {
    workers,
    http_server: { address: '127.0.0.1', port, driver },
    http_api: { key: 'key' },
    stats: { socket },
    // The clients send no pongs.
    client: { allow_anonymous_connect_without_token: true, allowed_origins: ['*'], ping_interval: '1h' },
    channel: { without_namespace: open },
  }
  writeFileSync(file, JSON.stringify(config))
  const command = `ulimit -n ${LIMIT}; exec "$0" "$@"`
  const child = spawn('bash', ['-c', command, process.execPath, bin, 'serve', '-c', file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  t.teardown(() => child.kill('SIGKILL'))
  const lines = []
  createInterface({ input: child.stdout }).on('line', text => lines.push(JSON.parse(text)))
  await until(() => lines.some(({ msg }) => msg === 'halley is listening'))
  return {
    port,
    socket,
    ws: `ws://127.0.0.1:${port}/connection/websocket`,
    lines,
    async stop() {
      child.kill('SIGTERM')
      return (await exited)[0]
    },
  }
}

const PAUSED = 'too few free file descriptors: not accepting new connections'
const RESUMED = 'accepting new connections again'

t.jobs = 2

for (const driver of /** @type {const} */ (['uws', 'node'])) {
  for (const workers of [1, 2]) {
    t.test(
      `${BARE} bare connections on ${driver}, ${workers} workers`,
      { skip: skipDriver(driver) },
      async t => {
        const gateway = await start(t, driver, workers)
        const clients = await Promise.all(
          Array.from({ length: CLIENTS }, async () => {
            const client = await RawClient.connected(gateway.ws)
            await client.call('subscribe', { channel: 'news' })
            return client
          }),
        )
        const watcher = await Watcher.at(t, gateway.socket)
        let lost = 0
        for (const { socket } of clients) socket.on('close', () => lost++)
        const deliver = async number => {
          t.same((await clients[0].call('publish', { channel: 'news', data: { number } })).publish, {})
          await Promise.all(
            clients.map(client => client.next(({ push }) => push?.pub?.data.number === number)),
          )
        }
        await deliver(1)

        const bare = new Set()
        let trying = true
        const connectBare = () => {
          const socket = net.connect(gateway.port, '127.0.0.1')
          bare.add(socket)
          socket.on('error', () => {})
          socket.on('close', () => {
            bare.delete(socket)
            // Refused by the kernel, or closed by the gateway after some seconds without a request.
            if (trying) setTimeout(connectBare, 100)
          })
        }
        const leave = () => {
          trying = false
          for (const socket of bare) socket.destroy()
        }
        for (let n = 0; n < BARE; n++) connectBare()
        t.teardown(leave)

        const pauses = () => gateway.lines.filter(({ msg }) => msg === PAUSED)
        await until(() => new Set(pauses().map(({ worker }) => worker)).size === workers)
        t.match(pauses()[0], { level: 40, limit: LIMIT })

        const snapshot = await watcher.snapshot(({ workers }) =>
          workers.every(({ sample }) => !sample?.accepting),
        )
        const events = watcher.messages.flatMap(({ snapshot }) => snapshot?.events ?? [])
        const files = events.find(({ kind }) => kind === 'files')
        t.match(files, { level: 'error', text: /accepts no connections/ }, 'the dashboard shows it')
        // After more samples of every process.
        await watcher.snapshot(({ seq }) => seq > snapshot.seq + 2)
        await deliver(2)
        t.equal(lost, 0, 'clients stay')
        t.notOk(
          gateway.lines.some(({ level }) => level >= 50),
          'no worker died, no sample failed',
        )

        leave()
        await until(() => gateway.lines.some(({ msg }) => msg === RESUMED))
        const again = await until(() => RawClient.connected(gateway.ws).catch(() => null))
        t.ok(again.socket, 'a new client connects')
        await deliver(3)
        t.equal(lost, 0)
        t.ok(pauses().length <= workers, 'one line a minute')
        for (const { socket } of [...clients, again]) socket.close()
        t.equal(await gateway.stop(), 0)
      },
    )
  }
}

t.test('a process without a free descriptor still samples its metrics', async t => {
  const code = `
    import { openSync } from 'node:fs'
    import { MachineSampler } from '${new URL('../../../src/metrics/machine.js', import.meta.url)}'
    import { ProcessSampler, residentMemory } from '${new URL('../../../src/metrics/process-sample.js', import.meta.url)}'
    const sampler = new ProcessSampler()
    const machine = new MachineSampler()
    const before = sampler.sample()
    try { while (true) openSync('/dev/null', 'r') } catch {}
    const after = sampler.sample()
    const sample = machine.sample()
    console.log(JSON.stringify({
      rss: after.memory.rss === before.memory.rss, full: after.files.open >= 60, limit: after.files.limit,
      memory: sample.memory.total > 0, own: residentMemory(),
    }))
    process.exit(0)`
  const command = 'ulimit -n 60; exec "$0" "$@"'
  const args = ['-c', command, process.execPath, '--input-type=module', '-e', code]
  const answer = JSON.parse(execFileSync('bash', args, { encoding: 'utf8' }))
  t.same(answer, { rss: true, full: true, limit: 60, memory: true, own: null })
})
