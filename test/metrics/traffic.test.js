// Clients count their messages and bytes, and compare them with the counts of the gateway.

import { join } from 'node:path'
import t from 'tap'
import WebSocket from 'ws'
import { history, open } from '../clients/session/support.js'
import { ProtobufClient } from '../clients/transport/protobuf-client.js'
import { drivers } from '../kit/drivers.js'
import { tempDir } from '../kit/folders.js'
import { startGateway } from '../kit/gateway.js'
import { PollClient } from '../kit/poll-client.js'
import { RawClient } from '../kit/raw-client.js'
import { StreamClient } from '../kit/stream-client.js'
import { poll, query } from '../kit/uni-poll-client.js'
import { until, within } from '../kit/wait.js'
import { Watcher } from '../kit/watcher.js'

/** @typedef {import('../../src/metrics/schema.js').Snapshot} Snapshot */

// The tests wait most of the time.
t.jobs = 3

const { byteLength } = Buffer
/** @param {string} text */
const lines = text => text.split('\n').length

/** Messages that one client has sent and received. */
class Books {
  in = { messages: 0, bytes: 0 }
  out = { messages: 0, bytes: 0 }

  /** @param {string | Buffer} text @param {number} messages */
  sent(text, messages = lines(String(text))) {
    this.in.messages += messages
    this.in.bytes += byteLength(text)
  }

  /** @param {string | Buffer} text @param {number} messages */
  received(text, messages = lines(String(text))) {
    this.out.messages += messages
    this.out.bytes += byteLength(text)
  }

  /** @param {number} [connects] */
  counts(connects = 1) {
    return { connects, in: this.in, out: this.out }
  }
}

/**
 * Counts what goes over a WebSocket.
 * @param {WebSocket} socket @param {Books} books
 * @param {number} [messages] in each frame; default: its lines
 */
function follow(socket, books, messages) {
  const send = socket.send.bind(socket)
  socket.send = (/** @type {any} */ data) => {
    books.sent(data, messages)
    send(data)
  }
  socket.on('message', data => books.received(/** @type {Buffer} */ (data), messages))
}

/** @param {import('../kit/gateway.js').TestGateway} gateway @param {Books} books */
async function webSocket(gateway, books) {
  const client = await RawClient.open(gateway.ws)
  follow(client.socket, books)
  await client.call('connect')
  await client.subscribe('news')
  return { news: () => client.push('pub'), leave: () => client.close(), client }
}

/** @param {import('../kit/gateway.js').TestGateway} gateway @param {Books} books */
async function protobuf(gateway, books) {
  const client = await ProtobufClient.open(gateway.ws)
  follow(client.socket, books, 1)
  await client.call('connect', {})
  await client.call('subscribe', { channel: 'news' })
  const leave = () => {
    client.socket.close()
    return client.closed
  }
  return { news: () => client.push('pub'), leave }
}

/** @param {StreamClient} client @param {Books} books */
function readStream(client, books) {
  const text = Buffer.concat(client.chunks).toString()
  const sse = text.startsWith('\r\n')
  for (const line of text.split(/\r?\n/)) {
    // HTTP streams escape non-ASCII characters.
    const message = sse
      ? line.replace(/^data: /, '')
      : line.replace(/\\u[\da-f]{4}/g, escaped => JSON.parse(`"${escaped}"`))
    if (message !== '' && (!sse || line.startsWith('data: '))) books.received(message)
  }
}

/** @param {'http_stream' | 'sse'} transport */
const stream =
  transport =>
  async (/** @type {import('../kit/gateway.js').TestGateway} */ gateway, /** @type {Books} */ books) => {
    books.sent(JSON.stringify({ id: 1, connect: {} }))
    const client = await StreamClient.connected(gateway.url, transport)
    const sendText = client.sendText.bind(client)
    client.sendText = data => {
      books.sent(data)
      return sendText(data)
    }
    await client.subscribe('news')
    return {
      news: () => client.push('pub'),
      async leave() {
        await client.close()
        readStream(client, books)
      },
    }
  }

