// A backend of event proxies for proxy.js: answers every request after a delay. Argument: ms. Sends its port to the
// parent.

import { createServer } from 'node:http'

const delay = Number(process.argv[2])
const BODY = '{"result":{"user":"bench"}}'
const HEAD = { 'Content-Type': 'application/json', 'Content-Length': BODY.length }

const server = createServer((request, response) => {
  request.resume()
  setTimeout(() => response.writeHead(200, HEAD).end(BODY), delay)
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  process.send?.(port)
})
process.once('disconnect', () => process.exit())
