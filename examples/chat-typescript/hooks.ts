// The chat of ../chat in TypeScript, with one room that needs an invitation, room:private. HOOKS is the compiled file:
//
//   npm install ../../halley-gateway-*.tgz typescript @types/node    (docs/install.md)
//   npx tsc -p .
//   HOOKS=$PWD/dist/hooks.js node ../chat/server.js

import type { ServerApi } from 'halley-gateway/api'
import { defineHooks, reject } from 'halley-gateway/hooks'

interface Login {
  name: string
  invitation?: string
}

interface Message {
  text: string
}

const INVITATION = process.env.INVITATION ?? 'please'
/** Names of the clients of this worker, by client id. */
const names = new Map<string, string>()
let gateway: ServerApi

const isLogin = (data: unknown): data is Login =>
  typeof data === 'object' && data !== null && typeof (data as Login).name === 'string'

const isMessage = (data: unknown): data is Message =>
  typeof data === 'object' && data !== null && typeof (data as Message).text === 'string'

export default defineHooks({
  started(api) {
    gateway = api
  },

  connect(event) {
    if (!isLogin(event.data)) throw reject(4000, 'a name is missing')
    const { name, invitation } = event.data
    names.set(event.client, name)
    return { user: event.client, info: { name }, meta: { invited: invitation === INVITATION } }
  },

  subscribe(event) {
    if (event.channel === 'room:private' && !event.meta?.invited)
      throw reject(4030, 'this room needs an invitation')
    return { data: { welcome: `You are in ${event.channel.slice('room:'.length)}.` } }
  },

  publish(event) {
    if (!event.allowed) throw reject(4002, 'enter the room first')
    if (!isMessage(event.data)) throw reject(4003, 'a text is missing')
    return { data: { room: event.channel, name: names.get(event.client), text: event.data.text } }
  },

  async disconnected(event) {
    const name = names.get(event.client)
    names.delete(event.client)
    for (const channel of event.channels) await gateway.publish(channel, { notice: `${name} has left` })
  },
})
