// Serves the page of the chat, and starts a gateway with the rules in hooks.js.
//
//   node examples/chat/server.js    in a checkout, after `npm ci`; then open http://127.0.0.1:3000/
//
// In a folder of your own, install the packages `halley-gateway` (docs/install.md) and `centrifuge`.
//
// Environment:
//   PORT, GATEWAY_PORT   ports of the page (3000) and of the gateway (8000); 0 picks a free one
//   HOOKS                path of another hooks module
//   WORKERS              worker processes of the gateway (0: one for each core)

import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { createGateway } from 'halley-gateway'

const { PORT = '3000', GATEWAY_PORT = '8000', WORKERS = '0', HOOKS } = process.env

/** Files of the page: path -> content type and file. The client SDK is the npm package `centrifuge`. */
const files = new Map([
  ['/', ['text/html; charset=utf-8', fileURLToPath(new URL('page.html', import.meta.url))]],
  [
    '/centrifuge.js',
    ['text/javascript', fileURLToPath(new URL('../dist/centrifuge.js', import.meta.resolve('centrifuge')))],
  ],
])

let gateway
const server = createServer(async (request, response) => {
  const [pathname] = request.url.split('?')
  if (pathname === '/gateway') return response.writeHead(gateway ? 200 : 503).end(gateway?.url)
  const file = files.get(pathname)
  if (!file) return response.writeHead(404).end()
  response.writeHead(200, { 'Content-Type': file[0] }).end(await readFile(file[1]))
}).listen(Number(PORT), '127.0.0.1')
await once(server, 'listening')
const page = `http://127.0.0.1:${server.address().port}`

gateway = await createGateway({
  hooks: HOOKS ?? new URL('hooks.js', import.meta.url),
  config: {
    workers: Number(WORKERS),
    http_server: { address: '127.0.0.1', port: Number(GATEWAY_PORT) },
    http_api: { disabled: true },
    client: { allowed_origins: [page] },
    channel: {
      namespaces: [
        {
          name: 'room',
          presence: true,
          history_size: 50,
          history_ttl: '10m',
          force_recovery: true,
          allow_publish_for_subscriber: true,
        },
      ],
    },
  },
})

console.log(`app ${page}`)
console.log(`gateway ${gateway.url}`)

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    server.close()
    server.closeAllConnections()
    await gateway.stop()
  })
}
