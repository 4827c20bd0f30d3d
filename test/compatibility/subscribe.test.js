// Answers of the reference server to subscribe commands, and where Halley's differ to keep a guarantee.

import { once } from 'node:events'
import { Centrifuge } from 'centrifuge'
import t from 'tap'
import WebSocket from 'ws'
import { history, open, token, tokenClient } from '../clients/session/support.js'
import { drivers, onDriver } from '../kit/drivers.js'
import { startGateway } from '../kit/gateway.js'
import { codecs } from './support.js'

const cache = {
  ...open,
  ...history,
  force_recovery: true,
  force_recovery_mode: 'cache',
  allow_tags_filter: true,
}

const config = {
  client: tokenClient({ allow_anonymous_connect_without_token: true }),
  channel: {
    without_namespace: { ...open, allow_tags_filter: true },
    namespaces: [
      { name: 'rec', ...open, ...history, force_recovery: true },
      { name: 'wanted', ...open, ...history, allow_recovery: true, allow_history_for_client: false },
      { name: 'lean', ...open, allow_recovery: true, allow_positioning: true },
      { name: 'cache', ...cache },
      { name: 'events', ...open, join_leave: true },
    ],
  },
}

const REJECT_UNRECOVERED = 2
const refused = (/** @type {number} */ code) => ({ error: { code } })

for (const driver of drivers) {
  t.test(driver, async t => {
    const gateway = await startGateway(t, onDriver(driver, config))
    let serial = 0
    const name = (/** @type {string} */ namespace) => `${namespace}:${driver}${++serial}`

    for (const [codec, connect] of Object.entries(codecs)) {
      t.test(codec, async t => {
        const client = await connect(t, gateway)

        t.test('error 112 needs a subscription that recovers', async t => {
          const recover = { recover: true, flag: REJECT_UNRECOVERED }
          const plain = await client.call('subscribe', { channel: `plain${driver}${codec}`, ...recover })
          t.strictSame(plain.subscribe, { was_recovering: true })
          const lean = await client.call('subscribe', {
            channel: name('lean'),
            ...recover,
            recoverable: true,
          })
          t.match(lean.subscribe, { was_recovering: true, positioned: true })
          const lost = { ...recover, offset: 7, epoch: 'gone' }
          t.match(await client.call('subscribe', { channel: name('rec'), ...lost }), refused(112))
          t.match(
            await client.call('subscribe', { channel: name('wanted'), ...lost, recoverable: true }),
            refused(112),
          )
          t.match(await client.call('subscribe', { channel: name('wanted'), ...lost }), {
            subscribe: { was_recovering: true },
          })
        })

        t.test('a channel without history is positioned, but never recoverable', async t => {
          const channel = name('lean')
          const { subscribe } = await client.call('subscribe', { channel, recoverable: true })
          t.match(subscribe, { positioned: true, epoch: /^\w+$/ })
          t.notOk(subscribe.recoverable)
          await gateway.api('publish', { channel, data: 1 })
          t.strictSame((await client.push('pub')).pub, { data: 1 })
          await client.call('unsubscribe', { channel })
          await gateway.api('publish', { channel, data: 'missed' })
          const position = { recover: true, epoch: subscribe.epoch }
          const again = await client.call('subscribe', { channel, recoverable: true, ...position })
          t.match(again.subscribe, { positioned: true, was_recovering: true })
          t.notOk(again.subscribe.recovered, 'one was missed')
          const flagless = await client.call('subscribe', { channel: name('lean') })
          t.strictSame(flagless.subscribe, {})
          const positioned = await client.call('subscribe', { channel: name('lean'), positioned: true })
          t.match(positioned.subscribe, { positioned: true, epoch: /^\w+$/ })
        })

        t.test('cache recovery is not recovered if no publication matches the filter', async t => {
          const channel = name('cache')
          for (const k of ['a', 'b']) await gateway.api('publish', { channel, data: k, tags: { k } })
          const wish = { channel, recover: true }
          const only = (/** @type {string} */ val) => ({ tf: { key: 'k', cmp: 'eq', val } })
          const { subscribe } = await client.call('subscribe', { ...wish, ...only('z') })
          t.match(subscribe, { offset: 2, was_recovering: true })
          t.notOk(subscribe.recovered)
          t.notOk(subscribe.publications)
          await client.call('unsubscribe', { channel })
          const found = await client.call('subscribe', { ...wish, ...only('a') })
          t.match(found.subscribe, { recovered: true, publications: [{ data: 'a', offset: 1 }] })
          await client.call('unsubscribe', { channel })
          // A client with the last offset has missed nothing, whatever its filter.
          const top = { offset: 2, epoch: subscribe.epoch }
          t.match((await client.call('subscribe', { ...wish, ...top, ...only('z') })).subscribe, {
            recovered: true,
          })
        })

        t.test('filters with in and nin need vals', async t => {
          for (const cmp of ['in', 'nin']) {
            const request = { channel: `f${cmp}${driver}${codec}`, tf: { key: 'k', cmp } }
            t.match(await client.call('subscribe', request), refused(107))
          }
        })

        t.test('join_leave of a token affects only its subscription', async t => {
          const channel = `quiet${driver}${codec}`
          const claims = { sub: 'u1', channel, override: { join_leave: { value: true } } }
          const user = await connect(t, gateway, { token: token({ sub: 'u1' }) })
          await user.call('subscribe', { channel, token: token(claims), join_leave: true })
          const other = await connect(t, gateway, { token: token({ sub: 'u1' }) })
          const forced = { ...claims.override, force_push_join_leave: { value: true } }
          await other.call('subscribe', { channel, token: token({ ...claims, override: forced }) })
          t.match(
            (await other.push('join')).join.info,
            { client: other.connect.client },
            'joins are announced',
          )
          await gateway.api('publish', { channel, data: 1 })
          t.match(
            await user.push(''),
            { pub: { data: 1 } },
            'not pushed to a client that only requested them',
          )
        })

        t.test('subs of a connect request may be recoverable, but not join_leave', async t => {
          const [wanted, events] = [name('wanted'), name('events')]
          const subs = { [wanted]: { recoverable: true }, [events]: { join_leave: true } }
          const listener = await connect(t, gateway, { subs })
          t.match(listener.connect.subs[wanted], { recoverable: true, positioned: true })
          await client.call('subscribe', { channel: events, join_leave: true })
          await client.push('join')
          await gateway.api('publish', { channel: events, data: 1 })
          t.match(await listener.push(''), { pub: { data: 1 } })
        })
      })
    }

    t.test('the SDK calls getState once if nothing can be recovered', async t => {
      const client = new Centrifuge(gateway.ws, { websocket: WebSocket })
      t.teardown(() => client.disconnect())
      let calls = 0
      const getState = async () => {
        calls++
        return { offset: 0, epoch: '' }
      }
      for (const channel of [`stateless${driver}`, name('lean')]) {
        const subscription = client.newSubscription(
          channel,
          /** @type {any} */ ({ getState, recoverable: true }),
        )
        calls = 0
        const subscribed = once(/** @type {any} */ (subscription), 'subscribed')
        subscription.subscribe()
        client.connect()
        t.match((await subscribed)[0], { wasRecovering: true, recovered: false })
        t.equal(calls, 1)
      }
    })
  })
}
