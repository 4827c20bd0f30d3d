// A worker's reaction to the announcement of a failover.

import { once } from 'node:events'
import { createServer } from 'node:net'
import t from 'tap'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'
import { joinSentinels } from './sentinel-rig.js'

needsRedis(t)

/** @typedef {import('../../../kit/servers/redis.js').RedisServer} RedisServer */

const NEWS = '+switch-master'
/** Round trips after which an announcement was read, and the connection that it closes is lost. */
const ROUND_TRIPS = 200

/** @param {...string} texts */
const list = (...texts) =>
  `${texts.length}\r\n${texts.map(text => `$${text.length}\r\n${text}\r\n`).join('')}`

/** A sentinel with scripted replies. */
class FakeSentinel {
  /** @type {Set<import('node:net').Socket>} subscribers of failovers */
  listeners = new Set()
  /** @type {(() => void)[] | null} answers that are held back; null: they are given at once */
  held = null
  #server = createServer(socket => this.#accept(socket))

  /** @param {import('../../../kit/servers/redis.js').RedisServer} master */
  constructor(master) {
    this.master = master
  }

  /** @param {any} t ends with this test @param {import('../../../kit/servers/redis.js').RedisServer} master */
  static async start(t, master) {
    const sentinel = new FakeSentinel(master)
    sentinel.#server.listen(0, '127.0.0.1')
    await once(sentinel.#server, 'listening')
    t.teardown(() => sentinel.#server.close())
    return sentinel
  }

  get address() {
    const { port } = /** @type {import('node:net').AddressInfo} */ (this.#server.address())
    return `redis+sentinel://127.0.0.1:${port}?sentinel_master_name=mymaster`
  }

  /** @param {import('node:net').Socket} socket */
  #accept(socket) {
    socket.setEncoding('utf8')
    socket.on('error', () => {})
    socket.on('close', () => this.listeners.delete(socket))
    socket.on('data', text => {
      for (const command of String(text).split(/^(?=\*)/m)) {
        const words = command.split('\r\n').filter((_, i) => i > 0 && i % 2 === 0)
        this.#answer(socket, words.join(' ').toLowerCase())
      }
    })
  }

  /** @param {import('node:net').Socket} socket @param {string} command */
  #answer(socket, command) {
    if (command.startsWith('hello')) socket.write('%1\r\n+proto\r\n:3\r\n')
    else if (command.startsWith('subscribe')) {
      this.listeners.add(socket)
      socket.write(`>3\r\n$9\r\nsubscribe\r\n$${NEWS.length}\r\n${NEWS}\r\n:1\r\n`)
    } else if (command.startsWith('sentinel get-master-addr-by-name')) {
      const answer = () => socket.write(`*${list(this.master.host, String(this.master.port))}`)
      if (this.held === null) answer()
      else this.held.push(answer)
    } else socket.write(command.startsWith('sentinel') ? '*0\r\n' : '+OK\r\n')
  }

  /** @param {import('../../../kit/servers/redis.js').RedisServer} master the new one */
  announce(master) {
    this.publish('mymaster', this.master, master)
    this.master = master
  }

  /** @param {string} name @param {RedisServer} old @param {RedisServer} master */
  publish(name, old, master) {
    const news = `${name} ${old.host} ${old.port} ${master.host} ${master.port}`
    for (const socket of this.listeners) socket.write(`>${list('message', NEWS, news)}`)
  }

  /** Sends the delayed replies. */
  release() {
    for (const answer of this.held ?? []) answer()
    this.held = null
  }
}

async function start(t) {
  const servers = await Promise.all([startRedis(t), startRedis(t)])
  const sentinel = await FakeSentinel.start(t, servers[0])
  const connection = joinSentinels(t, sentinel)
  await connection.ups(1)
  await until(() => sentinel.listeners.size > 0)
  return { servers, sentinel, ...connection }
}

t.test('the gateway leaves a live master when a sentinel announces another', async t => {
  const { servers, sentinel, events, ups, port } = await start(t)
  sentinel.announce(servers[1])
  await ups(2)
  t.equal(await port(), servers[1].port)
  t.same(events, ['up', 'down', 'up'])
})

t.test('a failover announced during the lookup is followed', async t => {
  const { servers, sentinel, ups, port } = await start(t)
  sentinel.held = []
  await servers[0].kill()
  await until(() => sentinel.held?.length)
  sentinel.announce(servers[1])
  sentinel.release()
  await ups(2)
  t.equal(await port(), servers[1].port)
  await servers[0].start()
  sentinel.announce(servers[0])
  await ups(3)
  t.equal(await port(), servers[0].port)
})

t.test('announcements of other masters end no connection', async t => {
  const { servers, sentinel, events, ups, port } = await start(t)
  sentinel.publish('another', servers[0], servers[1])
  for (let i = 0; i < ROUND_TRIPS; i++) await port()
  t.same(events, ['up'])
  sentinel.announce(servers[1])
  await ups(2)
  await until(() => sentinel.listeners.size > 0)
  // Another sentinel is notified.
  sentinel.publish('mymaster', servers[0], servers[1])
  for (let i = 0; i < ROUND_TRIPS; i++) await port()
  t.same(events, ['up', 'down', 'up'])
})
