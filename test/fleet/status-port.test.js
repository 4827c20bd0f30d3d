import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import t from 'tap'
import { launchConfigs } from '../../fleet/controller/launch.js'
import { parseConfig } from '../../fleet/drone/config.js'
import { startGateway } from '../kit/gateway.js'
import { until } from '../kit/wait.js'
import { host, SECRET, startDrone } from './agent-process.js'
import { publishOf } from './engine/engines.js'
import { FleetCli } from './fleet-cli.js'

/**
 * @param {number} port @param {string} path @param {{method?: string, headers?: Record<string, string>}} [options]
 * @returns {Promise<{status: number, headers: Record<string, any>, body: string}>}
 */
async function ask(port, path, options) {
  const [response] = await once(request({ host, port, path, ...options }).end(), 'response')
  let body = ''
  for await (const text of response.setEncoding('utf8')) body += text
  return { status: response.statusCode, headers: response.headers, body }
}

/** @param {import('./agent-process.js').TestDrone} drone @returns {Promise<number>} its status port */
const portOf = async drone =>
  Number((await drone.until(() => / status on port (\d+)\n/.exec(drone.output)))[1])

const gateway = await startGateway(t, {
  workers: 1,
  http_api: { key: 'key' },
  client: { allow_anonymous_connect_without_token: true },
  channel: { without_namespace: { allow_subscribe_for_anonymous: true, allow_subscribe_for_client: true } },
})
const drone = await startDrone(t, { apiKey: 'key', tokenSecret: 'token-secret', status: `${host}:0` })
const port = await portOf(drone)
const text = async () => (await ask(port, '/')).body
const json = async () => JSON.parse((await ask(port, '/json')).body)

t.test('the state is one line of text, and JSON without secrets', async t => {
  const load = { targets: [gateway.url], connections: 5, channels: ['news'] }
  await drone.set(load)
  await drone.sample(({ gauges }) => gauges.open === 5)
  await drone.set({ ...load, publishFrom: Date.now(), publish: publishOf('news', { rate: 100 }) })
  const status = await until(async () => {
    const status = await json()
    return status.rates?.received > 0 && status.latency.count > 0 && status
  })
  t.match(status, {
    id: 'd1',
    run: 'r1',
    state: 'up',
    controller: 'connected',
    gauges: { wanted: 5, opening: 0, open: 5 },
    counters: { opened: 5, failed: 0, lost: 0 },
    faults: {},
    processes: [{ role: 'agent' }, { role: 'connections' }, { role: 'publisher' }],
    machine: { cores: Number },
  })
  const { min, p50, p99, max } = status.latency
  t.ok(0 <= min && min <= p50 && p50 <= p99 && p99 <= max, JSON.stringify(status.latency))
  t.ok(status.rates.published > 0 && status.rates.received > status.rates.published)
  t.ok(
    drone.samples.some(({ counters }) => counters.received >= status.counters.received),
    'the controller has the same counts',
  )
  const all = JSON.stringify(status)
  for (const secret of [SECRET, 'token-secret', 'apiKey']) t.notMatch(all, secret)
  t.match(
    await text(),
    /^d1 r1 up, controller connected, up \d+ s; open 5 of 5, opening 0, failed 0, ended 0; received \d+\/s, published \d+\/s; lost 0, duplicates 0, disordered 0, damaged 0; p99 [\d.]+ ms\n$/,
  )
})

t.test('only GET and HEAD of the two paths are answered', async t => {
  const page = await ask(port, '/?x=1')
  t.match(page, {
    status: 200,
    headers: { 'content-type': 'text/plain; charset=utf-8', connection: 'close' },
  })
  t.match(await ask(port, '/json'), { status: 200, headers: { 'content-type': 'application/json' } })
  t.match(await ask(port, '/json', { method: 'HEAD' }), { status: 200, body: '' })
  for (const path of ['/', '/json'])
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])
      t.match(await ask(port, path, { method }), { status: 405, headers: { allow: 'GET, HEAD' } }, method)
  for (const path of ['/x', '/json/', '/__proto__', '/constructor', '//', '*'])
    t.match(await ask(port, path), { status: 404, body: 'not found: the paths are / and /json\n' }, path)
  t.match(await ask(port, '/x', { method: 'POST' }), { status: 404 })
  t.match(await ask(port, '/', { headers: { x: 'x'.repeat(9000) } }), { status: 431 })
})

