// Recovery (client protocol), case by case.

import { Centrifuge } from 'centrifuge'
import t from 'tap'
import WebSocket from 'ws'
import { makeToken } from '../clients/auth/jwt.js'
import { drivers, onDriver } from '../kit/drivers.js'
import { startGateway } from '../kit/gateway.js'
import { RawClient } from '../kit/raw-client.js'

const SECRET = 'secret'
const open = { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true }
const kept = { history_size: 10, history_ttl: '60s' }
const LIMIT = 5
const OTHER = 'XXXXXXXX'

const config = {
  client: {
    allow_anonymous_connect_without_token: true,
    recovery_max_publication_limit: LIMIT,
    token: { hmac_secret_key: SECRET },
  },
  channel: {
    without_namespace: open,
    namespaces: [
      { name: 'stream', ...open, ...kept, force_recovery: true, allow_tags_filter: true },
      { name: 'wish', ...open, ...kept, allow_recovery: true, allow_positioning: true },
      {
        name: 'reader',
        ...open,
        ...kept,
        allow_history_for_subscriber: true,
        allow_history_for_anonymous: true,
      },
      { name: 'refused', ...open, ...kept },
      { name: 'positioned', ...open, ...kept, force_positioning: true },
      {
        name: 'cache',
        ...open,
        ...kept,
        force_recovery: true,
        force_recovery_mode: 'cache',
        allow_tags_filter: true,
      },
      {
        name: 'auto',
        ...open,
        ...kept,
        force_recovery: true,
        force_recovery_mode: 'cache',
        auto_cache_recover: true,
      },
      { name: 'binary', ...open, ...kept, force_recovery: true, publication_data_format: 'binary' },
    ],
  },
}

const numbers = (count, from = 1) => Array.from({ length: count }, (_, i) => from + i)

