// Recovery under load over several workers: every client gets every offset once and in order.

import { Centrifuge } from 'centrifuge'
import t from 'tap'
import WebSocket from 'ws'
import { makeToken } from '../clients/auth/jwt.js'
import { randomness } from '../guarantees/account.js'
import { skipDriver } from '../kit/drivers.js'
import { startGateway } from '../kit/gateway.js'
import { RawClient } from '../kit/raw-client.js'

const SECRET = 'secret'
const PUBLISHERS = 4
const BATCH = 8
const open = { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true }
const BATCHES = 25
/** Subscribing clients; half as many have server-side subscriptions, a third as many are SDKs. */
const SUBSCRIBERS = 24
/** Publications of each channel. */
const TOTAL = PUBLISHERS * BATCHES * BATCH
const kept = { history_size: 2 * TOTAL, history_ttl: '60s' }
const config = {
  workers: 3,
  log: { level: 'info' },
  client: {
    allow_anonymous_connect_without_token: true,
    recovery_max_publication_limit: 2 * TOTAL,
    token: { hmac_secret_key: SECRET },
  },
  channel: {
    namespaces: [
      { name: 'busy', ...open, ...kept, force_recovery: true },
      { name: 'loose', ...open, ...kept },
      { name: 'live', ...open },
    ],
  },
}

/** Publications of a channel received by a client, and each one out of order or with another payload. */
class Account {
  offset = 0
  epoch = ''
  faults = []
  #payloads

  /** @param {Map<number, string>} payloads of the channel, shared by all accounts */
  constructor(payloads) {
    this.#payloads = payloads
  }

  /** Applies a subscribe result. */
  subscribed({ epoch, recovered, was_recovering, offset = 0, publications = [] }) {
    if (was_recovering && !recovered) this.faults.push(`not recovered from ${this.offset}`)
    if (was_recovering && offset !== this.offset) this.faults.push(`${offset} echoed for ${this.offset}`)
    if (!was_recovering) this.offset = offset
    this.epoch = epoch
    for (const publication of publications) this.receive(publication)
  }

