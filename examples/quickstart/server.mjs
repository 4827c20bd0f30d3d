// The backend of the quickstart: serves the page, validates posted messages, and publishes them through the gateway.
//
//   npx halley-gateway                          the gateway, in another terminal; it shows its API key
//   npm install centrifuge                      the browser SDK, which this program serves
//   HALLEY_API_KEY=KEY node server.mjs          then open http://localhost:5173/
//
// GATEWAY (http://127.0.0.1:8000), PORT of the page (5173; 0 picks a free one)

import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'

const { HALLEY_API_KEY: key = '', GATEWAY: gateway = 'http://127.0.0.1:8000', PORT = '5173' } = process.env
const MAX_BODY = 10_000

/** Prints an error with instructions and exits. */
function fail(text) {
  console.error(text)
  process.exit(1)
}

if (key === '') fail('HALLEY_API_KEY is not set: the gateway shows its key when it starts')
let sdk
try {
  sdk = new URL('../dist/centrifuge.js', import.meta.resolve('centrifuge'))
} catch {
  fail('the browser SDK is not installed: npm install centrifuge')
}

/** Calls the server API of the gateway. */
async function call(method, params) {
  const response = await fetch(`${gateway}/api/${method}`, {
    method: 'POST',
    headers: { 'X-API-Key': key },
    body: JSON.stringify(params),
  })
  if (!response.ok)
    throw new Error(`the gateway responded with HTTP ${response.status}: ${await response.text()}`)
  const { result, error } = await response.json()
  if (error) throw new Error(`the gateway responded with error ${error.code}: ${error.message}`)
  return result
}

/** Handles a posted message {name, text}. Add your own authentication and permission checks here. */
async function say(request, response) {
  let body = ''
  for await (const chunk of request.setEncoding('utf8')) {
    body += chunk
    if (body.length > MAX_BODY) return response.writeHead(413, { Connection: 'close' }).end()
  }
  let message
  try {
    message = JSON.parse(body)
  } catch {}
  const { name, text } = message ?? {}
  if (typeof name !== 'string' || typeof text !== 'string' || text.trim() === '')
    return response.writeHead(400).end('a message has a name and a text')
  await call('publish', {
    channel: 'chat',
    data: { name: name.slice(0, 20) || 'nobody', text: text.slice(0, 500) },
  })
  response.writeHead(204).end()
}

async function answer(request, response) {
  if (request.method === 'POST' && request.url === '/say') return say(request, response)
  const files = {
    '/': ['text/html; charset=utf-8', new URL('page.html', import.meta.url)],
    '/centrifuge.js': ['text/javascript', sdk],
  }
  if (request.url === '/gateway') return response.end(gateway)
  if (!Object.hasOwn(files, request.url)) return response.writeHead(404).end()
  const [type, file] = files[request.url]
  response.writeHead(200, { 'Content-Type': type }).end(await readFile(file))
}

const server = createServer((request, response) => {
  answer(request, response).catch(error => {
    console.error(
      error.cause?.code === 'ECONNREFUSED' ? `no gateway is listening at ${gateway}` : error.message,
    )
    if (!response.headersSent) response.writeHead(502).end('not sent: see the terminal of the backend')
  })
})
server.once('error', error => {
  fail(error.code === 'EADDRINUSE' ? `port ${PORT} is in use: set PORT to another one` : error.message)
})
server.listen(Number(PORT), 'localhost', () => {
  console.log(`page http://localhost:${server.address().port}/`)
})
