// Polls of one worker, with a broker controlled by the test.

import t from 'tap'
import { errors } from '../../../src/base/errors.js'
import { Hub } from '../../../src/channels/hub/hub.js'
import { PollJsonCodec } from '../../../src/clients/protocol/uni-json.js'
import { Cursors } from '../../../src/clients/transport/uni-poll/cursor.js'
import { StartOffset } from '../../../src/clients/transport/uni-poll/feed.js'
import { Polls } from '../../../src/clients/transport/uni-poll/polls.js'
import { until } from '../../kit/wait.js'
import { makePublication } from '../protocol/publication.js'
import { createWorker } from '../session/worker.js'

const EPOCH = 'AbCdEfGh'
const LONG = 60_000

/** @param {number} offset */
const publication = (offset, epoch = EPOCH) =>
  makePublication({ data: Buffer.from(String(offset)), offset, epoch: offset > 0 ? epoch : '' })

/** @param {number} from @param {number} to */
const publications = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => publication(from + i))

class TestExchange {
  /** @type {any} */
  waiter = null
  /** @type {{status: number, body: any, bytes: any} | null} */
  answer = null
  #wake = () => {}

  reply(/** @type {number} */ status, /** @type {any} */ _head, /** @type {any} */ bytes) {
    if (this.answer) throw new Error('answered twice')
    this.answer = { status, body: JSON.parse(String(bytes)), bytes }
    this.#wake()
  }