  receive({ offset, data }) {
    if (offset !== this.offset + 1) this.faults.push(`${offset} after ${this.offset}`)
    this.offset = offset
    const text = JSON.stringify(data)
    if ((this.#payloads.get(offset) ?? text) !== text) this.faults.push(`${offset}: ${text}`)
    this.#payloads.set(offset, text)
  }

  get complete() {
    return this.offset >= TOTAL
  }

  get position() {
    return this.epoch === '' ? {} : { recover: true, offset: this.offset, epoch: this.epoch }
  }
}

/** Publishes to all channels concurrently, on several connections to the API. */
async function publishAll(gateway, channels) {
  const publisher = async p => {
    for (let b = 0; b < BATCHES; b++) {
      const commands = []
      for (let i = 0; i < BATCH; i++)
        for (const channel of channels) commands.push({ publish: { channel, data: { p, n: b * BATCH + i } } })
      const { replies } = await gateway.api('batch', { commands, parallel: b % 2 === 0 })
      for (const { error } of replies) if (error) throw new Error(error.message)
    }
  }
  await Promise.all(Array.from({ length: PUBLISHERS }, (_, p) => publisher(p)))
}

/** A client that subscribes, reads a little, disconnects, and returns until it has everything. */
async function reconnect(gateway, channel, account, random) {
  while (!account.complete) {
    const client = await RawClient.connected(gateway.ws)
    const reply = await client.subscribe(channel, account.position)
    if (reply.error) throw new Error(JSON.stringify(reply.error))
    account.subscribed(reply.subscribe)
    const until = Math.min(TOTAL, account.offset + random(TOTAL / 4))
    while (account.offset < until) account.receive((await client.push('pub')).pub)
    leave(client, account.complete, random)
    await client.closed
  }
}

/** The same with server-side subscriptions, of which others need no position. */
async function reconnectServerSide(gateway, channels, accounts, random) {
  const token = makeToken({ sub: `u${random(1000)}`, channels: [...channels, 'loose:1', 'live:1'] }, SECRET)
  const done = () => accounts.every(({ complete }) => complete)
  while (!done()) {
    const subs = Object.fromEntries(channels.map((channel, i) => [channel, accounts[i].position]))
    const client = await RawClient.connected(gateway.ws, { token, subs })
    for (const [i, channel] of channels.entries()) accounts[i].subscribed(client.connect.subs[channel])
    for (let left = random(TOTAL / 2); left > 0 && !done(); left--) {
      const { channel, pub } = await client.push('pub')
      const i = channels.indexOf(channel)
      if (i >= 0) accounts[i].receive(pub)
      else left++
    }
    leave(client, done(), random)
    await client.closed
  }
}

function leave(client, properly, random) {
  if (properly || random(2)) client.close()
  else client.socket.terminate()
}

/** The real SDK, whose connections are cut. */
function follow(gateway, channel, account, random) {
  const sockets = new Set()
  class Breakable extends WebSocket {
    constructor(url, protocols) {
      super(url, protocols)
      sockets.add(this)
      this.on('close', () => sockets.delete(this))
    }
  }
  const client = new Centrifuge(gateway.ws, {
    websocket: Breakable,
    minReconnectDelay: 5,
    maxReconnectDelay: 50,
  })
  const subscription = client.newSubscription(channel, { minResubscribeDelay: 5, maxResubscribeDelay: 50 })
  let until = random(TOTAL / 4)
  return new Promise((resolve, reject) => {
    subscription.on('subscribed', ({ wasRecovering, recovered, streamPosition }) => {
      if (wasRecovering && !recovered) account.faults.push('not recovered')
      if (!wasRecovering) account.offset = streamPosition?.offset ?? 0
    })
    subscription.on('publication', publication => {
      account.receive(publication)
      if (account.complete) {
        resolve(undefined)
      } else if (account.offset >= until) {
        until = account.offset + random(TOTAL / 4)
        for (const socket of sockets) socket.terminate()
      }
    })
    subscription.on('unsubscribed', ({ code, reason }) => reject(new Error(`${code} ${reason}`)))
    subscription.subscribe()
    client.connect()
  }).finally(() => client.disconnect())
}

for (const driver of /** @type {const} */ (['uws', 'node']))
  t.test(driver, { skip: skipDriver(driver) }, async t => {
    const gateway = await startGateway(t, { ...config, http_server: { driver } })
    const channels = ['busy:1', 'busy:2']
    const payloads = channels.map(() => new Map())
    const random = randomness(driver.length)
    const accounts = { client: [], sdk: [], server: [] }
    const runs = []
    for (let i = 0; i < SUBSCRIBERS; i++) {
      const account = new Account(payloads[i % 2])
      accounts.client.push(account)
      runs.push(reconnect(gateway, channels[i % 2], account, randomness(i + 1)))
    }
    for (let i = 0; i < SUBSCRIBERS / 3; i++) {
      const account = new Account(payloads[0])
      accounts.sdk.push(account)
      runs.push(follow(gateway, channels[0], account, randomness(i + 100)))
    }
    for (let i = 0; i < SUBSCRIBERS / 2; i++) {
      const own = channels.map((_, c) => new Account(payloads[c]))
      accounts.server.push(...own)
      runs.push(reconnectServerSide(gateway, channels, own, randomness(i + 200 + random(10))))
    }
    await Promise.all([publishAll(gateway, [...channels, 'loose:1', 'live:1']), ...runs])
    for (const [kind, list] of Object.entries(accounts)) {
      t.same(list.flatMap(({ faults }) => faults).slice(0, 10), [], kind)
      t.ok(list.every(({ offset }) => offset === TOTAL))
    }
    for (const map of payloads)
      t.equal(new Set(map.values()).size, map.size, 'each publication is in the stream once')
    const warnings = gateway.lines.filter(({ level }) => level >= 40)
    t.same(warnings, [])
  })