/** @param {import('../kit/gateway.js').TestGateway} gateway @param {Books} books */
async function longPoll(gateway, books) {
  const client = await PollClient.open(gateway)
  const { post } = client
  client.post = async (params, body = '') => {
    if (body !== '') books.sent(body)
    const answer = await post.call(client, params, body)
    if (answer.text !== '') for (const line of answer.text.trimEnd().split('\n')) books.received(line)
    return answer
  }
  await client.call('connect')
  await client.call('subscribe', { channel: 'news' })
  return {
    news: () => client.push('pub'),
    leave: () => client.post('close=1'),
  }
}

const CONNECT = JSON.stringify({ subs: { news: {} } })

/** @param {import('../kit/gateway.js').TestGateway} gateway @param {Books} books */
async function uniWebSocket(gateway, books) {
  const client = await RawClient.open(`${gateway.url.replace('http', 'ws')}/connection/uni_websocket`)
  follow(client.socket, books)
  client.sendText(CONNECT)
  await client.next(({ connect }) => connect)
  return { news: () => client.next(({ pub }) => pub), leave: () => client.close() }
}

/** @param {'uni_http_stream' | 'uni_sse'} transport */
const uniStream =
  transport =>
  async (/** @type {import('../kit/gateway.js').TestGateway} */ { url }, /** @type {Books} */ books) => {
    books.sent(CONNECT)
    const path = `/connection/${transport}`
    const client =
      transport === 'uni_sse'
        ? await StreamClient.open(url, `${path}?cf_connect=${encodeURIComponent(CONNECT)}`)
        : await StreamClient.open(url, path, { method: 'POST', body: CONNECT })
    await client.next(({ connect }) => connect)
    return {
      news: () => client.next(({ pub }) => pub),
      async leave() {
        await client.close()
        readStream(client, books)
      },
    }
  }

const ways = {
  websocket: webSocket,
  http_stream: stream('http_stream'),
  sse: stream('sse'),
  poll: longPoll,
  uni_websocket: uniWebSocket,
  uni_sse: uniStream('uni_sse'),
  uni_http_stream: uniStream('uni_http_stream'),
}

/** @param {any} t @param {string} driver @param {number} workers @param {any} [config] */
async function start(t, driver, workers, config = {}) {
  const path = join(tempDir(t), 'stats.sock')
  const on = { enabled: true }
  const gateway = await startGateway(t, {
    workers,
    http_server: { driver },
    http_stream: on,
    sse: on,
    poll: on,
    uni_websocket: on,
    uni_sse: on,
    uni_http_stream: on,
    uni_poll: on,
    stats: { socket: path },
    channel: {
      without_namespace: open,
      namespaces: [{ name: 'log', ...open, ...history, allow_recovery: true }],
    },
    ...config,
    client: { allow_anonymous_connect_without_token: true, ping_interval: '60s', ...config.client },
  })
  return { gateway, stats: statsOf(await Watcher.at(t, path)) }
}

/** @param {Watcher} watcher */
function statsOf(watcher) {
  const until = (/** @type {(snapshot: Snapshot) => boolean} */ matches) =>
    within(watcher.snapshot(matches), () => `a snapshot where ${matches}`)
  return {
    until,
    /**
     * A blocked worker makes the sample that is due before it reads what clients have sent meanwhile. So this waits for
     * the third sample of each from now on.
     * @returns {Promise<Snapshot>} with everything that clients have done until now
     */
    now() {
      /** @type {Map<number, number[]>} times of each worker's samples */
      const times = new Map()
      const begin = Date.now()
      return until(({ workers }) => {
        for (const { index, sample } of workers) {
          const known = times.get(index) ?? []
          if (sample && sample.time > (known.at(-1) ?? begin)) times.set(index, [...known, sample.time])
        }
        return workers.every(({ index }) => (times.get(index)?.length ?? 0) >= 3)
      })
    },
  }
}

/** @param {Books[]} all */
function sumOf(all) {
  const sum = new Books()
  for (const books of all) {
    for (const way of /** @type {const} */ (['in', 'out'])) {
      sum[way].messages += books[way].messages
      sum[way].bytes += books[way].bytes
    }
  }
  return sum
}

