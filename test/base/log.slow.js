// A gateway whose log cannot be written continues serving: a full disk, a pipe without a reader or full.

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { tempDir } from '../kit/folders.js'
import { bin } from '../kit/gateway.js'
import { freePort } from '../kit/ports.js'
import { RawClient } from '../kit/raw-client.js'
import { until } from '../kit/wait.js'

const { O_NONBLOCK, O_RDWR, O_WRONLY } = constants

/** @param {string} url @returns {Promise<boolean>} */
const isHealthy = url =>
  fetch(`${url}/health`).then(
    answer => answer.ok,
    () => false,
  )

/**
 * A gateway without a readable log, and proof that it serves clients and keeps its workers.
 * @param {any} t
 * @param {{file?: string, stdout?: number, wrapper?: string[]}} log wrapper: a command that runs the gateway
 */
async function start(t, { file = '', stdout, wrapper = [] }) {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const folder = tempDir(t)
  const config = join(folder, 'config.json')
  writeFileSync(
    config,
    JSON.stringify({
      workers: 2,
      log: { level: 'debug', file },
      http_server: { address: '127.0.0.1', port },
      http_api: { key: 'key' },
      health: { enabled: true },
      prometheus: { enabled: true },
      client: { allow_anonymous_connect_without_token: true, allowed_origins: ['*'] },
      channel: {
        without_namespace: { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true },
      },
    }),
  )
  const [command, ...args] = [...wrapper, process.execPath, bin, 'serve', '-c', config]
  const child = spawn(command, args, {
    stdio: ['ignore', stdout ?? 'ignore', 'ignore'],
  })
  const exited = once(child, 'exit')
  t.teardown(() => child.kill('SIGKILL'))
  if (stdout !== undefined) closeSync(stdout)
  await until(() => isHealthy(url))

  /** @param {string} metric @returns {Promise<number>} sum over all workers */
  const total = async metric => {
    const text = await (await fetch(`${url}/metrics`)).text()
    const lines = [...text.matchAll(/^(\w+)\{.*\} (\d+)$/gm)].filter(([, name]) => name === metric)
    if (lines.length === 0) throw new Error(`no metric ${metric}`)
    return lines.reduce((sum, [, , count]) => sum + Number(count), 0)
  }
  const publish = async () => {
    const answer = await fetch(`${url}/api/publish`, {
      method: 'POST',
      headers: { 'X-API-Key': 'key' },
      body: '{"channel":"news","data":{}}',
    })
    return answer.json()
  }
  return {
    pid: child.pid,
    /** Clients connect, are refused, get publications; both workers have lines to write. */
    async serve() {
      const ws = `${url.replace('http', 'ws')}/connection/websocket`
      for (let n = 0; n < 20; n++) {
        const { socket } = await RawClient.open(ws)
        socket.send('{"nonsense":1}\n{')
        await once(socket, 'close')
      }
      const client = await RawClient.connected(ws)
      await client.call('subscribe', { channel: 'news' })
      t.same(await publish(), { result: {} })
      await client.next(message => message.push?.channel === 'news')
      client.socket.close()
      t.equal(await total('halley_worker_deaths_total'), 0)
      // On a busy machine a sample of a worker may be late.
      await until(() => isHealthy(url))
    },
    dropped: () => total('halley_log_lines_dropped_total'),
    /** @returns {Promise<number>} exit code */
    async stop() {
      child.kill('SIGTERM')
      const [code] = await exited
      return code
    },
  }
}

t.jobs = 3

/** A pipe without a reader. */
function brokenPipe(t) {
  const path = join(t.testdir(), 'pipe')
  execFileSync('mkfifo', [path])
  const reader = openSync(path, O_RDWR | O_NONBLOCK)
  const stdout = openSync(path, O_WRONLY)
  closeSync(reader)
  return stdout
}

/** @type {Record<string, (t: any) => Parameters<typeof start>[1]>} */
const rows = {
  'log.file on a full disk': () => ({ file: '/dev/full' }),
  'standard output redirected to a full disk': () => ({ stdout: openSync('/dev/full', O_WRONLY) }),
  'standard output is a pipe without a reader': t => ({ stdout: brokenPipe(t) }),
}
for (const [name, log] of Object.entries(rows))
  t.test(name, async t => {
    const gateway = await start(t, log(t))
    await gateway.serve()
    t.equal(await gateway.stop(), 0)
  })

t.test('standard output is a full pipe', async t => {
  const path = join(t.testdir(), 'pipe')
  execFileSync('mkfifo', [path])
  const full = openSync(path, O_RDWR | O_NONBLOCK)
  t.teardown(() => closeSync(full))
  const stdout = openSync(path, O_WRONLY)
  const fill = () => {
    while (writeSync(full, 'x'.repeat(1024)) > 0);
  }
  t.throws(fill, { code: 'EAGAIN' })
  const gateway = await start(t, { stdout })
  await gateway.serve()

  const reader = spawn('cat', [path], { stdio: ['ignore', 'pipe', 'ignore'] })
  t.teardown(() => reader.kill('SIGKILL'))
  let text = ''
  reader.stdout.setEncoding('utf8').on('data', more => (text += more))
  await until(() => text.includes('halley is listening') && text.includes('client refused'))
  t.equal(await gateway.stop(), 0)
  await until(() => text.includes('"gateway stopped"'))
})
