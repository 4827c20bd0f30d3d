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
const deltas = { ...open, ...kept, delta_publish: true }
const chat = {
  allow_publish_for_subscriber: true,
  allow_publish_for_anonymous: true,
  allow_history_for_subscriber: true,
  allow_history_for_anonymous: true,
}

const config = {
  client: { allow_anonymous_connect_without_token: true },
  uni_websocket: { enabled: true },
  channel: {
    without_namespace: { ...deltas, allow_tags_filter: true },
    namespaces: [
      { name: 'flagged', ...open, ...kept },
      { name: 'refused', ...deltas, allowed_delta_types: [] },
      { name: 'passing', ...open, delta_publish: true },
      { name: 'latest', ...open, keep_latest_publication: true },
      { name: 'both', ...deltas, force_recovery: false, allow_recovery: true, keep_latest_publication: true },
      { name: 'loose', ...deltas, force_recovery: false },
      { name: 'cache', ...deltas, force_recovery_mode: 'cache' },
      { name: 'chat', ...deltas, ...chat },
      { name: 'bytes', ...deltas, publication_data_format: 'binary' },
    ],
  },
}

const FILL = 'what stays the same from one publication to the next, '.repeat(4)
/** A payload with a short delta from another one. */
const payload = n => ({ fill: FILL, n })
const text = n => JSON.stringify(payload(n))

