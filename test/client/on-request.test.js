// onRequest of halley-gateway/client: the official SDK, in JSON and Protobuf, answers the gateway.

import { Centrifuge } from 'centrifuge'
import { Centrifuge as ProtobufCentrifuge } from 'centrifuge/build/protobuf'
import { onRequest } from 'halley-gateway/client'
import t from 'tap'
import WebSocket from 'ws'
import { embed } from '../backends/api/methods-suite.js'
import { SECRET, token } from '../clients/session/support.js'
import { blockWith } from '../docs/blocks.js'

const gateway = await embed(t, {
  workers: 1,
  client: { token: { hmac_secret_key: SECRET }, acks: { enabled: true } },
})

/** @param {any} t @param {any} Client @param {string} user @param {object} [claims] */
async function connect(t, Client, user, claims = {}) {
  const client = new Client(`${gateway.url.replace('http', 'ws')}/connection/websocket`, {
    websocket: WebSocket,
    token: token({ sub: user, ...claims }),
  })
  t.teardown(() => client.disconnect())
  client.connect()
  await client.ready()
  return client
}

/** @param {any} client @param {string} channel */
async function subscribe(client, channel) {
  const subscription = client.newSubscription(channel)
  subscription.subscribe()
  await subscription.ready()
  return subscription
}

/** Their only answer. @param {{answers: Record<string, any>}} acks */
const only = ({ answers }) => Object.values(answers)[0]

for (const [name, Client] of Object.entries({ json: Centrifuge, protobuf: ProtobufCentrifuge })) {
  t.test(`${name}: messages`, async t => {
    const user = `messages-${name}`
    const client = await connect(t, Client, user)
    onRequest(client, {
      add: ({ a, b }) => a + b,
      later: async (data, { id, method, channel }) => [data, typeof id, method, channel],
      bytes: data => new Uint8Array(data).reverse(),
      fail() {
        throw Object.assign(new Error('no é'), { code: 4001 })
      },
      circular() {
        const value = {}
        value.self = value
        return value
      },
    })
    const ask = async (method, data) => only(await gateway.request({ user }, method, data))
    t.same(await ask('add', { a: 1, b: 2 }), { user, data: 3 })
    t.same(await ask('later'), { user, data: [null, 'string', 'later', null] })
    t.same(await ask('bytes', Buffer.from([0, 1, 255])), { user, data: Buffer.from([255, 1, 0]) })
    t.same(await ask('fail', 1), { user, error: { code: 4001, message: 'no é' } })
    t.match(await ask('circular', 1), { error: { code: 0, message: /circular/ } })
    t.same(await ask('unknown', 1), { user, error: { code: 104, message: 'method not found' } })
    t.same(await ask('toString', 1), { user, error: { code: 104, message: 'method not found' } })
  })

  t.test(`${name}: publications of subscriptions, before and after`, async t => {
    const user = `channels-${name}`
    const [early, late, server] = ['early', 'late', 'server'].map(word => `${word}-${name}`)
    const client = await connect(t, Client, user, { subs: { [server]: {} } })
    await subscribe(client, early)
    const { newSubscription } = client
    const confirmed = []
    const stop = onRequest(client, {
      vote: (data, { channel }) => ({ data, channel }),
      '': (data, { channel }) => void confirmed.push([data, channel]),
    })
    await subscribe(client, late)
    for (const channel of [early, late, server]) {
      const voted = await gateway.request({ channel }, 'vote', { n: 1 })
      t.match(voted, { sent: 1, answered: 1, complete: true })
      t.same(only(voted), { user, data: { data: { n: 1 }, channel } })
      const { acks } = await gateway.publish(channel, 'text', { ack: {} })
      t.match(acks, { sent: 1, answered: 1, complete: true })
      t.same(only(acks), { user })
      t.same(confirmed.pop(), ['text', channel])
    }
    stop()
    t.equal(client.newSubscription, newSubscription)
    t.match(await gateway.request({ channel: early }, 'vote', 1, { timeoutMs: 50 }), { answered: 0 })
  })

  t.test(`${name}: publications are confirmed without a handler, and late answers reported`, async t => {
    const user = `late-${name}`
    const client = await connect(t, Client, user)
    let release = () => {}
    const reported = new Promise(resolve => {
      const slow = () => new Promise(done => (release = () => done(1)))
      onRequest(client, { slow }, { onError: (...given) => resolve(given) })
    })
    const { acks } = await gateway
      .batch([['publish', `mine-${name}`, 1, { ack: {} }]])
      .then(([one]) => one.result)
    t.match(acks, { sent: 0, complete: true })
    await subscribe(client, `mine-${name}`)
    t.match((await gateway.publish(`mine-${name}`, 1, { ack: { count: 1 } })).acks, { answered: 1 })
    t.match(await gateway.request({ user }, 'slow', 1, { timeoutMs: 50 }), { answered: 0, complete: false })
    // A survey follows the end of the request.
    await gateway.channels()
    release()
    const [error, { method }] = await reported
    t.match(error, { code: 104, message: 'not found' })
    t.equal(method, 'slow')
  })
}

t.test('the program of docs/access.md', async t => {
  const program = blockWith('docs/access.md', 'js', 'onRequest(client').replace(/^import .*\n/gm, '')
  const saved = []
  const shown = []
  class Client extends Centrifuge {
    constructor(_url, options) {
      super(`${gateway.url.replace('http', 'ws')}/connection/websocket`, { websocket: WebSocket, ...options })
      t.teardown(() => this.disconnect())
    }
  }
  const names = ['Centrifuge', 'onRequest', 'token', 'saveOrder', 'showMessage']
  const run = new Function(...names, `${program}; return client`)
  const own = token({ sub: 'page', subs: { page: {} } })
  const client = run(
    Client,
    onRequest,
    own,
    (...order) => saved.push(order),
    data => void shown.push(data),
  )
  await client.ready()
  t.same(only(await gateway.request({ user: 'page' }, 'where', { zoom: 3 })).data, { page: '/cart', zoom: 3 })
  t.same(only(await gateway.request({ channel: 'page' }, 'confirm', { id: 1 })).data, 1)
  t.same(saved, [[{ id: 1 }, 'page']])
  await gateway.publish('page', 'hello', { ack: {} })
  t.same(shown, ['hello'])
})
