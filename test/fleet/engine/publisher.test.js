// Publishing to a target that refuses, fails, or is down.

import { createServer } from 'node:http'
import { inflateSync } from 'node:zlib'
import t from 'tap'
import { freePort } from '../../kit/ports.js'
import { pause } from '../../kit/wait.js'
import { publishOf, settingsOf, TestEngine } from './engines.js'

/** A server API. `answer`: undefined cuts the connection. */
async function startApi(t, answer, port = 0) {
  const taken = []
  const server = createServer(async (request, response) => {
    // The publisher asks for the time over a WebSocket.
    if (request.method !== 'POST') return response.writeHead(404).end()
    let text = ''
    for await (const part of request) text += part
    const { commands } = JSON.parse(text)
    const replies = await answer(
      commands.map(({ publish }) => publish),
      request,
    )
    if (replies === undefined) return request.socket.destroy()
    if (typeof replies === 'number') return response.writeHead(replies).end()
    commands.forEach(({ publish }, i) => {
      if (!replies[i].error) taken.push(publish)
    })
    response.end(JSON.stringify({ replies }))
  })
  await new Promise(resolve => server.listen(port, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    return new Promise(resolve => server.close(resolve))
  })
  return { taken, url: `http://127.0.0.1:${server.address().port}` }
}

/** @param {number} n */
const upTo = n => Array.from({ length: n }, (_, i) => i + 1)
/** @param {any[]} taken */
const sequencesOf = taken => taken.map(({ data }) => data.s)

const fine = publications => publications.map(() => ({ publish: {} }))

function publisher(t, url, channels, publish) {
  const test = new TestEngine(t)
  const settings = settingsOf(url, { publish: publishOf(channels, publish), publishFrom: Date.now() })
  test.engine.apply(settings)
  const stop = async () => {
    test.engine.apply({ ...settings, publish: null })
    await test.engine.stop()
    return test.sample()
  }
  return { test, settings, stop }
}

/** @returns {number[]} of a ledger */
const sequences = ({ sequences: text }) => {
  const bytes = inflateSync(Buffer.from(text, 'base64'))
  return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readUInt32LE(i * 4))
}

/** Sequences of each channel, in the order of their arrival. */
function byChannel(taken) {
  const channels = {}
  for (const { channel, data } of taken) (channels[channel] ??= []).push(data.s)
  return channels
}

t.test('messages have even intervals, a number per channel and the given size', async t => {
  const { taken, url } = await startApi(t, fine)
  const { test, stop, settings } = publisher(t, url, 's{1..10}', { rate: 200, part: 1, parts: 2, size: 200 })
  await test.until(({ counters }) => counters.published >= 60)
  test.engine.apply({ ...settings, publish: { ...settings.publish, rate: 400, size: 300 } })
  const steps = () => {
    const times = taken.map(({ data }) => data.t).sort((a, b) => a - b)
    return times.slice(1).map((time, i) => time - times[i])
  }
  const every = us => step => Math.abs(step - us) <= 1
  // After a late response many more may be sent at the first rate.
  await test.until(() => steps().filter(every(2500)).length >= 50)
  const { counters, answer } = await stop()
  t.equal(counters.published, taken.length)
  t.equal(counters.unpublished, 0)
  t.equal(answer.count, taken.length)
  const channels = byChannel(taken)
  t.same(Object.keys(channels).sort(), ['s10', 's2', 's4', 's6', 's8'])
  for (const [channel, list] of Object.entries(channels)) t.same(list, upTo(list.length), channel)
  const [ledger] = await test.engine.ledgers()
  t.same(
    sequences(ledger),
    ['s2', 's4', 's6', 's8', 's10'].map(channel => channels[channel].length),
  )
  const between = steps().findIndex(step => !every(5000)(step))
  t.ok(between >= 50, 'every 5 ms, exactly')
  t.same(
    steps()
      .slice(between + 1)
      .filter(step => !every(2500)(step)),
    [],
    'then every 2.5 ms, exactly',
  )
  t.equal(JSON.stringify(taken[0].data).length, 200)
  t.equal(JSON.stringify(taken.at(-1).data).length, 300)
})

t.test('channels of new connections immediately get messages', async t => {
  const { taken, url } = await startApi(t, fine)
  const { test, stop, settings } = publisher(t, url, 'own:{own}', { order: 'sequential' })
  test.engine.apply({ ...settings, total: 2 })
  await test.until(({ counters }) => counters.published >= 10)
  test.engine.apply({ ...settings, total: 3 })
  await test.until(() => taken.some(({ channel }) => channel === 'own:3'))
  test.engine.apply({ ...settings, total: 3, publish: null })
  const { counters } = await stop()
  const channels = byChannel(taken)
  t.same(Object.keys(channels).sort(), ['own:1', 'own:2', 'own:3'])
  t.equal(counters.published, taken.length)
  t.same(
    sequences((await test.engine.ledgers())[0]),
    ['own:1', 'own:2', 'own:3'].map(name => channels[name].length),
  )
})

t.test('a slow target gets all messages, with their intended times', async t => {
  const port = await freePort()
  const { test, stop } = publisher(t, `http://127.0.0.1:${port}`, 'news', { rate: 500 })
  await test.until(({ faults }) => faults['publish: ECONNREFUSED'] >= 2)
  const { taken } = await startApi(t, fine, port)
  await test.until(({ counters }) => counters.published >= 300)
  const { counters, answer } = await stop()
  t.same(sequencesOf(taken), upTo(counters.published))
  t.ok(
    taken.every(({ data }, i) => i === 0 || Math.abs(data.t - taken[i - 1].data.t - 2000) <= 1),
    'evenly spaced, though they were not sent like that',
  )
  t.ok(answer.max > 100, 'waiting time is included')
})

