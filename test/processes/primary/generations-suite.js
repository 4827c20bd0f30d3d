// Requested replacements of workers, on each socket server.

import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ApiLine, config, crowd, healthy } from '../../kit/fleet.js'
import { testdir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { request } from '../../kit/uni-poll-client.js'
import { until } from '../../kit/wait.js'

/** @param {number} pid @returns {boolean} whether it runs its own program: before that, its parent waits for it */
function isWorker(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('worker/main.js')
  } catch {
    // It has ended.
    return false
  }
}

/** @param {import('../../kit/gateway.js').TestGateway} gateway @returns {number[]} pids of its workers */
export const children = ({ process: { pid } }) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim().split(' ').map(Number).filter(isWorker)

/**
 * A gateway whose new workers wait before they start, from `hold()` to `release()`: what happens to a worker that
 * starts would otherwise come too late now and then.
 * @param {any} t @param {any} config
 */
export async function startHoldable(t, config) {
  const folder = testdir(t)
  const held = join(folder, 'held')
  const module = join(folder, 'wait.mjs')
  writeFileSync(
    module,
    `import { existsSync } from 'node:fs'
    const isWorker = process.argv[1]?.endsWith('worker/main.js')
    while (isWorker && existsSync(${JSON.stringify(held)})) await new Promise(resolve => setTimeout(resolve, 20))`,
  )
  const gateway = await startGateway(t, config, {
    env: { NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import=${pathToFileURL(module)}` },
  })
  return { gateway, hold: () => writeFileSync(held, ''), release: () => rmSync(held) }
}

/** A request to the server API whose body is not complete yet. */
async function halfRequest(gateway) {
  const body = JSON.stringify({ channel: 'news', data: 'late' })
  const socket = connect(gateway.port, '127.0.0.1')
  let text = ''
  socket.setEncoding('latin1').on('data', data => (text += data))
  const head = `POST /api/publish HTTP/1.1\r\nHost: x\r\nX-API-Key: key\r\nContent-Length: ${body.length}\r\n\r\n`
  const closed = new Promise(resolve => socket.on('close', () => resolve(text)))
  // A complete request first: then the worker has accepted the connection.
  socket.write(head + body)
  await until(() => text.includes('"offset"'))
  text = ''
  await new Promise(resolve => socket.write(head + body.slice(0, 10), resolve))
  return { closed, finish: () => socket.write(body.slice(10)) }
}

/** @returns {Promise<number | string>} status of a request over a new connection, or the error */
const attempt = gateway =>
  request(`${gateway.url}/health`).then(
    ({ status }) => status,
    ({ code }) => code,
  )

export function testRollingRestart(t, driver) {
  t.test('a rolling restart replaces every worker without interruption', async t => {
    const gateway = await startGateway(t, { ...config, http_server: { driver } })
    const clients = await crowd(gateway)
    await Promise.all(clients.map(client => client.subscribe('news')))
    const { epoch } = (await gateway.api('publish', { channel: 'news', data: 0 })).result
    const pids = gateway.workerPids
    // There is always a listening worker.
    let over = false
    const outcomes = new Set()
    const attempts = Array.from({ length: 2 }, async () => {
      while (!over) outcomes.add(await attempt(gateway))
    })
    gateway.process.kill('SIGUSR2')
    await gateway.line(({ msg }) => msg === 'rolling restart finished')
    over = true
    await Promise.all(attempts)
    t.ok(outcomes.has(200))
    t.notOk(outcomes.has('ECONNREFUSED'))
    for (const { code } of await Promise.all(clients.map(({ closed }) => closed))) t.equal(code, 3001)
    t.strictSame(
      gateway.lines.filter(({ msg }) => msg === 'worker replaced').map(({ worker }) => worker),
      [0, 1],
    )
    t.notOk(children(gateway).some(pid => pids.includes(pid)))
    t.strictSame(
      gateway.lines.filter(({ level }) => level >= 40),
      [],
    )

    const back = await crowd(gateway)
    const replies = await Promise.all(
      back.map(client => client.subscribe('news', { recover: true, offset: 0, epoch })),
    )
    for (const { subscribe } of replies)
      t.match(subscribe, { recovered: true, publications: [{ offset: 1 }] })
  })
}

export function generationsSuite(t, driver) {
  testRollingRestart(t, driver)

  t.test('a draining worker completes pending requests', async t => {
    const gateway = await startGateway(t, { ...config, workers: 1, http_server: { driver } })
    const client = await RawClient.connected(gateway.ws)
    const line = new ApiLine(gateway.url)
    t.teardown(() => line.close())
    await line.call('publish', { channel: 'news', data: 'first' })
    const half = await halfRequest(gateway)
    // The worker has read it once it responds to a later request.
    await line.call('publish', { channel: 'news', data: 'third' })
    gateway.process.kill('SIGTERM')
    await gateway.line(({ msg }) => msg === 'shutting down')
    t.match(await client.closed, { code: 3001 })
    half.finish()
    const answer = await half.closed
    t.match(answer, /^HTTP\/1\.1 200 OK\r\n/)
    t.match(answer, /connection: close/i)
    t.match(answer, '"offset":4')
    t.strictSame(await gateway.exited, { code: 0, signal: null })
  })

  t.test('if a new worker does not start, the old one continues', async t => {
    const { gateway, hold, release } = await startHoldable(t, { ...config, http_server: { driver } })
    const clients = await crowd(gateway)
    hold()
    gateway.process.kill('SIGUSR2')
    const pid = await until(() => children(gateway).find(pid => !gateway.workerPids.includes(pid)))
    process.kill(pid, 'SIGKILL')
    const ended = await gateway.line(({ msg }) => /^rolling restart aborted/.test(msg))
    t.match(ended, { level: 50, worker: 0, reason: 'signal SIGKILL' })
    await healthy(gateway)
    t.notOk(clients.some(client => client.ended))
    t.equal(gateway.lines.filter(({ level }) => level >= 40).length, 1, 'one line')
    t.equal(gateway.workerPids.length, 2)

    release()
    gateway.process.kill('SIGUSR2')
    await gateway.line(({ msg }) => msg === 'rolling restart finished')
    for (const { code } of await Promise.all(clients.map(({ closed }) => closed))) t.equal(code, 3001)
  })
}
