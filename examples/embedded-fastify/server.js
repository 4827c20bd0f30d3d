// A Fastify program with a gateway in it: a shop whose orders are followed by their customers.
//
//   npm install halley-gateway fastify
//   node server.js
//
// PORT of Fastify (3000), GATEWAY_PORT (8000); 0 picks a free one. ORIGIN: of the pages, behind a reverse proxy.

import { createHmac, randomBytes } from 'node:crypto'
import Fastify from 'fastify'
import { createGateway } from 'halley-gateway'

const { PORT = '3000', GATEWAY_PORT = '8000', ORIGIN = 'http://127.0.0.1:3000', WORKERS = '0' } = process.env
const secret = process.env.TOKEN_SECRET ?? randomBytes(32).toString('hex')

/** The gateway as a plugin: `app.gateway` has the methods, and closing the app stops it. */
async function halley(app, config) {
  const gateway = await createGateway({ config, log: app.log.child({ part: 'gateway' }) })
  app.decorate('gateway', gateway)
  app.addHook('onClose', () => gateway.stop())
}
// Not encapsulated: all routes see app.gateway.
halley[Symbol.for('skip-override')] = true

/** A token that lets a customer connect; their personal channel comes with it. @param {string} user */
function connectionToken(user) {
  const part = value => Buffer.from(JSON.stringify(value)).toString('base64url')
  const text = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ sub: user, exp: Math.floor(Date.now() / 1000) + 3600 })}`
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
}

const app = Fastify({ logger: { level: 'warn' } })

await app.register(halley, {
  workers: Number(WORKERS),
  http_server: { address: '127.0.0.1', port: Number(GATEWAY_PORT) },
  http_api: { disabled: true },
  client: {
    token: { hmac_secret_key: secret },
    allowed_origins: [ORIGIN],
    subscribe_to_user_personal_channel: { enabled: true },
  },
  channel: { without_namespace: { history_size: 20, history_ttl: '10m', force_recovery: true } },
})

const customer = {
  type: 'object',
  required: ['user'],
  properties: { user: { type: 'string', minLength: 1 } },
}

app.get('/session', { schema: { querystring: customer } }, async request => ({
  token: connectionToken(request.query.user),
}))

const order = {
  type: 'object',
  required: ['user', 'state'],
  properties: {
    user: { type: 'string', minLength: 1 },
    state: { enum: ['paid', 'packed', 'sent'] },
  },
}

app.put('/orders/:id', { schema: { body: order } }, async request => {
  const { user, state } = request.body
  // The order's state is published once, however often the caller repeats the request.
  const idempotencyKey = `${request.params.id}:${state}`
  return app.gateway.publish(`#${user}`, { order: request.params.id, state }, { idempotencyKey })
})

const address = await app.listen({ port: Number(PORT), host: '127.0.0.1' })
console.log(`app ${address}`)
console.log(`gateway ${app.gateway.url}`)

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => app.close())