for (const driver of drivers) {
  t.test(`${driver}: every message and byte of every transport is counted`, async t => {
    const { gateway, stats } = await start(t, driver, 2)
    /** @type {Record<string, Books>} */
    const books = { uni_poll: new Books() }
    const clients = []
    for (const [name, connect] of Object.entries(ways)) {
      books[name] = new Books()
      clients.push(await connect(gateway, books[name]))
    }
    clients.push(await protobuf(gateway, books.websocket))
    const { totals } = await stats.now()
    t.same(totals.connections, {
      open: 8,
      connected: 8,
      by: {
        websocket: { json: 1, protobuf: 1 },
        http_stream: { json: 1 },
        sse: { json: 1 },
        poll: { json: 1 },
        uni_websocket: { json: 1 },
        uni_sse: { json: 1 },
        uni_http_stream: { json: 1 },
      },
    })
    t.equal(totals.subscriptions, 8)

    for (let i = 0; i < 3; i++) {
      await gateway.api('publish', { channel: 'news', data: { i, text: 'grüße' } })
    }
    for (let i = 0; i < 3; i++) for (const client of clients) await client.news()

    await gateway.api('broadcast', { channels: ['log:a', 'log:a', 'none:x'], data: 'old news' })
    const params = { channel: 'log:a', since: 'earliest' }
    const answer = await poll(gateway, params)
    t.equal(answer.body.publications.length, 2)
    books.uni_poll.sent(query(params).toString())
    books.uni_poll.received(answer.text, 2)

    for (const client of clients) await client.leave()
    const { counters, totals: after } = await stats.now()
    for (const [name, { connects, ...flows }] of Object.entries(counters.transports)) {
      const expected = books[name].counts(name === 'uni_poll' ? 0 : name === 'websocket' ? 2 : 1)
      t.same({ connects, ...flows }, expected, name)
    }
    t.same(Object.keys(counters.transports).sort(), Object.keys(books).sort())
    const sum = sumOf(Object.values(books))
    t.same({ in: counters.in, out: counters.out }, { in: sum.in, out: sum.out })
    t.match(counters, {
      accepts: 8,
      connects: 8,
      publishes: 5,
      deliveries: 24,
      commands: { connect: 8, subscribe: 5 },
      errors: {},
      // Four sent close frames without a code; the others were cut.
      closes: { 1005: 3, 0: 5 },
      api: { publish: 3, broadcast: 1 },
      api_errors: { 102: 1 },
    })
    t.same(after.connections, { open: 0, connected: 0, by: {} })
    t.equal(after.subscriptions - after.channels, 0, 'what stays is a polled channel, for a while')

    await t.test('closes are counted by the code of the gateway', async t => {
      const all = Object.values(ways)
      await Promise.all(all.map(way => way(gateway, new Books())))
      await gateway.api('disconnect', { user: '' })
      for (const code of [1000, 1001, 3008, 3501, 4000, 4711]) {
        const client = await RawClient.connected(gateway.ws)
        client.socket.close(code, 'mine')
        await client.closed
      }
      // uWebSockets.js reads some of them as no code. Three and five are from earlier.
      const {
        3503: ours,
        1001: away,
        1000: normal,
        1006: none = 0,
        ...others
      } = (await stats.now()).counters.closes
      t.same([ours, away, normal + none, others], [all.length, 1, 5, { 1005: 3, 0: 5 }])
    })
  })
}

