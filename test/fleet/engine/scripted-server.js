// A WebSocket server scripted by a test: duplicates, gaps, incomplete payloads, refusals.

import { once } from 'node:events'
import { WebSocketServer } from 'ws'
import { channelNumber } from '../../../fleet/channel-template.js'
import { makePayload } from '../../../fleet/drone/engine/payload.js'

/** Payload number `s` of a channel; `numbers` replace its defaults. */
export const payload = (channel, s, { again = false, size = 128, ...numbers } = {}) =>
  makePayload(
    { t: Date.now() * 1000, s, c: channelNumber(channel), e: 1000, m: 1, o: 0, ...numbers },
    size,
    again,
  )

export class ScriptedServer {
  /** In the order of their connections. */
  sockets = []
  /** Received commands. */
  commands = []
  /** Reply to a command; undefined: none. */
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

  /** Sends a text to all sockets. */
  say(text) {
    for (const socket of this.sockets) socket.send(text)
  }

  /** Publishes payloads with these sequences (numbers), or these data (texts). */
  publish(channel, ...items) {
    for (const item of items) {
      const data = typeof item === 'number' ? payload(channel, item) : item
      this.say(`{"push":{"channel":"${channel}","pub":{"data":${data}}}}`)
    }
  }
}