  /** @returns {Promise<any>} */
  async answered() {
    if (!this.answer) await new Promise(resolve => (this.#wake = () => resolve(undefined)))
    return this.answer
  }

  /** @returns {Promise<any>} payloads of the response */
  async payloads() {
    return (await this.answered()).body.publications.map((/** @type {any} */ { data }) => data)
  }

  leave() {
    this.waiter.abandoned()
  }
}

function start() {
  const worker = createWorker()
  const { fanout, clock, pass } = worker
  /** @type {any[]} pending broker calls */
  const calls = []
  /** @type {string[]} */
  const unsubscribed = []
  const broker = {
    subscribe: (/** @type {any} */ channel, /** @type {any} */ wants, /** @type {any} */ done) =>
      void calls.push({ op: 'subscribe', channel, wants, done }),
    unsubscribe: (/** @type {string} */ channel) => void unsubscribed.push(channel),
    position: (/** @type {any} */ channel, /** @type {any} */ _ttl, /** @type {any} */ done) =>
      void calls.push({ op: 'position', channel, done }),
    history: (/** @type {any} */ channel, /** @type {any} */ filter) =>
      new Promise((resolve, reject) => calls.push({ op: 'history', channel, filter, resolve, reject })),
  }
  const sessions = { of: () => [], client: () => undefined }
  const hub = new Hub({ pubsub: /** @type {any} */ (broker), fanout, sessions, clock, forEachSession() {} })
  const codec = new PollJsonCodec()
  let encoded = 0
  const text = codec.text.bind(codec)
  codec.text = (channel, publication) => {
    encoded++
    return text(channel, publication)
  }
  const config = { client: { history_max_publication_limit: 10 } }
  const parts = /** @type {any} */ ({ ...worker, hub, broker: { pubsub: broker }, config })
  const polls = new Polls(parts, fanout, new Cursors(Buffer.alloc(32), 65536), codec)
  return {
    hub,
    polls,
    calls,
    unsubscribed,
    get encoded() {
      return encoded
    },
    pass,

    /** @param {string | string[]} names @param {number} offset @param {any} [more] */
    poll(names, offset, { epoch = offset < 0 ? '' : EPOCH, timeout = LONG, historyOn = true } = {}) {
      const exchange = new TestExchange()
      const namespace = /** @type {any} */ ({ historyOn, metaTtl: 1000 })
      const channels = [names].flat().map(name => ({ name, namespace, filter: null, offset, epoch }))
      const identity = { user: '', expireAt: 0, subs: new Map() }
      polls.begin(/** @type {any} */ (exchange), {}, channels, identity, timeout)
      return exchange
    },

    /** Answers the first pending call with this `op`, which must match. @param {any} like */
    answer(
      like,
      { top = 0, epoch = EPOCH, recovered = false, found = publications(1, 0), error = null } = {},
    ) {
      const index = calls.findIndex(
        ({ op, channel }) => op === like.op && channel === (like.channel ?? channel),
      )
      const [call] = calls.splice(index, 1)
      t.match(call, like)
      if (call.op === 'history') {
        if (error) call.reject(error)
        else call.resolve({ publications: found, offset: top, epoch })
      } else if (call.op === 'position') call.done(error, top, epoch)
      else call.done(error, { offset: top, epoch, recovered, publications: found })
    },

    /** @param {string} name @param {any[]} offsets */
    publish(name, ...offsets) {
      for (const offset of offsets) hub.publication(name, publication(offset))
    },
  }
}

const subscribe = { op: 'subscribe' }
const turn = async () => {
  for (let i = 0; i < 2; i++) await new Promise(setImmediate)
}

t.test('polls during a subscribe wait for the same broker reply', async t => {
  const { poll, answer, calls, publish } = start()
  const now = poll('a', StartOffset.NOW)
  const top = poll('a', 5)
  const behind = poll('a', 3)
  t.equal(calls.length, 1)
  answer({ ...subscribe, wants: { position: true, recover: null } }, { top: 5 })
  answer(
    { op: 'history', filter: { sinceOffset: 3, sinceEpoch: EPOCH, limit: 10 } },
    { top: 5, found: publications(4, 5) },
  )
  t.same(await behind.payloads(), [4, 5])
  t.same([now.answer, top.answer], [null, null])
  publish('a', 6)
  t.same(await now.payloads(), [6])
  t.same(await top.payloads(), [6])
})

t.test('the subscribe reply contains the publications missed by the first poll', async t => {
  const { poll, answer } = start()
  const first = poll('a', 3)
  const second = poll('a', 3)
  const recover = { offset: 3, epoch: EPOCH, limit: 10 }
  answer({ ...subscribe, wants: { recover } }, { top: 5, recovered: true, found: publications(4, 5) })
  t.same(await first.payloads(), [4, 5])
  t.same(await second.payloads(), [4, 5])
})

t.test('a gap in the stream is filled before later publications are delivered', async t => {
  const { poll, answer, publish, hub } = start()
  const polls = [poll('a', 5), poll('a', 5)]
  answer(subscribe, { top: 5, recovered: true })
  publish('a', 7)
  const recover = { offset: 5, epoch: EPOCH, limit: 10 }
  await turn()
  t.equal(polls[0].answer, null)
  answer(
    { ...subscribe, wants: { first: true, recover } },
    { top: 8, recovered: true, found: publications(6, 8) },
  )
  publish('a', 9)
  for (const poll of polls) t.same(await poll.payloads(), [6, 7, 8])
  t.equal(hub.channels.get('a')?.count, 1)
})

t.test('a gap longer than a page is read once for all polls', async t => {
  const { poll, answer, publish, calls } = start()
  const polls = [poll('a', 5), poll('a', 5), poll('a', 5)]
  answer(subscribe, { top: 5, recovered: true })
  publish('a', 100)
  answer(subscribe, { top: 100 })
  answer({ op: 'history', filter: { sinceOffset: 5 } }, { top: 100, found: publications(6, 15) })
  t.same(calls, [])
  for (const poll of polls) {
    const { body } = await poll.answered()
    t.equal(body.publications.length, 10)
    t.equal(body.lost, undefined)
  }
})

t.test('a waiting poll whose stream is replaced returns `lost` and the new publications', async t => {
  const { poll, answer, hub } = start()
  const waiting = poll('a', 5)
  answer(subscribe, { top: 5, recovered: true })
  hub.publication('a', publication(1, 'NewEpoch'))
  answer(subscribe, { top: 1, epoch: 'NewEpoch' })
  answer({ op: 'history', filter: { sinceEpoch: EPOCH } }, { error: errors.unrecoverablePosition })
  await turn()
  const found = [publication(1, 'NewEpoch')]
  answer({ op: 'history', filter: { sinceOffset: undefined } }, { top: 1, epoch: 'NewEpoch', found })
  const { body } = await waiting.answered()
  t.match(body, { publications: [{ data: 1, offset: 1 }], lost: ['a'] })
})

t.test('a waiting poll is repositioned after a failed position check', async t => {
  const { poll, answer, hub, pass } = start()
  const waiting = poll('a', 5)
  answer(subscribe, { top: 5, recovered: true })
  pass(50_000)
  hub.checkPositions(40_000, () => 1000)
  answer({ op: 'position' }, { top: 6 })
  answer(subscribe, { top: 6, recovered: true, found: [publication(6)] })
  t.same(await waiting.payloads(), [6])
})

t.test('a poll whose cursor is ahead of the worker waits for later publications', async t => {
  const { poll, answer, publish, calls } = start()
  poll('a', 5)
  answer(subscribe, { top: 5, recovered: true })
  const ahead = poll('a', 7)
  publish('a', 6, 7)
  answer({ op: 'history', filter: { sinceOffset: 7 } }, { top: 7 })
  await turn()
  t.equal(ahead.answer, null)
  publish('a', 8)
  t.same(await ahead.payloads(), [8])
  t.same(calls, [])
})

t.test('a poll of several channels misses no publication while another channel is read', async t => {
  const { poll, answer, publish } = start()
  const both = poll(['a', 'c'], StartOffset.NOW)
  answer({ ...subscribe, channel: 'a' }, { top: 5 })
  answer({ ...subscribe, channel: 'c' }, { top: 5 })
  const slow = poll(['b', 'a'], 5)
  publish('a', 6)
  await turn()
  t.same(await both.payloads(), [6])
  t.equal(slow.answer, null)
  publish('a', 7)
  answer({ ...subscribe, channel: 'b' }, { top: 5 })
  t.same(await slow.payloads(), [6, 7])
})

t.test('polls return 503 while the broker is unreachable, and the next poll retries', async t => {
  const { poll, answer, hub } = start()
  const polls = [poll('a', 5), poll(['a', 'b'], StartOffset.NOW)]
  answer({ ...subscribe, channel: 'a' }, { error: errors.internal })
  for (const poll of polls) t.match(await poll.answered(), { status: 503, body: { error: { code: 100 } } })
  answer({ ...subscribe, channel: 'b' }, { top: 1 })
  const next = poll('a', 5)
  answer({ ...subscribe, wants: { first: true } }, { top: 6 })
  answer({ op: 'history' }, { error: errors.internal })
  t.match(await next.answered(), { status: 503 })
  t.equal(hub.channels.get('a')?.count, 1)
})

t.test('polls aborted at any time leave no subscriptions behind', async t => {
  const { poll, answer, publish, hub, pass, unsubscribed } = start()
  const opening = poll(['a', 'b', 'c'], 5)
  opening.leave()
  answer({ ...subscribe, channel: 'a' }, { top: 6 })
  answer({ ...subscribe, channel: 'b' }, { top: 5, recovered: true })
  const reading = poll(['a', 'b'], 5)
  reading.leave()
  answer({ op: 'history' }, { top: 6, found: [publication(6)] })
  const waiting = poll(['a', 'b'], StartOffset.NOW)
  const gap = poll('b', 5)
  publish('a', 7)
  waiting.leave()
  publish('b', 8)
  gap.leave()
  answer({ ...subscribe, channel: 'c' }, { error: errors.internal })
  await turn()
  pass(4000)
  await until(() => !hub.channels.has('a'))
  t.same([...hub.channels.keys()], ['b'], 'one channel is still being subscribed')
  answer({ ...subscribe, channel: 'b' }, { top: 8 })
  t.same([...hub.channels.keys()], [])
  t.same(unsubscribed, ['b', 'a', 'b'])
  t.equal(waiting.answer ?? reading.answer ?? opening.answer ?? gap.answer, null)
})

t.test(
  'each waiting poll counts as a client of the channel; the last one for some time afterwards',
  async t => {
    const { poll, answer, hub, publish, pass } = start()
    const count = () => hub.channels.get('a')?.count
    const waiting = [poll('a', 5), poll('a', 5), poll('a', 5)]
    answer(subscribe, { top: 5, recovered: true })
    t.equal(count(), 3)
    waiting[0].leave()
    t.equal(count(), 2)
    publish('a', 6)
    t.equal(hub.delivered, 2)
    await waiting[2].payloads()
    t.equal(count(), 1)
    const back = poll('a', 6)
    t.equal(count(), 1)
    pass(4000)
    await turn()
    t.equal(count(), 1, 'polled again in time')
    back.leave()
    pass(4000)
    await until(() => !count())
  },
)

t.test('a publication for a thousand polls is encoded once, in a shared response', async t => {
  const rig = start()
  const waiting = Array.from({ length: 1000 }, () => rig.poll('a', 5))
  rig.answer(subscribe, { top: 5, recovered: true })
  rig.publish('a', 6)
  const answers = await Promise.all(waiting.map(poll => poll.answered()))
  t.equal(new Set(answers.map(({ bytes }) => bytes)).size, 1)
  t.equal(rig.encoded, 1)
})

t.test('publications that arrive between responses reach the remaining polls', async t => {
  const { poll, answer, publish } = start()
  const waiting = Array.from({ length: 300 }, () => poll('a', 5))
  answer(subscribe, { top: 5, recovered: true })
  publish('a', 6)
  await new Promise(setImmediate)
  publish('a', 7)
  const answers = await Promise.all(waiting.map(poll => poll.payloads()))
  t.equal(answers.filter(({ length }) => length === 1).length, 128)
  for (const numbers of answers) t.same(numbers, [6, 7].slice(0, numbers.length))
})

t.test('publications no longer in the buffer are read from history', async t => {
  const { poll, answer, publish, calls } = start()
  const waiting = Array.from({ length: 129 }, () => poll('a', 5))
  answer(subscribe, { top: 5, recovered: true })
  publish('a', 6)
  await new Promise(setImmediate)
  for (let offset = 7; offset < 400; offset++) publish('a', offset)
  await until(() => calls.length > 0)
  answer({ op: 'history', filter: { sinceOffset: 5 } }, { top: 399, found: publications(6, 15) })
  t.same(await waiting[128].payloads(), [6, 7, 8, 9, 10, 11, 12, 13, 14, 15])
})

t.test('a channel gets a new feed when its history is enabled', async t => {
  const { poll, answer, hub, pass } = start()
  const without = poll('a', StartOffset.NOW, { historyOn: false })
  answer({ ...subscribe, wants: { position: false } })
  const withHistory = poll('a', StartOffset.NOW)
  answer({ ...subscribe, wants: { position: true } }, { top: 5 })
  hub.publication('a', publication(6))
  t.match((await without.answered()).body.publications, [{ data: 6, offset: 6 }])
  t.same(await withHistory.payloads(), [6])
  const unlike = (await without.answered()).body.cursor
  t.not((await withHistory.answered()).body.cursor, unlike)
  pass(4000)
  await until(() => hub.channels.size === 0)
})

t.test('on shutdown, all polls are answered, and new polls do not wait', async t => {
  const { poll, answer, polls } = start()
  const waiting = [poll('a', 5), poll('a', 5)]
  answer(subscribe, { top: 5, recovered: true })
  const opening = poll('b', 5)
  for (const poll of polls.close()) polls.release(poll)
  for (const poll of waiting) t.same(await poll.payloads(), [])
  answer({ ...subscribe, channel: 'b' }, { top: 5, recovered: true })
  t.same(await opening.payloads(), [])
  t.same(await poll('a', 5).payloads(), [])
})

t.test('without history, a whole batch is one response', async t => {
  const { hub, poll, answer, publish } = start()
  const batch = { namespace: '', maxSize: 300, maxDelay: LONG, maxBytes: 500_000, latest: false, tag: '' }
  hub.batches.use({ batches: true, resolve: () => ({ batch }) })
  const waiting = poll('a', 0, { historyOn: false })
  answer(subscribe)
  publish('a', ...Array.from({ length: 300 }, () => 0))
  t.equal((await waiting.payloads()).length, 300)
})