t.test('the number of connections is limited; silent ones are closed', async t => {
  const sockets = Array.from({ length: 40 }, () => connect({ host, port }).on('error', () => {}))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  const closed = sockets.map(socket => once(socket, 'close'))
  await until(() => sockets.filter(({ closed }) => closed).length === 8)
  await Promise.all(closed)
  t.equal((await ask(port, '/')).status, 200)
})

t.test('a port in use, or an invalid one, is one line', async t => {
  const second = await startDrone(t, { listen: `${host}:0`, status: `${host}:${port}` })
  t.same(await second.exited, { code: 1, signal: null })
  t.equal(second.output, `drone: cannot open the status port ${host}:${port}: the address is in use\n`)
  const config = { id: 'd1', run: 'r1', secret: SECRET, allow: [host], controller: `${host}:1` }
  const parse = (/** @type {any} */ some) => parseConfig(JSON.stringify({ ...config, ...some }))
  t.same(parse({ status: '[::1]:80' }).statusAddress, { host: '::1', port: 80 })
  t.equal(parse({}).statusAddress, null)
  t.throws(() => parse({ status: '8880' }), { message: 'status is "8880": it must be host:port' })
  t.throws(() => parse({ status: 'h:70000' }), { message: 'status has port 70000: it must be at most 65535' })
  t.throws(() => parse({ controller: '', listen: 'a:7410', status: 'b:7410' }), {
    message: 'status and listen both have port 7410',
  })
})

t.test('it works without a controller', async t => {
  await drone.leave()
  await until(async () => (await json()).controller === 'disconnected')
  const { at } = await json()
  await until(async () => (await json()).at > at)
  t.match(await text(), /^d1 r1 up, controller disconnected, up \d+ s; open 5 of 5, /)
})

t.test('--status-port: a port for each drone on this machine, on loopback by default', async t => {
  const cli = await FleetCli.create(t)
  const start = (/** @type {string[]} */ ...more) =>
    cli.runInProcess(['start', '2', '--allow', host, '--dry-run', ...more])
  const { stdout } = await start('--status-port', '8880')
  t.match(stdout, /"id":"d1".*"status":"127\.0\.0\.1:8880".*\n.*\n.*"id":"d2".*"status":"127\.0\.0\.1:8881"/)
  t.match((await start('--status-port', '[::1]:8880')).stdout, /"status":"\[::1\]:8881"/)
  t.notMatch((await start()).stdout, /"status"/)
  for (const wrong of ['0', '65536', 'x', '1:2:3', ':80', 'http://a:80', '8880/x'])
    t.match(await start('--status-port', wrong), {
      code: 2,
      stderr: `--status-port: "${wrong}" is not PORT or HOST:PORT, as in 8880 or 0.0.0.0:8880`,
    })
  t.match(await start('--status-port', '65535'), {
    code: 1,
    stderr: 'halley: --status-port 127.0.0.1:65535: drone 2 would have port 65536; the maximum is 65535\n',
  })
  const run = await cli.runInProcess(['run', 'latency', '--dry-run', '--status-port', '0.0.0.0:8880'])
  t.match(run.stdout, /"status":"0\.0\.0\.0:8880"/)
})

t.test('drones on machines of their own have the same port', async t => {
  const configs = await launchConfigs({
    run: { run: 'r1', secret: SECRET, next: 3, controller: `${host}:1` },
    count: 2,
    provider: /** @type {any} */ ({}),
    launch: { allow: [host], statusPort: '0.0.0.0:8880' },
  })
  t.same(
    configs.map(({ id, status }) => `${id} ${status}`),
    ['d3 0.0.0.0:8880', 'd4 0.0.0.0:8880'],
  )
})
