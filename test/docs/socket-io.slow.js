// The program of docs/socket-io.md: its hooks, its configuration and its client.

import { once } from 'node:events'
import { join } from 'node:path'
import { Centrifuge } from 'centrifuge'
import { ApiClient } from 'halley-gateway/api'
import { onRequest } from 'halley-gateway/client'
import t from 'tap'
import WebSocket from 'ws'
import { startGateway } from '../kit/gateway.js'
import { freePort } from '../kit/ports.js'
import { until } from '../kit/wait.js'
import { blockWith } from './blocks.js'
import { workplace } from './workplace.js'

const PAGE = 'docs/socket-io.md'

t.test('the hooks, the configuration and the client of the page work together', async t => {
  const folder = await workplace(t, [], { 'hooks.js': blockWith(PAGE, 'js', 'defineHooks') })
  const config = JSON.parse(blockWith(PAGE, 'json', 'http_api'))
  const gateway = await startGateway(t, {
    ...config,
    hooks: join(folder, 'hooks.js'),
    workers: 1,
    http_server: { address: '127.0.0.1', port: await freePort() },
    client: { allowed_origins: ['http://localhost:3000'] },
  })

  const printed = []
  const said = new Promise(resolve => {
    const program = blockWith(PAGE, 'js', "client.rpc('say'").replace(
      'ws://127.0.0.1:8000',
      gateway.url.replace('http', 'ws'),
    )
    class Client extends Centrifuge {
      constructor(url, options) {
        super(url, { websocket: WebSocket, ...options })
        t.teardown(() => this.disconnect())
      }
    }
    const log = (...line) => resolve(printed.push(line))
    const run = new Function(
      'Centrifuge',
      'console',
      `return (async () => { ${program}; return { client, data } })()`,
    )
    t.resolves(run(Client, { log }).then(({ data }) => t.same(data, {})))
  })
  await said
  t.match(printed[0], ['lobby', 'said', { name: 'Ann', text: 'hello' }])

  const nameless = new Centrifuge(gateway.ws, { websocket: WebSocket })
  t.teardown(() => nameless.disconnect())
  const refused = once(/** @type {any} */ (nameless), 'disconnected')
  nameless.connect()
  t.match((await refused)[0], { code: 4000, reason: 'who are you?' })
})

/** Runs a block of the page without its imports. @param {string} part @param {Record<string, any>} names @param {string} [result] */
const run = (part, names, result = '') => {
  const program = blockWith(PAGE, 'js', part).replace(/^import .*\n/gm, '')
  return new Function(...Object.keys(names), `return (async () => { ${program}; return { ${result} } })()`)(
    ...Object.values(names),
  )
}

t.test('acknowledgements and filters by tags', async t => {
  const running = await startGateway(t, {
    client: { allow_anonymous_connect_without_token: true, acks: { enabled: true } },
    channel: {
      without_namespace: {
        allow_subscribe_for_client: true,
        allow_subscribe_for_anonymous: true,
        allow_tags_filter: true,
      },
    },
  })
  const gateway = new ApiClient({ url: running.url, key: 'key' })
  t.teardown(() => gateway.close())
  const enter = async () => {
    const client = new Centrifuge(running.ws, { websocket: WebSocket })
    t.teardown(() => client.disconnect())
    client.connect()
    await client.ready()
    return client
  }
  const clients = await Promise.all([enter(), enter()])
  for (const client of clients) {
    await run('onRequest(client', { client, onRequest })
    const kitchen = client.newSubscription('kitchen')
    kitchen.subscribe()
    await kitchen.ready()
  }
  const { answers, complete } = await run('gateway.request(', { gateway }, 'answers, complete')
  t.ok(complete)
  t.strictSame(
    Object.values(answers),
    clients.map(() => ({ user: '', data: { accepted: 7 } })),
  )

  const printed = []
  const [client] = clients
  const { orders } = await run(
    'tagsFilter',
    { client, console: { log: (...line) => printed.push(line) } },
    'orders',
  )
  await orders.ready()
  await gateway.publish('orders', { id: 6 }, { tags: { shop: 'b', state: 'new' } })
  await run("gateway.publish('orders'", { gateway })
  await until(() => printed.length > 0)
  t.strictSame(printed, [[7, 'new']])
})
