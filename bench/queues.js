// Queues of the gateway: consumers, from a row or message to subscribers; republishers, and their cost for publishing
// clients.

import { setTimeout as sleep } from 'node:timers/promises'
import { channelNumber } from '../fleet/channel-template.js'
import { makePayload, startNumber } from '../fleet/drone/engine/payload.js'
import { machineFacts } from '../fleet/drone/machine.js'
import { rounded } from '../fleet/runner/figures.js'
import { cpuOf } from '../fleet/runner/proc.js'
import { DESTINATIONS } from '../test/backends/queues/republishers/destinations.js'
import { startKafka } from '../test/kit/servers/kafka.js'
import { startPostgres } from '../test/kit/servers/postgres.js'
import { startRabbit } from '../test/kit/servers/rabbitmq.js'
import { measurement } from './measurement.js'

/** @import { Scenario, Setup, Work } from '../fleet/scenarios/contract.js' */
/** @import { DestinationServer } from '../test/backends/queues/republishers/destinations.js' */

/** @typedef {(bodies: string[]) => Promise<unknown>} Send publications as JSON, each in the order of its channel */

const MESSAGE_BYTES = 100
const BULK = 50_000
/** Rows per second, one at a time and in statements. */
const IDLE_RATE = 50
const LOAD_RATE = 5000
const STATEMENT_MS = 20
/** Drain timeout, ms. */
const PATIENCE_MS = 60_000

/** `json`, not `jsonb`: drones need the order of the keys. */
const OUTBOX = `
  CREATE TABLE outbox (id bigserial PRIMARY KEY, method text NOT NULL, payload json NOT NULL,
    partition integer NOT NULL DEFAULT 0, created_at timestamptz NOT NULL DEFAULT now());
  CREATE INDEX ON outbox (partition, id)`

/** Starts the server of a consumer. @type {Record<string, (setup: Setup) => Promise<{options: object, send: Send}>>} */
const SOURCES = {
  async postgresql(setup) {
    const database = await startPostgres(setup)
    await database.query(OUTBOX)
    return {
      options: { dsn: database.dsn(), outbox_table_name: 'outbox', partition_notification_channel: 'outbox' },
      send: bodies =>
        database.query(
          `INSERT INTO outbox (method, payload) SELECT 'publish', value FROM json_array_elements('[${bodies}]');
          NOTIFY outbox, '0'`,
        ),
    }
  },
  async kafka(setup) {
    const server = await startKafka(setup)
    await server.createTopic('orders')
    const headers = { 'centrifugo-method': 'publish' }
    return {
      options: { brokers: [server.broker], topics: ['orders'], consumer_group: 'bench' },
      send: bodies =>
        server.send(
          'orders',
          bodies.map(value => ({ value, headers })),
        ),
    }
  },
  async rabbitmq(setup) {
    const server = await startRabbit(setup)
    await server.declare('orders')
    return {
      options: { urls: [server.url()], queues: ['orders'] },
      send: bodies => server.send('orders', bodies, { 'centrifugo-method': 'publish' }),
    }
  },
}

/** Publications for the drones, numbered for each channel. */
class Source {
  #channels
  #sent = 0
  #start = startNumber(Date.now())
  #machine = channelNumber(machineFacts(1).bootId)

  /** @param {number} channels */
  constructor(channels) {
    this.#channels = channels
  }

