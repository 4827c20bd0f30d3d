// The chat of ../chat with its rules in an Express backend: the gateway asks it over HTTP (event proxies).
//
//   npm install halley-gateway express centrifuge
//   node server.js                                    the backend, and the page at http://127.0.0.1:3000/
//   npx halley-gateway serve -c halley.json                   the gateway, in another terminal
//
// PORT (3000), GATEWAY (http://127.0.0.1:8000), API_KEY as in halley.json. Any number of backends may stand behind one
// address: names and rooms are in the connection's metadata and in the channels, not in this process.

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

/** What the gateway asks: the path of each is an endpoint in halley.json. */
const events = {
  connect({ client, data }) {
    const name = data?.name?.trim?.()
    if (!NAME.test(name ?? '')) return refuse(4000, 'a name has 1 to 20 letters, digits or spaces')
    return { result: { user: client, info: { name }, meta: { name } } }
  },

  async subscribe({ channel, meta }) {
    if (!ROOM.test(channel)) return refuse(4001, 'a room has 1 to 20 small letters, digits or dashes')
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

  unsubscribed: ({ channel, meta }) => notice(channel, `${meta.name} has left`),

  disconnected: ({ channels = [], meta }) =>
    Promise.all(channels.map(channel => notice(channel, `${meta.name} has left`))),
}

const app = express()
app.use(express.json())
for (const [event, decide] of Object.entries(events)) {
  app.post(`/centrifugo/${event}`, async (request, response) => {
    const answer = await decide(request.body)
    response.json(answer?.result || answer?.error ? answer : {})
  })
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
