// Token keys while the JWKS endpoint is down: new workers get the keys that earlier workers fetched.

import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import t from 'tap'
import { makeToken } from '../../clients/auth/jwt.js'
import { config } from '../../kit/fleet.js'
import { startGateway } from '../../kit/gateway.js'
import { listen } from '../../kit/ports.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'

/** Connections that very likely reach every worker. */
const MANY = 12

t.test('a rolling restart while the JWKS endpoint is down refuses no token', async t => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const keys = [{ ...publicKey.export({ format: 'jwk' }), use: 'sig', kid: 'r' }]
  let down = false
  const server = createServer((_request, response) =>
    down ? response.writeHead(503).end() : response.end(JSON.stringify({ keys })),
  )
  const endpoint = `http://127.0.0.1:${await listen(t, server)}/jwks`
  const gateway = await startGateway(t, {
    ...config,
    client: { token: { jwks_public_endpoint: endpoint } },
  })
  const token = makeToken({ sub: '1' }, privateKey, { alg: 'RS256', kid: 'r' })
  const connect = async () => {
    const { socket } = await RawClient.connected(gateway.ws, { token })
    socket.close()
  }
  await connect()
  down = true

  const ended = () => gateway.lines.filter(({ msg }) => msg === 'rolling restart finished').length
  for (const restarts of [1, 2]) {
    gateway.process.kill('SIGUSR2')
    await until(() => ended() === restarts)
    for (let n = 0; n < MANY; n++) await connect()
  }
  const victim = gateway.workerPids.at(-1)
  process.kill(victim, 'SIGKILL')
  await until(() => gateway.workerPids.length === 7)
  for (let n = 0; n < MANY; n++) await connect()
  t.pass('all tokens were accepted')
})