t.test('unconfirmed messages are published again, marked, in order', async t => {
  let calls = 0
  const cut = []
  const { taken, url } = await startApi(t, publications => {
    if (++calls % 5 === 2) return void cut.push(...publications)
    if (calls % 5 === 3) return 503
    if (calls % 5 === 4)
      return publications.map(() => ({ error: { code: 100, message: 'internal server error' } }))
    return fine(publications)
  })
  const { test, stop } = publisher(t, url, 'news', { rate: 200 })
  await test.until(({ counters }) => counters.published >= 100)
  const { counters, faults } = await stop()
  t.same(sequencesOf(taken), upTo(counters.published))
  t.equal(counters.unpublished, 0)
  const [first] = cut
  const again = taken.find(({ data }) => data.s === first.data.s)
  t.equal(again.data.t, first.data.t, 'with its original time')
  t.match(first.data.p, /^128\.[a-z]+$/)
  t.match(again.data.p, /^128![a-z]+$/)
  t.ok(faults['publish: HTTP 503'] > 0 && faults['publish: 100 internal server error'] > 0, faults)
})

t.test('the sequence of a refused message is reused', async t => {
  const { taken, url } = await startApi(t, publications =>
    publications.map(({ channel }) =>
      channel === 's2' ? { error: { code: 102, message: 'unknown channel' } } : { publish: {} },
    ),
  )
  const { test, stop } = publisher(t, url, 's{1..2}', { rate: 500, order: 'sequential' })
  await test.until(({ counters }) => counters.published >= 50)
  const { counters, faults } = await stop()
  t.equal(counters.published, taken.length)
  t.ok(Math.abs(counters.unpublished - counters.published) <= 1)
  t.equal(faults['publish: 102 unknown channel'], counters.unpublished)
  t.same(sequences((await test.engine.ledgers())[0]), [taken.length, 0])
})

t.test('faults of resent and of refused messages are counted separately', async t => {
  const { url } = await startApi(t, publications =>
    publications.map((_, n) => ({
      error:
        n === 0 ? { code: 102, message: 'unknown channel' } : { code: 111, message: 'too many requests' },
    })),
  )
  const { test, stop } = publisher(t, url, 's{1..2}', { rate: 2000, order: 'sequential', lanes: 1 })
  await test.until(({ counters }) => counters.unpublished >= 4)
  t.equal(test.faults['publish: 102 unknown channel'], test.counters.unpublished)
  t.ok(test.faults['publish: 111 too many requests'] > 0)
  await stop()
})

t.test('a batch is smaller than 64 KiB', async t => {
  let largest = 0
  let held = true
  const { url } = await startApi(t, (publications, request) => {
    if (held) return 503
    largest = Math.max(largest, Number(request.headers['content-length']))
    return fine(publications)
  })
  const { test, stop } = publisher(t, url, `${'ж'.repeat(100)}{1..10}`, { rate: 5000, lanes: 1 })
  await test.until(({ faults }) => faults['publish: HTTP 503'] >= 4)
  held = false
  await test.until(({ counters }) => counters.published >= 1000)
  await stop()
  t.ok(largest > 40_000 && largest < 65_536, `${largest} bytes`)
})

t.test('a wrong key is a fault; unconfirmed messages are given up at the end', async t => {
  const { url } = await startApi(t, (_, request) => (request.headers['x-api-key'] === 'key' ? 401 : 500))
  const { test } = publisher(t, url, 'news', { rate: 1000 })
  await test.until(({ faults }) => faults['publish: HTTP 401'] >= 2)
  await test.engine.stop()
  const { counters, faults } = test.sample()
  t.equal(counters.published, 0)
  t.ok(counters.unpublished > 20)
  t.equal(faults['publish: abandoned'], counters.unpublished)
  t.same(sequences((await test.engine.ledgers())[0]), [0])
})

t.test('the ledger waits for pending requests of a slow target', async t => {
  /** @type {(() => void)[]} */
  const held = []
  const { taken, url } = await startApi(t, async publications => {
    await new Promise(resolve => held.push(() => resolve(undefined)))
    return fine(publications)
  })
  const { test } = publisher(t, url, 'news', { rate: 100 })
  await test.until(() => held.length > 0)
  const stopped = test.engine.stop()
  // Longer than the time to drain due messages.
  await pause(1500)
  for (const answer of held) answer()
  await stopped
  const [ledger] = await test.engine.ledgers()
  t.equal(test.sample().counters.published, taken.length)
  t.ok(taken.length > 0)
  t.same(sequences(ledger), [taken.length])
})

t.test('invalid settings are refused, and the previous ones stay in effect', async t => {
  const { url } = await startApi(t, fine)
  const test = new TestEngine(t, { apiKey: undefined, tokenSecret: undefined })
  const refused = (settings, message) =>
    t.throws(() => test.engine.apply(settingsOf(url, settings)), { message })
  refused({ publish: publishOf('news'), publishFrom: 1 }, 'publish_via api requires an API key (--api-key)')
  refused({ user: 'u{own}' }, 'the setting user requires a token secret (--token-secret)')
  refused({ channels: ['s{1..'] }, /is not a channel/)
  refused({ targets: ['http://example.com:80'] }, /example.com/)
  refused({ targets: [], connections: 1 }, 'targets is empty: at least one is required')
  refused({ publish: publishOf('s{x}', { via: 'client' }), connections: 1 }, /is not a channel/)
  t.equal(test.sample().gauges.wanted, 0)
  test.engine.apply(settingsOf(url, { targets: [] }))
})
