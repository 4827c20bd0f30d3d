// A client of proxy.js in a process of its own, so that the load of the other clients is not its delay: subscribes, and
// publishes by the server API in a steady rhythm. Arguments: port of the gateway, API key, ms between publications.
// Sends `true` when it is subscribed, and the latencies of its publications (ms) when it receives any message.

import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import WebSocket from 'ws'
import { post } from './servers.js'

const [port, key, period] = process.argv.slice(2)
const api = { url: `http://127.0.0.1:${port}`, key }
process.once('disconnect', () => process.exit())

const socket = new WebSocket(`ws://127.0.0.1:${port}/connection/websocket`, { perMessageDeflate: false })
/** @type {number[]} */
const latencies = []
const subscribed = new Promise(resolve => {
  socket.on('message', data => {
    for (const line of String(data).split('\n')) {
      const { id, push } = JSON.parse(line)
      if (id === 2) resolve(true)
      else if (push?.pub) latencies.push(performance.now() - push.pub.data)
    }
  })
})
await once(socket, 'open')
socket.send('{"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"witness"}}')
await subscribed
const publish = () => post(api, 'publish', JSON.stringify({ channel: 'witness', data: performance.now() }))
// The first ones open connections.
await Promise.all([publish(), publish()])
latencies.length = 0
/** @type {Promise<boolean>[]} */
const published = []
const publisher = setInterval(() => published.push(publish().catch(() => false)), Number(period))
process.send?.(true)
await once(process, 'message')
clearInterval(publisher)
const failed = (await Promise.all(published)).filter(ok => !ok).length
// A publication may arrive after its reply.
for (let waits = 0; latencies.length < published.length - failed && waits < 100; waits++) await sleep(10)
process.send?.({ latencies, failed }, undefined, undefined, () => process.exit())
