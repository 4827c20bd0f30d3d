// A shop backend in Fastify with an embedded gateway: customers see the state of their orders as it changes.
//
//   node examples/embedded-fastify/server.js    in a checkout, after `npm ci`
//
// In a folder of your own, install the packages `halley-gateway` (docs/install.md) and `fastify`.
//
// Environment:
//   PORT, GATEWAY_PORT   ports of Fastify (3000) and of the gateway (8000); 0 picks a free one
//   ORIGIN               origin of the pages (http://127.0.0.1:PORT); set it with PORT=0 or behind a reverse proxy
//   WORKERS              worker processes of the gateway (0: one for each core)
//   TOKEN_SECRET         key that signs the tokens (default: a random one for each start)

import { createHmac, randomBytes } from 'node:crypto'
import Fastify from 'fastify'
import { createGateway } from 'halley-gateway'

const { PORT = '3000', GATEWAY_PORT = '8000', WORKERS = '0' } = process.env
const origin = process.env.ORIGIN ?? `http://127.0.0.1:${PORT}`
const secret = process.env.TOKEN_SECRET ?? randomBytes(32).toString('hex')

/** Fastify plugin: `app.gateway` has the gateway's methods, and closing the app stops the gateway. */
async function gatewayPlugin(app, config) {
  const gateway = await createGateway({ config, log: app.log.child({ part: 'gateway' }) })
  app.decorate('gateway', gateway)
  app.addHook('onClose', () => gateway.stop())
}
// Not encapsulated: all routes see app.gateway.
gatewayPlugin[Symbol.for('skip-override')] = true

/** A JWT that lets a customer connect, valid for one hour. @param {string} user */
function connectionToken(user) {
  const segment = value => Buffer.from(JSON.stringify(value)).toString('base64url')
  const exp = Math.floor(Date.now() / 1000) + 3600
  const signed = `${segment({ alg: 'HS256', typ: 'JWT' })}.${segment({ sub: user, exp })}`
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
}

const app = Fastify({ logger: { level: 'warn' } })

await app.register(gatewayPlugin, {
  workers: Number(WORKERS),
  http_server: { address: '127.0.0.1', port: Number(GATEWAY_PORT) },
  http_api: { disabled: true },
  client: {
    token: { hmac_secret_key: secret },
    allowed_origins: [origin],
    // Each customer is subscribed to the channel `#USER`.
    subscribe_to_user_personal_channel: { enabled: true },
  },
  channel: { without_namespace: { history_size: 20, history_ttl: '10m', force_recovery: true } },
})

const sessionSchema = {
  type: 'object',
  required: ['user'],
  properties: { user: { type: 'string', minLength: 1 } },
}

// A real program would ask for a password here.
app.get('/session', { schema: { querystring: sessionSchema } }, async request => ({
  token: connectionToken(request.query.user),
}))

const orderSchema = {
  type: 'object',
  required: ['user', 'state'],
  properties: {
    user: { type: 'string', minLength: 1 },
    state: { enum: ['paid', 'packed', 'sent'] },
  },
}

// A real program would let only its staff call this.
app.put('/orders/:id', { schema: { body: orderSchema } }, async request => {
  const { user, state } = request.body
  // A request that is repeated within 5 minutes does not publish the state again.
  const idempotencyKey = `${request.params.id}:${state}`
  return app.gateway.publish(`#${user}`, { order: request.params.id, state }, { idempotencyKey })
})

const address = await app.listen({ port: Number(PORT), host: '127.0.0.1' })
console.log(`app ${address}`)
console.log(`gateway ${app.gateway.url}`)

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => app.close())
