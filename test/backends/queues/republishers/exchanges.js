// Queues of RabbitMQ behind fanout exchanges.

import { connect } from 'amqplib'

/**
 * Makes a durable queue that keeps the messages of a fanout exchange.
 * @param {any} server
 * @param {string} exchange
 * @param {object} [args] of the queue
 * @returns {Promise<string>} its name
 */
export const bind = (server, exchange, args) =>
  server.with(async (/** @type {any} */ channel) => {
    const queue = `of ${exchange}`
    await channel.assertExchange(exchange, 'fanout', { durable: true })
    await channel.assertQueue(queue, { durable: true, arguments: args })
    await channel.bindQueue(queue, exchange, '')
    return queue
  })

/** Messages of a fanout exchange, from now on. @param {any} t @param {any} server @param {string} exchange */
export async function listen(t, server, exchange) {
  const queue = await bind(server, exchange)
  const connection = await connect(server.url())
  t.teardown(() => connection.close().catch(() => {}))
  connection.on('error', () => {})
  const channel = await connection.createChannel()
  const messages = /** @type {import('amqplib').ConsumeMessage[]} */ ([])
  await channel.consume(queue, message => message && messages.push(message), { noAck: true })
  return {
    messages,
    get bodies() {
      return messages.map(({ content }) => JSON.parse(content.toString()))
    },
    get data() {
      return this.bodies.map(({ data }) => data)
    },
  }
}
