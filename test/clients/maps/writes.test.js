// Clients that publish and remove keys: permissions, keys of the server, hooks and proxies.

import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import t from 'tap'
import { testdir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { makeToken } from '../auth/jwt.js'

const PERSISTENT = { mode: 'persistent' }
const MAP = {
  subscription_type: 'map',
  allow_subscribe_for_client: true,
  allow_subscribe_for_anonymous: true,
}
const MAY_WRITE = { allow_publish_for_client: true, allow_remove_for_client: true }
const ANYBODY = { allow_publish_for_anonymous: true, allow_remove_for_anonymous: true }
const SUBSCRIBERS = { allow_publish_for_subscriber: true, allow_remove_for_subscriber: true }
const PROXIED = { publish_proxy_enabled: true, remove_proxy_enabled: true }
const SECRET = 'secret of the tests'
const base = {
  workers: 1,
  http_api: { insecure: true },
  client: { allow_anonymous_connect_without_token: true, token: { hmac_secret_key: SECRET } },
}

/** @param {any} t @param {any} gateway @param {string} [user] */
async function connect(t, gateway, user = '') {
  const token = user === '' ? '' : makeToken({ sub: user }, SECRET)
  const client = await RawClient.connected(gateway.ws, { token })
  t.teardown(() => client.socket.terminate())
  const write = async (channel, fields) =>
    (await client.call('publish', { channel, type: 1, ...fields })).error?.code ?? 0
  return {
    client,
    put: (channel, key, data, more = {}) => write(channel, { key, data, ...more }),
    remove: (channel, key) => write(channel, { key, removed: true }),
    subscribe: channel => client.call('subscribe', { channel, type: 1, phase: 2 }),
  }
}

/** @param {any} gateway @param {string} channel @returns {Promise<any[]>} entries */
async function stateOf(gateway, channel) {
  const body = JSON.stringify({ channel, limit: -1 })
  const response = await fetch(`${gateway.url}/api/map_read_state`, { method: 'POST', body })
  return (await response.json()).result.entries
}

t.test('permissions and keys', async t => {
  const gateway = await startGateway(t, {
    ...base,
    channel: {
      namespaces: [
        { name: 'closed', ...MAP, map: PERSISTENT },
        { name: 'users', ...MAP, map: { ...PERSISTENT, ...MAY_WRITE } },
        { name: 'all', ...MAP, map: { ...PERSISTENT, ...MAY_WRITE, ...ANYBODY } },
        { name: 'subscribers', ...MAP, map: { ...PERSISTENT, ...SUBSCRIBERS } },
        { name: 'own', ...MAP, map: { ...PERSISTENT, ...MAY_WRITE, ...ANYBODY, client_key: 'user_id' } },
        {
          name: 'json',
          ...MAP,
          publication_data_format: 'json_object',
          map: { ...PERSISTENT, ...MAY_WRITE },
        },
        { name: 'stream' },
      ],
    },
  })
  const ann = await connect(t, gateway, 'ann')
  const nobody = await connect(t, gateway)
  t.equal(await ann.put('closed:1', 'k', 1), 103)
  t.equal(await ann.remove('closed:1', 'k'), 103)
  t.equal(await ann.put('users:1', 'k', 1), 0)
  t.equal(await nobody.put('users:1', 'k', 2), 103)
  t.equal(await nobody.remove('users:1', 'k'), 103)
  t.equal(await nobody.put('all:1', 'k', 1), 0)
  t.equal(await nobody.remove('all:1', 'k'), 0)
  t.equal(await nobody.remove('all:1', 'k'), 0, 'a suppressed write is no error')
  t.equal(await ann.put('subscribers:1', 'k', 1), 103)
  t.ok((await ann.subscribe('subscribers:1')).subscribe)
  t.equal(await ann.put('subscribers:1', 'k', 1), 0)
  t.equal(await ann.put('own:1', 'ignored', { me: 1 }), 0)
  t.equal(await nobody.put('own:1', 'ignored', 1), 103, 'an anonymous user has no key')
  t.match(await stateOf(gateway, 'own:1'), [{ key: 'ann', data: { me: 1 } }])
  t.equal(await ann.put('users:1', '', 1), 107)
  t.equal(await ann.put('users:1', 'x'.repeat(1025), 1), 107)
  t.equal(await ann.put('json:1', 'k', 'text'), 107)
  t.equal(await ann.put('stream:1', 'k', 1), 103)
  t.equal(await ann.put('none:1', 'k', 1), 102)
  t.match(
    (await stateOf(gateway, 'users:1')).map(({ key }) => key),
    ['k'],
  )
})

t.test('compare-and-set of clients', async t => {
  const gateway = await startGateway(t, {
    ...base,
    channel: { namespaces: [{ name: 'board', ...MAP, map: { ...PERSISTENT, ...MAY_WRITE } }] },
  })
  const { client } = await connect(t, gateway, 'ann')
  const put = (data, fields) =>
    client.call('publish', { channel: 'board:1', type: 1, key: 'card', data, ...fields })
  const first = (await put(1, { expected_offset: 0 })).publish
  t.match(first, { offset: 1, epoch: /^\w+$/ })
  t.match(await put(2, { expected_offset: 0 }), {
    publish: { suppress_reason: 'position_mismatch', current: { key: 'card', data: 1, offset: 1 } },
  })
  t.match(await put(2, { expected_offset: 1, expected_epoch: first.epoch }), { publish: { offset: 2 } })
  t.same((await put(3, {})).publish, {}, 'as in the protocol without the extension')
})

t.test('hooks in process decide on keys', async t => {
  const folder = testdir(t)
  const module = new URL('../../../src/backends/hooks/index.js', import.meta.url)
  await writeFile(
    `${folder}/hooks.mjs`,
    `import { disconnect, reject } from '${module}'
     export const mapPublish = ({ key, data, user, allowed }) => {
       if (key === 'refused') throw reject(4001, 'not this key')
       if (key === 'out') throw disconnect(4500, 'go')
       if (key === 'passed') return undefined
       return { key: key + '!', data: { data, user, allowed }, tags: { by: 'hook' }, keyMode: 'if_new' }
     }
     export const mapRemove = ({ key }) => ({ key: key + '!' })`,
  )
  const gateway = await startGateway(t, {
    ...base,
    hooks: `${folder}/hooks.mjs`,
    channel: { namespaces: [{ name: 'map', ...MAP, map: PERSISTENT }] },
  })
  const ann = await connect(t, gateway, 'ann')
  t.equal(await ann.put('map:1', 'k', 'ü🎈'), 0)
  t.equal(await ann.put('map:1', 'k', 'again'), 0)
  t.match(await stateOf(gateway, 'map:1'), [
    { key: 'k!', data: { data: 'ü🎈', user: 'ann', allowed: false }, tags: { by: 'hook' } },
  ])
  t.equal(await ann.put('map:1', 'refused', 1), 4001)
  t.equal(await ann.put('map:1', 'passed', 1), 103, 'the rules of the namespace decide')
  t.equal(await ann.remove('map:1', 'k'), 0)
  t.same(await stateOf(gateway, 'map:1'), [])
  ann.client.send({ id: 99, publish: { channel: 'map:1', type: 1, key: 'out', data: 1 } })
  t.match(await ann.client.closed, { code: 4500 })
})

t.test('proxies decide on keys', async t => {
  /** @type {any[]} */
  const requests = []
  /** @type {any} */
  let answer = {}
  const backend = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    requests.push({ path: request.url, ...JSON.parse(text) })
    response.end(JSON.stringify(answer))
  })
  backend.listen(0, '127.0.0.1')
  await once(backend, 'listening')
  t.teardown(() => backend.close().closeAllConnections())
  const { port } = /** @type {import('node:net').AddressInfo} */ (backend.address())
  const proxyOf = path => ({ endpoint: `http://127.0.0.1:${port}/${path}` })
  const gateway = await startGateway(t, {
    ...base,
    channel: {
      proxy: { map_publish: proxyOf('publish'), map_remove: proxyOf('remove') },
      namespaces: [{ name: 'map', ...MAP, map: { ...PERSISTENT, ...PROXIED } }],
    },
  })
  const ann = await connect(t, gateway, 'ann')
  t.equal(await ann.put('map:1', 'k', { n: 1 }), 0)
  t.match(requests.at(-1), { path: '/publish', user: 'ann', channel: 'map:1', key: 'k', data: { n: 1 } })
  t.match(await stateOf(gateway, 'map:1'), [{ key: 'k', data: { n: 1 } }], 'approved as sent')
  answer = { result: { key: 'other', b64data: Buffer.from('"bytes"').toString('base64'), tags: { a: 'b' } } }
  t.equal(await ann.put('map:1', 'k', { n: 2 }), 0)
  t.match(await stateOf(gateway, 'map:1'), [
    { key: 'k', data: { n: 1 } },
    { key: 'other', tags: { a: 'b' } },
  ])
  answer = { error: { code: 4002, message: 'no' } }
  t.equal(await ann.put('map:1', 'k', 3), 4002)
  t.equal(await ann.remove('map:1', 'k'), 4002)
  answer = { result: {} }
  t.equal(await ann.remove('map:1', 'k'), 0)
  t.match(requests.at(-1), { path: '/remove', user: 'ann', channel: 'map:1', key: 'k' })
  t.match(
    (await stateOf(gateway, 'map:1')).map(({ key }) => key),
    ['other'],
  )
})
