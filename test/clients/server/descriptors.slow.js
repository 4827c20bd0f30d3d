// Strangers open connections until there are no descriptors: clients that are connected notice nothing.

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
const STRANGERS = 720

/** @param {any} t @param {'uws' | 'node'} driver @param {number} workers */
async function start(t, driver, workers) {
  const port = await freePort()
  // The path of a socket must be short.
  const folder = tempDir(t)
  const file = join(folder, 'config.json')
  const socket = join(folder, 'stats.sock')
  writeFileSync(
    file,
    JSON.stringify({
      workers,
      http_server: { address: '127.0.0.1', port, driver },
      http_api: { key: 'key' },
      stats: { socket },
      // No pings: the clients answer none, and on a busy machine this takes longer than the pong timeout.
      client: { allow_anonymous_connect_without_token: true, allowed_origins: ['*'], ping_interval: '1h' },
      channel: { without_namespace: open },
    }),
  )
  const command = `ulimit -n ${LIMIT}; exec "$0" "$@"`
  const child = spawn('bash', ['-c', command, process.execPath, bin, 'serve', '-c', file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  t.teardown(() => child.kill('SIGKILL'))
  /** @type {any[]} */
  const lines = []
  createInterface({ input: child.stdout }).on('line', text => lines.push(JSON.parse(text)))
  await until(() => lines.some(({ msg }) => msg === 'halley listens'))
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

const PAUSED = 'too few free descriptors: no new connections are accepted'
const RESUMED = 'new connections are accepted again'

t.jobs = 2

for (const driver of /** @type {const} */ (['uws', 'node'])) {
  for (const workers of [1, 2]) {
    t.test(
      `${STRANGERS} bare connections on ${driver}, ${workers} workers`,
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
        /** @param {number} number */
        const deliver = async number => {
          t.same((await clients[0].call('publish', { channel: 'news', data: { number } })).publish, {})
          const isIt = (/** @type {any} */ message) => message.push?.pub?.data.number === number
          await Promise.all(clients.map(client => client.next(isIt)))
        }
        await deliver(1)

        /** @type {Set<net.Socket>} */
        const strangers = new Set()
        let trying = true
        const stranger = () => {
          const socket = net.connect(gateway.port, '127.0.0.1')
          strangers.add(socket)
          socket.on('error', () => {})
          socket.on('close', () => {
            strangers.delete(socket)
            // The kernel refuses it, or the gateway ends it after some seconds without a request: come again.
            if (trying) setTimeout(stranger, 100)
          })
        }
        for (let n = 0; n < STRANGERS; n++) stranger()
        t.teardown(() => {
          trying = false
          for (const socket of strangers) socket.destroy()
        })

        const paused = () =>
          new Set(gateway.lines.filter(({ msg }) => msg === PAUSED).map(({ worker }) => worker))
        await until(() => paused().size === workers)
        t.match(
          gateway.lines.find(({ msg }) => msg === PAUSED),
          { level: 40, limit: LIMIT },
        )

        const snapshot = await watcher.snapshot(({ workers }) =>
          workers.every(({ sample }) => !sample?.accepting),
        )
        const seen = [...watcher.messages.flatMap(({ snapshot }) => snapshot?.events ?? [])]
        t.match(
          seen.find(({ kind }) => kind === 'files'),
          { level: 'error', text: /accepts no connections/ },
          'the dashboard shows it',
        )
        // Some samples of every process later.
        await watcher.snapshot(({ seq }) => seq > snapshot.seq + 2)
        await deliver(2)
        t.equal(lost, 0, 'clients stay')
        t.same(
          gateway.lines.filter(({ level }) => level >= 50),
          [],
          'no worker died, no sample failed',
        )

        trying = false
        for (const socket of strangers) socket.destroy()
        await until(() => gateway.lines.some(({ msg }) => msg === RESUMED))
        const again = await until(() => RawClient.connected(gateway.ws).catch(() => null))
        t.ok(again.socket, 'a new client connects')
        await deliver(3)
        t.equal(lost, 0)
        t.ok(gateway.lines.filter(({ msg }) => msg === PAUSED).length <= workers, 'one line a minute')
        for (const { socket } of [...clients, again]) socket.close()
        t.equal(await gateway.stop(), 0)
      },
    )
  }
}

t.test('a gateway of one process that has no descriptor left takes its samples all the same', async t => {
  const code = `
    import { openSync } from 'node:fs'
    import { MachineSampler } from '${new URL('../../../src/metrics/machine.js', import.meta.url)}'
    import { ProcessSampler, residentMemory } from '${new URL('../../../src/metrics/process-sample.js', import.meta.url)}'
    const process_ = new ProcessSampler()
    const machine = new MachineSampler()
    const before = process_.sample()
    try { for (;;) openSync('/dev/null', 'r') } catch {}
    const after = process_.sample()
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
