// Namespaces with patterns (docs/access.md), over real sockets.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { testdir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { poll } from '../../kit/uni-poll-client.js'
import { until } from '../../kit/wait.js'
import { ProtobufClient } from '../transport/protobuf-client.js'
import { error, history, open, token, tokenClient, user } from './support.js'

const DENIED = error(103, 'permission denied')
const UNKNOWN = error(102, 'unknown channel')
const BAD = error(107, 'bad request')

const namespaces = [
  { name: 'users_name', pattern: '/users/:name', ...open },
  { name: 'me', pattern: '/users/me' },
  { name: 'personal', pattern: '/p/user_:u', ...open, ...history },
  { name: 'strict', pattern: '/strict/:x', channel_regex: '^/strict/[a-z]+$', ...open },
  { name: 'rooms', pattern: '/rooms/:room', allow_user_limited_channels: true },
  { name: 'events', pattern: '/e/:p/:t' },
  { name: 'plain', ...open },
]

t.test('channels that start with a slash', async t => {
  const folder = testdir(t, {
    'hooks.mjs': `
      const data = ({ vars, channel }) => ({ data: { vars, channel } })
      export const subscribe = event => (event.channel.includes('/e/') ? data(event) : undefined)
      export const publish = event => (event.channel.startsWith('/e/') ? data(event) : undefined)
      export const connect = ({ vars, data }) => (data?.vars ? { data: { vars } } : undefined)`,
  })
  const gateway = await startGateway(t, {
    workers: 1,
    hooks: { module: `${folder}/hooks.mjs` },
    client: tokenClient(),
    uni_poll: { enabled: true },
    channel: { patterns: true, without_namespace: open, namespaces },
  })
  const client = await user(t, gateway)
  /** @param {string} channel @param {object} [request] */
  const subscribed = async (channel, request) => (await client.subscribe(channel, request)).error ?? 'ok'

  t.test('belong to the namespace whose pattern fits the whole name', async t => {
    t.equal(await subscribed('/users/m'), 'ok')
    for (const channel of ['/users', '/users/', '/users/m/x', '/users//x', '/Users/m', '/', '//'])
      t.strictSame(await subscribed(channel), UNKNOWN, channel)
    t.equal(await subscribed('/p/user_a'), 'ok')
    t.strictSame(await subscribed('/p/user_'), UNKNOWN)
    t.strictSame(await subscribed('/users/me'), DENIED, 'the options of /users/me')
    const binary = await ProtobufClient.connected(gateway.ws, { token: token({ sub: 'u2' }) })
    t.ok((await binary.subscribe('/users/m')).subscribe)
    t.match((await binary.subscribe('/zzz')).error, UNKNOWN)
    await binary.close()
  })

  t.test('are published to, and read', async t => {
    await gateway.api('publish', { channel: '/p/user_b', data: 1 })
    t.equal(await subscribed('/p/user_b'), 'ok')
    t.ok((await client.call('publish', { channel: '/p/user_b', data: 2 })).publish)
    t.match((await client.push('pub')).pub, { data: 2, offset: 2 })
    t.equal(
      (await client.call('history', { channel: '/p/user_b', limit: -1 })).history.publications.length,
      2,
    )
    t.strictSame((await gateway.api('publish', { channel: '/zzz', data: 1 })).error, UNKNOWN)
    t.strictSame((await client.call('publish', { channel: '/zzz', data: 1 })).error, UNKNOWN)
    const listed = token({ sub: 'u1', channels: ['/users/m'] })
    t.equal((await poll(gateway, { channel: '/users/m', timeout: 0, token: listed })).status, 200)
    t.equal((await poll(gateway, { channel: '/zzz', timeout: 0, token: token({ sub: 'u1' }) })).status, 404)
  })

  t.test('are no names of other namespaces, and other channels have no patterns', async t => {
    t.strictSame(await subscribed('users_name:m'), UNKNOWN)
    for (const channel of ['plain:/users/me', 'plain/users/me', 'users/m'])
      t.equal(await subscribed(channel), 'ok', channel)
  })

  t.test('channel_regex sees the whole name, other names are ASCII', async t => {
    t.equal(await subscribed('/strict/m'), 'ok')
    t.strictSame(await subscribed('/strict/M'), BAD)
    t.strictSame(await subscribed('/users/ü'), BAD)
  })

  t.test('private and user-limited channels keep their rules', async t => {
    t.strictSame(await subscribed('$/users/m'), DENIED)
    const own = token({ sub: 'u1', channel: '$/users/m' })
    t.equal(await subscribed('$/users/m', { token: own }), 'ok')
    t.strictSame(await subscribed('$/zzz', { token: token({ sub: 'u1', channel: '$/zzz' }) }), UNKNOWN)
    t.equal(await subscribed('/rooms/a#u1,u2'), 'ok')
    t.strictSame(await subscribed('/rooms/a#u2'), DENIED)
    t.strictSame(await subscribed('/rooms/a'), DENIED)
  })

  t.test('hooks get the variables', async t => {
    const { subscribe } = await client.subscribe('/e/acme/sales')
    t.strictSame(subscribe.data, { vars: { p: 'acme', t: 'sales' }, channel: '/e/acme/sales' })
    await client.call('publish', { channel: '/e/acme/x_1', data: 1 })
    const reader = await user(t, gateway)
    await reader.subscribe('/e/acme/sales')
    await client.call('publish', { channel: '/e/acme/sales', data: 1 })
    t.strictSame((await reader.push('pub')).pub.data.vars, { p: 'acme', t: 'sales' })
    t.strictSame((await client.subscribe('plain:/e/1')).subscribe.data.vars, {}, 'none without a pattern')
    const other = await user(t, gateway, { sub: 'u3' }, { data: { vars: true } })
    t.strictSame(other.connect.data, { vars: {} })
  })
})

t.test('a reload switches patterns on and changes them', async t => {
  const gateway = await startGateway(t, {
    workers: 1,
    client: tokenClient(),
    channel: { without_namespace: open },
  })
  const client = await user(t, gateway)
  t.ok((await client.subscribe('/users/a')).subscribe, 'off: a channel without namespace')
  /** @param {object} channel */
  const reload = async channel => {
    const isLine = (/** @type {any} */ { msg }) => /^configuration (not )?reloaded/.test(msg)
    const before = gateway.lines.filter(isLine).length
    const path = join(gateway.folder, 'config.json')
    await writeFile(path, JSON.stringify({ ...JSON.parse(await readFile(path, 'utf8')), channel }))
    gateway.process.kill('SIGHUP')
    await until(() => gateway.lines.filter(isLine).length > before)
    return gateway.lines.findLast(isLine)
  }
  await reload({ patterns: true, without_namespace: open, namespaces })
  t.strictSame((await client.subscribe('/other')).error, UNKNOWN)
  t.strictSame((await client.subscribe('/users/me')).error, DENIED)
  t.ok((await client.subscribe('/users/b')).subscribe)
  const refused = await reload({
    patterns: true,
    namespaces: [...namespaces, { name: 'two', pattern: '/users/:x' }],
  })
  t.match(JSON.stringify(refused), /fit the same channels/)
  t.ok((await client.subscribe('/users/c')).subscribe, 'the former configuration stays')
  await reload({ patterns: true, namespaces: [{ name: 'only', pattern: '/other', ...open }] })
  t.ok((await client.subscribe('/other')).subscribe)
  t.strictSame((await client.subscribe('/users/d')).error, UNKNOWN)
})