  /** @param {number} count @returns {string[]} */
  next(count) {
    const t = Math.round((performance.timeOrigin + performance.now()) * 1000)
    return Array.from({ length: count }, () => {
      const n = this.#sent++
      const channel = `orders-${(n % this.#channels) + 1}`
      const s = Math.floor(n / this.#channels) + 1
      const numbers = { t, s, c: channelNumber(channel), e: this.#start, m: this.#machine, o: 0 }
      return `{"channel":"${channel}","data":${makePayload(numbers, MESSAGE_BYTES, false)}}`
    })
  }
}

/**
 * Waits until `count` publications, sent since `began`, have arrived, or no more arrive.
 * @param {Work} work @param {number} count @param {number} before publications received @param {number} began ms
 */
async function arrived({ fleet, servers }, count, before, began, cpu = servers.cpu()) {
  const received = () => fleet.snapshot().counters.received - before
  const sent = (performance.now() - began) / 1000
  let [last, at] = [-1, performance.now()]
  while (received() < count && performance.now() - at < PATIENCE_MS) {
    if (received() > last) [last, at] = [received(), performance.now()]
    await sleep(20)
  }
  return {
    sent: count,
    sent_per_s: Math.round(count / sent),
    received_per_s: Math.round((received() / (performance.now() - began)) * 1000),
    not_received: count - received(),
    cpu_us_per_sent: rounded(((servers.cpu() - cpu) / count) * 1e6, 1),
  }
}

/** @param {string} type @returns {Scenario} */
const consumers = type =>
  measurement({
    name: type === 'postgresql' ? 'consumers' : `consumers-${type}`,
    summary:
      type === 'postgresql'
        ? 'rows of a PostgreSQL outbox, from INSERT to subscribers'
        : `a bulk of messages in ${type}, to subscribers`,
    clients: 100,
    zeros: ['not_received'],
    measure({ n, overrides }) {
      const source = new Source(n)
      const settings = { n, channels: ['orders-{own}'] }
      /** @type {Send} */
      let send
      const bulk = async (/** @type {Work} */ work) => {
        const messages = overrides?.publish_rate ?? BULK
        const { received } = work.fleet.snapshot().counters
        const [began, cpu] = [performance.now(), work.servers.cpu()]
        await send(source.next(messages))
        return await arrived(work, messages, received, began, cpu)
      }
      /** @param {number} rate rows per second @param {number} ms between two statements */
      const rows = (rate, ms) => async (/** @type {Work} */ work) => {
        const { received } = work.fleet.snapshot().counters
        const [began, cpu, all] = [performance.now(), work.servers.cpu(), Math.ceil(rate * work.seconds)]
        for (let sent = 0; sent < all; ) {
          const due = Math.min(all, Math.floor(((performance.now() - began + ms) / 1000) * rate))
          if (due > sent) await send(source.next(due - sent))
          sent = Math.max(sent, due)
          await sleep(ms - ((performance.now() - began) % ms))
        }
        return await arrived(work, all, received, began, cpu)
      }
      const first = async (/** @type {Work} */ work) => {
        const [began, { received }] = [performance.now(), work.fleet.snapshot().counters]
        await send(source.next(n))
        return await arrived(work, n, received, began)
      }
      const loadRate = overrides?.publish_rate ?? LOAD_RATE
      const steps =
        type === 'postgresql'
          ? [
              { name: 'one at a time', settings, work: rows(IDLE_RATE, 1000 / IDLE_RATE) },
              { name: `${loadRate} rows/s`, settings, work: rows(loadRate, STATEMENT_MS) },
            ]
          : [{ name: 'bulk', settings, work: bulk }]
      return {
        workers: 1,
        async setup(setup) {
          const server = await SOURCES[type](setup)
          send = server.send
          return {
            config: { consumers: [{ name: 'bench', enabled: true, type, [type]: server.options }] },
          }
        },
        steps: [{ name: 'first messages', settings, work: first }, ...steps],
      }
    },
  })

/** @param {string} type @returns {Scenario} */
const republish = type =>
  measurement({
    name: type === 'redis_stream' ? 'republish' : `republish-${type}`,
    summary: `clients publish without and with a route to ${type}`,
    clients: 100,
    variants: ['without', type],
    zeros: ['lost'],
    measure({ n, variant, seconds = 5 }) {
      const isRouted = variant === type
      const settings = { n, channels: ['bench-{own}'] }
      /** @type {DestinationServer} */
      let destination
      return {
        workers: 1,
        async setup(setup) {
          destination = await DESTINATIONS[type].open(setup, false)
          const room = { queue_max_size: 10_000_000, queue_max_bytes: 2 ** 32 }
          const route = { name: 'bench', enabled: true, type, channels: ['bench-*'], ...room }
          return {
            config: isRouted ? { republish: [{ ...route, [type]: destination.block }] } : {},
            cpu: { destination: () => cpuOf(destination.pid()) },
          }
        },
        steps: [
          {
            name: 'publish',
            settings: {
              ...settings,
              ...{ publish_channels: [`bench-{1..${n}}`], publish_rate: 1000, publish_via: 'client' },
              ...{ publish_flat: true, publish_lanes: 200, publish_size: MESSAGE_BYTES },
            },
            seconds,
          },
          {
            name: 'stored',
            settings,
            settle: 0,
            /** @param {Work} work @returns {Promise<Record<string, number>>} */
            async work({ servers, fleet }) {
              const published = fleet.snapshot().counters.published
              if (!isRouted) return { lost: 0 }
              const isSettled = (
                /** @type {any} */ { republishers: [{ queued, confirmed, returned, refused, dropped }] },
              ) => queued === 0 && confirmed + returned + refused + dropped >= published
              await Promise.race([
                servers.gateways[0].next(isSettled),
                sleep(PATIENCE_MS, undefined, { ref: false }),
              ])
              const stored = await destination.count()
              return { published, republished: stored, lost: Math.max(0, published - stored) }
            },
          },
        ],
      }
    },
  })

export const QUEUES = [...Object.keys(SOURCES).map(consumers), ...Object.keys(DESTINATIONS).map(republish)]
