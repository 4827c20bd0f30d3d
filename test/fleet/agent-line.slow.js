import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import t from 'tap'
import { startGateway } from '../kit/gateway.js'
import { freePort } from '../kit/ports.js'
import { host, SECRET, startDrone } from './agent-process.js'

const gateway = await startGateway(t, { workers: 1, client: { allow_anonymous_connect_without_token: true } })
const target = { targets: [gateway.url], backoff: { min: 50, max: 200 } }

t.test('without a controller for long enough it ends', async t => {
  const drone = await startDrone(t, { orphanAfter: 0.2, exitAfter: 3 })
  await drone.set({ ...target, connections: 5 })
  await drone.sample(({ gauges }) => gauges.open === 5)
  await drone.leave()
  t.same(await drone.exited, { code: 0, signal: null })
  t.match(drone.output, /ends: no controller for 3 s/)
})

t.test('a drone that is told to listen waits for its controller; the newest one is obeyed', async t => {
  const place = `${host}:${await freePort()}`
  const drone = await startDrone(t, { listen: place })
  await drone.until(() => drone.output.includes('listens on port'))
  const stranger = connect(Number(place.split(':')[1]), host)
  stranger.on('error', () => {}).write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  stranger.resume()
  await new Promise(resolve => stranger.once('close', resolve))
  // One who knows the secret, and nothing else.
  for (const text of ['garbage\n', 'x'.repeat(17 << 20), '{"type":7}\n{"ask":{}}\n{}\n']) {
    const socket = connectTls({
      host,
      port: Number(place.split(':')[1]),
      minVersion: 'TLSv1.3',
      pskCallback: () => ({ psk: Buffer.from(SECRET, 'hex'), identity: 'r1/somebody' }),
      checkServerIdentity: () => undefined,
    })
    socket.on('error', () => {}).end(text)
    socket.resume()
    await new Promise(resolve => socket.once('close', resolve))
  }
  const line = await drone.dial(place)
  await drone.set({ ...target, connections: 5 })
  await drone.sample(({ gauges }) => gauges.open === 5)
  await drone.dial(place)
  await drone.until(() => line.reason)
  const sample = await drone.sample()
  t.equal(sample.gauges.open, 5)
  await drone.ask('stop')
  t.same(await drone.exited, { code: 0, signal: null })
})
