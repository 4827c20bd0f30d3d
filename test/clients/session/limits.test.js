// Limits (client protocol).

import { once } from 'node:events'
import t from 'tap'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'
import { anonymous, error, history, open, opened, roundTrip } from './support.js'

const config = {
  client: { allow_anonymous_connect_without_token: true, queue_max_size: 200_000 },
  channel: {
    tags_filters_max_size: 500,
    without_namespace: { ...open, ...history, allow_tags_filter: true },
  },
}

/** A publish command of exactly so many bytes. @param {number} bytes */
function publishOf(bytes) {
  const head = '{"id":50,"publish":{"channel":"big","data":"'
  return `${head}${'x'.repeat(bytes - head.length - 3)}"}}`
}

/** @param {RawClient} client @returns {import('node:net').Socket} */
const tcp = client => /** @type {any} */ (client.socket)._socket

for (const driver of drivers) {
  t.test(driver, async t => {
    const gateway = await startGateway(t, { ...config, workers: 1, http_server: { driver } })

    t.test('a message of 65536 bytes is accepted, a longer one closes with 1009 and no reason', async t => {
      const watcher = await anonymous(t, gateway)
      await watcher.subscribe('big')
      const client = await anonymous(t, gateway)
      client.sendText(publishOf(65536))
      t.strictSame(await client.next(), { id: 50, publish: {} })
      t.match(await watcher.push('pub'), { channel: 'big', pub: { data: /^x+$/ } })
      client.sendText(publishOf(65537))
      t.strictSame(await client.closed, { code: 1009, reason: '' })
      await roundTrip(watcher)
      t.strictSame(watcher.messages, [], 'it is not published')
    })

    t.test('the message limit is in bytes and applies before connect', async t => {
      const client = await opened(t, gateway)
      client.sendText(`{"id":1,"connect":{"name":"${'é'.repeat(32760)}"}}`)
      t.strictSame(await client.closed, { code: 1009, reason: '' })
      const far = await anonymous(t, gateway)
      far.sendText(publishOf(4 * 65_536))
      t.strictSame(await far.closed, { code: 1009, reason: '' })
      const farther = await anonymous(t, gateway)
      farther.sendText(publishOf(1_000_000))
      await farther.closed
      // uWebSockets.js cuts the connection at the header of a message of more than four times the limit.
      t.strictSame(farther.ended, { code: driver === 'uws' ? 1006 : 1009, reason: '' })
    })

    t.test('the distinct filters of a channel share a limit in bytes', async t => {
      const tf = val => ({ key: 'k', cmp: 'eq', val })
      const clients = []
      for (let i = 0; i < 5; i++) clients.push(await anonymous(t, gateway))
      const [a, b, c, same, full] = clients
      for (const client of [a, b, c]) {
        // Each is below 170 bytes: three fit into 500.
        const reply = await client.subscribe('filtered', { tf: tf(`${clients.indexOf(client)}`) })
        t.match(reply, { subscribe: {} })
      }
      t.match((await full.subscribe('filtered', { tf: tf('4') })).error, error(106, 'limit exceeded'))
      t.match(await full.subscribe('other', { tf: tf('4') }), { subscribe: {} }, 'a limit per channel')
      t.match(
        await same.subscribe('filtered', { tf: tf('0') }),
        { subscribe: {} },
        'an equal one costs nothing',
      )
      await b.call('unsubscribe', { channel: 'filtered' })
      t.match(await full.subscribe('filtered', { tf: tf('4') }), { subscribe: {} }, 'there is room again')
      await gateway.api('publish', { channel: 'filtered', data: 1, tags: { k: '4' } })
      t.match(await full.push('pub'), { channel: 'filtered', pub: { data: 1 } })
      t.match(await b.subscribe('filtered'), { subscribe: {} }, 'without a filter there is no limit')
    })

    t.test('a client may subscribe to 128 channels with names of 255 bytes', async t => {
      const client = await anonymous(t, gateway)
      const subscribe = (/** @type {string} */ channel, /** @type {number} */ id) => ({
        id,
        subscribe: { channel },
      })
      client.send(...Array.from({ length: 127 }, (_, i) => subscribe(`limit-${i}`, 1000 + i)))
      await client.next(({ id }) => id === 1126)
      t.notOk(client.messages.some(message => message.error))
      t.strictSame((await client.subscribe('n'.repeat(256))).error, error(107, 'bad request'))
      t.strictSame((await client.subscribe('n'.repeat(255))).subscribe, {})
      t.strictSame((await client.subscribe('one more')).error, error(106, 'limit exceeded'))
    })

    t.test('a thousand commands at once are answered in order', async t => {
      const client = await anonymous(t, gateway)
      const all = Array.from({ length: 1000 }, (_, i) => {
        const id = i + 1
        const channel = `flood ${id % 7}`
        const kinds = [
          { publish: { channel, data: id } },
          { subscribe: { channel } },
          { unsubscribe: { channel } },
        ]
        return { id, ...(id % 11 === 0 ? { history: { channel, limit: 1 } } : kinds[id % 3]) }
      })
      for (let i = 0; i < all.length; i += 100) client.send(...all.slice(i, i + 100))
      await client.next(({ id }) => id === 1000)
      const ids = client.messages.filter(({ id }) => id).map(({ id }) => id)
      t.strictSame(
        ids,
        Array.from({ length: 999 }, (_, i) => i + 1),
      )
      t.notOk(
        client.messages.some(({ error }) => error && error.code !== 105),
        'and none has failed',
      )
    })

    t.test('a client that stops reading is closed with 3008; others miss nothing', async t => {
      const slow = await anonymous(t, gateway)
      const quick = await anonymous(t, gateway)
      await slow.subscribe('much')
      await quick.subscribe('much')
      tcp(slow).pause()
      const data = 'x'.repeat(20_000)
      const { client } = slow.connect
      let sent = 0
      // The kernel takes some megabytes before anything is left unread at the gateway.
      await until(async () => {
        const commands = Array.from({ length: 40 }, () => ({
          publish: { channel: 'much', data: `${sent++}-${data}` },
        }))
        await gateway.api('batch', { commands })
        const { presence } = (await gateway.api('presence', { channel: 'much' })).result
        return !(client in presence)
      })
      tcp(slow).resume()
      t.strictSame(await slow.closed, { code: 3008, reason: 'slow' })
      const got = slow.messages.map(({ push }) => Number.parseInt(push.pub.data, 10))
      t.strictSame(got, [...got.keys()], 'its publications have no gap')
      t.ok(got.length < sent)
      for (let i = 0; i < sent; i++) {
        const { push } = await quick.next()
        if (Number.parseInt(push.pub.data, 10) !== i) return t.fail(`the other one missed ${i}`)
      }
    })

    t.test('a client that does not read its replies is disconnected', async t => {
      const slow = await anonymous(t, gateway)
      await slow.subscribe('echo')
      const { client } = slow.connect
      tcp(slow).pause()
      const command = { id: 50, publish: { channel: 'echo', data: 'x'.repeat(60_000) } }
      await until(async () => {
        for (let i = 0; i < 10; i++) slow.send(command)
        if (tcp(slow).writableLength > 0)
          await Promise.race([once(slow.socket, 'close'), once(tcp(slow), 'drain')])
        const { presence } = (await gateway.api('presence', { channel: 'echo' })).result
        return !(client in presence)
      })
      tcp(slow).resume()
      const { code } = await slow.closed
      t.ok([3008, 3013].includes(code), `closed with ${code}`)
    })

    t.test('too many queued commands close with 3013', async t => {
      const client = await anonymous(t, gateway)
      // Each subscribe waits for the broker, and all commands after it wait for the subscribe.
      const pair = [
        { id: 9, subscribe: { channel: 'flood' } },
        { id: 9, unsubscribe: { channel: 'flood' } },
      ]
      const frame = Array.from({ length: 500 }, () => pair).flat()
      for (let i = 0; i < 30; i++) client.send(...frame)
      t.strictSame(await client.closed, { code: 3013, reason: 'too many requests' })
    })

    t.test('no worker has exited', async t => t.notOk(gateway.lines.some(({ msg }) => msg === 'worker died')))
  })
}
