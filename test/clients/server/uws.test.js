import t from 'tap'
import { skipDriver } from '../../kit/drivers.js'
import { skipFile } from '../../kit/needs.js'
import { turn } from '../../kit/wait.js'
import { get, kernelBuffers, RawClient, serve } from './conformance/rig.js'

import { conformance } from './conformance.js'

skipFile(t, skipDriver('uws'))

conformance(t, 'uws')

const CLIENTS = 10
/** Of each client. */
const REQUESTS = 40_000
const MB = 1_000_000
/** Turns of the event loop without a response, after which none follows. */
const QUIET_TURNS = 1000

/** Clients pipeline requests and do not read. @returns {Promise<number>} responses to each */
async function flood(t, method, status, size) {
  let answers = 0
  const body = Buffer.alloc(size, 'b')
  const { port } = await serve(t, 'uws', server => {
    server.route('*', '/file', exchange => {
      answers++
      exchange.reply(status, { 'X-Text': 'x'.repeat(100) }, body)
    })
  })
  const requests = Buffer.from(get('/file').replace('GET', method).repeat(REQUESTS))
  const sockets = await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      const { socket } = await RawClient.connect(t, port)
      socket.pause()
      // Until the kernel has all, or the server has cut the connection.
      await new Promise(resolve => socket.write(requests, resolve))
      return socket
    }),
  )
  // The server reads a piece in each turn of the event loop.
  for (let quiet = 0, before = -1; quiet < QUIET_TURNS; quiet++) {
    if (answers !== before) quiet = 0
    before = answers
    await turn()
  }
  for (const socket of sockets) socket.destroy()
  return answers / CLIENTS
}

t.test('a client that pipelines requests and reads nothing is disconnected', async t => {
  const kernel = await kernelBuffers(t)
  for (const size of [3000, 40_000]) {
    const bytes = (await flood(t, 'GET', 200, size)) * size
    t.ok(bytes < kernel + 4 * MB, `${bytes} bytes in responses of ${size}; the kernel takes ${kernel}`)
  }
  for (const [method, status] of /** @type {const} */ ([
    ['HEAD', 200],
    ['OPTIONS', 204],
  ])) {
    const answers = await flood(t, method, status, 0)
    t.ok(answers < REQUESTS / 2, `${answers} of ${REQUESTS} responses without a body, ${method}`)
  }
})
