// Serves the page of the board, and starts a gateway with halley.json and the rules in hooks.js.
//
//   node examples/kanban/server.js    in a checkout, after `npm ci`; then open http://127.0.0.1:3000/
//
// In a folder of your own, install the packages `halley-gateway` (docs/install.md) and `centrifuge`.
//
// Environment:
//   PORT, GATEWAY_PORT   ports of the page (3000) and of the gateway (8000); 0 picks a free one
//   WORKERS              worker processes of the gateway (0: one for each core)

import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createGateway } from 'halley-gateway'

const { PORT = '3000', GATEWAY_PORT = '8000', WORKERS = '0' } = process.env

/** Files of the page: path -> content type and file. The client SDK is the npm package `centrifuge`. */
const files = new Map([
  ['/', ['text/html; charset=utf-8', new URL('page.html', import.meta.url)]],
  [
    '/centrifuge.js',
    ['text/javascript', new URL('../dist/centrifuge.js', import.meta.resolve('centrifuge'))],
  ],
])

let gateway
const server = createServer(async (request, response) => {
  if (request.url === '/gateway') return response.writeHead(gateway ? 200 : 503).end(gateway?.url)
  const file = files.get(request.url)
  if (!file) return response.writeHead(404).end()
  response.writeHead(200, { 'Content-Type': file[0] }).end(await readFile(file[1]))
}).listen(Number(PORT), '127.0.0.1')
await once(server, 'listening')
const page = `http://127.0.0.1:${server.address().port}`

gateway = await createGateway({
  file: new URL('halley.json', import.meta.url),
  // What depends on the environment; the file takes precedence.
  config: {
    workers: Number(WORKERS),
    http_server: { port: Number(GATEWAY_PORT) },
    client: { allowed_origins: [page] },
  },
})

// The first cards of a new board.
const cards = [
  ['1', 'todo', 'Grüße an die Crew 🚀'],
  ['2', 'todo', '研究彗星的轨道'],
  ['3', 'doing', 'Open this page in a second window'],
  ['4', 'done', 'Start the gateway'],
]
for (const [key, column, text] of cards)
  await gateway.maps.publish('board:1', key, { text, column, by: 'server.js' }, { keyMode: 'if_new' })

console.log(`app ${page}`)
console.log(`gateway ${gateway.url}`)

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    server.close()
    server.closeAllConnections()
    await gateway.stop()
  })
}
