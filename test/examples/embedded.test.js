// Express and Fastify programs with a gateway in them, each on its own port and behind one reverse proxy.

import t from 'tap'
import { freePort } from '../kit/ports.js'
import { next, sdk, startExample } from './example.js'
import { startReverseProxy } from './reverse-proxy.js'

const connect = (t, gateway, token, origin) => sdk(t, gateway, origin, { token })

async function call(url, method = 'GET', body = undefined) {
  const response = await fetch(url, {
    method,
    headers: { 'content-type': 'application/json' },
    body: body && JSON.stringify(body),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? null : JSON.parse(text) }
}

t.test('Express: its routes publish, read presence and disconnect, behind a reverse proxy', async t => {
  const proxy = await startReverseProxy(t)
  const example = await startExample(t, 'embedded-express', { ORIGIN: proxy.origin })
  Object.assign(proxy.targets, { app: example.app, gateway: example.gateway })
  const { origin } = proxy
  t.match(await (await fetch(`${origin}/`)).text(), /<script src="\/centrifuge\.js">/)
  t.equal((await fetch(`${origin}/centrifuge.js`)).status, 200)
  t.equal((await call(`${origin}/session`)).status, 400)
  const { body: session } = await call(`${origin}/session?user=anna`)
  t.equal(session.gateway, origin, 'clients use the origin of the page')

  const client = connect(t, session.gateway, session.token, origin)
  const room = client.newSubscription('room:lobby')
  const subscribed = next(room, 'subscribed')
  room.subscribe()
  client.connect()
  await subscribed
  const publication = next(room, 'publication')
  const posted = await call(`${origin}/rooms/lobby/messages`, 'POST', { user: 'anna', text: 'hello' })
  t.match(posted, { status: 201, body: { offset: 1, epoch: /\S/ } })
  t.match(await publication, { data: { user: 'anna', text: 'hello' }, offset: 1 })
  t.same((await call(`${origin}/rooms/lobby/users`)).body, ['anna'])
  t.equal((await call(`${origin}/rooms/lobby/messages`, 'POST', { user: 'anna' })).status, 400)

  const foreign = connect(t, session.gateway, session.token, 'http://elsewhere.example')
  const refused = next(foreign, 'error')
  foreign.connect()
  t.match((await refused).error, { code: 2 }, 'another origin is refused')
  foreign.disconnect()

  const disconnected = next(client, 'disconnected')
  t.equal((await call(`${origin}/users/anna`, 'DELETE')).status, 204)
  t.equal((await disconnected).code, 3503)
  t.same(await example.stop(), [0, null], 'the program exits')
})

t.test('Fastify: the gateway is a plugin with its own port', async t => {
  const origin = 'http://127.0.0.1:3000'
  const { app, gateway, stop } = await startExample(t, 'embedded-fastify', { ORIGIN: origin })
  const { body: session } = await call(`${app}/session?user=ben`)
  const client = connect(t, gateway, session.token, origin)
  const connected = next(client, 'connected')
  const publication = next(client, 'publication')
  client.connect()
  await connected
  const paid = { user: 'ben', state: 'paid' }
  const first = await call(`${app}/orders/17`, 'PUT', paid)
  t.match(first, { status: 200, body: { offset: 1 } })
  t.match(await publication, { channel: '#ben', data: { order: '17', state: 'paid' } })
  t.same(await call(`${app}/orders/17`, 'PUT', paid), first, 'repeated, and not published again')
  t.equal((await call(`${app}/orders/17`, 'PUT', { user: 'ben', state: 'lost' })).status, 400)
  const lost = next(client, 'connecting')
  const ended = stop()
  t.equal((await lost).code, 3001)
  client.disconnect()
  t.same(await ended, [0, null], 'closing the app stops the gateway')
})

t.test('Fastify: pages on PORT may connect without ORIGIN', async t => {
  const PORT = String(await freePort())
  const { app, gateway } = await startExample(t, 'embedded-fastify', { PORT })
  const { body: session } = await call(`${app}/session?user=ben`)
  const client = connect(t, gateway, session.token, `http://127.0.0.1:${PORT}`)
  const refused = next(client, 'error').then(({ error }) => Promise.reject(error))
  const connected = next(client, 'connected')
  client.connect()
  await t.resolves(Promise.race([connected, refused]))
  client.disconnect()
})
