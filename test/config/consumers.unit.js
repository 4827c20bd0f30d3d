import t from 'tap'
import { changesBetween } from '../../src/config/changes.js'
import { runningConsumers } from '../../src/config/consumers.js'
import { loadConfig } from '../../src/config/load.js'
import { faultsOf } from './support.js'

/** The required options of each type. @type {Record<string, Record<string, any>>} */
const COMPLETE = {
  postgresql: { dsn: 'postgres://127.0.0.1/db', outbox_table_name: 'outbox' },
  nats_jetstream: { stream_name: 'S', durable_consumer_name: 'd' },
  aws_sqs: { queues: ['http://127.0.0.1/1/q'] },
  redis_stream: { address: '127.0.0.1:6379', streams: ['s'], consumer_group: 'g' },
  kafka: { brokers: ['127.0.0.1:9092'], topics: ['t'], consumer_group: 'g' },
  rabbitmq: { urls: ['amqp://127.0.0.1'], queues: ['q'] },
}

/** @param {string} type @param {object} [more] of its block @returns {Record<string, any>} */
const one = (type, more = {}) => ({
  name: 'orders',
  enabled: true,
  type,
  [type]: { ...COMPLETE[type], ...more },
})
const faults = (/** @type {object} */ consumer) => faultsOf({ consumers: [consumer] }).join('\n')

t.test('a complete consumer of each type is valid; each required option is checked', async t => {
  for (const [type, block] of Object.entries(COMPLETE)) {
    t.equal(faults(one(type)), '', type)
    for (const [key, value] of Object.entries(block)) {
      const text = faults(one(type, { [key]: Array.isArray(value) ? [] : '' }))
      t.match(text, `consumers[0].${type}.${key}`, `${type}.${key}`)
      t.match(text, /is missing|empty/, `${type}.${key}`)
    }
  }
})

t.test('the block of a disabled consumer is not checked', async t => {
  for (const type of Object.keys(COMPLETE)) t.equal(faults({ name: 'orders', type }), '', type)
  const { config } = loadConfig({ base: { consumers: [one('kafka'), { name: 'off', type: 'kafka' }] } })
  t.same(
    runningConsumers(config).map(({ name }) => name),
    ['orders'],
  )
})

t.test('invalid consumers are refused', async t => {
  for (const [consumer, where, what] of /** @type {[object, string, RegExp][]} */ ([
    [{ name: 'orders', enabled: true }, '.type', /is missing.*types: .*kafka/],
    [{ name: 'orders', type: 'kafak' }, '.type', /"kafak" is not a consumer type.*kafka/],
    [{ ...one('kafka'), name: 'a b' }, '.name', /"a b" may contain only the characters/],
    [one('postgresql', { dsn: 'mysql://127.0.0.1' }), '.postgresql.dsn', /./],
    [one('redis_stream', { streams: ['s', 't', 's'] }), '.redis_stream.streams', /"s" is a duplicate/],
    [
      one('redis_stream', { address: ['127.0.0.1:1', '127.0.0.1:2'] }),
      '.redis_stream.address',
      /has 2 Redis deployments; only one is allowed/,
    ],
    [one('kafka', { topics: ['a b'] }), '.kafka.topics', /white space/],
    [one('kafka', { partition_queue_max_size: 0 }), '.kafka.partition_queue_max_size', /it must be -1 or/],
    [one('kafka', { sasl_mechanism: 'plain', sasl_user: 'u' }), '.kafka.sasl_password', /is missing/],
    [one('kafka', { assume_role_arn: 'arn:x' }), '.kafka.assume_role_arn', /does not support/],
    [one('aws_sqs', { assume_role_arn: 'arn:x' }), '.aws_sqs.assume_role_arn', /not supported/],
    [one('rabbitmq', { urls: ['http://127.0.0.1'] }), '.rabbitmq.urls', /not an amqp:\/\/ or amqps:\/\//],
    [
      one('rabbitmq', { bindings: [{ queue: 'x', exchange: 'e' }] }),
      '.rabbitmq.bindings',
      /"x" is not one of the queues/,
    ],
    [
      one('nats_jetstream', { publication_data_mode: { enabled: true, channels_header: '' } }),
      '.nats_jetstream.publication_data_mode.channels_header',
      /is empty/,
    ],
  ])) {
    const text = faults(consumer)
    t.match(text, `consumers[0]${where}`, where)
    t.match(text, what, where)
  }
})

t.test('errors show no passwords', async t => {
  t.notMatch(faults(one('rabbitmq', { urls: ['amqp//user:hidden@127.0.0.1'] })), 'hidden')
  t.notMatch(faults(one('postgresql', { dsn: 'mysql://user:hidden@127.0.0.1/db' })), 'hidden')
})

t.test('an unsupported type of Centrifugo is a warning, and does not run', async t => {
  const consumers = [{ name: 'orders', enabled: true, type: 'google_pub_sub' }]
  const { config, warnings } = loadConfig({ base: { consumers } })
  t.match(warnings.join('\n'), /does not support yet; the consumer does not run/)
  t.same(runningConsumers(config), [])
})

t.test('a change of consumers requires a restart', async t => {
  const load = (/** @type {object[]} */ consumers) => loadConfig({ base: { consumers } }).config
  const { live, workers, start } = changesBetween(load([one('kafka')]), load([one('rabbitmq')]))
  t.same({ live, workers, start }, { live: [], workers: [], start: ['consumers'] })
})
