// A backend gives orders about the clients of an unreachable node, through another node.

import { makeToken } from '../../../clients/auth/jwt.js'
import { RawClient } from '../../../kit/raw-client.js'
import { until } from '../../../kit/wait.js'
import { open } from './nodes.js'

/** @import { TestGateway } from '../../../kit/gateway.js' */

const SECRET = 'a secret of several hosts, 32 bytes'
const kept = { history_size: 1000, history_ttl: '300s', force_recovery: true }
const publishing = { allow_publish_for_client: true, allow_publish_for_anonymous: true }

/** Of both nodes. */
export const config = {
  client: { token: { hmac_secret_key: SECRET } },
  channel: {
    without_namespace: open,
    namespaces: [
      { name: 'kept', ...open, ...kept },
      { name: 'live', ...open, ...publishing },
    ],
  },
}

/** @param {TestGateway} node @param {string} user @param {string[]} [channels] */
export async function connect(node, user, channels = []) {
  const client = await RawClient.connected(node.ws, { token: makeToken({ sub: user }, SECRET) })
  for (const channel of channels) {
    const { error } = await client.subscribe(channel)
    if (error) throw new Error(`subscribe: ${error.code}`)
  }
  return client
}

/** @param {RawClient} client @returns {number[]} what it has received of the channel so far */
export const numbers = client =>
  client.messages
    .filter(({ push }) => push?.pub && push.channel === 'kept:1')
    .map(({ push }) => push.pub.data.n)

/** @param {TestGateway} node @param {number} count @returns {Promise<any>} it counts so many nodes */
export const counts = (node, count) =>
  until(async () => (await node.api('info')).result?.nodes.length === count)

/**
 * Gives orders of each kind through `a` while `b` is away.
 * @param {any} t @param {TestGateway} a @param {TestGateway} b
 * @param {() => () => void} begin takes `b` away, returns what brings it back
 */
export async function missedOrders(t, a, b, begin) {
  const users = ['banned', 'unsubscribed', 'expired', 'expiring', 'subscribed', 'both', 'listed', 'witness']
  const all = await Promise.all(users.map(user => connect(b, user, ['kept:1'])))
  const client = Object.fromEntries(users.map((user, i) => [user, all[i]]))
  const reader = await connect(a, 'reader', ['kept:1', 'live:banned'])

  const end = begin()
  await counts(a, 1)
  const order = async (/** @type {string} */ method, /** @type {any} */ params) =>
    t.same(await a.api(method, params), { result: {} }, method)
  await order('disconnect', { user: 'banned' })
  await order('unsubscribe', { user: 'unsubscribed', channel: 'kept:1' })
  await order('refresh', { user: 'expired', expired: true })
  await order('refresh', { user: 'expiring', expire_at: Math.floor(Date.now() / 1000) - 1 })
  await order('subscribe', { user: 'subscribed', channel: 'live:new' })
  await order('subscribe', { user: 'both', channel: 'live:both' })
  await order('unsubscribe', { user: 'both', channel: 'live:both' })
  await order('disconnect', { user: 'listed', whitelist: [client.listed.connect.client] })
  client.banned.send({ id: 99, publish: { channel: 'live:banned', data: 'too late' } })
  const sent = Array.from({ length: 20 }, (_, n) => n)
  for (const n of sent) t.ok((await a.api('publish', { channel: 'kept:1', data: { n } })).result)
  await until(() => numbers(reader).length === sent.length)
  end()

  t.equal((await client.banned.closed).code, 3503)
  t.equal((await client.expired.closed).code, 3005)
  t.equal((await client.expiring.closed).code, 3005)
  t.match(await client.unsubscribed.push('unsubscribe'), { channel: 'kept:1', unsubscribe: { code: 2000 } })
  t.match(await client.subscribed.push('subscribe'), { channel: 'live:new' })
  await until(() => numbers(client.witness).length === sent.length)
  await until(() => numbers(client.listed).length === sent.length)
  t.same(numbers(client.witness), sent)
  t.same(numbers(client.listed), sent)
  for (const user of ['banned', 'expired', 'expiring', 'unsubscribed'])
    t.same(numbers(client[user]), [], `${user}: nothing that came after the order`)

  await counts(a, 2)
  for (const channel of ['live:new', 'live:both']) await a.api('publish', { channel, data: 'x' })
  const { push } = await client.subscribed.next(({ push }) => push?.channel === 'live:new' && push.pub)
  t.equal(push.pub.data, 'x')
  t.same((await a.api('channels')).result.channels, {
    'kept:1': { num_clients: 5 },
    'live:banned': { num_clients: 1 },
    'live:new': { num_clients: 1 },
  })
  t.notOk(
    reader.messages.some(({ push }) => push?.channel === 'live:banned'),
    'what a client sends after its ban is not published',
  )
  t.notOk(b.lines.some(({ msg }) => /missed orders are lost/.test(msg)))
}
