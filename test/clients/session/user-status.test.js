// user_status with the memory engine: the rpc of clients, the API, `online`, and the snapshot.

import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { tempDir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { until } from '../../kit/wait.js'
import { anonymous, at, error, SECRET, user } from './support.js'

const snapshot_file = join(tempDir(t), 'snapshot')
const config = {
  workers: 2,
  // It answers all other methods.
  rpc: { ping: { enabled: true } },
  engine: { memory: { snapshot_file } },
  user_status: { enabled: true },
  client: {
    token: { hmac_secret_key: SECRET },
    allow_anonymous_connect_without_token: true,
    rate_limit: {
      client_command: {
        enabled: true,
        rpc: {
          enabled: true,
          method_overrides: [
            { method: 'update_user_status', enabled: true, buckets: [{ interval: '1h', rate: 4 }] },
          ],
        },
      },
    },
  },
}
let gateway = await startGateway(t, config)

/** @param {...string} users */
const statuses = async (...users) => (await gateway.api('get_user_status', { users })).result.statuses
/** @param {string} name */
const statusOf = async name => (await statuses(name))[0]
/** @param {import('../../kit/protocol-client.js').ProtocolClient} client @param {any} [data] */
const update = (client, data) => client.call('rpc', { method: 'update_user_status', data })

/** @param {any} t @param {number} seconds unix s @param {string} what */
const isNow = (t, seconds, what) => t.ok(Math.abs(seconds - at()) < 30, `${what}: ${seconds}`)

t.test('a connected user is online, and not active', async t => {
  await user(t, gateway, { sub: 'ann' })
  await until(async () => (await statusOf('ann')).online > 0)
  const { online, ...rest } = await statusOf('ann')
  isNow(t, online, 'online')
  t.strictSame(rest, { user: 'ann' })
})

t.test('the rpc sets active and online, and the state', async t => {
  const client = await user(t, gateway, { sub: 'bob' })
  t.strictSame((await update(client, {})).rpc, {})
  const { active, online, ...rest } = await statusOf('bob')
  isNow(t, active, 'active')
  isNow(t, online, 'online')
  t.strictSame(rest, { user: 'bob' })
  // Within the same second: each reply means that the state is stored.
  t.strictSame((await update(client, { state: 'away' })).rpc, {})
  t.equal((await statusOf('bob')).state, 'away')
  t.strictSame((await update(client)).rpc, {}, 'without data')
  t.equal((await statusOf('bob')).state, 'away', 'stays')
  t.strictSame((await update(client, { state: '' })).rpc, {})
  t.strictSame(Object.keys(await statusOf('bob')), ['user', 'active', 'online'])
})

t.test('rate limits count it as any rpc', async t => {
  const client = await user(t, gateway, { sub: 'often' })
  for (let i = 0; i < 4; i++) t.strictSame((await update(client, {})).rpc, {})
  t.strictSame((await update(client, {})).error, error(111, 'too many requests', true))
})

t.test('anonymous clients and invalid data are refused', async t => {
  t.strictSame((await update(await anonymous(t, gateway), {})).error, error(103, 'permission denied'))
  const client = await user(t, gateway, { sub: 'odd' })
  for (const data of [[], { state: 5 }, { state: 'ü'.repeat(33) }])
    t.strictSame((await update(client, data)).error, error(107, 'bad request'), JSON.stringify(data))
  t.equal((await statusOf('odd')).active, undefined)
  const long = await user(t, gateway, { sub: 'x'.repeat(256) })
  t.strictSame((await update(long, {})).error, error(107, 'bad request'), 'the name is too long')
})

t.test('the API sets active and state of users that are not connected', async t => {
  const call = { users: ['u1', 'u2'], state: 'busy' }
  t.strictSame(await gateway.api('update_user_status', call), { result: {} })
  const [first, second, third] = await statuses('u2', 'u1', 'u2')
  isNow(t, first.active, 'active')
  t.strictSame(first, { user: 'u2', active: first.active, state: 'busy' })
  t.strictSame(second, { user: 'u1', active: second.active, state: 'busy' })
  t.strictSame(third, first)
  await gateway.api('update_user_status', { users: ['u1'] })
  t.equal((await statusOf('u1')).state, 'busy', 'stays')
  await gateway.api('update_user_status', { users: ['u1'], state: '' })
  t.equal((await statusOf('u1')).state, undefined)
  t.strictSame(await statuses('never', '__proto__'), [{ user: 'never' }, { user: '__proto__' }])
})

t.test('a deleted status is gone, also while the user is connected', async t => {
  const client = await user(t, gateway, { sub: 'gone' })
  await update(client, { state: 'here' })
  await until(async () => (await statusOf('gone')).online > 0)
  t.strictSame(await gateway.api('delete_user_status', { users: ['gone', 'never'] }), { result: {} })
  t.strictSame(await statusOf('gone'), { user: 'gone' })
})

t.test('the last disconnect sets online', async t => {
  const clients = [await user(t, gateway, { sub: 'left' }), await user(t, gateway, { sub: 'left' })]
  await until(async () => (await statusOf('left')).online > 0)
  // A user is written once a second.
  await wait(1100)
  await gateway.api('delete_user_status', { users: ['left'] })
  for (const client of clients) await client.close()
  await until(async () => (await statusOf('left')).online > 0)
  isNow(t, (await statusOf('left')).online, 'online')
})

t.test('limits of the API, in a batch too', async t => {
  const refused = async (
    /** @type {object} */ call,
    /** @type {number} */ code,
    /** @type {string} */ message,
  ) => {
    for (const method of ['update_user_status', 'get_user_status', 'delete_user_status']) {
      t.match(await gateway.api(method, call), { error: { code, message } }, `${method} ${message}`)
      const { replies } = await gateway.api('batch', { commands: [{ [method]: call }] })
      t.match(replies, [{ error: { code } }])
    }
  }
  const many = Array.from({ length: 1001 }, (_, i) => `u${i}`)
  await refused({ users: many }, 106, 'limit exceeded')
  await refused({}, 107, 'bad request')
  await refused({ users: [''] }, 107, 'bad request')
  await refused({ users: ['x'.repeat(256)] }, 107, 'bad request')
  t.equal((await statuses(...many.slice(1))).length, 1000)
  const state = 'x'.repeat(65)
  t.match(await gateway.api('update_user_status', { users: ['u'], state }), { error: { code: 107 } })
  const { replies } = await gateway.api('batch', { commands: [{ get_user_status: { users: ['never'] } }] })
  t.strictSame(replies, [{ get_user_status: { statuses: [{ user: 'never' }] } }])
})

t.test('the snapshot keeps the status', async t => {
  const client = await user(t, gateway, { sub: 'kept' })
  await update(client, { state: 'busy' })
  const before = await statusOf('kept')
  await gateway.stop()
  gateway = await startGateway(t, config)
  const after = await statusOf('kept')
  // The disconnect at the shutdown was the last one.
  t.ok(after.online >= before.online)
  t.strictSame({ ...after, online: 0 }, { ...before, online: 0 })
})
