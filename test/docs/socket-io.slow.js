// The program of docs/socket-io.md: its hooks, its configuration and its client.

import { once } from 'node:events'
import { join } from 'node:path'
import { Centrifuge } from 'centrifuge'
import t from 'tap'
import WebSocket from 'ws'
import { startGateway } from '../kit/gateway.js'
import { freePort } from '../kit/ports.js'
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
