// Serves the page, starts a gateway with halley.json, and streams the answers of a language model to all pages.
//
//   node examples/token-stream/server.js    in a checkout, after `npm ci`; then open http://127.0.0.1:3000/
//
// In a folder of your own, install the packages `halley-gateway` (docs/install.md) and `centrifuge`.
//
// Environment:
//   PORT, GATEWAY_PORT   ports of the page (3000) and of the gateway (8000); 0 picks a free one
//   WORKERS              worker processes of the gateway (0: one for each core)
//   DELAY                mean time between two tokens, ms (60)

import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createGateway } from 'halley-gateway'
import { answer } from './model.js'

const { PORT = '3000', GATEWAY_PORT = '8000', WORKERS = '0', DELAY = '60' } = process.env
const CHANNEL = 'chat:1'
const MAX_QUESTION = 300
/** Answers in progress at the same time. */
const MAX_ANSWERS = 5

/** Files of the page: path -> content type and file. The client SDK is the npm package `centrifuge`. */
const files = new Map([
  ['/', ['text/html; charset=utf-8', new URL('page.html', import.meta.url)]],
  [
    '/centrifuge.js',
    ['text/javascript', new URL('../dist/centrifuge.js', import.meta.resolve('centrifuge'))],
  ],
])

let gateway
let answering = 0
let newest = 0

/**
 * Writes two entries: the question, and the answer, to which each token is appended.
 * @param {string} question
 */
async function converse(question) {
  newest = Math.max(newest + 1, Date.now())
  const id = newest.toString(36)
  await gateway.maps.publish(CHANNEL, `${id}/question`, { text: question, done: false })
  for await (const token of answer(question, Number(DELAY))) {
    // Only the token travels; the gateway appends it to the string that it keeps.
    await gateway.maps.publish(CHANNEL, `${id}/answer`, token, { append: true })
  }
  await gateway.maps.publish(CHANNEL, `${id}/question`, { text: question, done: true })
}

async function ask(request, response) {
  let question = ''
  for await (const chunk of request.setEncoding('utf8')) {
    question += chunk
    if (question.length > MAX_QUESTION)
      return response.writeHead(413, { Connection: 'close' }).end('too long')
  }
  if (question.trim() === '') return response.writeHead(400).end('a question has a text')
  if (answering === MAX_ANSWERS) return response.writeHead(429).end('wait for an answer to end')
  response.writeHead(202).end()
  answering++
  await converse(question.trim()).finally(() => answering--)
}

const server = createServer(async (request, response) => {
  try {
    if (request.method === 'POST' && request.url === '/ask') return await ask(request, response)
    if (request.url === '/gateway') return response.writeHead(gateway ? 200 : 503).end(gateway?.url)
    const file = files.get(request.url)
    if (!file) return response.writeHead(404).end()
    response.writeHead(200, { 'Content-Type': file[0] }).end(await readFile(file[1]))
  } catch (error) {
    console.error(error.message)
  }
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

console.log(`app ${page}`)
console.log(`gateway ${gateway.url}`)

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    server.close()
    server.closeAllConnections()
    await gateway.stop()
  })
}