for (const driver of drivers) {
  t.test(driver, async t => {
    const gateway = await startGateway(t, { ...config, workers: 1, http_server: { driver } })
    let last = 0
    /** A new channel for each test. */
    const name = (namespace = '') => `${namespace && `${namespace}:`}${++last}`

    const publish = async (channel, n, rest = {}) => {
      const { result, error } = await gateway.api('publish', { channel, data: payload(n), ...rest })
      if (error) throw new Error(`${channel}: ${error.message}`)
      return result
    }

    /** Publishes numbers, each of which the subscribers read. @returns {Promise<string>} epoch */
    const deliver = async (t, channel, numbers, ...subscribers) => {
      let epoch = ''
      for (const n of numbers) {
        ;({ epoch } = await publish(channel, n))
        for (const subscriber of subscribers) t.equal(await subscriber.next(), text(n))
      }
      return epoch
    }

    /** A client that subscribes with delta. */
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
        /** @returns {Promise<any>} the next publication as received */
        raw: async () => (await client.push('pub')).pub,
        /** @returns {Promise<string>} its payload */
        next: async () => reader.read((await client.push('pub')).pub),
        kinds: () => reader.taken().join(' '),
      }
    }

    t.test('deltas are used only if requested and allowed; else the data is unchanged', async t => {
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

    t.test('an unknown delta type closes with 3501', async t => {
      const { client } = await subscribed(t, name())
      client.send({ id: 9, subscribe: { channel: name(), delta: 'other' } })
      t.equal((await client.closed).code, 3501)
    })

    // Options of each publication, and the kinds that a subscriber receives.
    for (const [
      title,
      namespace,
      publications,
      kinds,
    ] of /** @type {[string, string, object[], string][]} */ ([
      ['the first one is full, the next are deltas', '', [{}, {}, {}, {}], 'full delta delta delta'],
      [
        'without the delta flag, a publication is full, and the base of the next',
        'flagged',
        [false, true, false, false, true, true].map(delta => ({ delta })),
        'full delta full full delta delta',
      ],
      ['without history all are full', 'passing', [{}, {}, {}], 'full full full'],
      [
        'with keep_latest_publication, channels without history have deltas',
        'latest',
        [true, true, false, true, true].map(delta => ({ delta })),
        'full delta full delta delta',
      ],
      [
        'with keep_latest_publication, a publication may refer to one that is not in history',
        'both',
        [false, true, true, false].map(skip_history => ({ skip_history })),
        'full delta delta delta',
      ],
      ['without positions all are full', 'loose', [{}, {}], 'full full'],
      [
        'a publication that is not in history is full, as is the next one',
        '',
        [false, false, true, false, false, true, true, false].map(skip_history => ({ skip_history })),
        'full delta full full delta full full full',
      ],
    ]))
      t.test(title, async t => {
        const channel = name(namespace)
        const subscriber = await subscribed(t, channel)
        t.equal(subscriber.reply.delta, true)
        for (const [n, options] of publications.entries()) {
          await publish(channel, n, options)
          t.equal(await subscriber.next(), text(n))
        }
        t.equal(subscriber.kinds(), kinds)
      })

    t.test('publications of a delta subscription have no epoch and no version', async t => {
      const channel = name()
      const subscriber = await subscribed(t, channel)
      const other = await subscribed(t, channel, { delta: undefined })
      await publish(channel, 1, { version: 7, tags: { a: 'b' } })
      t.strictSame(await subscriber.raw(), { data: text(1), offset: 1, tags: { a: 'b' } })
      t.match(await other.raw(), { data: payload(1), offset: 1, version: 7, epoch: /^\w{8}$/ })
      await publish(channel, 2, { version: 8 })
      const delta = await subscriber.raw()
      t.match(delta, { delta: true, offset: 2 })
      t.equal(delta.version, undefined)
    })

    t.test('a new subscriber gets a full payload first, the others get deltas', async t => {
      const channel = name()
      const first = await subscribed(t, channel)
      await deliver(t, channel, [1], first)
      const second = await subscribed(t, channel)
      const plain = await subscribed(t, channel, { delta: undefined })
      await deliver(t, channel, [2], first, second)
      const third = await subscribed(t, channel)
      await deliver(t, channel, [3, 4], first, second, third)
      const kinds = [first, second, third].map(subscriber => subscriber.kinds())
      t.same(kinds, ['full delta delta delta', 'full delta delta', 'full delta'])
      for (const n of [2, 3, 4]) t.strictSame((await plain.raw()).data, payload(n))
    })

    t.test('with keep_latest_publication, a new subscriber gets a full payload first', async t => {
      const channel = name('latest')
      const flag = { delta: true }
      const first = await subscribed(t, channel)
      await publish(channel, 1, flag)
      const second = await subscribed(t, channel)
      for (const n of [2, 3]) await publish(channel, n, flag)
      for (const n of [1, 2, 3]) t.equal(await first.next(), text(n))
      for (const n of [2, 3]) t.equal(await second.next(), text(n))
      t.same([first.kinds(), second.kinds()], ['full delta delta', 'full delta'])
      for (const { client } of [first, second]) await client.call('unsubscribe', { channel })
      const third = await subscribed(t, channel)
      await publish(channel, 4, flag)
      t.equal(await third.next(), text(4))
      t.equal(third.kinds(), 'full')
    })

    t.test('with keep_latest_publication, subscribers with and without positions get one delta', async t => {
      const channel = name('both')
      const [loose, positioned] = [
        await subscribed(t, channel),
        await subscribed(t, channel, { recoverable: true }),
      ]
      t.strictSame([loose.reply.positioned, positioned.reply.positioned], [undefined, true])
      let epoch = await deliver(t, channel, [1, 2], loose, positioned)
      const recovered = await subscribed(t, channel, { recoverable: true, recover: true, offset: 0, epoch })
      t.strictSame(recovered.recovered, [text(1), text(2)])
      epoch = await deliver(t, channel, [3], loose, positioned, recovered)
      await publish(channel, 0, { skip_history: true })
      for (const { next } of [loose, positioned, recovered]) t.equal(await next(), text(0))
      const late = await subscribed(t, channel, { recoverable: true, recover: true, offset: 2, epoch })
      t.strictSame(late.recovered, [text(3)])
      await deliver(t, channel, [4, 5], loose, positioned, recovered, late)
      for (const { kinds } of [loose, positioned]) t.equal(kinds(), 'full delta delta delta delta delta')
      t.equal(recovered.kinds(), 'full delta delta delta delta delta')
      t.equal(late.kinds(), 'full full delta', 'it has not received the publication that is not in history')
    })

    t.test('the full payload is sent where a delta is not shorter', async t => {
      const channel = name()
      const subscriber = await subscribed(t, channel)
      for (const data of [[1], [2], 'x'.repeat(500), 'y'.repeat(500), null, 'a', true]) {
        await gateway.api('publish', { channel, data })
        t.equal(await subscriber.next(), JSON.stringify(data))
      }
      t.notMatch(subscriber.kinds(), 'delta')
    })

    t.test('with delta_publish, publications of clients are sent as deltas', async t => {
      const channel = name('chat')
      const subscriber = await subscribed(t, channel)
      for (const n of [1, 2, 3]) {
        await subscriber.client.call('publish', { channel, data: payload(n) })
        t.equal(await subscriber.next(), text(n))
      }
      t.equal(subscriber.kinds(), 'full delta delta')
    })

    // Flags of earlier publications, the recovery, recovered numbers, and kinds including two live ones.
    for (const [title, namespace, flags, request, recovered, kinds] of /** @type {any[][]} */ ([
      [
        'recovered: the first is full, the next and live ones are deltas',
        ...['', [true, true, true, true], { offset: 1 }, [1, 2, 3], 'full delta delta delta delta'],
      ],
      [
        'recovered: publications without the delta flag are deltas, too',
        ...['flagged', [true, true, false, true, true], { offset: 0 }, [0, 1, 2, 3, 4]],
        'full delta delta delta delta delta delta',
      ],
      [
        'after a failed recovery the first live one is full',
        ...['', [true], { offset: 1, epoch: 'XXXXXXXX' }, undefined, 'full delta'],
      ],
      [
        'after a recovery without publications the first live one is full',
        ...['', [true], { offset: 1 }, undefined, 'full delta'],
      ],
      [
        'cache recovery: the newest one is full, the next are deltas',
        ...['cache', [true, true, true], {}, [2], 'full delta delta'],
      ],
    ]))
      for (const others of [0, 1])
        t.test(`${title}, with ${others} other subscribers`, async t => {
          const channel = name(namespace)
          const other = others ? [await subscribed(t, channel)] : []
          let epoch = ''
          for (const [n, delta] of flags.entries()) {
            ;({ epoch } = await publish(channel, n, { delta }))
            for (const { next } of other) t.equal(await next(), text(n))
          }
          const subscriber = await subscribed(t, channel, { recover: true, epoch, ...request })
          t.match(subscriber.reply, { delta: true, was_recovering: true })
          t.equal(subscriber.reply.recovered, 'epoch' in request ? undefined : true)
          t.strictSame(subscriber.recovered, recovered?.map(text))
          for (const n of [7, 8]) {
            await publish(channel, n, { delta: true })
            for (const { next } of [subscriber, ...other]) t.equal(await next(), text(n))
          }
          t.equal(subscriber.kinds(), kinds)
          const live = flags.map((delta, n) => (n > 0 && delta ? 'delta' : 'full')).join(' ')
          for (const { kinds } of other) t.equal(kinds(), `${live} delta delta`)
        })

    t.test('after recovery beyond an unrecorded publication, the next payload is full for all', async t => {
      const channel = name()
      const other = await subscribed(t, channel)
      const epoch = await deliver(t, channel, [1, 2], other)
      await publish(channel, 0, { skip_history: true })
      t.equal(await other.next(), text(0))
      const subscriber = await subscribed(t, channel, { recover: true, offset: 1, epoch })
      t.strictSame(subscriber.recovered, [text(2)])
      await deliver(t, channel, [3, 4], other, subscriber)
      t.equal(other.kinds(), 'full delta full full delta')
    })

    t.test('a subscription with a filter gets no deltas', async t => {
      const channel = name()
      const subscriber = await subscribed(t, channel, { tf: { key: 'k', cmp: 'eq', val: 'yes' } })
      t.equal(subscriber.reply.delta, undefined)
      for (const [n, k] of ['yes', 'no', 'yes', 'no', 'no', 'yes'].entries())
        await publish(channel, n, { tags: { k } })
      for (const n of [0, 2, 5]) t.strictSame((await subscriber.raw()).data, payload(n))
    })

    t.test('the history reply has no deltas', async t => {
      const channel = name('chat')
      const subscriber = await subscribed(t, channel)
      await deliver(t, channel, [1, 2], subscriber)
      const { history } = await subscriber.client.call('history', { channel, limit: 10 })
      const expected = [1, 2].map(n => ({ data: payload(n), offset: n }))
      t.strictSame(history.publications, expected)
      t.match((await gateway.api('history', { channel, limit: 10 })).result.publications, expected)
    })

    t.test('after a resubscribe, the first payload is full', async t => {
      const channel = name()
      const other = await subscribed(t, channel)
      const subscriber = await subscribed(t, channel)
      await deliver(t, channel, [1, 2], other, subscriber)
      await subscriber.client.call('unsubscribe', { channel })
      await deliver(t, channel, [3], other)
      await subscriber.client.subscribe(channel, { delta: 'fossil' })
      await deliver(t, channel, [4, 5], other, subscriber)
      t.equal(subscriber.kinds(), 'full delta full delta')
    })

    t.test('data that is not JSON disconnects JSON clients', async t => {
      const channel = name('bytes')
      const fresh = await subscribed(t, channel)
      const follows = await subscribed(t, channel)
      await deliver(t, channel, [1], follows)
      const later = await subscribed(t, channel)
      await gateway.api('publish', { channel, b64data: Buffer.from('no json').toString('base64') })
      for (const { client } of [fresh, follows, later]) t.equal((await client.closed).code, 3506)
      await deliver(t, channel, [2], await subscribed(t, channel))
    })

    t.test('subscriptions of a connect request can use deltas', async t => {
      const channel = name()
      const { epoch } = await publish(channel, 1)
      await deliver(t, channel, [2, 3])
      const client = await RawClient.connected(gateway.ws, {
        subs: {
          [channel]: { recover: true, offset: 1, epoch, delta: 'fossil' },
          [name('passing')]: { delta: 'fossil' },
          [name('refused')]: { delta: 'fossil' },
        },
      })
      t.teardown(() => client.close())
      const granted = Object.values(client.connect.subs).map(({ delta }) => delta)
      t.strictSame(granted, [true, true, undefined])
      const reader = new DeltaReader()
      const recovered = client.connect.subs[channel].publications.map(publication => reader.read(publication))
      t.strictSame(recovered, [text(2), text(3)])
      await deliver(t, channel, [4, 5], { next: async () => reader.read((await client.push('pub')).pub) })
      t.strictSame(reader.taken(), ['full', 'delta', 'delta', 'delta'])
      const wrong = await RawClient.open(gateway.ws)
      wrong.send({ id: 1, connect: { subs: { [channel]: { delta: 'other' } } } })
      t.equal((await wrong.closed).code, 3501)
    })

    t.test('a delta subscription stays one when the server API takes it over', async t => {
      const channel = name()
      const subscriber = await subscribed(t, channel)
      const { epoch } = await publish(channel, 1)
      t.equal(await subscriber.next(), text(1))
      await deliver(t, channel, [2], subscriber)
      const { client } = subscriber.client.connect
      await gateway.api('subscribe', { user: '', client, channel, recover_since: { offset: 1, epoch } })
      t.equal((await subscriber.client.push('subscribe')).subscribe.delta, undefined)
      t.equal(await subscriber.next(), text(2), 'recovered')
      await deliver(t, channel, [3, 4], subscriber)
      t.equal(subscriber.kinds(), 'full delta full delta delta')
    })

    t.test('a subscription made by the server API has no deltas', async t => {
      const channel = name()
      const { client } = await subscribed(t, name())
      await gateway.api('subscribe', { user: '', client: client.connect.client, channel })
      await client.push('subscribe')
      await publish(channel, 1)
      t.strictSame((await client.push('pub')).pub.data, payload(1))
    })

    t.test('unidirectional clients get no deltas', async t => {
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
