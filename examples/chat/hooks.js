// A chat whose rules are hooks: this file is the whole backend.
//
// Each worker of the gateway loads this file. A client stays in one worker, so variables can keep the state of a
// client. State that workers share belongs in channels or in a database.

import { defineHooks, reject } from 'halley-gateway/hooks'

const ROOM = /^room:[a-z0-9-]{1,20}$/
const NAME = /^[\p{L}\p{N} _-]{1,20}$/u
const MAX_TEXT = 500

/** Names of the clients of this worker, by client id. */
const names = new Map()
/** The methods of the server API. @type {import('halley-gateway/api').ServerApi} */
let gateway

/** Publishes a notice of the chat itself to a room. */
const notice = (room, text) => gateway.publish(room, { notice: text })

/** @returns {string} the trimmed name in a request @throws {Error} the refusal for the client */
function nameIn(data) {
  const name = data?.name?.trim?.() ?? ''
  if (!NAME.test(name))
    throw reject(4000, 'a name has 1 to 20 letters, digits, spaces, dashes or underscores')
  return name
}

export default defineHooks({
  started(api) {
    gateway = api
  },

  // A real program would check a cookie or a password here (event.headers, event.data).
  connect({ client, data }) {
    const name = nameIn(data)
    names.set(client, name)
    return { user: client, info: { name } }
  },

  async subscribe({ client, channel }) {
    if (!ROOM.test(channel)) throw reject(4001, 'a room has 1 to 20 lowercase letters, digits or dashes')
    await notice(channel, `${names.get(client)} is here`)
    return { data: { welcome: `You are in ${channel.slice('room:'.length)}.` } }
  },

  publish({ client, channel, data, allowed }) {
    // The channel options let only subscribers publish.
    if (!allowed) throw reject(4002, 'enter the room first')
    const text = data?.text
    if (typeof text !== 'string' || text.trim() === '' || text.length > MAX_TEXT)
      throw reject(4003, `a message has 1 to ${MAX_TEXT} characters`)
    return { data: { room: channel, name: names.get(client), text } }
  },

  rpc: {
    async rename({ client, data }) {
      const oldName = names.get(client)
      const name = nameIn(data)
      names.set(client, name)
      if (ROOM.test(data.room)) await notice(data.room, `${oldName} is now ${name}`)
      return { name }
    },
  },

  unsubscribed({ client, channel }) {
    return notice(channel, `${names.get(client)} has left`)
  },

  async disconnected({ client, channels }) {
    const name = names.get(client)
    names.delete(client)
    await Promise.all(channels.map(channel => notice(channel, `${name} has left`)))
  },
})
