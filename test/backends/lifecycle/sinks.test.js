// Sinks and destinations, with real files and a real HTTP server.

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { FileDestination, webhookDestination } from '../../../src/backends/lifecycle/destinations.js'
import { Sink } from '../../../src/backends/lifecycle/sink.js'
import { testdir } from '../../kit/folders.js'
import { until } from '../../kit/wait.js'
import { numbers, pluck } from '../lists.js'
import { Endpoint, signatureOf } from './endpoint.js'

/** @typedef {import('../../../src/backends/lifecycle/sink.js').Destination} Destination */

/** Log lines. */
function memoryLog() {
  const lines = []
  const add = (fields, msg) => lines.push({ ...fields, msg })
  return { lines, log: { debug: add, info: add, warn: add, error: add } }
}

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

/** @param {any} t @param {Endpoint} endpoint @param {object} [options] of the webhook */
function webhookSink(t, endpoint, options) {
  const all = { url: endpoint.url, secret: 's', batch_size: 10, timeout: 60_000, ...options }
  return sinkOf(t, webhookDestination(all, 'node-a', Date.now))
}

/** A response to no request. */
const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'

const record = (n, text = '') => JSON.stringify({ n, text })
const read = path =>
  readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))

t.test('a file has one record per line, in order, and follows rotation', async t => {
  const path = join(testdir(t), 'clients.log')
  let now = 0
  const { sink } = sinkOf(t, new FileDestination(path, () => now))
  for (let n = 0; n < 3; n++) sink.add(record(n, 'Grüße 你好'))
  await sink.settled()
  renameSync(path, `${path}.1`)
  now += 2000
  sink.add(record(3))
  await sink.settled()
  t.same(pluck(read(`${path}.1`), 'n'), [0, 1, 2])
  t.equal(read(`${path}.1`)[0].text, 'Grüße 你好')
  t.same(pluck(read(path), 'n'), [3])
})

t.test('an incomplete line of a killed process does not affect later lines', async t => {
  const path = join(testdir(t), 'clients.log')
  appendFileSync(path, `${record(0)}\n{"n":1,"te`)
  const { sink } = sinkOf(t, new FileDestination(path))
  sink.add(record(2))
  await sink.settled()
  const lines = readFileSync(path, 'utf8').split('\n')
  t.same(lines, [record(0), '{"n":1,"te', record(2), ''])
})

t.test('while a file is not writable, events are queued, then dropped, counted and recorded', async t => {
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
  t.same(pluck(records.slice(0, 500 - dropped), 'n'), numbers(500 - dropped))
  const [gap] = records.filter(({ type }) => type === 'dropped')
  t.match(gap, { events: dropped, reason: 'queue_full' })
  t.ok(gap.since <= gap.until)
  t.equal(records.at(-1).n, 1000, 'later events are written')
  t.equal(records.length, 500 - dropped + 2)
  t.equal(sink.written, records.length)
  const said = lines.map(({ msg }) => msg)
  for (const line of ['dropping lifecycle events', 'lifecycle events dropped'])
    t.ok(said.includes(line), line)
})

t.test('a webhook batch is signed', async t => {
  for (const [secret, key] of /** @type {[string, Buffer | string][]} */ ([
    ['plain text', 'plain text'],
    ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64')],
  ])) {
    const endpoint = await Endpoint.start(t)
    const { sink } = webhookSink(t, endpoint, { secret, batch_size: 2 })
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

t.test('a batch is resent with its id until accepted; later ones wait', async t => {
  const endpoint = await Endpoint.start(t)
  let left = 3
  endpoint.answer = () => (left-- > 0 ? 503 : 200)
  const { sink, lines } = webhookSink(t, endpoint, { batch_size: 2 })
  for (let n = 0; n < 4; n++) sink.add(record(n))
  await sink.settled()
  t.same(pluck(endpoint.batches, 'id'), [...Array(4).fill('msg_node-a_1'), 'msg_node-a_2'])
  t.match(lines[0], { sink: 'webhook', reason: 'HTTP status 503' })
  t.match(lines[1], { msg: 'lifecycle sink is available again' })
  t.equal(sink.failure, null)
})

t.test('a hanging, closing, redirecting or talkative backend does not stop the sink', async t => {
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
  const { sink, lines } = webhookSink(t, endpoint, { batch_size: 10, timeout: 200 })
  sink.add(record(0))
  await sink.settled()
  // On a busy machine a response may be read too late.
  t.ok(endpoint.batches.length >= 6, `${endpoint.batches.length} attempts`)
  t.match(lines[0].reason, 'HTTP status 101')
})

t.test('an oversized batch is split; an oversized event is dropped', async t => {
  const endpoint = await Endpoint.start(t)
  endpoint.answer = ({ body }) => (body.length > 300 ? 413 : 200)
  const { sink } = webhookSink(t, endpoint, { batch_size: 100 })
  for (let n = 0; n < 8; n++) sink.add(record(n, 'x'.repeat(n === 3 ? 400 : 80)))
  await sink.settled()
  await until(() => endpoint.batches.some(({ body }) => body.includes('"dropped"')))
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

t.test('close waits for a sink, up to a timeout', async t => {
  const endpoint = await Endpoint.start(t)
  const good = webhookSink(t, endpoint, { batch_size: 10 })
  good.sink.add(record(0))
  await good.sink.close(60_000)
  t.equal(endpoint.batches.length, 1)
  t.same(good.sink.dropped, {})

  endpoint.answer = () => 500
  const bad = webhookSink(t, endpoint)
  bad.sink.add(record(1))
  await until(() => endpoint.batches.length > 1)
  await bad.sink.close(100)
  t.same(bad.sink.dropped, { shutdown: 1 })
  t.match(bad.lines.at(-1), { msg: 'lifecycle events lost', events: 1 })
})

t.test('close does not wait for an unreachable destination', async t => {
  const never = () => new Promise(() => {})
  const { sink } = sinkOf(t, { name: 'hung', batchSize: 1, write: never, close: never })
  sink.add(record(0))
  await sink.close(1)
  t.same(sink.dropped, { shutdown: 1 })
})

t.test('a pipe without a reader does not block', async t => {
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
