// A chat with rooms and names, decided by hooks: this file is the whole backend.
//
// Each worker of the gateway loads it. State of a client may live in variables, because a client stays in one worker;
// what all workers share goes through channels, or into a database of your own.

import { defineHooks, reject } from 'halley-gateway/hooks'

const ROOM = /^room:[a-z0-9-]{1,20}$/
const NAME = /^[\p{L}\p{N} _-]{1,20}$/u
const MAX_TEXT = 500

/** Names of the clients of this worker, by client id. */
const names = new Map()
/** The server API, as methods. */
let gateway

/** Tells a room something that nobody has said. */
const notice = (room, text) => gateway.publish(room, { notice: text })

export default defineHooks({
  started(own) {
    gateway = own
  },

  // A real program would check a cookie or a password here (event.headers, event.data).
  connect({ client, data }) {
    const name = data?.name?.trim?.()
    if (!NAME.test(name ?? '')) throw reject(4000, 'a name has 1 to 20 letters, digits or spaces')
    names.set(client, name)
    return { user: client, info: { name } }
  },

  async subscribe({ client, channel }) {
    if (!ROOM.test(channel)) throw reject(4001, 'a room has 1 to 20 small letters, digits or dashes')
    await notice(channel, `${names.get(client)} is here`)
    return { data: { welcome: `You are in ${channel.slice('room:'.length)}.` } }
  },

  publish({ client, channel, data, allowed }) {
    // The options of the channel let subscribers publish; this adds to them.
    if (!allowed) throw reject(4002, 'enter the room first')
    const text = data?.text
    if (typeof text !== 'string' || text.trim() === '' || text.length > MAX_TEXT)
      throw reject(4003, `a message has 1 to ${MAX_TEXT} characters`)
    return { data: { room: channel, name: names.get(client), text } }
  },

  rpc: {
    async rename({ client, data }) {
      const [before, name] = [names.get(client), data?.name?.trim?.()]
      if (!NAME.test(name ?? '')) throw reject(4000, 'a name has 1 to 20 letters, digits or spaces')
      names.set(client, name)
      if (ROOM.test(data.room)) await notice(data.room, `${before} is now ${name}`)
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
