// A WebSocket server that says what a test tells it to: duplicates, holes, half payloads, refusals.

import { once } from 'node:events'
import { WebSocketServer } from 'ws'
import { channelNumber } from '../../../fleet/channel-template.js'
import { makePayload } from '../../../fleet/drone/engine/payload.js'

/** Payload number `s` of a channel, with a sound one's numbers where nothing else is said. */
export const payload = (channel, s, { again = false, size = 128, ...numbers } = {}) =>
  makePayload(
    { t: Date.now() * 1000, s, c: channelNumber(channel), e: 1000, m: 1, o: 0, ...numbers },
    size,
    again,
  )

export class ScriptedServer {
  /** Those that are connected, in the order in which they came. */
  sockets = []
  /** All commands that came. */
  commands = []
  /** What a command is answered: an object is, undefined is not. */
  connect = () => ({ connect: { client: 'c', version: '1' } })
  subscribe = () => ({ subscribe: {} })

  static async start(t) {
    const server = new ScriptedServer()
    server.listener = new WebSocketServer({ port: 0, host: '127.0.0.1' })
    server.listener.on('connection', socket => server.#accept(socket))
    await once(server.listener, 'listening')
    server.url = `http://127.0.0.1:${server.listener.address().port}`
    t.teardown(() => {
      for (const socket of server.sockets) socket.terminate()
      server.listener.close()
    })
    return server
  }

  #accept(socket) {
    this.sockets.push(socket)
    socket.on('error', () => {})
    socket.on('close', () => this.sockets.splice(this.sockets.indexOf(socket), 1))
    socket.on('message', data => {
      for (const line of data.toString().split('\n')) {
        const command = JSON.parse(line)
        this.commands.push(command)
        const reply = command.connect
          ? this.connect(command.connect, socket)
          : command.subscribe && this.subscribe(command.subscribe, socket)
        if (reply) socket.send(JSON.stringify({ id: command.id, ...reply }))
      }
    })
  }

  /** Says this to all of them. */
  say(text) {
    for (const socket of this.sockets) socket.send(text)
  }

  /** Publishes: numbers are sequences of sound payloads, texts are the data. */
  publish(channel, ...items) {
    for (const item of items) {
      const data = typeof item === 'number' ? payload(channel, item) : item
      this.say(`{"push":{"channel":"${channel}","pub":{"data":${data}}}}`)
    }
  }
}
