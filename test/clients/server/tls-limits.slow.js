// Limits of a gateway under TLS: connections, descriptors, and unread bytes of a slow reader.

import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import tls from 'node:tls'
import t from 'tap'
import { skipDriver } from '../../kit/drivers.js'
import { tempDir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { withoutProgram } from '../../kit/needs.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'
import { refusedUpgrade } from '../../processes/primary/overload-rig.js'
import { open } from '../session/support.js'
import { Certificates, request, skip } from './tls-rig.js'

const CLIENTS = 2
/** Descriptors that a worker may still open, and connections that need one. */
const SPARE = 64
const BARE = 150
const MESSAGE = 'x'.repeat(50_000)
/** The kernel buffers some 10 MB for a client that does not read. */
const MANY = 2000
const PAUSED = 'too few free file descriptors: not accepting new connections'
const RESUMED = 'accepting new connections again'

t.jobs = 2

for (const driver of /** @type {const} */ (['uws', 'node'])) {
  t.test(
    `limits under TLS on ${driver}`,
    { skip: skip || withoutProgram('prlimit', 'util-linux') || skipDriver(driver) },
    async t => {
      const folder = tempDir(t)
      const { ca, certFile, keyFile } = new Certificates(folder)
      const gateway = await startGateway(t, {
        workers: 1,
        http_server: { driver, tls: { enabled: true, cert_pem: certFile, key_pem: keyFile } },
        client: {
          allow_anonymous_connect_without_token: true,
          connection_limit: CLIENTS,
          queue_max_size: 100_000,
        },
        channel: { without_namespace: { ...open, join_leave: true, force_push_join_leave: true } },
        http_stream: { enabled: true },
        prometheus: { enabled: true },
      })
      const [https, wss] = ['https', 'wss'].map(scheme => `${scheme}://127.0.0.1:${gateway.port}`)
      const websocket = `${wss}/connection/websocket`
      const connect = () => RawClient.connected(websocket, {}, { ca })
      const reader = await connect()
      await reader.subscribe('news')
      const slow = await connect()
      await slow.subscribe('news')

      t.test('above connection_limit, a client gets 503', async t => {
        const { status, retryAfter } = await refusedUpgrade(websocket, { ca })
        t.equal(status, 503)
        t.ok(retryAfter >= 1)
        const body = JSON.stringify({ id: 1, connect: {} })
        const stream = await request(`${https}/connection/http_stream`, { ca, method: 'POST', body })
        t.equal(stream.status, 503)
      })

      t.test('a slow reader is closed with 3008, others receive everything', async t => {
        const left = ({ push }) => push?.leave?.info.client === slow.connect.client
        slow.socket.pause()
        let published = 0
        while (published < MANY && !reader.messages.some(left)) {
          const answer = await reader.call('publish', { channel: 'news', data: { n: published++, MESSAGE } })
          t.notOk(answer.error)
        }
        await reader.next(left)
        slow.socket.terminate()
        for (let n = 0; n < published; n++) {
          const { push } = await reader.next(({ push }) => push?.pub)
          if (push.pub.data.n !== n) t.fail(`publication ${n} is missing`)
        }
        const closed = /^centrifugo_client_num_server_disconnects\{.*code="3008".*\} 1$/m
        await until(async () => closed.test((await request(`${https}/metrics`, { ca })).text))
      })

      t.test('without free descriptors new connections are refused, and clients stay connected', async t => {
        const [worker] = gateway.workerPids
        const limit = readdirSync(`/proc/${worker}/fd`).length + SPARE
        execFileSync('prlimit', ['--pid', String(worker), `--nofile=${limit}:`])
        const bare = Array.from({ length: BARE }, () =>
          tls.connect({ host: '127.0.0.1', port: gateway.port, ca }).on('error', () => {}),
        )
        const leave = () => {
          for (const socket of bare) socket.destroy()
        }
        t.teardown(leave)
        t.match(await gateway.line(({ msg }) => msg === PAUSED), { level: 40 })
        t.match(await reader.call('publish', { channel: 'news', data: 'still here' }), { publish: {} })
        await reader.next(({ push }) => push?.pub?.data === 'still here')
        leave()
        await gateway.line(({ msg }) => msg === RESUMED)
        const late = await until(() => connect().catch(() => null))
        t.ok(late.connect.client)
        t.equal(reader.ended, null)
        late.socket.terminate()
        reader.socket.terminate()
      })
    },
  )
}
