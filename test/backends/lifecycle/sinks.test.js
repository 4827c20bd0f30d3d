// Sinks and destinations, with real files and a real HTTP server.

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { FileDestination } from '../../../src/backends/lifecycle/file.js'
import { Sink } from '../../../src/backends/lifecycle/sink.js'
import { WebhookDestination } from '../../../src/backends/lifecycle/webhook.js'
import { testdir } from '../../kit/folders.js'
import { Endpoint, signatureOf } from './endpoint.js'

/** @typedef {import('../../../src/backends/lifecycle/sink.js').Destination} Destination */

/** Log lines. */
function memoryLog() {
  /** @type {any[]} */
  const lines = []
  const add = (/** @type {object} */ fields, /** @type {string} */ msg) => lines.push({ ...fields, msg })
  return { lines, log: { debug: add, info: add, warn: add, error: add } }
}

/** @param {any} t @param {Destination} destination @param {number} [maxBytes] */
function sinkOf(t, destination, maxBytes = 100_000) {
  const { lines, log } = memoryLog()
  const sink = new Sink({
    destination,
    maxBytes,
    makeDropped: (events, since, until, reason) =>
      JSON.stringify({ type: 'dropped', events, since, until, reason }),
    log,
    clock: Date.now,
  })
  t.teardown(() => sink.close(0))
  return { sink, lines }
}

/** An answer that nobody has asked for. */
const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'

/** @param {number} n @param {string} [text] */
const record = (n, text = '') => JSON.stringify({ n, text })
/** @param {string} path */
const read = path =>
  readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))

t.test('a file gets one record a line, in order, and follows rotation', async t => {
  const path = join(testdir(t), 'clients.log')
  let now = 0
  const { sink } = sinkOf(t, new FileDestination(path, () => now))
  for (let n = 0; n < 3; n++) sink.add(record(n, 'Grüße 你好'))
  await sink.settled()
  renameSync(path, `${path}.1`)
  now += 2000
  sink.add(record(3))
  await sink.settled()
  t.same(
    read(`${path}.1`).map(({ n }) => n),
    [0, 1, 2],
  )
  t.equal(read(`${path}.1`)[0].text, 'Grüße 你好')
  t.same(
    read(path).map(({ n }) => n),
    [3],
  )
})

t.test('a line that a killed process has left unfinished spoils no other', async t => {
  const path = join(testdir(t), 'clients.log')
  appendFileSync(path, `${record(0)}\n{"n":1,"te`)
  const { sink } = sinkOf(t, new FileDestination(path))
  sink.add(record(2))
  await sink.settled()
  const lines = readFileSync(path, 'utf8').split('\n')
  t.same(lines, [record(0), '{"n":1,"te', record(2), ''])
})

t.test('while a file cannot be written events wait, then they are dropped, counted and named', async t => {
  const folder = join(testdir(t), 'away')
  const path = join(folder, 'clients.log')
  const { sink, lines } = sinkOf(t, new FileDestination(path), 10_000)
  for (let n = 0; n < 500; n++) sink.add(record(n, 'x'.repeat(50)))
  t.ok(sink.bytes <= 10_000)
  const dropped = sink.dropped.queue_full
  t.ok(dropped > 300)
  mkdirSync(folder)
  await sink.settled()
  sink.add(record(1000))
  await sink.settled()
  const records = read(path)
  t.same(
    records.slice(0, 500 - dropped).map(({ n }) => n),
    Array.from({ length: 500 - dropped }, (_, n) => n),
  )
  const [gap] = records.filter(({ type }) => type === 'dropped')
  t.match(gap, { events: dropped, reason: 'queue_full' })
  t.ok(gap.since <= gap.until)
  t.equal(records.at(-1).n, 1000, 'what follows is written')
  t.equal(records.length, 500 - dropped + 2)
  t.equal(sink.written, records.length)
  const said = lines.map(({ msg }) => msg)
  for (const line of ['lifecycle events are dropped', 'lifecycle events were dropped'])
    t.ok(said.includes(line), line)
})

t.test('a batch of the webhook is signed', async t => {
  for (const [secret, key] of /** @type {[string, Buffer | string][]} */ ([
    ['plain text', 'plain text'],
    ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64')],
  ])) {
    const endpoint = await Endpoint.start(t)
    const options = { url: endpoint.url, secret, batch_size: 2, timeout: 60_000 }
    const { sink } = sinkOf(t, new WebhookDestination(options, 'node-a', Date.now))
    for (let n = 0; n < 5; n++) sink.add(record(n, 'ü'))
    await sink.settled()
    t.same(
      endpoint.batches.map(({ events }) => events.map(({ n }) => n)),
      [[0, 1], [2, 3], [4]],
    )
    for (const batch of endpoint.batches) t.equal(batch.signature, signatureOf(batch, key))
    t.equal(new Set(endpoint.batches.map(({ id }) => id)).size, 3)
    t.ok(Math.abs(Date.now() / 1000 - Number(endpoint.batches[0].time)) < 3600)
  }
})

