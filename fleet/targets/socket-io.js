// A Socket.IO server under the load of the others: one process, WebSocket only, rooms as channels.
//
//   node fleet/targets/socket-io.js PORT FOLDER     FOLDER has it installed
//
// ?ch=NAME sets a client's room. POST /api/publish {"channel", "data"} emits the event `p` with it to the room.

import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const HOST = '127.0.0.1'
const BACKLOG = 4096

const [port, folder] = process.argv.slice(2)
const { Server } = createRequire(join(folder, 'package.json'))('socket.io')

const server = createServer((request, response) => {
  if (request.url === '/health') return void response.end('{}')
  let body = ''
  request.on('data', chunk => {
    body += chunk
  })
  request.on('end', () => {
    const publication = JSON.parse(body)
    io.to(publication.channel).emit('p', publication)
    response.end('{"result":{}}')
  })
})
const io = new Server(server, { transports: ['websocket'], serveClient: false })
io.on('connection', (/** @type {any} */ socket) => socket.join(socket.handshake.query.ch))
server.listen(Number(port), HOST, BACKLOG)
