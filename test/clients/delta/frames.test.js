// Deltas of the client protocol, in raw frames.

import t from 'tap'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { DeltaReader } from './reader.js'

const open = {
  allow_subscribe_for_client: true,
  allow_subscribe_for_anonymous: true,
  allowed_delta_types: ['fossil'],
}
const kept = { history_size: 10, history_ttl: '60s', force_recovery: true }

const config = {
  client: { allow_anonymous_connect_without_token: true },
  uni_websocket: { enabled: true },
  channel: {
    without_namespace: { ...open, ...kept, delta_publish: true, allow_tags_filter: true },
    namespaces: [
      { name: 'flagged', ...open, ...kept },
      { name: 'refused', ...open, ...kept, delta_publish: true, allowed_delta_types: [] },
      { name: 'passing', ...open, delta_publish: true },
      { name: 'loose', ...open, ...kept, force_recovery: false, delta_publish: true },
      { name: 'cache', ...open, ...kept, force_recovery_mode: 'cache', delta_publish: true },
      {
        name: 'chat',
        ...open,
        ...kept,
        delta_publish: true,
        allow_publish_for_subscriber: true,
        allow_publish_for_anonymous: true,
        allow_history_for_subscriber: true,
        allow_history_for_anonymous: true,
      },
      { name: 'bytes', ...open, ...kept, delta_publish: true, publication_data_format: 'binary' },
    ],
  },
}

const FILL = 'what stays the same from one publication to the next, '.repeat(4)
/** A payload that makes a short delta against another one. */
const payload = n => ({ fill: FILL, n })
const text = n => JSON.stringify(payload(n))

