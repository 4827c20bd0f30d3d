// Real servers of each type of republisher, and the messages they received.

import { loadKafka } from '../../../../src/backends/queues/kafka/client.js'
import { startKafka, withoutKafka } from '../../../kit/servers/kafka.js'
import { startNats, withoutNats } from '../../../kit/servers/nats.js'
import { startRabbit, withoutRabbit } from '../../../kit/servers/rabbitmq.js'
import { startRedis } from '../../../kit/servers/redis.js'
import { bind } from './exchanges.js'

/**
 * @typedef {object} Stored a message in the server
 * @property {string} id @property {Record<string, string>} headers @property {Buffer} body
 *
 * @typedef {object} DestinationServer all that is republished goes to one place, in the order of its arrival
 * @property {object} block of the type, in an entry of `republish`
 * @property {() => number} pid
 * @property {() => Promise<number>} count of messages that it has
 * @property {() => Promise<Stored[]>} read all of them, which stay
 * @property {() => Promise<void>} kill
 * @property {() => Promise<void>} start after `kill`; if it is durable, it has all that it has confirmed
 * @property {() => void} pause @property {() => void} resume
 *
 * @typedef {{without: () => string | false, open: (t: any, durable?: boolean) => Promise<DestinationServer>}} DestinationType
 */

/** Name of the exchange, queue, stream or topic. */
const PLACE = 'out'
const BATCH = 10_000

/** @type {DestinationType} */
const redis_stream = {
  without: () => false,
  async open(t, durable = true) {
    const server = await startRedis(t, { aof: durable ? 'always' : false })
    return {
      block: { address: server.address, stream: PLACE, max_length: 0 },
      pid: () => server.pid,
      count: () => server.call('XLEN', PLACE),
      async read() {
        const all = /** @type {Stored[]} */ ([])
        for (let from = '-'; ; ) {
          const entries = await server.call('XRANGE', PLACE, from, '+', 'COUNT', BATCH)
          for (const [, fields] of entries) {
            const values = /** @type {Record<string, string>} */ ({})
            for (let i = 0; i < fields.length; i += 2) values[fields[i]] = fields[i + 1]
            const { payload, id, ...headers } = values
            all.push({ id, headers, body: Buffer.from(payload) })
          }
          if (entries.length < BATCH) return all
          from = `(${entries.at(-1)[0]}`
        }
      },
      kill: () => server.kill(),
      start: () => server.start(),
      pause: () => server.stop(),
      resume: () => server.cont(),
    }
  },
}

/** @param {import('../../../kit/servers/server-process.js').ServerProcess} server */
const controls = server => ({
  pid: () => server.pid,
  kill: () => server.kill(),
  start: () => server.start(),
  pause: () => server.pause(),
  resume: () => server.resume(),
})

/** @type {DestinationType} */
const rabbitmq = {
  without: withoutRabbit,
  async open(t) {
    const server = await startRabbit(t)
    const queue = await bind(server, PLACE)
    const count = () => server.ready(queue)
    return {
      ...controls(server),
      block: { urls: [server.url()], exchange: PLACE },
      count,
      async read() {
        const total = await count()
        return server.with(async channel => {
          const all = /** @type {Stored[]} */ ([])
          // Unacknowledged messages return in order.
          await new Promise(resolve => {
            if (total === 0) return void resolve(undefined)
            channel.consume(queue, message => {
              if (message === null) return
              const { messageId, headers = {} } = message.properties
              all.push({ id: messageId, headers, body: message.content })
              if (all.length === total) resolve(undefined)
            })
          })
          return all
        })
      },
    }
  },
}

/** @type {DestinationType} */
const nats_jetstream = {
  without: withoutNats,
  async open(t) {
    const server = await startNats(t)
    await server.with(({ manager }) => manager.streams.add({ name: PLACE, subjects: [PLACE] }))
    return {
      ...controls(server),
      block: { url: server.url(), subject: PLACE },
      count: () => server.with(async ({ manager }) => (await manager.streams.info(PLACE)).state.messages),
      read: () =>
        server.with(async ({ manager }) => {
          const { state } = await manager.streams.info(PLACE)
          const all = /** @type {Stored[]} */ ([])
          for (let seq = 1; seq <= state.last_seq; seq++) {
            const { header, data } = await manager.streams.getMessage(PLACE, { seq })
            const headers = Object.fromEntries([...header].map(([name, values]) => [name, values[0]]))
            const { 'Nats-Msg-Id': id, ...others } = headers
            all.push({ id, headers: others, body: Buffer.from(data) })
          }
          return all
        }),
    }
  },
}

/** @type {DestinationType} */
const kafka = {
  without: withoutKafka,
  async open(t) {
    const server = await startKafka(t)
    await server.createTopic(PLACE)
    const count = () =>
      server.with(async admin => {
        const latest = { partitionIndex: 0, timestamp: -1n }
        const [topic] = await admin.listOffsets({ topics: [{ name: PLACE, partitions: [latest] }] })
        return Number(topic.partitions[0].offset)
      })
    return {
      ...controls(server),
      block: { brokers: [server.broker], topic: PLACE },
      count,
      async read() {
        const total = await count()
        const { Consumer } = await loadKafka()
        const groupId = `reader-${Math.random()}`
        const consumer = new Consumer({ clientId: 'test', groupId, bootstrapBrokers: [server.broker] })
        const all = /** @type {Stored[]} */ ([])
        try {
          if (total === 0) return all
          const stream = await consumer.consume({ topics: [PLACE], mode: 'earliest', autocommit: false })
          for await (const { headers, value } of stream) {
            const { id, ...others } = Object.fromEntries([...headers].map(([k, v]) => [`${k}`, `${v}`]))
            all.push({ id, headers: others, body: value })
            if (all.length === total) break
          }
          return all
        } finally {
          await consumer.close(true)
        }
      },
    }
  },
}

/** @type {Readonly<Record<string, DestinationType>>} */
export const DESTINATIONS = Object.freeze({ redis_stream, rabbitmq, nats_jetstream, kafka })
