// Replies with many bytes: recovery and history. They fit into the client's queue, and wait until it reads.

import t from 'tap'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { anonymous, error, history, open, roundTrip } from './support.js'

const QUEUE = 200_000
const SIZE = 20_000
/** Publications of SIZE bytes that fit into one reply. */
const FITTING = 7
const config = {
  workers: 1,
  client: { allow_anonymous_connect_without_token: true, queue_max_size: QUEUE },
  channel: { without_namespace: { ...open, ...history, force_recovery: true } },
}
const upTo = (count, from = 1) => Array.from({ length: count }, (_, i) => from + i)
const offsets = publications => publications.map(({ offset }) => offset)

/** @returns {Promise<string[]>} epochs of channels with so many publications */
async function fill(gateway, channels, count) {
  let epochs = []
  for (const n of upTo(count)) {
    const { result } = await gateway.api('broadcast', { channels, data: `${n}:${'x'.repeat(SIZE)}` })
    epochs = result.responses.map(({ result }) => result.epoch)
  }
  return epochs
}

/** The offsets of a reply that has all publications of a channel. */
const whole = String(upTo(FITTING))

/** The next messages of a client. */
async function take(client, count) {
  const taken = []
  while (taken.length < count) taken.push(await client.next())
  return taken
}

/** @returns {import('node:net').Socket} */
const tcp = client => client.socket._socket

for (const driver of drivers) {
  t.test(driver, async t => {
    const gateway = await startGateway(t, { ...config, http_server: { driver } })
    const names = upTo(40).map(n => `many${n}`)
    const read = { channel: names[0], limit: -1 }
    const [[cut], epochs] = [await fill(gateway, ['cut'], 12), await fill(gateway, names, FITTING)]

    t.test('a recovery larger than the queue fails, and the client stays connected', async t => {
      const client = await anonymous(t, gateway)
      const recover = { recover: true, epoch: cut }
      const { subscribe } = await client.subscribe('cut', recover)
      t.match(subscribe, { was_recovering: true, offset: 12, epoch: cut })
      t.notOk(subscribe.recovered)
      t.notOk(subscribe.publications)
      await gateway.api('publish', { channel: 'cut', data: 'live' })
      t.match(await client.push('pub'), { pub: { data: 'live', offset: 13 } })
      const other = await anonymous(t, gateway)
      t.strictSame(
        (await other.subscribe('cut', { ...recover, flag: 2 })).error,
        error(112, 'unrecoverable position'),
      )
      const near = await other.subscribe('cut', { ...recover, offset: 13 - FITTING })
      t.same(offsets(near.subscribe.publications), upTo(FITTING, 14 - FITTING), 'what fits')
    })

    t.test('a history larger than the queue ends early; the next request continues there', async t => {
      const client = await anonymous(t, gateway)
      const found = []
      for (let offset = 0; offset < 13; offset = found.at(-1)) {
        const { history } = await client.call('history', {
          channel: 'cut',
          limit: -1,
          since: { offset, epoch: cut },
        })
        t.equal(history.offset, 13)
        t.ok(history.publications.length <= FITTING)
        found.push(...offsets(history.publications))
      }
      t.same(found, upTo(13))
    })

    t.test('all subscriptions of a connect request share the limit of its reply', async t => {
      const channels = names.slice(0, 3)
      const subs = Object.fromEntries(
        channels.map((name, i) => [name, { recover: true, epoch: epochs[i], offset: 2 }]),
      )
      const client = await RawClient.connected(gateway.ws, { subs })
      t.teardown(() => client.socket.terminate())
      const results = channels.map(name => client.connect.subs[name])
      const recovered = results.filter(({ recovered }) => recovered)
      t.equal(recovered.length, 1)
      t.same(offsets(recovered[0].publications), upTo(FITTING - 2, 3))
      for (const result of results) {
        t.ok(result.was_recovering)
        if (!result.recovered) t.match(result, { offset: FITTING })
      }
      await roundTrip(client)
    })

    t.test('many large replies arrive in order, as fast as the client reads', async t => {
      const client = await anonymous(t, gateway)
      tcp(client).pause()
      const commands = [
        ...names.map((channel, i) => ({ subscribe: { channel, recover: true, epoch: epochs[i] } })),
        ...upTo(60).map(n => (n % 10 === 0 ? { subscribe: { channel: `x${n}` } } : { history: read })),
      ]
      client.send(...commands.map((command, i) => ({ id: 100 + i, ...command })))
      await Promise.all(upTo(3).map(() => gateway.api('info')))
      tcp(client).resume()
      const replies = await take(client, commands.length)
      t.same(
        replies.map(({ id }) => id),
        upTo(commands.length, 100),
      )
      const large = replies.filter(({ id, history }) => history || id < 100 + names.length)
      t.equal(large.length, names.length + 54)
      t.ok(
        large.every(
          ({ subscribe, history }) => String(offsets((history ?? subscribe).publications ?? [])) === whole,
        ),
      )
      await roundTrip(client)
    })

    t.test('a client may disconnect while its commands are queued', async t => {
      const client = await anonymous(t, gateway)
      tcp(client).pause()
      client.send(...upTo(100).map(id => ({ id: 100 + id, history: read })))
      await gateway.api('info')
      client.socket.terminate()
      await client.closed
      const other = await anonymous(t, gateway)
      t.equal((await other.call('history', read)).history.publications.length, FITTING)
    })

    t.test('no warnings are logged', async t =>
      t.same(
        gateway.lines.filter(({ level }) => level >= 40),
        [],
      ),
    )
  })
}
