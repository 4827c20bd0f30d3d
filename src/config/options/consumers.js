// Options of consumers: of each list item, and the block of each type.

import {
  bool,
  clientTls,
  duration,
  int,
  named,
  newStart,
  objects,
  oneOrMore,
  string,
  strings,
} from './make.js'
import { redisConnection } from './redis.js'

/** @import { Row } from './make.js' */

/**
 * @template {string} N
 * @typedef {`${'channels' | 'idempotency_key' | 'delta' | 'version' | 'version_epoch'}_${N}` | `tags_${N}_prefix`} DataModeField
 */

/**
 * Publication data mode.
 * @template {string} N
 * @param {N} noun kind of field: `header`, `value`, `attribute`
 * @param {string} places noun in the docs
 */
const dataMode = (noun, places) => {
  const field = (/** @type {string} */ key, /** @type {string} */ what) => ({
    [`${key}_${noun}`]: string(`Name of the ${what} in the ${places}. Empty: off.`, {
      default: `centrifugo-${key.replaceAll('_', '-')}`,
    }),
  })
  /** @type {Record<string, Row>} */
  const mode = {
    enabled: bool(`The payload is the data of a publication; the ${places} contain the rest.`),
    [`channels_${noun}`]: string(
      `Name of the channel list (comma-separated, without spaces) in the ${places}.`,
      { default: 'centrifugo-channels' },
    ),
    ...field('idempotency_key', 'idempotency key'),
    ...field('delta', 'flag that permits deltas'),
    ...field('version', 'version'),
    ...field('version_epoch', 'epoch of the version'),
    [`tags_${noun}_prefix`]: string(
      'Prefix of tag names; the rest of the name is the name of the tag. Empty: off.',
      { default: 'centrifugo-tag-' },
    ),
  }
  return /** @type {{enabled: Row<boolean>} & Record<DataModeField<N>, Row<string>>} */ (mode)
}

export const natsConnection = {
  url: string('Address of the server.', { default: 'nats://127.0.0.1:4222', secret: true }),
  credentials_file: string(
    'File with the credentials of a user. Has precedence over the other credentials.',
    { file: true },
  ),
  username: string('User. Has precedence over `token`.'),
  password: string('Password of the user.', { secret: true }),
  token: string('Token.', { secret: true }),
  tls: clientTls('Use TLS.', 'the server'),
}

export const kafkaConnection = {
  brokers: strings('Bootstrap brokers, as `host:port`. Required.'),
  dial_timeout: duration('3s', 'Maximum time to connect to a broker.', { min: 10 }),
  tls: clientTls('Connect to the brokers with TLS.', 'the brokers'),
  sasl_mechanism: string('SASL mechanism. Empty: none.', {
    values: ['', 'plain', 'scram-sha-256', 'scram-sha-512'],
    unsupported: { 'aws-msk-iam': 'not supported by the Kafka client; use scram-sha-512' },
  }),
  sasl_user: string('User of SASL.'),
  sasl_password: string('Password of SASL.', { secret: true }),
}

const redisStream = {
  address: oneOrMore(
    'Redis address, in a form of `engine.redis.address`. Required unless a cluster or sentinels are set.',
    { default: '', secret: true },
  ),
  ...redisConnection,
  streams: strings('Keys of the streams, without any prefix. Required.'),
  consumer_group: string('Consumer group, created if it is missing. Required.'),
  visibility_timeout: duration('30s', 'Time after which an unfinished entry is redelivered.', {
    min: 100,
  }),
  num_workers: int(1, 'Concurrently processed entries of a stream.', { min: 1, max: 1024 }),
  payload_value: string('Field of an entry with the payload.', { default: 'payload' }),
  method_value: string('Field of an entry with the method. Without it the payload is an envelope.', {
    default: 'method',
  }),
  publication_data_mode: dataMode('value', 'fields of the entry'),
}

const kafka = {
  ...kafkaConnection,
  topics: strings('Topics. Required. The consumer waits for missing ones.'),
  consumer_group: string('Consumer group. A new group starts at the earliest record. Required.'),
  max_poll_records: int(
    100,
    'No effect, accepted for Centrifugo configurations. `fetch_max_bytes` limits a fetch, `partition_queue_max_size` the queue.',
    { min: 1 },
  ),
  fetch_max_bytes: int(52_428_800, 'Maximum size of a fetch, and of all records queued in the gateway.', {
    unit: 'bytes',
    min: 1024,
  }),
  fetch_max_wait: duration('500ms', 'Maximum wait of a broker for records.'),
  fetch_read_uncommitted: bool('Also process records of uncommitted transactions.'),
  partition_queue_max_size: int(
    1000,
    'A partition with this many queued records is paused. -1: it is paused while any record is queued.',
    { min: -1 },
  ),
  assume_role_arn: string('For `aws-msk-iam`, which is not supported: must be empty.'),
  instance_id: string('Static group member id, unique per node: a restart causes no rebalance. Empty: none.'),
  method_header: string('Header with the method. Without it the value is an envelope.', {
    default: 'centrifugo-method',
  }),
  publication_data_mode: dataMode('header', 'headers'),
}

