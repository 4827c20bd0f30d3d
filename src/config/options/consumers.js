// Options of consumers: those of each item of the list, and the block of each type.

import { bool, duration, int, named, newStart, objects, oneOrMore, string, strings } from './make.js'
import { redisOptions } from './redis.js'
import { clientTls } from './tls.js'

/** @import { Option, Row } from './make.js' */

/**
 * Publication data mode.
 * @param {string} noun what carries the fields: `header`, `value`, `attribute` @param {string} places where, for the docs
 * @returns {Row[]}
 */
export const dataMode = (noun, places) => {
  const path = (/** @type {string} */ key) => `publication_data_mode.${key}`
  const field = (/** @type {string} */ key, /** @type {string} */ what) =>
    string(
      path(`${key}_${noun}`),
      `centrifugo-${key.replaceAll('_', '-')}`,
      `Name of the ${what} among the ${places}. Empty: off.`,
    )
  return [
    bool(path('enabled'), `The payload is the data of a publication; the ${places} say the rest.`),
    string(
      path(`channels_${noun}`),
      'centrifugo-channels',
      `Name of the channels among the ${places}, separated by commas without spaces.`,
    ),
    field('idempotency_key', 'idempotency key'),
    field('delta', 'flag that permits deltas'),
    field('version', 'version'),
    field('version_epoch', 'epoch of the version'),
    string(
      path(`tags_${noun}_prefix`),
      'centrifugo-tag-',
      'Begin of the names of tags. The rest of a name is that of the tag. Empty: off.',
    ),
  ]
}

/** Options of `engine.redis` that a connection of a consumer or republisher has too. */
const CONNECTION = [
  'cluster_address',
  'sentinel_address',
  'sentinel_master_name',
  'user',
  'password',
  'db',
  'client_name',
  'sentinel_user',
  'sentinel_password',
  'connect_timeout',
  'io_timeout',
]

/** @returns {Row[]} connection to one Redis, its paths relative to a block */
export function redisConnection() {
  const block = 'engine.redis.'
  const rows = redisOptions.map(({ change, ...row }) => ({ ...row, path: row.path.slice(block.length) }))
  return [
    oneOrMore(
      'address',
      '',
      'Address of the one Redis, in the forms of `engine.redis.address`. Required, unless it is a cluster or has sentinels.',
      { secret: true },
    ),
    ...rows.filter(({ path }) => CONNECTION.includes(path) || /^(?:sentinel_)?tls\./.test(path)),
  ]
}

const redisStream = [
  ...redisConnection(),
  strings('streams', 'Keys of the streams, without any prefix. Required.'),
  string('consumer_group', '', 'Name of the consumer group, which is made if it is missing. Required.'),
  duration('visibility_timeout', '30s', 'An entry without success is taken again after this time.', {
    min: 100,
  }),
  int('num_workers', 1, 'Entries of a stream that are in work at the same time.', { min: 1, max: 1024 }),
  string('payload_value', 'payload', 'Field of an entry with the payload.'),
  string(
    'method_value',
    'method',
    'Field of an entry with the method. Without it the payload is an envelope.',
  ),
  ...dataMode('value', 'fields of the entry'),
]