for (const driver of drivers) {
  t.test(driver, async t => {
    const gateway = await startGateway(t, onDriver(driver, config))
    let last = 0
    /** A new channel for each test. */
    const name = namespace => `${namespace}:${++last}`

    const publish = async (channel, rest = {}) => {
      const { result, error } = await gateway.api('publish', { channel, data: { n: 1 }, ...rest })
      if (error) throw new Error(`${channel}: ${error.message}`)
      return result
    }
    /** Publishes `{n}` for n = 1 ... count; @returns the position */
    const fill = async (channel, count) => {
      let result
      for (const n of numbers(count))
        result = await publish(channel, { data: { n }, tags: n % 2 ? { odd: 'yes' } : null })
      return result
    }
    const connected = async (t, request = {}) => {
      const client = await RawClient.connected(gateway.ws, request)
      t.teardown(() => client.close())
      return client
    }
    const subscribe = async (t, channel, request) => {
      const client = await connected(t)
      return { client, reply: await client.subscribe(channel, request) }
    }
    const ns = publications => publications?.map(({ data }) => data.n)
    const offsets = publications => publications?.map(({ offset }) => offset)

    t.test('stream: a complete gap is recovered', async t => {
      const channel = name('stream')
      const { epoch } = await fill(channel, 7)
      const { client, reply } = await subscribe(t, channel, { recover: true, offset: 5, epoch })
      t.strictSame(reply.subscribe, {
        recoverable: true,
        epoch,
        publications: [
          { data: { n: 6 }, offset: 6 },
          { data: { n: 7 }, offset: 7, tags: { odd: 'yes' } },
        ],
        recovered: true,
        offset: 5,
        positioned: true,
        was_recovering: true,
      })
      await publish(channel)
      t.equal((await client.push('pub')).pub.offset, 8, 'live publications follow')
    })

    t.test('stream: only positions within the limit and the history are recovered', async t => {
      const channel = name('stream')
      const { epoch } = await fill(channel, 14)
      const positioned = { recoverable: true, positioned: true, epoch }
      const recovered = { ...positioned, recovered: true, was_recovering: true }
      const failed = { ...positioned, was_recovering: true, offset: 14 }
      /** @type {any[][]} */
      const rows = [
        ['the top', { offset: 14, epoch }, { ...recovered, offset: 14 }, undefined],
        ['the gap is the limit', { offset: 9, epoch }, { ...recovered, offset: 9 }, numbers(5, 10)],
        ['the gap is larger than the limit', { offset: 8, epoch }, failed, undefined],
        ['trimmed', { offset: 2, epoch }, failed, undefined],
        ['beyond the top', { offset: 15, epoch }, failed, undefined],
        ['another epoch', { offset: 12, epoch: OTHER }, failed, undefined],
        ['another epoch at the top', { offset: 14, epoch: OTHER }, failed, undefined],
        ['no epoch', { offset: 12 }, { ...recovered, offset: 12 }, [13, 14]],
        ['no epoch, too far', { offset: 3 }, failed, undefined],
        ['no position at all', {}, failed, undefined],
        ['state invalidated: an epoch that cannot be', { offset: 0, epoch: '_' }, failed, undefined],
      ]
      for (const [row, position, expected, publications] of rows) {
        const { reply } = await subscribe(t, channel, { recover: true, ...position })
        const { publications: got, ...rest } = reply.subscribe
        t.strictSame(rest, expected, row)
        t.strictSame(ns(got), publications, row)
      }
      const { reply } = await subscribe(t, channel)
      t.strictSame(reply.subscribe, { ...positioned, offset: 14 }, 'no recovery requested')
    })

    t.test('stream: an empty stream is recovered without a position in the request', async t => {
      const channel = name('stream')
      const { client, reply } = await subscribe(t, channel, { recover: true })
      const { epoch, ...rest } = reply.subscribe
      t.strictSame(rest, { recoverable: true, recovered: true, positioned: true, was_recovering: true })
      t.match(epoch, /^\S+$/)
      await publish(channel)
      await publish(channel)
      const first = (await client.push('pub')).pub
      t.strictSame(first, { data: { n: 1 }, offset: 1, epoch }, 'the first one has the epoch')
      t.strictSame((await client.push('pub')).pub, { data: { n: 1 }, offset: 2 })
    })

    t.test('stream: removing history keeps the position', async t => {
      const channel = name('stream')
      const { epoch } = await fill(channel, 3)
      await gateway.api('history_remove', { channel })
      const top = await subscribe(t, channel, { recover: true, offset: 3, epoch })
      t.match(top.reply.subscribe, { recovered: true, offset: 3 })
      const below = await subscribe(t, channel, { recover: true, offset: 2, epoch })
      t.equal(below.reply.subscribe.recovered, undefined)
      t.equal(below.reply.subscribe.offset, 3)
    })

    t.test('flag 2 turns "not recovered" into error 112', async t => {
      const channel = name('stream')
      const { epoch } = await fill(channel, 14)
      const client = await connected(t)
      const ask = request => client.subscribe(channel, { recover: true, flag: 2, ...request })
      for (const position of [
        { offset: 14, epoch: OTHER },
        { offset: 8, epoch },
        { offset: 15, epoch },
      ]) {
        t.match((await ask(position)).error, { code: 112, message: 'unrecoverable position' })
      }
      t.equal((await gateway.api('channels', { pattern: channel })).result.channels[channel], undefined)
      t.match((await ask({ offset: 12, epoch, flag: 3 })).subscribe, { recovered: true, offset: 12 })
      const plain = await client.subscribe(name('stream'), { flag: 2 })
      t.match(plain.subscribe, { positioned: true }, 'even where nothing is to be recovered')
      const off = await client.subscribe(`off${++last}`, { recover: true, flag: 2 })
      t.strictSame(off.subscribe, { was_recovering: true }, 'even where the subscription cannot recover')
    })

    t.test('the reply has only the fields that the channel allows', async t => {
      /** @type {any[][]} */
      const rows = [
        ['wish', {}, []],
        ['wish', { positioned: true }, ['epoch', 'positioned']],
        ['wish', { recoverable: true }, ['epoch', 'positioned', 'recoverable']],
        [
          'wish',
          { recoverable: true, recover: true },
          ['epoch', 'positioned', 'recoverable', 'recovered', 'was_recovering'],
        ],
        ['reader', { positioned: true }, ['epoch', 'positioned']],
        ['reader', { recoverable: true }, ['epoch', 'positioned', 'recoverable']],
        ['refused', { positioned: true, recoverable: true, recover: true }, ['was_recovering']],
        ['positioned', {}, ['epoch', 'positioned']],
        ['positioned', { recover: true }, ['epoch', 'positioned', 'was_recovering']],
        ['stream', {}, ['epoch', 'positioned', 'recoverable']],
      ]
      for (const [namespace, request, keys] of rows) {
        const { reply } = await subscribe(t, name(namespace), request)
        t.strictSame(Object.keys(reply.subscribe).sort(), keys, `${namespace} ${JSON.stringify(request)}`)
      }
      const { reply } = await subscribe(t, `plain${++last}`, {
        positioned: true,
        recoverable: true,
        recover: true,
      })
      t.strictSame(reply.subscribe, { was_recovering: true }, 'a channel without history')
    })

    t.test('a filter applies to recovered and live publications', async t => {
      const channel = name('stream')
      const { epoch } = await fill(channel, 8)
      const tf = { key: 'odd', cmp: 'eq', val: 'yes' }
      const { client, reply } = await subscribe(t, channel, { recover: true, offset: 4, epoch, tf })
      t.match(reply.subscribe, { recovered: true, offset: 4 })
      t.strictSame(offsets(reply.subscribe.publications), [5, 7])
      for (const odd of ['no', 'no', 'yes']) await publish(channel, { tags: { odd } })
      await publish(channel)
      await publish(channel, { tags: { odd: 'yes', more: '' } })
      t.equal((await client.push('pub')).pub.offset, 11)
      t.equal((await client.push('pub')).pub.offset, 13)
      const none = await subscribe(t, channel, {
        recover: true,
        offset: 9,
        epoch,
        tf: { key: 'odd', cmp: 'eq', val: '?' },
      })
      t.match(none.reply.subscribe, { recovered: true, offset: 9 })
      t.notOk(none.reply.subscribe.publications)
      const { reply: bad } = await subscribe(t, channel, { tf: {} })
      t.equal(bad.error.code, 107)
      const { reply: off } = await subscribe(t, name('wish'), { tf })
      t.equal(off.error.code, 107, 'where filters are not allowed')
    })

    t.test('cache: any position recovers the newest publication', async t => {
      const channel = name('cache')
      const { epoch } = await fill(channel, 4)
      const recovered = { recoverable: true, positioned: true, epoch, recovered: true, was_recovering: true }
      /** @type {any[][]} */
      const rows = [
        ['an old position', { offset: 2, epoch }, 2, [4]],
        ['another epoch', { offset: 2, epoch: OTHER }, 2, [4]],
        ['beyond the top', { offset: 99, epoch }, 99, [4]],
        ['no position', {}, undefined, [4]],
        ['the top of another epoch', { offset: 4, epoch: OTHER }, 4, [4]],
        ['the current position', { offset: 4, epoch }, 4, undefined],
      ]
      for (const [row, position, offset, publications] of rows) {
        const { reply } = await subscribe(t, channel, { recover: true, ...position })
        const { publications: got, ...rest } = reply.subscribe
        t.strictSame(rest, offset === undefined ? recovered : { ...recovered, offset }, row)
        t.strictSame(ns(got), publications, row)
      }
      const { reply } = await subscribe(t, channel)
      t.strictSame(
        reply.subscribe,
        { recoverable: true, positioned: true, epoch, offset: 4 },
        'no recovery requested',
      )
    })

    t.test('cache: an empty stream is not recovered', async t => {
      const channel = name('cache')
      const { reply } = await subscribe(t, channel, { recover: true })
      const { epoch, ...rest } = reply.subscribe
      t.strictSame(rest, { recoverable: true, positioned: true, was_recovering: true })
      await fill(channel, 3)
      await gateway.api('history_remove', { channel })
      const removed = await subscribe(t, channel, { recover: true, offset: 1, epoch })
      t.equal(removed.reply.subscribe.recovered, undefined)
      t.equal(removed.reply.subscribe.offset, 3)
    })

    t.test('cache: flag 2 accepts an empty stream', async t => {
      const channel = name('cache')
      const { epoch, ...rest } = (await subscribe(t, channel, { recover: true, flag: 2 })).reply.subscribe
      t.strictSame(rest, { recoverable: true, positioned: true, was_recovering: true })
      const sdk = new Centrifuge(gateway.ws, { websocket: WebSocket })
      t.teardown(() => sdk.disconnect())
      // With getState the SDK sets the flag and requests the state again after a refusal.
      const subscription = sdk.newSubscription(name('cache'), {
        getState: async () => ({ offset: 0, epoch: '' }),
      })
      sdk.connect()
      subscription.subscribe()
      await subscription.ready(5000)
      t.equal(subscription.state, 'subscribed')
    })

    t.test('cache: the newest publication that matches the filter is recovered', async t => {
      const channel = name('cache')
      const { epoch } = await fill(channel, 6)
      const tf = { key: 'odd', cmp: 'eq', val: 'yes' }
      const { client, reply } = await subscribe(t, channel, { recover: true, tf })
      t.strictSame(offsets(reply.subscribe.publications), [5])
      await publish(channel)
      await publish(channel, { tags: { odd: 'yes' } })
      t.equal((await client.push('pub')).pub.offset, 8)
      const current = await subscribe(t, channel, { recover: true, offset: 8, epoch, tf })
      t.equal(current.reply.subscribe.publications, undefined)
    })

    t.test('auto cache: recovers without a request', async t => {
      const channel = name('auto')
      const empty = await subscribe(t, channel)
      t.equal(empty.reply.subscribe.recovered, undefined)
      t.equal(empty.reply.subscribe.was_recovering, true)
      const { epoch } = await fill(channel, 3)
      const expected = {
        recoverable: true,
        epoch,
        publications: [{ data: { n: 3 }, offset: 3, tags: { odd: 'yes' } }],
        recovered: true,
        positioned: true,
        was_recovering: true,
      }
      const { client, reply } = await subscribe(t, channel)
      t.strictSame(reply.subscribe, expected)
      const token = makeToken({ sub: 'u', channels: [channel] }, SECRET)
      const server = await connected(t, { token })
      t.strictSame(server.connect.subs, { [channel]: expected })
      await publish(channel)
      for (const { push } of [client, server].map(client => ({ push: client.push('pub') })))
        t.equal((await push).pub.offset, 4)
    })

    t.test('server-side: subscriptions recover at connect', async t => {
      const [channel, cache] = [name('stream'), name('cache')]
      const { epoch } = await fill(channel, 14)
      const { epoch: cacheEpoch } = await fill(cache, 3)
      const token = makeToken({ sub: 'u', channels: [channel, cache] }, SECRET)
      const ask = async (position, cachePosition) => {
        const subs = {
          [channel]: { recover: true, ...position },
          [cache]: { recover: true, ...cachePosition },
        }
        return connected(t, { token, subs })
      }
      const client = await ask({ offset: 12, epoch }, { offset: 1, epoch: OTHER })
      t.match(client.connect.subs[channel], { recovered: true, was_recovering: true, offset: 12 })
      t.strictSame(ns(client.connect.subs[channel].publications), [13, 14])
      t.match(client.connect.subs[cache], { recovered: true, offset: 1 })
      t.strictSame(ns(client.connect.subs[cache].publications), [3])
      const failed = await ask({ offset: 2, epoch }, { offset: 3, epoch: cacheEpoch })
      t.strictSame(failed.connect.subs[channel], {
        recoverable: true,
        epoch,
        offset: 14,
        positioned: true,
        was_recovering: true,
      })
      t.match(failed.connect.subs[cache], { recovered: true, offset: 3 })
      t.equal(failed.connect.subs[cache].publications, undefined)
      await publish(channel)
      for (const { push } of [client, failed].map(client => ({ push: client.push('pub') })))
        t.equal((await push).pub.offset, 15)
    })

    t.test('server-side by the API: missed publications follow the push', async t => {
      const channel = name('stream')
      const { epoch } = await fill(channel, 6)
      const client = await connected(t, { token: makeToken({ sub: `api${last}` }, SECRET) })
      await gateway.api('subscribe', { channel, user: `api${last}`, recover_since: { offset: 3, epoch } })
      t.match(await client.push('subscribe'), {
        channel,
        subscribe: { recoverable: true, positioned: true, epoch, offset: 3 },
      })
      await publish(channel)
      const got = []
      while (got.length < 4) got.push((await client.push('pub')).pub.offset)
      t.strictSame(got, [4, 5, 6, 7])
    })

    t.test('recovering a payload that is not JSON is refused with 3506', async t => {
      const channel = name('binary')
      const b64data = Buffer.from([0, 1, 2, 0xff]).toString('base64')
      const { epoch } = await publish(channel, { data: undefined, b64data })
      const live = await subscribe(t, channel)
      const recovering = await connected(t)
      recovering.send({ id: 9, subscribe: { channel, recover: true, epoch } })
      t.strictSame(await recovering.closed, { code: 3506, reason: 'inappropriate protocol' })
      const token = makeToken({ sub: 'u', channels: [channel] }, SECRET)
      const server = await RawClient.open(gateway.ws)
      server.send({ id: 1, connect: { token, subs: { [channel]: { recover: true, epoch } } } })
      t.equal((await server.closed).code, 3506)
      await publish(channel, { data: undefined, b64data })
      t.equal((await live.client.closed).code, 3506)
      const left = (await gateway.api('channels', { pattern: channel })).result.channels[channel]
      t.equal(left, undefined, 'no subscriber remains')
    })
  })
}