t.test('commands, errors, recoveries and API calls are counted', async t => {
  const { gateway, stats } = await start(t, drivers[0], 1)
  const client = await RawClient.connected(gateway.ws)
  const { result } = await gateway.api('publish', { channel: 'log:a', data: 1 })
  await gateway.api('publish', { channel: 'log:a', data: 2 })
  const since = { recoverable: true, recover: true, offset: 1, epoch: result.epoch }
  t.equal((await client.subscribe('log:a', since)).subscribe.recovered, true)
  t.notOk((await client.subscribe('log:b', { ...since, offset: 7, epoch: 'other' })).subscribe.recovered)
  t.equal((await client.call('rpc', { method: 'x' })).error.code, 108)
  t.equal((await client.call('history', { channel: 'plain' })).error.code, 108)
  t.equal((await client.subscribe('log:a')).error.code, 105)
  await client.call('publish', { channel: 'log:a', data: 3 })
  await client.push('pub')
  await gateway.api('unsubscribe', { user: '', channel: 'log:a' })
  await client.push('unsubscribe')
  await client.call('unsubscribe', { channel: 'log:b' })
  await gateway.api('disconnect', { user: '' })
  t.equal((await client.closed).code, 3503)
  // Each of its commands has the name of the command.
  await gateway.api('batch', {
    commands: [{ publish: { channel: 'none:x', data: 1 } }, { history: { channel: 'plain' } }],
  })
  const rude = await RawClient.open(gateway.ws)
  rude.sendText('not JSON')
  t.equal((await rude.closed).code, 3501)
  const { counters } = await stats.now()
  t.same(counters.commands, { connect: 1, subscribe: 3, rpc: 1, history: 1, publish: 1, unsubscribe: 1 })
  t.same(counters.errors, { 105: 1, 108: 2 })
  t.same(counters.unsubscribes, { 2000: 1 })
  t.same(counters.closes, { 3501: 1, 3503: 1 })
  t.same(counters.recoveries, { recovered: 1, failed: 1 })
  t.same(counters.api, { publish: 3, unsubscribe: 1, disconnect: 1, history: 1 })
  t.same(counters.api_errors, { 102: 1, 108: 1 })
  t.equal(counters.publishes, 3)
  t.equal(counters.deliveries, 1)
  t.equal(counters.accepts, 2)
  t.equal(counters.connects, 1)
})

t.test('pings and pongs count as messages, including those of WebSocket', async t => {
  const { gateway, stats } = await start(t, drivers[0], 1, {
    client: { ping_interval: '3s', pong_timeout: '2900ms' },
  })
  const books = new Books()
  const client = await RawClient.open(gateway.ws)
  const below = await RawClient.open(`${gateway.ws}?cf_ws_frame_ping_pong=true`)
  follow(client.socket, books)
  follow(below.socket, books)
  let pings = 0
  const pinged = new Promise(resolve => below.socket.on('ping', () => ++pings === 2 && resolve(undefined)))
  await below.call('connect')
  await client.call('connect')
  for (let i = 0; i < 2; i++) {
    await client.next(message => Object.keys(message).length === 0)
    client.sendText('{}')
  }
  await client.close()
  await pinged
  await below.close()
  books.in.messages += pings
  books.out.messages += pings
  const { counters } = await stats.now()
  t.same({ in: counters.in, out: counters.out }, { in: books.in, out: books.out })
})

t.test('a waiting poll is a connection; its unread bytes are in the outbox', async t => {
  const { gateway, stats } = await start(t, drivers[0], 1, { client: { queue_max_size: 1_000_000_000 } })
  const waiting = poll(gateway, { channel: 'news' })
  const { totals } = await stats.until(({ totals }) => totals.connections.connected > 0)
  t.same(totals.connections, { open: 1, connected: 1, by: { uni_poll: { json: 1 } } })
  await gateway.api('publish', { channel: 'news', data: 1 })
  await waiting
  t.ok(await stats.until(({ totals }) => totals.connections.open === 0))

  const client = await RawClient.connected(gateway.ws)
  await client.subscribe('news')
  client.socket.pause()
  const data = 'x'.repeat(1_000_000)
  let { outbox } = (await stats.now()).totals
  t.same(outbox, { bytes: 0, largest: 0 })
  await until(async () => {
    for (let i = 0; i < 10; i++) await gateway.api('publish', { channel: 'news', data })
    outbox = (await stats.now()).totals.outbox
    return outbox.bytes > 0
  })
  t.equal(outbox.bytes, outbox.largest)
  client.socket.resume()
  t.ok(await stats.until(({ totals }) => totals.outbox.bytes === 0))
  await client.close()
})