const kafka = [
  strings('brokers', 'Brokers to begin with, as `host:port`. Required.'),
  strings('topics', 'Topics. Required. A missing one is waited for.'),
  string('consumer_group', '', 'Consumer group. A new one begins at the earliest record. Required.'),
  int(
    'max_poll_records',
    100,
    'Accepted for configurations of Centrifugo; Halley takes what a fetch brings.',
    { min: 1 },
  ),
  int('fetch_max_bytes', 52_428_800, 'Limit of a fetch, and of all records that wait in the gateway.', {
    unit: 'bytes',
    min: 1024,
  }),
  duration('fetch_max_wait', '500ms', 'Time that a broker waits for records before it answers.'),
  bool('fetch_read_uncommitted', 'Also run records of transactions that are not committed.'),
  int(
    'partition_queue_max_size',
    1000,
    'A partition with that many waiting records is paused. -1: it is paused as long as any record waits.',
    { min: -1 },
  ),
  duration('dial_timeout', '3s', 'Maximum time to connect to a broker.', { min: 10 }),
  ...clientTls('tls', 'Connect to the brokers with TLS.', 'the brokers', 'address'),
  string('sasl_mechanism', '', 'SASL mechanism. Empty: none.', {
    values: ['', 'plain', 'scram-sha-256', 'scram-sha-512'],
    unsupported: {
      'aws-msk-iam': 'the Kafka client of Halley has no AWS MSK IAM; use scram-sha-512',
    },
  }),
  string('sasl_user', '', 'User of SASL.'),
  string('sasl_password', '', 'Password of SASL.', { secret: true }),
  string('assume_role_arn', '', 'For `aws-msk-iam`, which is not supported: must be empty.'),
  string(
    'instance_id',
    '',
    'Static member of the group, another one on each node: a restart causes no rebalance. Empty: none.',
  ),
  string(
    'method_header',
    'centrifugo-method',
    'Header with the method. Without it the value is an envelope.',
  ),
  ...dataMode('header', 'headers'),
]

const rabbitmq = [
  strings('urls', 'Servers, `amqp://user:password@host:5672/vhost` or `amqps://`, tried in turn. Required.', {
    secret: true,
  }),
  ...clientTls('tls', 'TLS options for `amqps://` addresses.', 'RabbitMQ', 'address'),
  strings('queues', 'Queues. Required. A missing one is waited for, unless `declare` is on.'),
  int(
    'prefetch',
    100,
    'Messages of a queue that the gateway holds unacknowledged. Times their size it is the memory they need.',
    { min: 1, max: 65_535 },
  ),
  int(
    'concurrency',
    1,
    'Messages of a queue that are in work at the same time. With 1 their order is kept.',
    { min: 1, max: 1024 },
  ),
  string('method_header', 'centrifugo-method', 'Header with the method. Without it the body is an envelope.'),
  bool(
    'declare',
    'Declare the queues: durable, and with `concurrency` 1 for one consumer at a time, which keeps the order over several nodes.',
  ),
  objects('bindings', 'With `declare`: bindings of the queues, as `{queue, exchange, routing_key}`.', {
    queue: { type: 'string', minLength: 1 },
    exchange: { type: 'string', minLength: 1 },
    routing_key: { type: 'string', default: '' },
  }),
  string(
    'on_malformed',
    'ack',
    'What a skipped message gets: `ack`, or `reject` = to the dead-letter exchange of its queue.',
    { values: ['ack', 'reject'] },
  ),
  ...dataMode('header', 'headers'),
]

/** Type -> rows of its block, relative to it. @type {Readonly<Record<string, readonly Row[]>>} */
export const consumerTypes = Object.freeze({
  redis_stream: redisStream,
  kafka,
  rabbitmq,
})

/** Types of Centrifugo that Halley does not support yet: a warning, and the consumer does not run. */
export const unsupportedConsumerTypes = ['azure_service_bus', 'google_pub_sub']

/** Of each item of `consumers`. @type {readonly Option[]} */
export const consumerMembers = newStart([
  bool('enabled', 'Run it. The options of its type are checked only then.'),
  string(
    'type',
    '',
    `Type: ${Object.keys(consumerTypes)
      .map(type => `\`${type}\``)
      .join(', ')}. Required.`,
  ),
  ...Object.entries(consumerTypes).flatMap(([type, rows]) =>
    rows.map(row => ({ ...row, path: `${type}.${row.path}` })),
  ),
])

export const consumerOptions = newStart([
  named(
    'consumers',
    'Consumers: objects with a `name` (two or more of `a-zA-Z0-9_`), `enabled`, `type` and a block named like the type.',
    consumerMembers,
  ),
])
