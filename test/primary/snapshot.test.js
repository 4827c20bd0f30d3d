// engine.memory.snapshot_file: what a gateway leaves to its next run.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Centrifuge } from 'centrifuge'
import t from 'tap'
import WebSocket from 'ws'
import { config, silence } from '../fleet.js'
import { freePort, startGateway } from '../gateway.js'
import { RawClient } from '../raw-client.js'

const bin = fileURLToPath(new URL('../../bin/halley.js', import.meta.url))
/** As many as history keeps, so that a client that has missed all of them recovers. */
const MOST = 90

/** Gateways one after another, with the same port and file. */
async function runs(t) {
  const folder = await mkdtemp(join(tmpdir(), 'halley-runs-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const port = await freePort()
  const snapshot_file = join(folder, 'state', 'snapshot')
  await mkdir(join(folder, 'state'))
  return {
    folder: join(folder, 'state'),
    file: snapshot_file,
    start: () => startGateway(t, { ...config, http_server: { port }, engine: { memory: { snapshot_file } } }),
  }
}

const publish = async (gateway, data, options = {}) =>
  (await gateway.api('publish', { channel: 'news', data, ...options })).result

t.test('a restart loses nothing: clients recover, and a repeated publish gets the same answer', async t => {
  const { start, file, folder } = await runs(t)
  const first = await start()
  t.match(await first.line(({ msg }) => /^no snapshot/.test(msg)), { level: 30, file })

  const got = []
  const contexts = []
  const sdk = new Centrifuge(first.ws, {
    websocket: WebSocket,
    minReconnectDelay: 20,
    maxReconnectDelay: 100,
  })
  t.teardown(() => sdk.disconnect())
  const subscription = sdk.newSubscription('news')
  subscription.on('publication', ({ data, offset }) => got.push([data, offset]))
  subscription.on('subscribed', context => contexts.push(context))
  const subscribed = once(subscription, 'subscribed')
  subscription.subscribe()
  sdk.connect()
  await subscribed
  // It leaves before the end, and comes back after it.
  const away = await RawClient.connected(first.ws)
  const { subscribe: position } = await away.subscribe('news')
  const { subscribe: quiet } = await away.subscribe('quiet')
  await away.close()
  const offsets = []
  for (const data of ['one', 'two']) offsets.push((await publish(first, data)).offset)
  const keyed = await publish(first, 'three', { idempotency_key: 'key' })
  t.strictSame([...offsets, keyed.offset], [1, 2, 3])

  // Publishers go on until they are refused; whatever is accepted counts.
  const accepted = [keyed]
  const publisher = (async () => {
    while (accepted.length < MOST) {
      try {
        const result = await publish(first, `more ${accepted.length}`)
        if (result) accepted.push(result)
      } catch {
        return
      }
    }
  })()
  first.process.kill('SIGTERM')
  t.strictSame(await first.exited, { code: 0, signal: null })
  await publisher
  await t.rejects(publish(first, 'refused'), 'nobody accepts a publication meanwhile')
  const written = await first.line(({ msg }) => msg === 'snapshot written')
  t.match(written, { file, streams: 1, results: 1 })
  // The answer to the last one may have been cut off.
  const top = written.publications
  const last = accepted.at(-1).offset
  t.ok(top === last || top === last + 1, `${top} of ${last}`)

  const second = await start()
  t.match(await second.line(({ msg }) => msg === 'snapshot taken over'), { streams: 1, results: 1 })
  while (contexts.length < 2) await once(subscription, 'subscribed')
  t.match(contexts[1], { wasRecovering: true, recovered: true })
  const after = await publish(second, 'after')
  t.strictSame(after, { offset: top + 1, epoch: keyed.epoch })
  while (got.at(-1)?.[0] !== 'after') await once(subscription, 'publication')
  t.strictSame(
    got.map(([, offset]) => offset),
    Array.from({ length: top + 1 }, (_, i) => i + 1),
    'each once and in order',
  )
  t.strictSame(await publish(second, 'three', { idempotency_key: 'key' }), keyed)

  const back = await RawClient.connected(second.ws)
  const again = await back.subscribe('news', {
    recover: true,
    offset: position.offset,
    epoch: position.epoch,
  })
  t.match(again.subscribe, { recovered: true, epoch: keyed.epoch })
  t.equal(again.subscribe.publications.length, top + 1)
  t.match((await back.subscribe('quiet', { recover: true, offset: 0, epoch: quiet.epoch })).subscribe, {
    recovered: true,
    epoch: quiet.epoch,
  })

  // A crash: the old snapshot must not come back.
  second.process.kill('SIGKILL')
  await second.exited
  await silence(second.port)
  const third = await start()
  t.match(await third.line(({ msg }) => /^no snapshot/.test(msg)), {
    level: 40,
    reason: /last run did not end cleanly/,
    msg: /begin a new epoch/,
  })
  while (contexts.length < 3) await once(subscription, 'subscribed')
  t.match(contexts[2], { wasRecovering: true, recovered: false })
  t.not((await publish(third, 'anew')).epoch, keyed.epoch)
  t.strictSame(await readdir(folder), ['snapshot'])
})

t.test('a snapshot that cannot be written is one error line, and the end is clean', async t => {
  const { start, folder } = await runs(t)
  const gateway = await start()
  await publish(gateway, 'one')
  await rm(folder, { recursive: true })
  gateway.process.kill('SIGTERM')
  t.strictSame(await gateway.exited, { code: 0, signal: null })
  await gateway.line(({ msg }) => msg === 'bye')
  const errors = gateway.lines.filter(({ level }) => level >= 50)
  t.match(errors, [{ reason: /ENOENT/, msg: /^snapshot not written/ }])
})

t.test('a start that fails keeps the snapshot for the next one', async t => {
  const { start } = await runs(t)
  const first = await start()
  const { epoch } = await publish(first, 'one')
  first.process.kill('SIGTERM')
  await first.exited
  const deadWorkers = 'import cluster from "node:cluster"; if (cluster.isWorker) process.exit(3)'
  const args = [
    '--import',
    `data:text/javascript,${deadWorkers}`,
    bin,
    'serve',
    '-c',
    join(first.folder, 'config.json'),
  ]
  const failing = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  failing.stdout.on('data', data => (output += data))
  t.strictSame(await once(failing, 'close'), [1, null])
  t.match(output, /snapshot taken over(.|\n)*snapshot written/)
  const second = await start()
  t.match(await second.line(({ msg }) => msg === 'snapshot taken over'), { streams: 1, publications: 1 })
  t.strictSame(await publish(second, 'two'), { offset: 2, epoch })
})