const rabbitmq = {
  urls: strings('Servers, `amqp://user:password@host:5672/vhost` or `amqps://`, tried in turn. Required.', {
    secret: true,
  }),
  tls: clientTls('TLS options for `amqps://` addresses.', 'RabbitMQ'),
  queues: strings('Queues. Required. The consumer waits for missing ones, unless `declare` is on.'),
  prefetch: int(
    100,
    'Maximum unacknowledged messages of a queue in the gateway, which determines their memory.',
    { min: 1, max: 65_535 },
  ),
  concurrency: int(1, 'Concurrently processed messages of a queue. 1 keeps their order.', {
    min: 1,
    max: 1024,
  }),
  method_header: string('Header with the method. Without it the body is an envelope.', {
    default: 'centrifugo-method',
  }),
  declare: bool(
    'Declare the queues: durable, and with `concurrency` 1 for one consumer at a time, which keeps the order over several nodes.',
  ),
  bindings: objects('With `declare`: bindings of the queues, as `{queue, exchange, routing_key}`.', {
    queue: { type: 'string', minLength: 1 },
    exchange: { type: 'string', minLength: 1 },
    routing_key: { type: 'string', default: '' },
  }),
  on_malformed: string(
    'Handling of skipped messages: `ack`, or `reject` (to the dead-letter exchange of the queue).',
    { default: 'ack', values: ['ack', 'reject'] },
  ),
  publication_data_mode: dataMode('header', 'headers'),
}

const postgresql = {
  dsn: string(
    'Database: a `postgres://` URL, or `host=... dbname=...`. Its `pool_max_conns` is the number of connections (default 4). Required.',
    { secret: true },
  ),
  outbox_table_name: string('Table name, used unchanged in SQL: `schema.table` is allowed. Required.'),
  num_partitions: int(1, 'Number of partitions, which are numbered from 0.', { min: 1, max: 10_000 }),
  partition_select_limit: int(100, 'Maximum rows per transaction.', { min: 1, max: 100_000 }),
  partition_poll_interval: duration('300ms', 'Polling interval of an empty partition.'),
  partition_notification_channel: string(
    'Channel of LISTEN: a notification with a partition number polls that partition immediately. Empty: off.',
  ),
  partition_notification_dsn: string(
    'Direct connection for LISTEN if `dsn` is a transaction pooler. Empty: `dsn`.',
    { secret: true },
  ),
  tls: clientTls('Use TLS with the settings below. Off: `sslmode` of the DSN applies.', 'the server'),
  use_try_lock: bool(
    'Do not wait for the lock of a partition that another node processes: retry after the interval.',
  ),
}

const natsJetstream = {
  ...natsConnection,
  stream_name: string('Name of the stream. Required.'),
  durable_consumer_name: string('Name of the durable consumer, shared by all nodes. Required.'),
  subjects: strings('Subjects of the stream. Empty: all. More than one needs NATS 2.10.'),
  deliver_policy: string('Start of a new durable consumer: new messages only, or the whole stream.', {
    default: 'new',
    values: ['new', 'all'],
  }),
  max_ack_pending: int(100, 'Maximum unacknowledged messages of all nodes.', { min: 1, max: 1_000_000 }),
  use_existing_consumer: bool(
    'Use an existing durable consumer unchanged: the three options above are ignored.',
  ),
  method_header: string('Header with the method. Without it the payload is an envelope.', {
    default: 'centrifugo-method',
  }),
  publication_data_mode: dataMode('header', 'headers'),
}

const awsSqs = {
  queues: strings('URLs of the queues. Required.'),
  region: string('Region. Empty: from the environment or the profile.'),
  sns_envelope: bool('Messages come from SNS: the payload is the text in `Message`.'),
  max_number_of_messages: int(10, 'Messages per request.', { min: 1, max: 10 }),
  wait_time_time: duration('20s', 'Maximum wait of a receive request.', { min: 0, max: 20_000 }),
  visibility_timeout: duration('30s', 'Time after which an unfinished message is redelivered.', {
    min: 1000,
    max: 43_200_000,
  }),
  max_concurrency: int(
    1,
    'Concurrently processed messages of a queue. Messages of a group are processed in sequence.',
    { min: 1, max: 10 },
  ),
  credentials_profile: string(
    'Profile of the shared configuration files. Empty: the default credential chain.',
  ),
  assume_role_arn: string('Not supported: use a `credentials_profile` with `role_arn`.'),
  localstack_endpoint: string('URL of a service other than AWS, for tests.'),
  method_attribute: string('Attribute with the method. Without it the payload is an envelope.', {
    default: 'centrifugo-method',
  }),
  publication_data_mode: dataMode('attribute', 'attributes of the message'),
}

/** Type -> options of its block. */
export const consumerTypes = {
  aws_sqs: awsSqs,
  nats_jetstream: natsJetstream,
  postgresql,
  redis_stream: redisStream,
  kafka,
  rabbitmq,
}

/** Centrifugo types not supported yet: a warning, and the consumer does not run. */
export const unsupportedConsumerTypes = ['azure_service_bus', 'google_pub_sub']

export const consumerMembers = newStart({
  enabled: bool('Enable the consumer. The options of its type are validated only if it is enabled.'),
  type: string(
    `Type: ${Object.keys(consumerTypes)
      .map(type => `\`${type}\``)
      .join(', ')}. Required.`,
  ),
  own_origin: bool(
    'Also process messages that this cluster has republished. Off: they are skipped, which prevents loops. Halley only.',
  ),
  aws_sqs: awsSqs,
  nats_jetstream: natsJetstream,
  postgresql,
  redis_stream: redisStream,
  kafka,
  rabbitmq,
})

export const consumerOptions = newStart({
  consumers: named(
    'Consumers: objects with a `name` (two or more of `a-zA-Z0-9_`), `enabled`, `type` and a block named like the type.',
    consumerMembers,
  ),
})
