// The programs of docs/shared-poll.md, on a gateway with its configuration.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Centrifuge } from 'centrifuge'
import t from 'tap'
import WebSocket from 'ws'
import { parse } from 'yaml'
import { sign } from '../clients/shared-poll/refresh-backend.js'
import { startGateway } from '../kit/gateway.js'
import { withoutProgram } from '../kit/needs.js'
import { freePort } from '../kit/ports.js'
import { RawClient } from '../kit/raw-client.js'
import { until } from '../kit/wait.js'
import { blockWith, withSecrets } from './blocks.js'
import { workplace } from './workplace.js'

const PAGE = 'docs/shared-poll.md'
const port = await freePort()
/** The backend of the page listens on a free port. @param {string} text */
const moved = text => text.replaceAll('3000', String(port))

const config = parse(moved(withSecrets(blockWith(PAGE, 'yaml', 'shared_poll_refresh'))))
const { hmac_secret_key: secret } = config.shared_poll
config.channel.namespaces.push({
  ...config.channel.namespaces[0],
  name: 'scores',
  shared_poll: { mode: 'versioned', publish_enabled: true, refresh_interval: '1h' },
})
const folder = await workplace(t, [], { 'backend.mjs': moved(blockWith(PAGE, 'js', '// backend.mjs')) })
const backend = spawn(process.execPath, ['backend.mjs'], {
  cwd: folder,
  env: { ...process.env, SHARED_POLL_SECRET: secret },
  stdio: 'ignore',
})
t.teardown(async () => {
  backend.kill()
  await once(backend, 'exit')
})
const gateway = await startGateway(t, { ...config, workers: 1 })
const url = `http://127.0.0.1:${port}`

/** @param {string} path @param {object} body @returns {Promise<any>} */
const ask = async (path, body) =>
  (await fetch(`${url}${path}`, { method: 'POST', body: JSON.stringify(body) })).json()

await until(
  () => ask('/sign', { channel: 'x', keys: [] }),
  () => 'the backend',
)

t.test('the page shows prices as they change', async t => {
  const client = new Centrifuge(gateway.ws, { websocket: WebSocket })
  t.teardown(() => client.disconnect())
  client.connect()
  /** @type {Map<string, any>} */
  const shown = new Map()
  const names = {
    client,
    fetch: (address, init) => fetch(moved(address), init),
    show: (key, data) => shown.set(key, data),
    hide: key => shown.delete(key),
  }
  new Function(...Object.keys(names), blockWith(PAGE, 'js', 'newSharedPollSubscription'))(
    ...Object.values(names),
  )
  await until(
    () => shown.size === 2,
    () => `both prices: ${[...shown]}`,
  )
  t.equal(shown.get('INIT'), 42)
  const first = shown.get('ACME')
  await until(
    () => shown.get('ACME') > first,
    () => 'a new price',
  )
})

t.test('the backend signs only what it has', async t => {
  const client = await RawClient.connected(gateway.ws)
  t.teardown(() => client.socket.terminate())
  const channel = 'prices:stocks'
  await client.subscribe(channel, { type: 4 })
  const { keys, signature } = await ask('/sign', { channel, keys: ['ACME', 'secret'] })
  t.same(keys, ['ACME'])
  const track = items =>
    client.call('sub_refresh', {
      channel,
      type: 1,
      track: [{ signature, items: items.map(key => ({ key })) }],
    })
  t.match((await track(['ACME', 'secret'])).error, { code: 103 })
  t.match((await track(keys)).sub_refresh, { expires: true })
  t.match((await client.push('pub')).pub, { key: 'ACME', data: Number })
})

t.test('the request of the page publishes', { skip: withoutProgram('curl') }, async t => {
  const client = await RawClient.connected(gateway.ws)
  t.teardown(() => client.socket.terminate())
  const channel = 'scores:1'
  await client.subscribe(channel, { type: 4 })
  const text = blockWith(PAGE, 'sh', 'shared_poll_publish')
  const { key, version, data } = JSON.parse(/'(\{.*\})'/.exec(text)?.[1] ?? '')
  const batch = { signature: sign(channel, [key], { secret }), items: [{ key, version: version - 1 }] }
  await client.call('sub_refresh', { channel, type: 1, track: [batch] })
  const shell = text.replace('http://127.0.0.1:8000', gateway.url).replace('THE_KEY', 'key')
  const curl = spawn('sh', ['-c', shell], { stdio: 'ignore' })
  t.same(await once(curl, 'exit'), [0, null])
  t.match((await client.push('pub')).pub, { key, version, data })
})
