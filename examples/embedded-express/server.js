// A chat backend in Express with an embedded gateway: clients post messages to Express, and the gateway delivers them.
//
//   node examples/embedded-express/server.js    in a checkout, after `npm ci`; then open
//                                               http://127.0.0.1:3000/?user=anna
//
// In a folder of your own, install the packages `halley-gateway` (docs/install.md), `express` and `centrifuge`.
//
// Environment:
//   PORT, GATEWAY_PORT   ports of Express (3000) and of the gateway (8000); 0 picks a free one
//   ORIGIN               origin of the page, if a reverse proxy serves Express and the gateway from one origin
//   WORKERS              worker processes of the gateway (0: one for each core)
//   TOKEN_SECRET         key that signs the tokens (default: a random one for each start)

import { createHmac, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import express from 'express'
import { ApiError, createGateway } from 'halley-gateway'

const { PORT = '3000', GATEWAY_PORT = '8000', ORIGIN, WORKERS = '0' } = process.env
const secret = process.env.TOKEN_SECRET ?? randomBytes(32).toString('hex')

const app = express()
const server = createServer(app).listen(Number(PORT), '127.0.0.1')
await once(server, 'listening')
const origin = ORIGIN ?? `http://127.0.0.1:${server.address().port}`

const gateway = await createGateway({
  config: {
    workers: Number(WORKERS),
    http_server: { address: '127.0.0.1', port: Number(GATEWAY_PORT) },
    // This program calls the gateway's methods and does not need the HTTP API.
    http_api: { disabled: true },
    client: { token: { hmac_secret_key: secret }, allowed_origins: [origin] },
    channel: {
      namespaces: [
        {
          name: 'room',
          presence: true,
          history_size: 50,
          history_ttl: '10m',
          force_recovery: true,
          allow_subscribe_for_client: true,
        },
      ],
    },
  },
})

/** A JWT that lets a user connect, valid for one hour. @param {string} user */
function connectionToken(user) {
  const segment = value => Buffer.from(JSON.stringify(value)).toString('base64url')
  const exp = Math.floor(Date.now() / 1000) + 3600
  const signed = `${segment({ alg: 'HS256', typ: 'JWT' })}.${segment({ sub: user, exp })}`
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
}

/** The client SDK for browsers. */
const sdk = fileURLToPath(new URL('../dist/centrifuge.js', import.meta.resolve('centrifuge')))

app.use(express.json({ limit: '16kb' }))
app.get('/', (_request, response) => response.sendFile(fileURLToPath(new URL('page.html', import.meta.url))))
app.get('/centrifuge.js', (_request, response) => response.sendFile(sdk))

// A real program would ask for a password here.
app.get('/session', (request, response) => {
  const { user } = request.query
  if (typeof user !== 'string' || user === '') return response.status(400).json({ error: 'user is missing' })
  response.json({ token: connectionToken(user), gateway: ORIGIN ?? gateway.url })
})

app.post('/rooms/:room/messages', async (request, response) => {
  const { user, text } = request.body ?? {}
  if (typeof user !== 'string' || typeof text !== 'string')
    return response.status(400).json({ error: 'user and text must be strings' })
  response.status(201).json(await gateway.publish(`room:${request.params.room}`, { user, text }))
})

app.get('/rooms/:room/users', async (request, response) => {
  const { presence } = await gateway.presence(`room:${request.params.room}`)
  response.json([...new Set(Object.values(presence).map(({ user }) => user))].sort())
})

app.delete('/users/:user', async (request, response) => {
  await gateway.disconnect(request.params.user)
  response.status(204).end()
})

// Express 5 passes errors of async handlers to this one. An ApiError is the gateway's answer to a method.
app.use((error, _request, response, _next) => {
  const status = error instanceof ApiError ? 502 : (error.status ?? 500)
  response.status(status).json({ error: error.message })
})

console.log(`app http://127.0.0.1:${server.address().port}`)
console.log(`gateway ${gateway.url}`)

for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, async () => {
    server.close()
    server.closeIdleConnections()
    await gateway.stop()
  })
