// The chat of ../chat with an Express backend instead of hooks: the gateway posts its events to it (event proxies).
//
//   node examples/chat-express/server.js       in a checkout, after `npm ci`: the backend, and the page at
//                                              http://127.0.0.1:3000/
//   npx halley-gateway serve -c examples/chat-express/halley.json    the gateway, in another terminal
//
// In a folder of your own, install the packages `halley-gateway` (docs/install.md), `express` and `centrifuge`.
//
// Environment: PORT (3000), GATEWAY (http://127.0.0.1:8000), API_KEY. halley.json has the same port, address and key.
//
// Several backends can share the load, since this process keeps no state: the name of a client is in the metadata of
// its connection, and presence has the members of a room.

import { fileURLToPath } from 'node:url'
import express from 'express'
import { ApiClient } from 'halley-gateway/api'

const {
  PORT = '3000',
  GATEWAY = 'http://127.0.0.1:8000',
  API_KEY = 'change me: 32 random bytes',
} = process.env
const gateway = new ApiClient({ url: GATEWAY, key: API_KEY })

const ROOM = /^room:[a-z0-9-]{1,20}$/
const NAME = /^[\p{L}\p{N} _-]{1,20}$/u
const MAX_TEXT = 500

const refuse = (code, message) => ({ error: { code, message } })
const notice = (room, text) => gateway.publish(room, { notice: text })

/** Handlers of the gateway's events. halley.json has an endpoint for each. */
const events = {
  connect({ client, data }) {
    const name = data?.name?.trim?.()
    if (!NAME.test(name ?? ''))
      return refuse(4000, 'a name has 1 to 20 letters, digits, spaces, dashes or underscores')
    return { result: { user: client, info: { name }, meta: { name } } }
  },

  async subscribe({ channel, meta }) {
    if (!ROOM.test(channel)) return refuse(4001, 'a room has 1 to 20 lowercase letters, digits or dashes')
    await notice(channel, `${meta.name} is here`)
    return { result: { data: { welcome: `You are in ${channel.slice('room:'.length)}.` } } }
  },

  async publish({ user, channel, data, meta }) {
    const text = data?.text
    if (typeof text !== 'string' || text.trim() === '' || text.length > MAX_TEXT)
      return refuse(4003, `a message has 1 to ${MAX_TEXT} characters`)
    const { presence } = await gateway.presence(channel)
    if (!Object.values(presence).some(member => member.user === user))
      return refuse(4002, 'enter the room first')
    return { result: { data: { room: channel, name: meta.name, text } } }
  },

  async unsubscribed({ channel, meta }) {
    await notice(channel, `${meta.name} has left`)
    return {}
  },

  async disconnected({ channels = [], meta }) {
    await Promise.all(channels.map(channel => notice(channel, `${meta.name} has left`)))
    return {}
  },
}

const app = express()
app.use(express.json())
for (const [event, handle] of Object.entries(events)) {
  app.post(`/centrifugo/${event}`, async (request, response) => response.json(await handle(request.body)))
}
app.get('/', (_request, response) =>
  response.sendFile(fileURLToPath(new URL('../chat/page.html', import.meta.url))),
)
app.get('/gateway', (_request, response) => response.type('text').send(GATEWAY))
app.get('/centrifuge.js', (_request, response) =>
  response.sendFile(fileURLToPath(new URL('../dist/centrifuge.js', import.meta.resolve('centrifuge')))),
)
const server = app.listen(Number(PORT), '127.0.0.1', () =>
  console.log(`app http://127.0.0.1:${server.address().port}`),
)
