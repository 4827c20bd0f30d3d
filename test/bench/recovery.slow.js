// `npm run bench -- recovery`, which is also the attack: hundreds of clients recover megabytes each at once.

import { execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { messageFrom } from '../../bench/messages.js'

const run = promisify(execFile)
const script = fileURLToPath(new URL('../../bench/index.js', import.meta.url))

/** @returns {Promise<any>} the result; rejects when the program says that something is wrong */
async function recover(...flags) {
  const { stdout } = await run(process.execPath, [script, 'recovery', '--json', ...flags])
  return JSON.parse(stdout)
}

const RIGHT = { incomplete: 0, closed: 0, dead_workers: 0, publishes_failed: 0 }
/** client.queue_max_size by default. */
const DEFAULT = '--queue=1048576'

t.test('200 clients recover 300 x 20 KB at once: refused, for that exceeds their queues', async t => {
  t.match(await recover(DEFAULT, '--clients=200'), { ...RIGHT, recovered: 0, refused: 200 })
})

t.test('200 clients recover 300 x 2 KB at once: they get all of it, in order', async t => {
  const result = await recover(DEFAULT, '--clients=200', '--size=2000')
  t.match(result, { ...RIGHT, recovered: 200, refused: 0 })
})

for (const [engine, clients] of /** @type {const} */ ([
  ['memory', 30],
  ['redis', 12],
])) {
  t.test(
    `${engine}: with longer queues ${clients} clients get 300 x 20 KB, and no worker is killed`,
    async t => {
      const result = await recover(`--clients=${clients}`, `--engine=${engine}`)
      t.match(result, { ...RIGHT, recovered: clients, refused: 0 })
      // Each publisher goes on until the last client has its answer.
      t.ok(result.publishes > 0, `${result.publishes} publishes were answered meanwhile`)
    },
  )
}

t.test('clients that cannot connect end the run with an error', async t => {
  const server = createServer((_request, response) => response.writeHead(503).end())
  server.on('upgrade', (_request, socket) => {
    // A refused client may reset its connection.
    socket.on('error', () => {})
    socket.end('HTTP/1.1 503 Service Unavailable\r\n\r\n')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const options = {
    url: `http://127.0.0.1:${port}`,
    clients: 3,
    channel: 'c',
    epoch: '',
    since: 1,
    publications: 1,
  }
  const clients = fork(new URL('../../bench/recovery-clients.js', import.meta.url), [JSON.stringify(options)])
  t.teardown(() => clients.kill('SIGKILL'))
  await t.rejects(messageFrom(clients, 'connected'), { message: /a client could not connect: HTTP\/1.1 503/ })
})

t.test('more clients than open files allow are refused', async t => {
  await t.rejects(recover('--clients=9999999'), { code: 2, stderr: /the limit of open files leaves/ })
})
