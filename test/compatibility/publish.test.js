// Behaviour of the reference server with empty payloads, versions, deltas, and pages of history.

import t from 'tap'
import { history, open, tokenClient } from '../clients/session/support.js'
import { drivers, onDriver } from '../kit/drivers.js'
import { fetch } from '../kit/fetch.js'
import { startGateway } from '../kit/gateway.js'
import { StreamClient } from '../kit/stream-client.js'
import { codecs } from './support.js'

const namespace = { ...open, ...history, allowed_delta_types: ['fossil'], delta_publish: false }

const config = {
  client: tokenClient({ allow_anonymous_connect_without_token: true }),
  http_stream: { enabled: true },
  sse: { enabled: true },
  uni_sse: { enabled: true },
  uni_poll: { enabled: true },
  channel: {
    without_namespace: open,
    namespaces: [
      { name: 'bin', ...namespace, force_recovery: true, publication_data_format: 'binary' },
      { name: 'text', ...open, publication_data_format: 'json' },
      { name: 'rec', ...namespace, force_recovery: true },
      { name: 'loose', ...namespace },
    ],
  },
}

for (const driver of drivers) {
  t.test(driver, async t => {
    const gateway = await startGateway(t, onDriver(driver, config))
    let serial = 0
    const name = (/** @type {string} */ namespace) => `${namespace}:${driver}${++serial}`

    t.test('an empty payload is delivered without data', async t => {
      const channel = name('bin')
      const json = await codecs.json(t, gateway)
      const protobuf = await codecs.protobuf(t, gateway)
      const stream = await StreamClient.connected(gateway.url, 'http_stream')
      const sse = await StreamClient.connected(gateway.url, 'sse')
      const subs = encodeURIComponent(JSON.stringify({ subs: { [channel]: {} } }))
      const oneWay = await StreamClient.open(gateway.url, `/connection/uni_sse?cf_connect=${subs}`)
      for (const client of [stream, sse, oneWay]) t.teardown(() => client.request.destroy())
      await oneWay.next()
      const delta = await codecs.json(t, gateway)
      for (const client of [json, protobuf, stream, sse])
        t.match(await client.call('subscribe', { channel }), { subscribe: {} })
      t.match((await delta.call('subscribe', { channel, delta: 'fossil' })).subscribe, { delta: true })
      const poll = `${gateway.url}/connection/uni_poll?channel=${channel}`
      const { cursor } = await (await fetch(`${poll}&timeout=0`)).json()

      t.match(await gateway.api('publish', { channel }), { result: { offset: 1 } })
      t.match(await gateway.api('publish', { channel, b64data: '' }), { result: { offset: 2 } })
      t.strictSame((await protobuf.call('publish', { channel })).publish, {})
      t.strictSame((await protobuf.call('publish', { channel, data: Buffer.alloc(0) })).publish, {})
      t.strictSame((await json.call('publish', { channel })).publish, {})
      for (let offset = 1; offset <= 5; offset++) {
        for (const client of [json, protobuf]) {
          const { pub } = await client.push('pub')
          t.strictSame({ ...pub, epoch: 0, info: 0 }, { offset, epoch: 0, info: 0 })
        }
        for (const client of [stream, sse]) {
          const { push } = await client.next(({ push }) => push?.pub)
          t.equal(push.pub.offset, offset)
          t.notOk('data' in push.pub)
        }
        const { pub } = await oneWay.next(({ pub }) => pub)
        t.equal(pub.offset, offset)
        t.notOk('data' in pub)
        // SDKs parse the string.
        t.match((await delta.push('pub')).pub, { offset, data: 'null' })
      }

      const { publications } = await (await fetch(`${poll}&cursor=${cursor}`)).json()
      t.strictSame(publications[0], { channel, offset: 1 })
      const { result } = await gateway.api('history', { channel, limit: 2 })
      t.strictSame(result.publications, [{ offset: 1 }, { offset: 2 }])
      for (const client of [json, protobuf]) {
        const { history } = await client.call('history', { channel, limit: 2 })
        t.strictSame(history.publications, [{ offset: 1 }, { offset: 2 }])
        await client.call('unsubscribe', { channel })
        const { subscribe } = await client.call('subscribe', { channel, recover: true })
        t.match(subscribe, { recovered: true })
        t.strictSame(subscribe.publications.slice(0, 2), [{ offset: 1 }, { offset: 2 }])
      }
      await delta.call('unsubscribe', { channel })
      const recovered = await delta.call('subscribe', { channel, recover: true, delta: 'fossil' })
      t.strictSame(recovered.subscribe.publications[1], { data: 'null', offset: 2 })
      await gateway.api('publish', { channel, data: { n: 1 }, delta: true })
      t.strictSame((await delta.push('pub')).pub, { data: '{"n":1}', offset: 6 })

      for (const channel of [name('text'), name('rec'), 'x']) {
        t.match(await gateway.api('publish', { channel }), { error: { code: 107 } })
        for (const client of [json, protobuf])
          t.match(await client.call('publish', { channel }), { error: { code: 107 } })
      }
    })

    t.test('a reverse history read starts at most one offset after the last one', async t => {
      const channel = name('rec')
      for (const n of [1, 2]) await gateway.api('publish', { channel, data: n })
      const clients = [await codecs.json(t, gateway), await codecs.protobuf(t, gateway)]
      const [two, one] = [
        { data: 2, offset: 2 },
        { data: 1, offset: 1 },
      ]
      for (const [offset, list] of /** @type {[number, object[]][]} */ ([
        [2, [one]],
        [3, [two, one]],
        [4, []],
      ])) {
        const request = { channel, limit: 10, reverse: true, since: { offset } }
        const { result } = await gateway.api('history', request)
        t.strictSame(result.publications, list)
        for (const client of clients) {
          const { history } = await client.call('history', request)
          t.strictSame(history.publications ?? [], list)
        }
        const forwards = await gateway.api('history', { ...request, reverse: false })
        t.strictSame(forwards.result.publications, [])
      }
    })

    t.test('a push has a version without history, except for delta subscribers', async t => {
      for (const connect of Object.values(codecs)) {
        const client = await connect(t, gateway)
        const [plain, kept] = [`plain${driver}${++serial}`, name('rec')]
        await client.call('subscribe', { channel: plain })
        t.match(await client.call('subscribe', { channel: kept, delta: 'fossil' }), {
          subscribe: { delta: true },
        })
        await gateway.api('publish', { channel: plain, data: 1, version: 7 })
        t.strictSame((await client.push('pub')).pub, { data: 1, version: 7 })
        await gateway.api('publish', { channel: plain, data: 2, version: 6 })
        t.strictSame((await client.push('pub')).pub, { data: 2, version: 6 }, 'nothing to compare it with')
        await gateway.api('publish', { channel: kept, data: 1, version: 8 })
        t.match((await client.push('pub')).pub, { offset: 1, version: undefined })
        await gateway.api('publish', { channel: kept, data: 2, version: 9, skip_history: true })
        t.equal((await client.push('pub')).pub.version, undefined)
      }
    })

    t.test('live deltas need a positioned subscription and the flag, recovered ones do not', async t => {
      const text = (/** @type {number} */ n) => ({ same: 'the same words again and again, '.repeat(5), n })
      for (const connect of Object.values(codecs)) {
        const client = await connect(t, gateway)
        const [loose, kept] = [name('loose'), name('rec')]
        for (const channel of [loose, kept]) {
          t.match(await client.call('subscribe', { channel, delta: 'fossil' }), {
            subscribe: { delta: true },
          })
          for (const n of [1, 2]) await gateway.api('publish', { channel, data: text(n), delta: true })
        }
        const live = async () => (await client.next(({ push }) => push?.pub)).push.pub.delta ?? false
        t.strictSame([await live(), await live()], [false, false])
        t.strictSame([await live(), await live()], [false, true])
        const channel = name('rec')
        for (const n of [1, 2, 3]) await gateway.api('publish', { channel, data: text(n) })
        const id = 1000
        client.send({ id, subscribe: { channel, delta: 'fossil', recover: true } })
        const { subscribe } = await client.next(message => message.id === id)
        t.strictSame(
          subscribe.publications.map((/** @type {any} */ { delta = false }) => delta),
          [false, true, true],
        )
      }
    })
  })
}