t.test('a batch comes again with its id until it is taken, and later ones wait', async t => {
  const endpoint = await Endpoint.start(t)
  let left = 3
  endpoint.answer = () => (left-- > 0 ? 503 : 200)
  const options = { url: endpoint.url, secret: 's', batch_size: 2, timeout: 60_000 }
  const { sink, lines } = sinkOf(t, new WebhookDestination(options, 'node-a', Date.now))
  for (let n = 0; n < 4; n++) sink.add(record(n))
  await sink.settled()
  t.same(
    endpoint.batches.map(({ id }) => id),
    ['msg_node-a_1', 'msg_node-a_1', 'msg_node-a_1', 'msg_node-a_1', 'msg_node-a_2'],
  )
  t.match(lines[0], { sink: 'webhook', reason: 'HTTP status 503' })
  t.match(lines[1], { msg: 'a lifecycle sink takes events again' })
  t.equal(sink.failure, null)
})

t.test('a backend that does not answer, closes, redirects or says too much does no harm', async t => {
  const endpoint = await Endpoint.start(t)
  endpoint.server.on('request', (_request, response) => {
    if (faults.length === 5) response.socket?.write(SWITCH)
  })
  const faults = [
    () => null,
    () => null,
    () => {
      endpoint.server.closeAllConnections()
      return null
    },
    () => 302,
    () => 500,
  ]
  endpoint.answer = () => (faults.shift() ?? (() => 200))()
  const options = { url: endpoint.url, secret: 's', batch_size: 10, timeout: 200 }
  const { sink, lines } = sinkOf(t, new WebhookDestination(options, 'node-a', Date.now))
  sink.add(record(0))
  await sink.settled()
  // An answer that a busy machine reads late is as good as none.
  t.ok(endpoint.batches.length >= 6, `${endpoint.batches.length} attempts`)
  t.match(lines[0].reason, 'HTTP status 101')
})

t.test('a batch that is too large comes in parts; one event that is too large is dropped', async t => {
  const endpoint = await Endpoint.start(t)
  endpoint.answer = ({ body }) => (body.length > 300 ? 413 : 200)
  const options = { url: endpoint.url, secret: 's', batch_size: 100, timeout: 60_000 }
  const { sink } = sinkOf(t, new WebhookDestination(options, 'node-a', Date.now))
  for (let n = 0; n < 8; n++) sink.add(record(n, 'x'.repeat(n === 3 ? 400 : 80)))
  await sink.settled()
  await endpoint.until(() => endpoint.batches.some(({ body }) => body.includes('"dropped"')))
  await sink.settled()
  const taken = endpoint.batches.filter(({ body }) => body.length <= 300).flatMap(({ events }) => events)
  t.same(
    taken.filter(({ type }) => type !== 'dropped').map(({ n }) => n),
    [0, 1, 2, 4, 5, 6, 7],
  )
  t.match(
    taken.filter(({ type }) => type === 'dropped'),
    [{ events: 1, reason: 'too_large' }],
  )
})

t.test('an end waits for a sink, but not for ever', async t => {
  const endpoint = await Endpoint.start(t)
  const options = { url: endpoint.url, secret: 's', batch_size: 10, timeout: 60_000 }
  const good = sinkOf(t, new WebhookDestination(options, 'node-a', Date.now))
  good.sink.add(record(0))
  await good.sink.close(60_000)
  t.equal(endpoint.batches.length, 1)
  t.same(good.sink.dropped, {})

  endpoint.answer = () => 500
  const bad = sinkOf(t, new WebhookDestination(options, 'node-b', Date.now))
  bad.sink.add(record(1))
  await endpoint.until(() => endpoint.batches.length > 1)
  await bad.sink.close(100)
  t.same(bad.sink.dropped, { shutdown: 1 })
  t.match(bad.lines.at(-1), { msg: 'lifecycle events are lost', events: 1 })
})

t.test('an end does not wait for a destination that never comes back', async t => {
  const never = () => new Promise(() => {})
  const { sink } = sinkOf(t, { name: 'hung', batchSize: 1, write: never, close: never })
  sink.add(record(0))
  await sink.close(1)
  t.same(sink.dropped, { shutdown: 1 })
})

t.test('a pipe without a reader holds nothing up', async t => {
  const path = join(testdir(t), 'pipe')
  execFileSync('mkfifo', [path])
  const { sink } = sinkOf(t, new FileDestination(path))
  sink.add(record(0))
  const reader = spawn('head', ['-n', '1', path], { stdio: ['ignore', 'pipe', 'ignore'] })
  t.teardown(() => reader.kill('SIGKILL'))
  const [text] = await once(/** @type {any} */ (reader.stdout), 'data')
  t.equal(String(text), `${record(0)}\n`)
  rmSync(path)
})
