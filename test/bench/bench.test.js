import { EventEmitter, once } from 'node:events'
import { createServer } from 'node:http'
import t from 'tap'
import { WebSocketServer } from 'ws'
import { Reader } from '../../bench/batching.js'
import { parseOptions as parseChannelsOptions } from '../../bench/channels.js'
import { grows, MemoryTrends, parseOptions as parseLeakOptions, trendOf } from '../../bench/leak.js'
import { Load } from '../../bench/load.js'
import { parseOptions as parsePollOptions } from '../../bench/poll.js'
import { parseOptions as parseRecoveryOptions } from '../../bench/recovery.js'
import { parseOptions as parseTlsOptions } from '../../bench/tls.js'
import { run, script, skip } from './runs.js'

t.test('a wrong command line is refused with one clear line', async t => {
  t.throws(() => parsePollOptions(['--conns=many']), {
    message: /--conns is a whole number from 1, not "many"/,
  })
  t.throws(() => parsePollOptions(['--against=nginx']), {
    message: /--against is uws, ws or both, not "nginx"/,
  })
  t.throws(() => parsePollOptions(['--speed=9']), { message: /Unknown option '--speed'/ })
  t.throws(() => parseChannelsOptions(['--nodes=2']), { message: /--nodes and --redis want --engine redis/ })
  t.throws(() => parseRecoveryOptions(['--engine=tape']), {
    message: /--engine is memory or redis, not "tape"/,
  })
  t.throws(() => parseTlsOptions(['--driver=ws']), { message: /--driver is auto, uws or node, not "ws"/ })
  t.same(parseTlsOptions(['--driver=both']), parseTlsOptions([]), 'a default may be given')
  await t.rejects(run(process.execPath, [script, 'fam']), { code: 2, stderr: /unknown scenario "fam"/ })
})

t.test('--help names every measurement', async t => {
  const { stdout } = await run(process.execPath, [script, '--help'])
  t.match(stdout, / poll .*\n.* channels .*\n.* recovery .*\n.* gc .*\n.* watch .*\n.* leak /)
})

t.test('leak: a significant trend above the tolerated growth is growth', async t => {
  const noise = [0.4, -0.3, 0.1, -0.4, 0.3, -0.1]
  const line = (/** @type {number} */ slope) =>
    Array.from({ length: 60 }, (_, i) => ({ x: i / 60, y: 50 + (slope * i) / 60 + noise[i % noise.length] }))
  const { mean, slope, error } = trendOf(line(6))
  t.ok(Math.abs(slope - 6) < error && error < 0.5, `${slope} +- ${error} MiB/h`)
  t.ok(Math.abs(mean - 53) < 0.1)
  t.ok(grows(line(6)))
  t.notOk(grows(line(0)), 'noise')
  t.notOk(grows(line(0.5)), 'one per cent')
  t.notOk(grows(line(-6)))

  const trends = new MemoryTrends()
  const memory = (/** @type {number} */ mib) => ({ memory: { heap_used: mib * 2 ** 20, rss: 2 ** 26 } })
  for (let hour = 0; hour < 9; hour++) {
    const workers = [{ index: 0, sample: memory(20 + hour) }]
    const snapshots = [9, 5].map(more => ({ primary: memory(10 + more), workers }))
    trends.addWindow(/** @type {any} */ (snapshots), hour)
  }
  const { figures, growing } = trends.result()
  t.match(figures, { primary_heap_mib: 15, primary_heap_mib_per_h: 0, worker_0_heap_mib_per_h: 1 })
  t.same(growing, ['worker_0 heap'], 'the minimum of each window counts')
  t.throws(() => parseLeakOptions(['--minutes=9']), { message: /--minutes is at least 10/ })
  t.throws(() => parseLeakOptions(['--minutes=10', '--window=60']), { message: /--window is too long/ })
})

/** A bare server that answers publishes in bursts: what is due waits for lanes that are free. */
async function startSlowServer(t) {
  const subscribers = new Map()
  let held = []
  let taken = 0
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    taken++
    held.push({ ...JSON.parse(body), response })
  })
  new WebSocketServer({ server }).on('connection', (socket, request) => {
    subscribers.set(new URL(request.url, 'ws://server').searchParams.get('ch'), socket)
  })
  const bursts = new EventEmitter()
  const timer = setInterval(() => {
    const burst = held
    held = []
    for (const { channel, data, response } of burst) {
      subscribers.get(channel).send(JSON.stringify({ push: { channel, pub: { data } } }))
      response.end('{"result":{}}')
    }
    if (burst.length > 0) bursts.emit('burst')
  }, 250)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    clearInterval(timer)
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${server.address().port}`, bursts, taken: () => taken }
}

t.test('messages that are still due at the end of a run count on both sides', { skip }, async t => {
  const { url, bursts, taken } = await startSlowServer(t)
  const ends = { targets: [{ url, transport: 'uni_bare' }], apis: [{ url, key: 'key' }] }
  const sizes = { conns: 4, channels: 4, rate: 30, size: 100, publishers: 4, loaders: 1, seconds: 1 }
  const load = new Load(ends, sizes, { progress() {}, warning: text => t.fail(text) })
  t.teardown(() => load.stop())
  await load.connect()
  await load.publish(0)
  for (let n = 0; n < 6; n++) await once(bursts, 'burst')
  const { expected, all } = await load.finish()
  t.equal(expected, taken(), 'all that the server was asked to publish')
  t.equal(all.counters.received, expected)
  t.match(all.publisher, { published: expected, unpublished: 0 })
})

/**
 * @param {any} t
 * @param {(socket: import('ws').WebSocket, raw: import('node:stream').Duplex) => void} answer commands of a client
 * @returns {Promise<string>} URL of a server
 */
async function startScripted(t, answer) {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  server.on('connection', (socket, { socket: raw }) => {
    socket.once('message', () => answer(socket, raw))
  })
  await once(server, 'listening')
  t.teardown(() => server.close())
  return `ws://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`
}

t.test('batching: a reader is subscribed, also when its replies come in one piece', async t => {
  const url = await startScripted(t, (socket, raw) => {
    raw.cork()
    socket.send('{"id":1,"connect":{"client":"c"}}')
    socket.send('{"id":2,"subscribe":{}}')
    socket.send('{"push":{"channel":"quotes","pub":{"data":{"key":"key0","number":1}}}}')
    raw.uncork()
  })
  const reader = await Reader.open(url)
  t.match(reader, { received: 1, messages: 1, disordered: 0 })
  reader.close()
})

t.test('batching: a reader that is refused, or whose connection ends, ends the run', async t => {
  const refusing = await startScripted(t, socket => socket.send('{"id":2,"error":{"code":103}}'))
  await t.rejects(Reader.open(refusing), { message: 'a reader was refused: {"id":2,"error":{"code":103}}' })
  const ending = await startScripted(t, socket => socket.close(3501))
  await t.rejects(Reader.open(ending), { message: 'the connection of a reader was closed (3501)' })
})
