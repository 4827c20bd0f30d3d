// Random sequences of writes, disconnects and recoveries: the SDK's view of a map is that of a model.

import { Centrifuge } from 'centrifuge'
import t from 'tap'
import WebSocket from 'ws'
import { drivers, onDriver } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { startRedis, withoutRedis } from '../../kit/servers/redis.js'
import { until } from '../../kit/wait.js'
import { chance } from '../delta/chance.js'
import { config } from './sdk.js'

const SEQUENCES = 700
/** On the other socket server, which has no part in it. */
const FEWER = 150
const STEPS = 12
const LANES = 8
const KEYS = ['a', 'b', 'c', 'd', 'ключ', '🎈']
const NAMESPACES = ['ephemeral', 'recoverable', 'board', 'small']

t.setTimeout(300_000)

const REDIS = withoutRedis()
/** @type {[string, number, (t: any) => Promise<object>, string | false][]} */
const VARIANTS = [
  ...drivers.map(
    (driver, at) =>
      /** @type {[string, number, (t: any) => Promise<object>, false]} */ ([
        driver,
        at === 0 ? SEQUENCES : FEWER,
        async () => onDriver(driver),
        false,
      ]),
  ),
  [
    'redis',
    SEQUENCES,
    async t => {
      const { port } = await startRedis(t)
      return { engine: { type: 'redis', redis: { address: `redis://127.0.0.1:${port}` } } }
    },
    REDIS,
  ],
]

for (const [name, count, more, skip] of VARIANTS)
  t.test(`${count} sequences: ${name}`, { skip }, async t => {
    const gateway = await startGateway(t, { ...config, ...(await more(t)) })
    let done = 0
    let next = 0
    const lane = async () => {
      const client = new Centrifuge(gateway.ws, {
        websocket: WebSocket,
        minReconnectDelay: 1,
        maxReconnectDelay: 5,
      })
      t.teardown(() => client.disconnect())
      while (next < count) {
        const seed = next++
        const fault = await sequence(gateway, client, seed)
        if (fault !== '') t.fail(`sequence ${seed}: ${fault}`)
        done++
      }
    }
    await Promise.all(Array.from({ length: LANES }, lane))
    t.equal(done, count)
  })

/** @param {any} gateway @param {Centrifuge} client @param {number} seed @returns {Promise<string>} '' or what differs */
async function sequence(gateway, client, seed) {
  const { below } = chance(seed + 1)
  const channel = `${NAMESPACES[seed % NAMESPACES.length]}:${seed}`
  /** @type {Map<string, string>} */
  const model = new Map()
  /** @type {Map<string, string>} */
  const view = new Map()
  /** @type {string[]} */
  const faults = []
  const call = async (method, params) => {
    const body = JSON.stringify({ channel, ...params })
    const response = await fetch(`${gateway.url}/api/${method}`, { method: 'POST', body })
    const { error } = await response.json()
    if (error) faults.push(`${method}: ${error.message}`)
  }
  /** @param {{key: string, data: any, removed?: boolean}} change */
  const apply = ({ key, data, removed = false }) => (removed ? view.delete(key) : view.set(key, data))

  client.connect()
  const subscription = client.newMapSubscription(channel, {
    minResubscribeDelay: 1,
    maxResubscribeDelay: 5,
    pageSize: 1 + below(5),
    unrecoverableStrategy: 'from_scratch',
    ...(below(2) === 0 ? { delta: 'fossil' } : null),
  })
  subscription.on('sync', ({ entries }) => {
    view.clear()
    for (const entry of entries) apply(entry)
  })
  subscription.on('update', change => void apply(change))
  subscription.on('error', ({ error }) => {
    if (error.code !== 112) faults.push(error.message)
  })

  const step = {
    put() {
      const [key, value] = [
        KEYS[below(KEYS.length)],
        `value ${below(1000)} of a longer text`.repeat(1 + below(3)),
      ]
      model.set(key, value)
      return call('map_publish', { key, data: value, delta: below(2) === 0 })
    },
    append() {
      const key = KEYS[below(KEYS.length)]
      model.set(key, `${model.get(key) ?? ''}+${seed}`)
      return call('map_publish', { key, data: `+${seed}`, append: true })
    },
    remove() {
      const key = KEYS[below(KEYS.length)]
      model.delete(key)
      return call('map_remove', { key })
    },
    leave: async () => client.disconnect(),
    enter: async () => client.connect(),
    subscribe: async () => subscription.subscribe(),
    unsubscribe: async () => subscription.unsubscribe(),
  }
  const kinds = [
    ...['put', 'put', 'put', 'append', 'append', 'remove'],
    ...['leave', 'enter', 'enter', 'subscribe', 'subscribe', 'unsubscribe'],
  ]
  for (let n = 0; n < STEPS; n++) await step[kinds[below(kinds.length)]]()
  client.connect()
  subscription.subscribe()
  const text = entries => JSON.stringify([...entries].sort())
  await until(
    () => text(view) === text(model) || faults.length > 0,
    () => `${channel}: ${text(model)}, has ${text(view)}`,
  ).catch(error => faults.push(error.message))
  subscription.unsubscribe()
  client.removeSubscription(/** @type {any} */ (subscription))
  return faults.join('; ')
}
