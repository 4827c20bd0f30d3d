// A worker that is nearly out of memory refuses new connections until memory is free.

import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { anonymous, open, token, tokenClient } from '../../clients/session/support.js'
import { healthy } from '../../kit/fleet.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { OVERLOADED, RECOVERED, refusedUpgrade } from './overload-rig.js'

const MB = 1024 * 1024

const config = {
  workers: 1,
  client: { allow_anonymous_connect_without_token: true },
  channel: { without_namespace: open },
}

t.test('refuses connections while its heap is nearly full', async t => {
  const NODE_OPTIONS = '--max-old-space-size=100'
  const gateway = await startGateway(
    t,
    {
      ...config,
      client: tokenClient(),
      websocket: { message_size_limit: 2 * MB },
      overload: { max_memory: 50 },
    },
    { env: { ...process.env, NODE_OPTIONS } },
  )
  // The worker keeps the info of a client as long as it is connected.
  const request = { token: token({ sub: 'u', info: { text: 'x'.repeat(500_000) } }) }
  const clients = []
  const leave = () => {
    for (const { socket } of clients) socket.terminate()
  }
  t.teardown(leave)
  /** @returns {Promise<RawClient | null>} null: refused */
  const connect = () =>
    RawClient.connected(gateway.ws, request).catch(error => {
      if (/503/.test(error.message)) return null
      throw error
    })
  for (let client = await connect(); client !== null; client = await connect()) {
    clients.push(client)
    if (clients.length === 500) throw new Error('no connection is refused')
  }
  t.match(await gateway.line(({ msg }) => msg === OVERLOADED), { level: 40, reason: 'memory' })
  t.ok(clients.length > 10, `${clients.length} connected`)
  t.match(await clients[0].call('rpc', { method: 'nothing' }), { error: { code: 108 } })
  // It responds with 503 while a sample is late.
  await healthy(gateway)
  leave()
  await gateway.line(({ msg }) => msg === RECOVERED)
  for (let client = null; client === null; ) {
    client = await connect()
    client?.socket.terminate()
  }
})

t.test('refuses connections while its control group is nearly full', async t => {
  const own = readFileSync('/proc/self/cgroup', 'utf8')
  const first = /^\d+:memory:(.*)$/m.exec(own)?.[1]
  const mount = first === undefined ? '/sys/fs/cgroup' : '/sys/fs/cgroup/memory'
  const names =
    first === undefined
      ? { max: 'memory.max', current: 'memory.current' }
      : { max: 'memory.limit_in_bytes', current: 'memory.usage_in_bytes' }
  const group = join(mount, first ?? '', `halley-test-${process.pid}`)
  const home = join(mount, first ?? /^0::(.*)$/m.exec(own)?.[1] ?? '', 'cgroup.procs')
  try {
    mkdirSync(group)
    writeFileSync(join(group, names.max), String(2048 * MB))
    // The gateway's processes start in the group.
    writeFileSync(join(group, 'cgroup.procs'), String(process.pid))
  } catch {
    try {
      rmdirSync(group)
    } catch {
      // The group could not be created.
    }
    return t.pass('not run', { skip: 'control groups cannot be created here' })
  }
  let gateway
  try {
    gateway = await startGateway(t, { ...config, overload: { max_memory: 50 } })
  } finally {
    writeFileSync(home, String(process.pid))
  }
  t.teardown(async () => {
    await gateway.stop()
    rmdirSync(group)
  })
  const client = await anonymous(t, gateway)
  const limit = bytes => writeFileSync(join(group, names.max), String(Math.round(bytes)))
  const usage = Number(readFileSync(join(group, names.current), 'utf8'))
  t.ok(usage > 20 * MB, 'the gateway is in it')
  limit(usage / 0.65)
  t.match(await gateway.line(({ msg }) => msg === OVERLOADED), { reason: 'memory' })
  const { status } = await refusedUpgrade(gateway.ws)
  t.equal(status, 503)
  t.match(await client.call('rpc', { method: 'nothing' }), { error: { code: 108 } })
  limit(2048 * MB)
  await gateway.line(({ msg }) => msg === RECOVERED)
  const late = await RawClient.connected(gateway.ws)
  late.socket.terminate()
})