for (const driver of drivers) {
  t.test(driver, async t => {
    const gateway = await startGateway(t, { ...config, workers: 1, http_server: { driver } })
    let last = 0
    /** A channel of its own for each test. */
    const name = (namespace = '') => `${namespace && `${namespace}:`}${++last}`

    const publish = async (channel, n, rest = {}) => {
      const { result, error } = await gateway.api('publish', { channel, data: payload(n), ...rest })
      if (error) throw new Error(`${channel}: ${error.message}`)
      return result
    }

    /** A client that subscribes with delta, and reads what comes. */
    const subscribed = async (t, channel, request = {}) => {
      const client = await RawClient.connected(gateway.ws)
      t.teardown(() => client.close())
      const reader = new DeltaReader()
      const reply = (await client.subscribe(channel, { delta: 'fossil', ...request })).subscribe
      const recovered = reply?.publications?.map(publication => reader.read(publication))
      return {
        client,
        reply,
        recovered,
        /** @returns {Promise<any>} the next publication as it came */
        raw: async () => (await client.push('pub')).pub,
        /** @returns {Promise<string>} the next one's payload */
        next: async () => reader.read((await client.push('pub')).pub),
        kinds: () => reader.taken(),
      }
    }

    t.test('asked for and allowed: delta is true; else it is absent and data comes as it is', async t => {
      for (const [channel, request, granted] of /** @type {any[][]} */ ([
        [name(), {}, true],
        [name('passing'), {}, true],
        [name(), { delta: '' }, undefined],
        [name(), { delta: undefined }, undefined],
        [name('refused'), {}, undefined],
      ])) {
        const { reply, raw } = await subscribed(t, channel, request)
        t.equal(reply.delta, granted, channel)
        await publish(channel, 1)
        const { data, delta } = await raw()
        t.strictSame(data, granted ? text(1) : payload(1), channel)
        t.equal(delta, undefined)
      }
    })

    t.test('another type of delta closes with 3501', async t => {
      const { client } = await subscribed(t, name())
      client.send({ id: 9, subscribe: { channel: name(), delta: 'other' } })
      t.equal((await client.closed).code, 3501)
    })

    t.test('the first one is full, those behind it are deltas, and all are strings', async t => {
      const channel = name()
      const subscriber = await subscribed(t, channel)
      for (let n = 1; n <= 5; n++) {
        await publish(channel, n)
        t.equal(await subscriber.next(), text(n))
      }
      t.strictSame(subscriber.kinds(), ['full', 'delta', 'delta', 'delta', 'delta'])
      await publish(channel, 6)
      const { data, offset, delta } = await subscriber.raw()
      t.match(data, /^3g\n3c@0,4:\d*6\}|^\w+\n.*;$/s, 'fossil text')
      t.ok(data.length < text(6).length / 4, `${data.length} bytes`)
      t.strictSame([offset, delta], [6, true])
    })

    t.test('no epoch and no version: others are told them', async t => {
      const channel = name()
      const subscriber = await subscribed(t, channel)
      const other = await subscribed(t, channel, { delta: undefined })
      await publish(channel, 1, { version: 7, tags: { a: 'b' } })
      t.strictSame(await subscriber.raw(), {
        data: text(1),
        offset: 1,
        tags: { a: 'b' },
      })
      t.match(await other.raw(), { data: payload(1), offset: 1, version: 7, epoch: /^\w{8}$/ })
      await publish(channel, 2, { version: 8 })
      const delta = await subscriber.raw()
      t.match(delta, { delta: true, offset: 2 })
      t.equal(delta.version, undefined)
    })

    t.test('who comes later gets a full payload first; the others go on with deltas', async t => {
      const channel = name()
      const first = await subscribed(t, channel)
      await publish(channel, 1)
      const second = await subscribed(t, channel)
      const plain = await subscribed(t, channel, { delta: undefined })
      await publish(channel, 2)
      const third = await subscribed(t, channel)
      await publish(channel, 3)
      await publish(channel, 4)
      for (const [subscriber, from, kinds] of /** @type {any[][]} */ ([
        [first, 1, ['full', 'delta', 'delta', 'delta']],
        [second, 2, ['full', 'delta', 'delta']],
        [third, 3, ['full', 'delta']],
      ])) {
        for (let n = from; n <= 4; n++) t.equal(await subscriber.next(), text(n))
        t.strictSame(subscriber.kinds(), kinds)
      }
      for (const n of [2, 3, 4]) t.strictSame((await plain.raw()).data, payload(n))
    })

    t.test('not shorter than the payload: full', async t => {
      const channel = name()
      const subscriber = await subscribed(t, channel)
      for (const data of [[1], [2], 'x'.repeat(500), 'y'.repeat(500), null, 'a', true]) {
        await gateway.api('publish', { channel, data })
        t.equal(await subscriber.next(), JSON.stringify(data))
      }
      t.strictSame([...new Set(subscriber.kinds())], ['full'])
    })

    t.test('published without the flag: full, and the base of the next one', async t => {
      const channel = name('flagged')
      const subscriber = await subscribed(t, channel)
      const flags = [false, true, false, false, true, true]
      for (const [n, delta] of flags.entries()) {
        await publish(channel, n, { delta })
        t.equal(await subscriber.next(), text(n))
      }
      t.strictSame(subscriber.kinds(), ['full', 'delta', 'full', 'full', 'delta', 'delta'])
    })

    t.test('what clients publish is sent as deltas where delta_publish is on', async t => {
      const channel = name('chat')
      const subscriber = await subscribed(t, channel)
      for (const n of [1, 2, 3]) {
        await subscriber.client.call('publish', { channel, data: payload(n) })
        t.equal(await subscriber.next(), text(n))
      }
      t.strictSame(subscriber.kinds(), ['full', 'delta', 'delta'])
    })

    t.test('a channel without history: full strings', async t => {
      const channel = name('passing')
      const subscriber = await subscribed(t, channel)
      for (const n of [1, 2, 3]) {
        await publish(channel, n)
        t.equal(await subscriber.next(), text(n))
      }
      t.strictSame(subscriber.kinds(), ['full', 'full', 'full'])
    })

    t.test('recovered: the first one full, then deltas, then live deltas at once', async t => {
      const channel = name()
      for (const n of [1, 2, 3]) await publish(channel, n)
      const { epoch } = await publish(channel, 4)
      const subscriber = await subscribed(t, channel, { recover: true, offset: 1, epoch })
      t.match(subscriber.reply, { recovered: true, delta: true, offset: 1 })
      t.strictSame(subscriber.recovered, [text(2), text(3), text(4)])
      t.strictSame(subscriber.kinds(), ['full', 'delta', 'delta'])
      await publish(channel, 5)
      t.equal(await subscriber.next(), text(5))
      t.strictSame(subscriber.kinds(), ['delta'])
    })

    t.test('recovered while others follow: all get the same deltas', async t => {
      const channel = name()
      const other = await subscribed(t, channel)
      const { epoch } = await publish(channel, 1)
      await publish(channel, 2)
      t.strictSame([await other.next(), await other.next()], [text(1), text(2)])
      const subscriber = await subscribed(t, channel, { recover: true, offset: 1, epoch })
      t.strictSame(subscriber.recovered, [text(2)])
      await publish(channel, 3)
      t.strictSame([await other.next(), await subscriber.next()], [text(3), text(3)])
      t.strictSame(
        [other.kinds(), subscriber.kinds()],
        [
          ['full', 'delta', 'delta'],
          ['full', 'delta'],
        ],
      )
    })

    t.test('recovered without flags, and mixed: all as deltas', async t => {
      const channel = name('flagged')
      const flags = [true, true, false, true, true]
      let epoch = ''
      for (const [n, delta] of flags.entries()) ({ epoch } = await publish(channel, n, { delta }))
      const subscriber = await subscribed(t, channel, { recover: true, offset: 0, epoch })
      t.strictSame(
        subscriber.recovered,
        flags.map((_, n) => text(n)),
      )
      t.strictSame(subscriber.kinds(), ['full', 'delta', 'delta', 'delta', 'delta'])
    })

    t.test('recovery that failed: the first live one is full', async t => {
      const channel = name()
      await publish(channel, 1)
      const subscriber = await subscribed(t, channel, { recover: true, offset: 1, epoch: 'XXXXXXXX' })
      t.match(subscriber.reply, { delta: true, recovered: undefined, was_recovering: true })
      for (const n of [2, 3]) {
        await publish(channel, n)
        t.equal(await subscriber.next(), text(n))
      }
      t.strictSame(subscriber.kinds(), ['full', 'delta'])
    })

    t.test('recovered nothing (a position without a base): the first live one is full', async t => {
      const channel = name()
      const other = await subscribed(t, channel)
      const { epoch } = await publish(channel, 1)
      await other.next()
      const subscriber = await subscribed(t, channel, { recover: true, offset: 1, epoch })
      t.match(subscriber.reply, { recovered: true, publications: undefined })
      for (const n of [2, 3]) {
        await publish(channel, n)
        t.strictSame([await subscriber.next(), await other.next()], [text(n), text(n)])
      }
      t.strictSame(subscriber.kinds(), ['full', 'delta'])
      t.strictSame(other.kinds(), ['full', 'delta', 'delta'], 'the others never notice')
    })

    t.test('cache recovery: the newest one in full, then deltas', async t => {
      const channel = name('cache')
      for (const n of [1, 2, 3]) await publish(channel, n)
      const subscriber = await subscribed(t, channel, { recover: true })
      t.strictSame(subscriber.recovered, [text(3)])
      await publish(channel, 4)
      t.equal(await subscriber.next(), text(4))
      t.strictSame(subscriber.kinds(), ['full', 'delta'])
    })

    t.test('letters of several bytes are never cut in two', async t => {
      const channel = name()
      const subscriber = await subscribed(t, channel)
      const long = 'Ein längerer Text, in dem sich nur ein Buchstabe ändert: '.repeat(5)
      for (const letter of ['é', 'è', 'я', '敏', '斏', '😀', '😁', '\ud83d', '\u2028', '\u0000', '"', '\\']) {
        const data = { long, letter, again: long }
        await gateway.api('publish', { channel, data })
        t.equal(JSON.parse(await subscriber.next()).letter, letter)
      }
      t.strictSame(subscriber.kinds().slice(1), Array(11).fill('delta'))
    })

    t.test('after one that is not in history: full', async t => {
      const channel = name()
      const subscriber = await subscribed(t, channel)
      for (const [n, skip_history] of [false, false, true, false, false, true, true, false].entries()) {
        await publish(channel, n, { skip_history })
        t.equal(await subscriber.next(), text(n))
      }
      t.strictSame(subscriber.kinds(), ['full', 'delta', 'full', 'full', 'delta', 'full', 'full', 'full'])
    })

    t.test('recovered over one that is not in history, while the others have it as their base', async t => {
      const channel = name()
      const other = await subscribed(t, channel)
      await publish(channel, 1)
      const { epoch } = await publish(channel, 2)
      await publish(channel, 0, { skip_history: true })
      const subscriber = await subscribed(t, channel, { recover: true, offset: 1, epoch })
      t.strictSame(subscriber.recovered, [text(2)])
      for (const n of [3, 4]) await publish(channel, n)
      for (const n of [1, 2, 0, 3, 4]) t.equal(await other.next(), text(n))
      for (const n of [3, 4]) t.equal(await subscriber.next(), text(n))
      t.strictSame(other.kinds(), ['full', 'delta', 'full', 'full', 'delta'])
    })

    t.test('with a filter there is no delta, and the filter works', async t => {
      const channel = name()
      const subscriber = await subscribed(t, channel, { tf: { key: 'k', cmp: 'eq', val: 'yes' } })
      t.equal(subscriber.reply.delta, undefined)
      for (const [n, k] of ['yes', 'no', 'yes', 'no', 'no', 'yes'].entries())
        await publish(channel, n, { tags: { k } })
      for (const n of [0, 2, 5]) t.strictSame((await subscriber.raw()).data, payload(n))
    })

    t.test('without positions: full payloads', async t => {
      const channel = name('loose')
      const subscriber = await subscribed(t, channel)
      t.strictSame(subscriber.reply, { delta: true })
      for (const n of [1, 2]) {
        await publish(channel, n)
        t.equal(await subscriber.next(), text(n))
      }
      t.strictSame(subscriber.kinds(), ['full', 'full'])
    })

    t.test('history is never told in deltas', async t => {
      const channel = name('chat')
      const { client, next } = await subscribed(t, channel)
      for (const n of [1, 2]) {
        await publish(channel, n)
        await next()
      }
      const { history } = await client.call('history', { channel, limit: 10 })
      t.strictSame(history.publications, [
        { data: payload(1), offset: 1 },
        { data: payload(2), offset: 2 },
      ])
      const { result } = await gateway.api('history', { channel, limit: 10 })
      t.strictSame(
        result.publications.map(({ data }) => data),
        [payload(1), payload(2)],
      )
    })

    t.test('unsubscribed and subscribed again: full first', async t => {
      const channel = name()
      const other = await subscribed(t, channel)
      const subscriber = await subscribed(t, channel)
      for (const n of [1, 2]) {
        await publish(channel, n)
        t.strictSame([await other.next(), await subscriber.next()], [text(n), text(n)])
      }
      await subscriber.client.call('unsubscribe', { channel })
      await publish(channel, 3)
      await subscriber.client.subscribe(channel, { delta: 'fossil' })
      for (const n of [4, 5]) {
        await publish(channel, n)
        t.equal(await subscriber.next(), text(n))
      }
      t.strictSame(subscriber.kinds(), ['full', 'delta', 'full', 'delta'])
      for (const n of [3, 4, 5]) t.equal(await other.next(), text(n))
    })

    t.test('what is not JSON ends those who can read nothing else', async t => {
      const channel = name('bytes')
      const fresh = await subscribed(t, channel)
      const follows = await subscribed(t, channel)
      await publish(channel, 1)
      await follows.next()
      const later = await subscribed(t, channel)
      await gateway.api('publish', { channel, b64data: Buffer.from('no json').toString('base64') })
      for (const { client } of [fresh, follows, later]) t.equal((await client.closed).code, 3506)
      const again = await subscribed(t, channel)
      await publish(channel, 2)
      t.equal(await again.next(), text(2))
    })

    t.test('server-side subscriptions that the client wishes for at connect', async t => {
      const channel = name()
      const { epoch } = await publish(channel, 1)
      await publish(channel, 2)
      await publish(channel, 3)
      const other = name('passing')
      const client = await RawClient.connected(gateway.ws, {
        subs: {
          [channel]: { recover: true, offset: 1, epoch, delta: 'fossil' },
          [other]: { delta: 'fossil' },
          [name('refused')]: { delta: 'fossil' },
        },
      })
      t.teardown(() => client.close())
      t.strictSame(
        Object.values(client.connect.subs).map(({ delta }) => delta),
        [true, true, undefined],
      )
      const reader = new DeltaReader()
      const { publications } = client.connect.subs[channel]
      t.strictSame(
        publications.map(publication => reader.read(publication)),
        [text(2), text(3)],
      )
      for (const n of [4, 5]) {
        await publish(channel, n)
        t.equal(reader.read((await client.push('pub')).pub), text(n))
      }
      t.strictSame(reader.taken(), ['full', 'delta', 'delta', 'delta'])
      const wrong = await RawClient.open(gateway.ws)
      wrong.send({ id: 1, connect: { subs: { [channel]: { delta: 'other' } } } })
      t.equal((await wrong.closed).code, 3501)
    })

    t.test('a subscription that the server API takes over goes on as it was negotiated', async t => {
      const channel = name()
      const subscriber = await subscribed(t, channel)
      const { epoch } = await publish(channel, 1)
      await publish(channel, 2)
      t.strictSame([await subscriber.next(), await subscriber.next()], [text(1), text(2)])
      const { client } = subscriber.client.connect
      await gateway.api('subscribe', { user: '', client, channel, recover_since: { offset: 1, epoch } })
      t.equal((await subscriber.client.push('subscribe')).subscribe.delta, undefined)
      t.equal(await subscriber.next(), text(2), 'recovered')
      for (const n of [3, 4]) {
        await publish(channel, n)
        t.equal(await subscriber.next(), text(n))
      }
      t.strictSame(subscriber.kinds(), ['full', 'delta', 'full', 'delta', 'delta'])
    })

    t.test('a new subscription that the server API makes is plain', async t => {
      const channel = name()
      const { client } = await subscribed(t, name())
      await gateway.api('subscribe', { user: '', client: client.connect.client, channel })
      await client.push('subscribe')
      await publish(channel, 1)
      t.strictSame((await client.push('pub')).pub.data, payload(1))
    })

    t.test('clients that only listen get no deltas', async t => {
      const channel = name()
      const client = await RawClient.open(gateway.ws.replace('/websocket', '/uni_websocket'))
      t.teardown(() => client.close())
      client.send({ subs: { [channel]: { delta: 'fossil' } } })
      t.equal((await client.next(({ connect }) => connect)).connect.subs[channel].delta, undefined)
      await publish(channel, 1)
      t.strictSame((await client.next(({ pub }) => pub)).pub.data, payload(1))
    })
  })
}
