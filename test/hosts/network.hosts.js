// Tests of the simulated network.

import './enter.js'
import { once } from 'node:events'
import net from 'node:net'
import t from 'tap'
import { until } from '../kit/wait.js'
import { Network } from './network.js'
import { startNodeOn, startRedisOn, startSentinelsOn } from './programs.js'

const network = new Network('redis', 'a', 'b')
const [redisHost, a, b] = ['redis', 'a', 'b'].map(name => network.host(name))

/** @param {string} address @returns {Promise<string>} 'open', or the error within a second */
const reach = address =>
  new Promise(resolve => {
    const socket = net.connect({ host: address, port: 6379, timeout: 1000 })
    const end = (/** @type {string} */ how) => {
      socket.destroy()
      resolve(how)
    }
    socket.once('connect', () => end('open'))
    socket.once('timeout', () => end('silence'))
    socket.once('error', error => end(/** @type {any} */ (error).code))
  })

t.test('packets are lost without a reset, in one or both directions, until the link is back', async t => {
  await startRedisOn(t, redisHost)
  const { address } = redisHost
  t.equal(await reach(address), 'open')
  t.equal(await reach(a.address), 'ECONNREFUSED', 'a host without the program')
  network.cut(redisHost)
  t.equal(await reach(address), 'silence')
  network.join(redisHost)
  await until(async () => (await reach(address)) === 'open')
  network.unplug(redisHost)
  t.equal(await reach(address), 'silence')
  network.plug(redisHost)
  await until(async () => (await reach(address)) === 'open')

  const socket = net.connect({ host: address, port: 6379 })
  socket.on('error', () => {})
  await once(socket, 'connect')
  network.block(redisHost, network.here)
  socket.write('SET arrives yes\r\n')
  let answered = false
  socket.on('data', () => {
    answered = true
  })
  t.match(
    String(redisHost.run('sh', '-c', `until redis-cli -h ${address} GET arrives | grep yes; do :; done`)),
    'yes',
  )
  t.notOk(answered, 'the command has arrived, its answer has not')
  network.clear()
  await until(() => answered)
  socket.destroy()
})

t.test('gateways on two hosts are one over the Redis of a third', async t => {
  const redis = await startRedisOn(t, redisHost)
  const nodes = await Promise.all([a, b].map(host => startNodeOn(t, host, redis.address, { workers: 1 })))
  for (const node of nodes) {
    const { result } = await until(async () => {
      const answer = await node.api('info')
      return answer.result?.nodes.length === nodes.length && answer
    })
    t.equal(result.nodes.length, 2)
  }
})

t.test('sentinels replace a master whose host is unreachable', async t => {
  const set = await startSentinelsOn(t, {
    servers: [redisHost, a],
    sentinels: [redisHost, a, b],
    downAfter: 1000,
  })
  const [master, replica] = set.servers
  network.cut(redisHost)
  await until(async () => (await replica.info('replication')).role === 'master')
  network.join(redisHost)
  t.ok(await until(async () => (await master.info('replication')).role === 'slave'))
})
